"""Every place that may hold CUDA, in the order in which it counts; nothing is judged here."""

import itertools
import logging
import os
import re
import shutil
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from packaging.version import Version

from wheelfarm.errors import WheelfarmError
from wheelfarm.toolkit.environment import Environment
from wheelfarm.toolkit.layout import Machine, make_root, split_major
from wheelfarm.toolkit.model import Candidate, Root, Source
from wheelfarm.toolkit.parts import COMPANIONS

logger = logging.getLogger(__name__)

_UNIFIED = re.compile(r"cu(\d{2})", re.ASCII)
_PIN = re.compile(r"^Requires-Dist:\s*(nvidia-[a-z0-9-]+)\s*(==[0-9.]+(?:\.\*)?)\s*(?:;|$)")
_TOP = re.compile(r"^#\$ TOP=(.+)$", re.MULTILINE)

#: Folders of the split layout that hold the toolkit itself.
_COMPONENTS = (
    *("cuda_runtime", "cuda_nvrtc", "cuda_nvcc", "cuda_cccl", "cublas", "cufft", "curand"),
    *("cusolver", "cusparse", "nvjitlink", "cuda_cupti", "nvtx"),
)
_VARIABLES = ("CUDA_HOME", "CUDA_PATH")


def wheel_roots(environment: Environment, machine: Machine) -> Iterator[Root]:
    """Yield NVIDIA's wheels, one root for each environment and CUDA major.

    The search path is walked, since ``nvidia`` is a namespace package in CUDA 13's wheels and a
    regular one in CUDA 12's, which hides the other trees from the import system.
    """
    for group in _groups(environment.folders):
        distributions = environment.distributions(group)
        pins = _pins(group)
        majors: dict[int, list[Path]] = {}
        for folder in group:
            for top in sorted((folder / "nvidia").glob("cu[0-9][0-9]")):
                match = _UNIFIED.fullmatch(top.name)
                if match is not None and top.is_dir():
                    majors.setdefault(int(match[1]), []).append(top)
        for major in sorted(majors, reverse=True):
            yield make_root(
                machine,
                source="wheels",
                layout="unified",
                tops=(*majors[major], *_companions(group, major, distributions)),
                path=majors[major][0],
                found_by="sys.path",
                distributions=distributions,
                pins=pins,
            )
        split = tuple(
            top
            for folder in group
            for name in _COMPONENTS
            if (top := folder / "nvidia" / name).is_dir()
        )
        if split:
            owner = split_major(split, distributions)
            yield make_root(
                machine,
                source="wheels",
                layout="split",
                tops=(*split, *_companions(group, owner, distributions)),
                path=split[0].parent,
                found_by="sys.path",
                distributions=distributions,
                pins=pins,
            )


def conda_roots(environment: Environment, machine: Machine) -> Iterator[Root]:
    """Yield the conda environment of the interpreter, then the active one."""
    places = {environment.prefix: "the interpreter's own prefix"}
    active = machine.environ.get("CONDA_PREFIX", "")
    if active:
        places.setdefault(Path(active), "CONDA_PREFIX")
    for prefix, found_by in places.items():
        if (prefix / "conda-meta").is_dir():
            top = prefix / "Library" if machine.system == "windows" else prefix
            root = prefix_root(machine, "conda", top, found_by)
            if has_cuda(root):
                yield root


def system_roots(machine: Machine) -> Iterator[Root | Candidate]:
    """Yield system toolkits: variables, nvcc on PATH, the usual folders; each place once.

    A variable that names no toolkit is yielded as a rejected candidate, and the search goes on.
    """
    seen: set[Path] = set()
    places = (_from_variables(machine), _from_path(machine), _from_usual(machine))
    for item in itertools.chain.from_iterable(places):
        if isinstance(item, Candidate):
            yield item
        elif item.path.resolve() not in seen:
            seen.add(item.path.resolve())
            yield item


def pathfinder_roots(environment: Environment, machine: Machine) -> Iterator[Root]:
    """Yield what NVIDIA's cuda-pathfinder finds beyond wheels, for this process and machine.

    It knows places that are not walked here (a toolkit whose libraries the loader finds). It
    answers for its own process alone, prefers CUDA 13's wheels whatever torch's CUDA is, and
    remembers variables for the life of the process; so it is asked last, and not about wheels.
    """
    if environment.folders != Environment.here().folders or machine.environ is not os.environ:
        return
    try:
        from cuda.pathfinder import locate_nvidia_header_directory
    except ImportError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = locate_nvidia_header_directory("cudart")
    if found is None or found.abs_path is None or found.found_via == "site-packages":
        return
    include = Path(found.abs_path)
    top = (
        include.parent.parent.parent if include.parent.parent.name == "targets" else include.parent
    )
    source: Source = "conda" if found.found_via == "conda" else "system"
    yield prefix_root(machine, source, top, f"cuda-pathfinder ({found.found_via})")


def torch_places(machine: Machine) -> Iterator[Root | Candidate]:
    """Yield the toolkits that torch itself looks for: variables, nvcc on PATH, one usual folder."""
    yield from _from_variables(machine)
    yield from _from_path(machine)
    if machine.system == "windows":
        yield from _from_usual(machine)
    else:
        root = prefix_root(
            machine, "system", machine.top / "usr" / "local" / "cuda", "usual folder"
        )
        if has_cuda(root):
            yield root


