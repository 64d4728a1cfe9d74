"""The error lines that are known: what each says, what is behind it, and what mends it."""

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass

from wheelfarm.doctor.environment import Environment
from wheelfarm.doctor.model import Finding, Kind
from wheelfarm.errors import NegativeVerdictError
from wheelfarm.facts.libraries import is_driver_library, is_torch_library, nvidia_library
from wheelfarm.facts.torch_symbols import is_torch_symbol
from wheelfarm.resolve.torch_pin import family_version, torch_index

#: Stands in a command where the line may say which package it is.
NAMELESS = "PACKAGE"
_RESOLVE = f"wheelfarm resolve {NAMELESS} --install"


@dataclass(frozen=True, kw_only=True, slots=True)
class Pattern:
    """What a line looks like, and what makes a finding of a match."""

    pattern: re.Pattern[str]
    explain: Callable[[re.Match[str], Environment | None], Finding]


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


def _too_old(match: re.Match[str], environment: Environment | None) -> Finding:
    del environment
    number = int(match[1])
    return Finding(
        kind="driver",
        status="broken",
        summary=f"the driver knows CUDA {number // 1000}.{number % 1000 // 10}, which is older than"
        " torch's",
        command="update the NVIDIA driver, or wheelfarm resolve PACKAGE --choose-torch",
    )


def _family(match: re.Match[str], environment: Environment | None) -> Finding:
    name = match[1]
    command = f"install the {name} that goes with this torch"
    torch = None if environment is None else environment.host.torch.value
    if environment is not None and torch is not None:
        with contextlib.suppress(NegativeVerdictError):
            if (version := family_version(name, torch)) is not None:
                command = f"pip install --no-deps {name}=={version}"
                if torch.local:
                    index = torch_index(torch, environment.host.accelerator.value)
                    command += f" --index-url {index}"
    return Finding(
        kind="torch",
        status="broken",
        summary=f"{name} was built for another torch, or for another CUDA of it, than the one that"
        " is installed",
        command=command,
    )


def fixed(kind: Kind, summary: str, command: str = "") -> Callable[..., Finding]:
    """Return what makes the same finding of every match, ``{part1}`` being its first group."""

    def finding(match: re.Match[str], environment: Environment | None) -> Finding:
        del environment
        parts = {f"part{index}": text or "" for index, text in enumerate(match.groups(), 1)}
        return Finding(
            kind=kind,
            status="broken",
            summary=summary.format(**parts),
            command=command.format(**parts),
        )

    return finding


def entry(pattern: str, explain_match: Callable[..., Finding]) -> Pattern:
    """Return a known line."""
    return Pattern(pattern=re.compile(pattern), explain=explain_match)


