"""Hold each compiled package against its environment: can it load, will it run, and why not."""

import re
from collections.abc import Iterator
from pathlib import Path

from wheelfarm.doctor.environment import Environment
from wheelfarm.doctor.installed import Installed, compiled_packages
from wheelfarm.doctor.model import Diagnosis, Finding
from wheelfarm.facts.libraries import (
    is_driver_library,
    is_torch_library,
    nvidia_library,
    owner_of,
)
from wheelfarm.facts.model import BinaryFacts
from wheelfarm.facts.torch_symbols import is_torch_symbol
from wheelfarm.index.model import Module
from wheelfarm.model.wheel_name import Label
from wheelfarm.resolve.coverage import lacks, module_covers, names_arch

_SUFFIX = re.compile(r"\.(cpython-(\d)(\d+)(t?)-[^.]+|cp(\d)(\d+)(t?)-[^.]+)\.(?:so|pyd)$")


def examine(environment: Environment, only: frozenset[str] = frozenset()) -> list[Diagnosis]:
    """Return a diagnosis of the environment and of each compiled package, by name."""
    found = [Diagnosis(package="", version="", findings=tuple(_environment(environment)))]
    for package in compiled_packages(environment.interpreter):
        if not only or package.name in only:
            findings = tuple(_package(package, environment))
            fine = Finding(kind="fine", status="ok", summary=_fine(package, environment))
            found.append(
                Diagnosis(
                    package=package.name, version=package.version, findings=findings or (fine,)
                )
            )
    return found


def _fine(package: Installed, environment: Environment) -> str:
    if environment.host.capabilities or not _modules(package):
        return "loads here"
    return "loads here; for which GPUs it has code was not held against any, as none is known"


def _environment(environment: Environment) -> Iterator[Finding]:
    majors = environment.cuda_majors
    accelerator = environment.host.accelerator.value
    if len(majors) > 1:
        ours = accelerator.major if accelerator is not None else None
        foreign = [name for major, names in majors.items() if major != ours for name in names]
        yield Finding(
            kind="mixed",
            status="warning",
            summary=f"wheels of CUDA {' and '.join(map(str, sorted(majors)))} are both installed",
            evidence=tuple(name for names in majors.values() for name in names),
            command=f"pip uninstall {' '.join(name.partition('==')[0] for name in foreign)}"
            if ours is not None
            else "",
        )
    state = environment.host.devices
    if state.value == "broken":
        yield Finding(
            kind="driver", status="broken", summary=state.problem, evidence=(state.source,)
        )


def _package(package: Installed, environment: Environment) -> Iterator[Finding]:
    for path, binary in package.binaries.items():
        if binary.problem:
            yield Finding(
                kind="unreadable",
                status="unknown",
                summary=f"{binary.path} could not be read: {binary.problem}",
            )
        else:
            yield from _python(package, path, environment)
    yield from _torch(package, environment)
    yield from _abi(package, environment)
    yield from _cuda(package, environment)
    yield from _libraries(package, environment)
    yield from _glibc(package, environment)
    yield from _gpus(package, environment)


def _mend(package: Installed) -> str:
    return f"wheelfarm resolve {package.name} --install"


def _python(package: Installed, path: Path, environment: Environment) -> Iterator[Finding]:
    match = _SUFFIX.search(path.name)
    python = environment.host.python.value
    if match is None or python is None or python.version is None:
        return
    major, minor, free = match[2] or match[5], match[3] or match[6], match[4] or match[7]
    built = f"{major}.{minor}{free or ''}"
    if built != python.dotted:
        yield Finding(
            kind="python",
            status="broken",
            summary=f"{path.name} is for Python {built}, this is {python.dotted}",
            command=_mend(package),
        )


def _torch(package: Installed, environment: Environment) -> Iterator[Finding]:
    own = {name for binary in package.binaries.values() for name in binary.defined}
    wanted = frozenset(
        name
        for binary in package.binaries.values()
        for name in binary.undefined
        if is_torch_symbol(name) and name not in own
    )
    if not wanted:
        return
    torch = environment.host.torch.value
    label = Label.parse(package.version.partition("+")[2])
    built = "" if label.torch is None else f" (its version says torch {label.torch})"
    if torch is None:
        summary = f"it needs torch{built}, and there is none here"
        yield Finding(kind="torch", status="broken", summary=summary)
        return
    missing = environment.missing(wanted)
    if missing is None:
        summary = f"torch {torch} has no libraries that could be read"
        yield Finding(kind="torch", status="unknown", summary=summary)
    elif missing:
        yield Finding(
            kind="torch",
            status="broken",
            summary=f"built for another torch than {torch}{built}: {len(missing)} of its symbols"
            " are not there",
            evidence=tuple(f"undefined symbol: {name}" for name in sorted(missing)[:3]),
            command=_mend(package),
        )