def has_cuda(root: Root) -> bool:
    """Return whether a prefix holds CUDA at all: its main header or its compiler."""
    headers = any((folder / "cuda_runtime_api.h").is_file() for folder in root.include_dirs)
    nvcc = "nvcc.exe" if root.system == "windows" else "nvcc"
    # A lone nvcc may be a script that calls another toolkit's; the real one has its profile beside.
    real = any(
        (folder / nvcc).is_file() and (folder / "nvcc.profile").is_file()
        for folder in root.bin_dirs
    )
    return headers or real


def prefix_root(machine: Machine, source: Source, top: Path, found_by: str) -> Root:
    """Return the root of an installed toolkit at ``top``."""
    return make_root(
        machine,
        source=source,
        layout="prefix",
        tops=(top,),
        path=top,
        found_by=found_by,
        distributions={},
        pins={},
    )


def nvcc_top(nvcc: Path) -> Path | None:
    """Return what an nvcc takes as its top (``--dryrun`` compiles nothing); None if it fails."""
    from wheelfarm.run import run

    try:
        completed = run([nvcc, "--dryrun", "-E", "-x", "cu", os.devnull], check=False, timeout=20)
    except WheelfarmError as error:
        logger.info("%s did not answer: %s", nvcc, error)
        return None
    match = _TOP.search(completed.stderr)
    return None if match is None else Path(os.path.normpath(match[1].strip()))


def _from_variables(machine: Machine) -> Iterator[Root | Candidate]:
    for name in _VARIABLES:
        value = machine.environ.get(name)
        if value is None:
            continue
        place = f"{name}={value}"
        if not value.strip():
            yield Candidate(root=None, place=place, reason="the variable is set and empty")
        elif not Path(value).is_dir():
            several = machine.system == "linux" and ":" in value
            reason = "a list of folders, not one folder" if several else "no such folder"
            yield Candidate(root=None, place=place, reason=f"invalid variable: {reason}")
        else:
            root = prefix_root(machine, "system", Path(value), name)
            if has_cuda(root):
                yield root
            else:
                reason = "invalid variable: the folder holds neither CUDA's headers nor its nvcc"
                yield Candidate(root=None, place=place, reason=reason)


def _from_path(machine: Machine) -> Iterator[Root | Candidate]:
    found = shutil.which("nvcc", path=machine.environ.get("PATH", ""))
    if found is None:
        return
    for nvcc in (Path(found), Path(found).resolve()):
        root = prefix_root(machine, "system", nvcc.parent.parent, f"nvcc on PATH ({found})")
        if has_cuda(root) and nvcc.parent.name == "bin":
            yield root
            return
    top = nvcc_top(Path(found))
    if top is None:
        yield Candidate(root=None, place=found, reason="this nvcc does not say where its parts are")
    else:
        yield prefix_root(machine, "system", top, f"nvcc on PATH ({found})")


def _from_usual(machine: Machine) -> Iterator[Root | Candidate]:
    if machine.system == "windows":
        base = machine.top / "Program Files" / "NVIDIA GPU Computing Toolkit" / "CUDA"
        places = sorted(base.glob("v*"), key=_numbers, reverse=True)
    else:
        local = machine.top / "usr" / "local"
        versions = sorted(local.glob("cuda-[0-9]*"), key=_numbers, reverse=True)
        places = [local / "cuda", *versions, machine.top / "opt" / "cuda"]
        places += [machine.top / "usr" / "lib" / "cuda", machine.top / "usr"]
    for place in places:
        if place.is_dir():
            root = prefix_root(machine, "system", place, "usual folder")
            if has_cuda(root):
                yield root


def _numbers(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.name)]


def _groups(folders: tuple[Path, ...]) -> list[tuple[Path, ...]]:
    """Put lib and lib64 of one environment together: distributions split wheels over both."""
    groups: dict[Path, list[Path]] = {}
    for folder in folders:
        key = Path(*("lib" if part == "lib64" else part for part in folder.parts))
        known = groups.setdefault(key, [])
        if not any(folder.resolve() == other.resolve() for other in known):
            known.append(folder)
    return [tuple(group) for group in groups.values()]


def _companions(
    group: tuple[Path, ...], major: int | None, distributions: Mapping[str, Version]
) -> tuple[Path, ...]:
    found = []
    for name in COMPANIONS:
        if major is None or f"nvidia-{name}-cu{major}" not in distributions:
            continue
        found += [top for folder in group if (top := folder / "nvidia" / name).is_dir()]
    return tuple(found)


def _pins(group: tuple[Path, ...]) -> dict[str, str]:
    """Return what cuda-toolkit, else torch, requires of NVIDIA's wheels: one release's parts."""
    pins: dict[str, str] = {}
    for pattern in ("torch-*.dist-info", "cuda_toolkit-*.dist-info"):
        for info in (info for folder in group for info in folder.glob(pattern)):
            try:
                text = (info / "METADATA").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            matches = map(_PIN.match, text.split("\n\n", 1)[0].splitlines())
            pins.update({match[1]: match[2] for match in matches if match is not None})
    return pins