#: The lines of loading and running.
LOADING = (
    entry(r"undefined symbol:\s*([\w@.$]+)", _symbol),
    entry(r"([\w.+-]+\.so[\w.]*): cannot open shared object file", _no_library),
    entry(
        r"version [`'\"](GLIBC_[\d.]+)['\"] not found",
        fixed("glibc", "the package needs {part1}, which is newer than this system's", _RESOLVE),
    ),
    entry(
        r"version [`'\"]((?:GLIBCXX|CXXABI)_[\d.]+)['\"] not found",
        fixed("glibc", "the package needs {part1} of a newer libstdc++", _RESOLVE),
    ),
    entry(
        r"no kernel image is available",
        fixed(
            "gpu",
            "the package (or torch) has no code for this GPU",
            "wheelfarm resolve PACKAGE --explain",
        ),
    ),
    entry(
        r"provided PTX was compiled with an unsupported toolchain",
        fixed(
            "driver",
            "the package's PTX is of a newer CUDA than this driver: machine code runs within a"
            " CUDA major, PTX does not",
            "update the NVIDIA driver",
        ),
    ),
    entry(
        r"driver version is insufficient for CUDA runtime version",
        fixed("driver", "the driver is older than the CUDA of torch", "update the NVIDIA driver"),
    ),
    entry(
        r"Driver/library version mismatch",
        fixed("driver", "the driver was updated while the old one runs", "reboot"),
    ),
    entry(
        r"detected CUDA version \(([\d.]+)\) mismatches the version .* PyTorch \(([\d.]+)\)",
        fixed(
            "toolkit",
            "a source build found nvcc of CUDA {part1}, torch is for {part2}",
            "wheelfarm toolkit show",
        ),
    ),
    entry(
        r"CUDA_HOME environment variable is not set",
        fixed("toolkit", "something compiles, and finds no toolkit", "wheelfarm toolkit env"),
    ),
    entry(
        r"([\w.+-]+\.whl) is not a supported wheel on this platform",
        fixed(
            "python", "{part1} is for another Python or platform than the pip that ran", _RESOLVE
        ),
    ),
    entry(
        r"Torch not compiled with CUDA enabled",
        fixed("torch", "this torch is a CPU build", "wheelfarm resolve PACKAGE --choose-torch"),
    ),
    entry(
        r"(?:Failed to build|metadata-generation-failed|error: subprocess-exited-with-error)",
        fixed(
            "source-build",
            "an installer compiled from source, as it found no wheel for this environment",
            "wheelfarm resolve PACKAGE --explain",
        ),
    ),
    entry(
        r"(?:invalid ELF header|file too short|wrong ELF class)",
        fixed("unreadable", "the file is damaged or of another processor", _RESOLVE),
    ),
    entry(
        r"with CUDA capability (sm_\d+\w*) is not compatible with the current PyTorch",
        fixed(
            "gpu",
            "torch itself has no code for this GPU ({part1})",
            "wheelfarm resolve PACKAGE --choose-torch",
        ),
    ),
    entry(
        r"FATAL: kernel `([^`]+)` is for (\S+), but was built for (\S+)",
        fixed(
            "gpu",
            "the package has no code for this GPU: its {part1} is for {part2}",
            "wheelfarm resolve PACKAGE --explain",
        ),
    ),
    entry(
        r"(?:device kernel image is invalid|CUDA_ERROR_(?:NO_BINARY_FOR_GPU|INVALID_SOURCE))",
        fixed(
            "gpu",
            "the package has no code that this GPU and driver can load",
            "wheelfarm resolve PACKAGE --explain",
        ),
    ),
    entry(
        r"NVIDIA driver on your system is too old \(found version (\d+)\)",
        _too_old,
    ),
    entry(
        r"Found no NVIDIA driver on your system",
        fixed("driver", "torch found no NVIDIA driver on this machine", "wheelfarm host"),
    ),
    entry(
        r"DLL load failed while importing (\S+): The specified module could not be found",
        fixed(
            "library",
            "a DLL that {part1} needs is nowhere: torch's and CUDA's are found once torch is"
            " imported, the Visual C++ runtime is the system's",
            "import torch first",
        ),
    ),
    entry(
        r"DLL load failed while importing (\S+): The specified procedure could not be found",
        fixed(
            "torch",
            "{part1} needs a function that a DLL here does not have: it was built for another"
            " torch or CUDA",
            _RESOLVE,
        ),
    ),
    entry(
        r"(?:Unsupported gpu architecture '([^']+)'|Unknown CUDA arch \(([^)]+)\))",
        fixed(
            "source-build",
            "a source build asks for the GPU architecture {part1}{part2}, which this toolkit or"
            " torch does not know",
            "wheelfarm resolve PACKAGE --explain",
        ),
    ),
    entry(
        r"No module named '(torch)'",
        fixed(
            "source-build",
            "there is no {part1} in the Python that ran; while an installer builds in isolation,"
            " that means that it compiles from source, as it found no wheel",
            "wheelfarm resolve PACKAGE --explain",
        ),
    ),
    entry(r"operator (torchvision)::\w+ does not exist", _family),
    entry(r"PyTorch and (torchvision|torchaudio) were compiled with different CUDA", _family),
    entry(
        r"(?:compiled using NumPy 1\.x cannot be run in|compiled against (?:ABI|API) version)",
        fixed(
            "other",
            "a package was built for another NumPy than the one that is installed",
            "pip install 'numpy<2', or a newer version of that package",
        ),
    ),
    entry(
        r"inconsistent version: expected '([^']+)', but metadata has '([^']+)'",
        fixed(
            "other",
            "the wheel's name says version {part1} and its metadata {part2}: it was renamed after"
            " it was built, and installers refuse it",
            _RESOLVE,
        ),
    ),
    entry(
        r"DO NOT MATCH THE HASHES|Hash mismatch for",
        fixed(
            "other",
            "the file is another one than the lock was made for: it was changed or exchanged, or"
            " a cache is old",
            "wheelfarm resolve --check LOCK",
        ),
    ),
    entry(
        r"cannot allocate memory in static TLS block",
        fixed(
            "other",
            "a library was loaded too late for its thread-local storage: import the package before"
            " everything else, or name that library in LD_PRELOAD",
        ),
    ),
)
