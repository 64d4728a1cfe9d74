"""Find CUDA: an environment and a wanted version in, one toolkit or every place's reason out."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wheelfarm.errors import BadInputError
from wheelfarm.facts.installed_torch import InstalledTorch
from wheelfarm.model.versions import Minor
from wheelfarm.toolkit.environment import Environment
from wheelfarm.toolkit.layout import Machine
from wheelfarm.toolkit.model import (
    SOURCES,
    Candidate,
    CpuOnlyTorchError,
    Missing,
    NoToolkitError,
    Root,
    Source,
    Step,
    Toolkit,
)
from wheelfarm.toolkit.parts import (
    LIBRARIES,
    PARTS,
    STEPS,
    UNIFIED_FROM,
    find_library,
    find_part,
    missing_library,
    missing_part,
    wheel_name,
)
from wheelfarm.toolkit.roots import conda_roots, pathfinder_roots, system_roots, wheel_roots
from wheelfarm.values import replace

logger = logging.getLogger(__name__)

#: The wheels whose release must be one, as the compiler's passes hand internal formats on.
_COMPILER = ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt")


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What is asked of a toolkit. ``minor`` None: any minor of the major; both None: any CUDA."""

    major: int | None
    minor: Minor | None
    needs: tuple[Step, ...]
    libraries: tuple[str, ...]

    def __str__(self) -> str:
        version = "CUDA" if self.major is None else f"CUDA {self.minor or self.major}"
        return f"{version} for {', '.join((*self.needs, *self.libraries)) or 'anything'}"


def find_toolkit(
    cuda: "Minor | int | str | None" = None,
    source: 'Source | Literal["auto"]' = "auto",
    *,
    environment: Environment | None = None,
    python: Path | None = None,
    needs: Sequence[Step] = ("host", "link"),
    libraries: Sequence[str] = ("cudart",),
    machine: Machine | None = None,
) -> Toolkit:
    """Return the first toolkit that offers every file that the steps ``needs`` read.

    ``cuda`` is a version or a major; by default torch's own, read from its version.py, so that a
    stray wheel of another major never wins. ``environment`` (or ``python``, an interpreter's path)
    is where wheels are looked for, by default this process's. With ``source`` ``auto`` wheels come
    before conda, conda before a system's folder. Headers, libraries and compiler come from one
    root, never from two.

    Raises NoToolkitError with each place and why it will not do, CpuOnlyTorchError where torch was
    built without CUDA.
    """
    if source != "auto" and source not in SOURCES:
        message = f"{source!r} is no source of CUDA; known are auto, {', '.join(SOURCES)}"
        raise BadInputError(message)
    machine = machine or Machine.here()
    if environment is None:
        environment = Environment.here() if python is None else Environment.of_python(python)
    wanted = _wanted(cuda, environment, tuple(needs), tuple(libraries))
    candidates: list[Candidate] = []
    seen: set[Path] = set()
    for item in _places(source, environment, machine):
        if isinstance(item, Root):
            # Two layouts may share a folder, one layout is judged there once.
            place = item.path.resolve() / item.layout
            if place in seen:
                continue
            seen.add(place)
        candidate = item if isinstance(item, Candidate) else judge(item, wanted)
        candidates.append(candidate)
        if candidate.root is not None and not candidate.reason:
            return _toolkit(candidate.root, wanted, tuple(candidates))
        logger.info("%s", candidate)
    raise NoToolkitError(str(wanted), tuple(candidates), hint=_hint(candidates, wanted))


def judge(root: Root, wanted: Wanted) -> Candidate:
    """Return what is decided of one root, with the files it lacks."""
    lacking = missing_files(root, wanted)
    reason = (
        _version_reason(root, wanted) or _lacking_reason(lacking) or _mixed_reason(root, wanted)
    )
    return Candidate(root=root, place=str(root.path), reason=reason, missing=lacking)


def missing_files(root: Root, wanted: Wanted) -> tuple[Missing, ...]:
    """Return every file that the wanted steps read and the root lacks."""
    names = dict.fromkeys(name for step in wanted.needs for name in STEPS[step])
    absent_parts = [PARTS[name] for name in names if find_part(root, PARTS[name]) is None]
    lacking = [missing_part(root, part, wanted.minor) for part in absent_parts]
    for name in wanted.libraries:
        header = LIBRARIES.get(name, ("", ""))[1]
        absent = header and not any((folder / header).is_file() for folder in root.include_dirs)
        if absent or find_library(root, name) is None:
            lacking.append(missing_library(root, name, wanted.minor))
    return tuple(lacking)


def torch_cuda(environment: Environment) -> InstalledTorch | None:
    """Return the torch of an environment; CpuOnlyTorchError where it drives no CUDA device."""
    torch = environment.torch()
    if torch is not None and torch.cuda is None:
        other = f"for HIP {torch.hip}" if torch.hip else f"for SYCL {torch.xpu}"
        built = "without CUDA" if torch.cpu_only else other
        message = f"torch {torch.version} in {torch.folder} was built {built}"
        raise CpuOnlyTorchError(message, hint="install a CUDA build of torch")
    return torch