def _abi(package: Installed, environment: Environment) -> Iterator[Finding]:
    built, ours = package.linkage.cxx_abi, environment.host.cxx_abi.value
    if built is None or ours is None or built == ours or package.linkage.torch == "none":
        return
    yield Finding(
        kind="abi",
        status="broken",
        summary=f"built for C++ ABI {built}, this torch has {ours}",
        command=_mend(package),
    )


def _cuda(package: Installed, environment: Environment) -> Iterator[Finding]:
    """Hold the CUDA libraries that a package needs against torch's major."""
    accelerator = environment.host.accelerator.value
    if accelerator is None or accelerator.kind not in {"cuda", "cpu"}:
        return
    foreign = sorted(
        {
            name
            for binary in package.binaries.values()
            for name in binary.needed
            if (library := nvidia_library(name)) is not None
            and (accelerator.kind == "cpu" or accelerator.major not in library.majors)
        }
    )
    if foreign:
        ours = "a CPU build" if accelerator.kind == "cpu" else f"for {accelerator}"
        yield Finding(
            kind="cuda",
            status="broken",
            summary=f"built for another CUDA runtime: it needs {', '.join(foreign)},"
            f" this torch is {ours}",
            command=_mend(package),
        )


def _libraries(package: Installed, environment: Environment) -> Iterator[Finding]:
    inside = {binary.soname or path.name for path, binary in package.binaries.items()}
    inside |= {path.name for path in package.binaries}
    for path, binary in package.binaries.items():
        paths = tuple(
            Path(str(path.parent).join(word.split("$ORIGIN")))
            for word in (*binary.rpath, *binary.runpath)
        )
        for name in binary.needed:
            if name in inside or owner_of(name) in {"system", "python"}:
                continue
            if environment.supplies(name, package.folders, paths):
                continue
            yield _unsupplied(name, binary, environment)


def _unsupplied(name: str, binary: BinaryFacts, environment: Environment) -> Finding:
    if is_driver_library(name):
        gpus = environment.host.devices.value
        return Finding(
            kind="driver",
            status="broken",
            summary=f"{binary.path} needs {name} of the NVIDIA driver, which is not here",
            evidence=(f"devices: {gpus}",),
        )
    library = nvidia_library(name)
    if library is not None:
        accelerator = environment.host.accelerator.value
        major = None if accelerator is None else accelerator.major
        projects = library.distributions(major) or library.distributions(None)
        return Finding(
            kind="library",
            status="broken",
            summary=f"{binary.path} needs {name}, which nobody supplies",
            command=f"pip install {projects[0]}" if projects else "",
        )
    command = "install torch" if is_torch_library(name) else ""
    return Finding(
        kind="library",
        status="broken",
        summary=f"{binary.path} needs {name}, which nobody supplies",
        command=command,
    )


def _glibc(package: Installed, environment: Environment) -> Iterator[Finding]:
    needed, libc = package.linkage.glibc, environment.host.libc.value
    if needed is None or libc is None or (libc.kind == "glibc" and libc.version >= needed):
        return
    evidence = next(
        (
            f"{binary.path}: {need.version} for {need.symbol or 'a symbol'}"
            for binary in package.binaries.values()
            for need in binary.version_needs
            if need.version == f"GLIBC_{needed}"
        ),
        "",
    )
    yield Finding(
        kind="glibc",
        status="broken",
        summary=f"needs glibc {needed}, this system has {libc}",
        evidence=(evidence,) if evidence else (),
        command=_mend(package),
    )


def _modules(package: Installed) -> list[Module]:
    return [
        Module(
            path=binary.path,
            sass=tuple(code.arch for code in binary.device_code if code.kind == "sass"),
            ptx=tuple(code.arch for code in binary.device_code if code.kind == "ptx"),
        )
        for binary in package.binaries.values()
        if binary.device_code
    ]


def _gpus(package: Installed, environment: Environment) -> Iterator[Finding]:
    modules, driver = _modules(package), environment.host.driver_cuda.value
    toolkit = package.linkage.toolkit
    for gpu in environment.host.capabilities:
        bare = [each for each in modules if not module_covers(each, gpu, toolkit, driver)]
        required = [each for each in bare if not names_arch(each.path)]
        if bare and (required or len(bare) == len(modules)):
            yield Finding(
                kind="gpu",
                status="broken",
                summary=lacks((required or bare)[0], gpu, toolkit, driver),
                command=f"wheelfarm resolve {package.name} --explain",
            )
