"""A pasted error line, explained: what it says, what is behind it, and what mends it."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from wheelfarm.doctor.environment import Environment
from wheelfarm.doctor.model import Finding, Kind
from wheelfarm.facts.libraries import is_driver_library, is_torch_library, nvidia_library
from wheelfarm.facts.torch_symbols import is_torch_symbol

_RESOLVE = "wheelfarm resolve PACKAGE --install"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pattern:
    pattern: re.Pattern[str]
    explain: Callable[[re.Match[str], Environment | None], Finding]


def explain(text: str, environment: Environment | None = None) -> list[Finding]:
    """Return what a pasted text says; empty where no line of it is known.

    With ``environment`` the answer is held against what is installed there.
    """
    found: list[Finding] = []
    for entry in _PATTERNS:
        for match in entry.pattern.finditer(text):
            finding = entry.explain(match, environment)
            if finding not in found:
                found.append(finding)
    return found


def _symbol(match: re.Match[str], environment: Environment | None) -> Finding:
    name = match[1]
    if is_torch_symbol(name):
        return _torch_symbol(name, environment)
    if re.match(r"_?_?(cuda|cublas|cudnn|cusparse|cufft|nvrtc|cusolver|curand|nvJitLink)", name):
        return Finding(
            kind="cuda",
            status="broken",
            summary=f"{name} is of a CUDA library: another version of it is loaded than the"
            " package was built for",
            command="wheelfarm doctor",
        )
    if re.match(r"_?Py[A-Z_]", name):
        return Finding(
            kind="python",
            status="broken",
            summary=f"{name} is of Python: the package was built for another Python",
            command=_RESOLVE,
        )
    abi = "; its strings are of libstdc++'s new ABI" if "__cxx11" in name else ""
    return Finding(
        kind="library",
        status="broken",
        summary=f"no library that is loaded has {name}{abi}",
        command="wheelfarm doctor",
    )


def _torch_symbol(name: str, environment: Environment | None) -> Finding:
    new = "__cxx11" in name
    evidence: tuple[str, ...] = ()
    if environment is not None:
        torch = environment.host.torch.value
        missing = environment.missing(frozenset({name}))
        if torch is not None and missing is not None and not missing:
            return Finding(
                kind="torch",
                status="warning",
                summary=f"{name} is of torch, and torch {torch} of this environment has it: the"
                " line comes from another environment, or torch was not imported first",
            )
        if torch is not None and missing:
            evidence = (f"torch {torch} of this environment does not have it",)
        abi = environment.host.cxx_abi.value
        if abi is not None and abi != int(new) and ("basic_string" in name or "Ss" in name):
            return Finding(
                kind="abi",
                status="broken",
                summary=f"{name}: the package was built for C++ ABI {int(new)}, this torch has"
                f" {abi}",
                evidence=evidence,
                command=_RESOLVE,
            )
    return Finding(
        kind="torch",
        status="broken",
        summary=f"{name} is of torch, and the installed torch has no such symbol: the package was"
        " built for another torch, or for another C++ ABI of it",
        evidence=evidence,
        command=_RESOLVE,
    )


def _no_library(match: re.Match[str], environment: Environment | None) -> Finding:
    name = match[1]
    if is_driver_library(name):
        return Finding(
            kind="driver",
            status="broken",
            summary=f"{name} comes with the NVIDIA driver, and there is none on this machine",
            command="wheelfarm host",
        )
    if is_torch_library(name):
        return Finding(
            kind="torch",
            status="broken",
            summary=f"{name} is torch's: import torch before the package, or install torch",
        )
    library = nvidia_library(name)
    if library is None:
        return Finding(
            kind="library",
            status="broken",
            summary=f"{name} is supplied by nothing that is installed",
        )
    accelerator = None if environment is None else environment.host.accelerator.value
    if accelerator is not None and accelerator.major not in library.majors:
        return Finding(
            kind="cuda",
            status="broken",
            summary=f"{name} is of CUDA {_majors(library.majors)}, and this torch is for"
            f" {accelerator}: the package was built for another CUDA",
            command=_RESOLVE,
        )
    return Finding(
        kind="library",
        status="broken",
        summary=f"{name} of CUDA {_majors(library.majors)} is not installed or not loaded yet",
        command=f"pip install {library.distributions(None)[0]}; import torch first",
    )


def _majors(majors: frozenset[int]) -> str:
    return " or ".join(map(str, sorted(majors)))


def _fixed(kind: Kind, summary: str, command: str = "") -> Callable[..., Finding]:
    def finding(match: re.Match[str], environment: Environment | None) -> Finding:
        del environment
        parts = {f"part{index}": text or "" for index, text in enumerate(match.groups(), 1)}
        return Finding(kind=kind, status="broken", summary=summary.format(**parts), command=command)

    return finding


def _entry(pattern: str, explain_match: Callable[..., Finding]) -> _Pattern:
    return _Pattern(pattern=re.compile(pattern), explain=explain_match)


_PATTERNS = (
    _entry(r"undefined symbol:\s*([\w@.$]+)", _symbol),
    _entry(r"([\w.+-]+\.so[\w.]*): cannot open shared object file", _no_library),
    _entry(
        r"version [`'\"](GLIBC_[\d.]+)['\"] not found",
        _fixed("glibc", "the package needs {part1}, which is newer than this system's", _RESOLVE),
    ),
    _entry(
        r"version [`'\"]((?:GLIBCXX|CXXABI)_[\d.]+)['\"] not found",
        _fixed("glibc", "the package needs {part1} of a newer libstdc++", _RESOLVE),
    ),
    _entry(
        r"no kernel image is available",
        _fixed(
            "gpu",
            "the package (or torch) has no code for this GPU",
            "wheelfarm resolve PACKAGE --explain",
        ),
    ),
    _entry(
        r"provided PTX was compiled with an unsupported toolchain",
        _fixed(
            "driver",
            "the package's PTX is of a newer CUDA than this driver: machine code runs within a"
            " CUDA major, PTX does not",
            "update the NVIDIA driver",
        ),
    ),
    _entry(
        r"driver version is insufficient for CUDA runtime version",
        _fixed("driver", "the driver is older than the CUDA of torch", "update the NVIDIA driver"),
    ),
    _entry(
        r"Driver/library version mismatch",
        _fixed("driver", "the driver was updated while the old one runs", "reboot"),
    ),
    _entry(
        r"detected CUDA version \(([\d.]+)\) mismatches the version .* PyTorch \(([\d.]+)\)",
        _fixed(
            "toolkit",
            "a source build found nvcc of CUDA {part1}, torch is for {part2}",
            "wheelfarm toolkit show",
        ),
    ),
    _entry(
        r"CUDA_HOME environment variable is not set",
        _fixed("toolkit", "something compiles, and finds no toolkit", "wheelfarm toolkit env"),
    ),
    _entry(
        r"([\w.+-]+\.whl) is not a supported wheel on this platform",
        _fixed(
            "python", "{part1} is for another Python or platform than the pip that ran", _RESOLVE
        ),
    ),
    _entry(
        r"Torch not compiled with CUDA enabled",
        _fixed("torch", "this torch is a CPU build", "wheelfarm resolve PACKAGE --choose-torch"),
    ),
    _entry(
        r"(?:Failed to build|metadata-generation-failed|error: subprocess-exited-with-error)",
        _fixed(
            "source-build",
            "an installer compiled from source, as it found no wheel for this environment",
            "wheelfarm resolve PACKAGE --explain",
        ),
    ),
    _entry(
        r"(?:invalid ELF header|file too short|wrong ELF class)",
        _fixed("unreadable", "the file is damaged or of another processor", _RESOLVE),
    ),
)