def _wanted(
    cuda: Minor | int | str | None,
    environment: Environment,
    needs: tuple[Step, ...],
    libraries: tuple[str, ...],
) -> Wanted:
    for step in needs:
        if step not in STEPS:
            message = f"{step!r} is no step; known are {', '.join(STEPS)}"
            raise BadInputError(message)
    minor: Minor | None = None
    if isinstance(cuda, str):
        cuda = int(cuda) if cuda.isascii() and cuda.isdigit() else Minor.parse(cuda)
    if cuda is None:
        torch = torch_cuda(environment)
        minor = None if torch is None else torch.cuda
        major = None if minor is None else minor.major
    elif isinstance(cuda, Minor):
        minor, major = cuda, cuda.major
    else:
        major = cuda
    return Wanted(major=major, minor=minor, needs=needs, libraries=libraries)


def _places(
    source: 'Source | Literal["auto"]', environment: Environment, machine: Machine
) -> Iterator[Root | Candidate]:
    if source in {"auto", "wheels"}:
        yield from wheel_roots(environment, machine)
    if source in {"auto", "conda"}:
        yield from conda_roots(environment, machine)
    if source in {"auto", "system"}:
        yield from system_roots(machine)
    if source == "auto":
        yield from pathfinder_roots(environment, machine)


def _version_reason(root: Root, wanted: Wanted) -> str:
    if root.major is None:
        return "nothing there tells which CUDA it is"
    if wanted.major is not None and root.major != wanted.major:
        return f"it is CUDA {root.version or root.major}, and CUDA {wanted.major} is wanted"
    return ""


def _lacking_reason(lacking: Iterable[Missing]) -> str:
    texts = dict.fromkeys(map(str, lacking))
    return f"it lacks {', '.join(texts)}" if texts else ""


def _mixed_reason(root: Root, wanted: Wanted) -> str:
    """Return why the wheels of one folder, which pip may have mixed, do not fit each other."""
    if root.major is None or root.version is None:
        return ""
    releases = {
        name: root.distributions[name]
        for wheel in _COMPILER
        if (name := wheel_name(wheel, root.major)) in root.distributions
    }
    device = "device" in wanted.needs or "device-link" in wanted.needs
    if device and root.major >= UNIFIED_FROM:
        if len({version.release for version in releases.values()}) > 1:
            shown = ", ".join(f"{name} {version}" for name, version in releases.items())
            return f"its compiler is put together from several releases: {shown}"
        for name, version in releases.items():
            if Minor.of(version) != root.version:
                return f"its headers are of CUDA {root.version}, its {name} is {version}"
    name = wheel_name("nvidia-cuda-nvrtc", root.major)
    nvrtc = root.distributions.get(name)
    if "nvrtc" in wanted.libraries and nvrtc is not None and Minor.of(nvrtc) != root.version:
        return f"its headers are of CUDA {root.version}, its {name} is {nvrtc}"
    return ""


def _toolkit(root: Root, wanted: Wanted, candidates: tuple[Candidate, ...]) -> Toolkit:
    if root.version is None:
        # Judged complete, it has headers, and those declare their version.
        message = f"{root.path} does not tell its CUDA version"
        raise BadInputError(message)
    parts = {
        name: path for name, part in PARTS.items() if (path := find_part(root, part)) is not None
    }
    names = dict.fromkeys((*wanted.libraries, *LIBRARIES))
    libraries = {
        name: library for name in names if (library := find_library(root, name)) is not None
    }
    everything = replace(wanted, needs=tuple(STEPS), libraries=wanted.libraries)
    notes = []
    if wanted.minor is not None and wanted.minor != root.version:
        notes.append(
            f"CUDA {root.version} of {root.path} serves CUDA {wanted.minor}: the major is the same"
        )
    return Toolkit(
        root=root,
        version=root.version,
        parts=parts,
        libraries=libraries,
        missing=missing_files(root, everything),
        notes=tuple(notes),
        candidates=candidates,
    )


def _hint(candidates: Iterable[Candidate], wanted: Wanted) -> str:
    for candidate in candidates:
        if candidate.root is None or (candidate.root.major != wanted.major and wanted.major):
            continue
        requirements = dict.fromkeys(item.requirement for item in candidate.missing)
        if requirements and "" not in requirements:
            return f"pip install {' '.join(repr(text) for text in requirements)}"
    if wanted.major is not None and wanted.major < UNIFIED_FROM and "device" in wanted.needs:
        return f"no wheel has nvcc for CUDA {wanted.major}; install that toolkit and set CUDA_HOME"
    if wanted.major is not None and wanted.major >= UNIFIED_FROM:
        extras = "nvcc,nvvm,crt,cccl,cudart" if "device" in wanted.needs else "crt,cccl,cudart"
        version = f"=={wanted.minor}.*" if wanted.minor else f"=={wanted.major}.*"
        return f"pip install 'cuda-toolkit[{extras}]{version}'"
    return ""
