"""Whose a library is: from the name in DT_NEEDED or an import table to its provider.

The CUDA libraries' sonames do not all carry CUDA's major: cuFFT of CUDA 13 is 12, cuSPARSE 12 and
cuRAND 10 belong to several majors. So the table names, per library, which majors a soname fits.
Sources: the library folders of NVIDIA's wheels for CUDA 12 and 13 on PyPI, the CUDA Toolkit release
notes ("CUDA Toolkit Component Versions") for 11; PyTorch's lib folder for Linux and Windows.
"""

import re
from dataclasses import dataclass
from typing import Literal

Owner = Literal["torch", "nvidia", "driver", "system", "python"]


@dataclass(frozen=True, kw_only=True, slots=True)
class NvidiaLibrary:
    """One CUDA library under one soname: the CUDA majors it fits, and the project that ships it.

    ``project`` is the distribution's stem (``cublas``); ``preloaded`` says whether torch itself
    requires and loads it, so that a wheel which imports torch needs to declare nothing.
    """

    stem: str
    majors: frozenset[int]
    project: str
    preloaded: bool

    def distributions(self, major: int | None) -> tuple[str, ...]:
        """Return the names of the wheels that ship it for a CUDA major, or for any it fits."""
        majors = self.majors if major is None else self.majors & {major}
        names: list[str] = []
        for one in sorted(majors, reverse=True):
            if one >= _UNSUFFIXED_SINCE and self.project not in _ALWAYS_SUFFIXED:
                names.insert(0, f"nvidia-{self.project}")
            names.append(f"nvidia-{self.project}-cu{one}")
        return tuple(dict.fromkeys(names))


#: From CUDA 13 on, NVIDIA's toolkit wheels carry no ``-cuNN``; cuDNN and its like still do.
_UNSUFFIXED_SINCE = 13
#: Libraries beside the toolkit, with a wheel per CUDA major under a name of its own to this day.
_ALWAYS_SUFFIXED = frozenset(
    {"cudnn", "nccl", "cusparselt", "nvshmem", "cudss", "cutensor", "custatevec", "nvcomp"}
)

_ALL = frozenset({11, 12, 13})


def _plain(*names: str) -> dict[str, frozenset[int]]:
    return {name: frozenset({int(name)}) for name in names}


_OWN_MAJOR = _plain("11", "12", "13")
#: stem -> (project, loaded by torch, {soname's number: CUDA majors}).
_TABLE: dict[str, tuple[str, bool, dict[str, frozenset[int]]]] = {
    "cudart": ("cuda-runtime", True, _OWN_MAJOR),
    "cublas": ("cublas", True, _OWN_MAJOR),
    "cublasLt": ("cublas", True, _OWN_MAJOR),
    "nvblas": ("cublas", True, _OWN_MAJOR),
    "nvrtc": ("cuda-nvrtc", True, _OWN_MAJOR),
    "nvrtc-builtins": ("cuda-nvrtc", True, _OWN_MAJOR),
    "nvJitLink": ("nvjitlink", True, _plain("12", "13")),
    "nvfatbin": ("nvfatbin", False, _plain("12", "13")),
    "cupti": ("cuda-cupti", True, _OWN_MAJOR),
    "cufft": ("cufft", True, {"10": frozenset({11}), "11": frozenset({12}), "12": frozenset({13})}),
    "cufftw": (
        "cufft",
        True,
        {"10": frozenset({11}), "11": frozenset({12}), "12": frozenset({13})},
    ),
    "curand": ("curand", True, {"10": _ALL}),
    "cusolver": ("cusolver", True, {"11": frozenset({11, 12}), "12": frozenset({13})}),
    "cusolverMg": ("cusolver", True, {"11": frozenset({11, 12}), "12": frozenset({13})}),
    "cusparse": ("cusparse", True, {"11": frozenset({11}), "12": frozenset({12, 13})}),
    "nvToolsExt": ("nvtx", True, {"1": frozenset({11, 12})}),
    "nvtx3interop": ("nvtx", True, {"1": frozenset({12, 13})}),
    "cufile": ("cufile", True, {"0": _ALL}),
    "cufile_rdma": ("cufile", True, {"1": _ALL}),
    "nvjpeg": ("nvjpeg", False, _OWN_MAJOR),
    "nvvm": ("nvvm", False, {"4": _ALL}),
    "cudnn": ("cudnn", True, {"8": frozenset({11, 12}), "9": _ALL}),
    "nccl": ("nccl", True, {"2": _ALL}),
    "cusparseLt": ("cusparselt", True, {"0": _ALL}),
    "nvshmem_host": ("nvshmem", True, {"2": _ALL, "3": _ALL}),
    "cudss": ("cudss", False, {"0": _ALL}),
    "cutensor": ("cutensor", False, {"1": _ALL, "2": _ALL}),
    "cutensorMg": ("cutensor", False, {"1": _ALL, "2": _ALL}),
    "custatevec": ("custatevec", False, {"1": _ALL}),
    "nvcomp": ("nvcomp", False, {"4": _ALL, "5": _ALL}),
}
#: Parts of cuDNN and NPP: many libraries, one project.
_FAMILIES = (("cudnn_", "cudnn"), ("npp", ""))

_ELF = re.compile(
    r"lib(?P<stem>[A-Za-z][A-Za-z0-9_-]*?)(?:-[0-9a-f]{8})?\.so(?:\.(?P<version>[\d.]+))?"
)
_PE = re.compile(r"(?P<stem>[A-Za-z_-]+?)(?:64)?_(?P<version>\d+)(?:_\d+)*\.dll", re.IGNORECASE)
#: A few DLLs carry no version in their name.
_PE_PLAIN = re.compile(
    r"(?P<stem>cutensor(?:Mg)?|nccl|cusparseLt)(?P<version>)\.dll", re.IGNORECASE
)
_WINDOWS_STEMS = {stem.lower(): stem for stem in _TABLE}

_TORCH = re.compile(
    r"lib(torch|c10|shm|caffe2_nvrtc)(_[a-z_]+)?\.so|(torch|c10|shm|caffe2_nvrtc)(_[a-z_]+)?\.dll",
    re.IGNORECASE,
)
#: Libraries that lie in torch's own folder beside its own.
_BESIDE_TORCH = frozenset({"libgomp.so.1", "libiomp5md.dll", "fbgemm.dll", "asmjit.dll", "uv.dll"})
_DRIVER = re.compile(
    r"libcuda(-[0-9a-f]+)?\.so(\..*)?|libcudadebugger\.so(\..*)?|libnvidia-[\w-]+\.so(\..*)?"
    r"|libnvcuvid(-[0-9a-f]+)?\.so(\..*)?|libnvoptix(-[0-9a-f]+)?\.so(\..*)?"
    r"|nvcuda\.dll|nvml\.dll|nvcuvid\.dll|nvapi64\.dll|nvencodeapi64\.dll|nvoptix\.dll",
    re.IGNORECASE,
)
_PYTHON = re.compile(r"libpython3[\d.]*t?\.so.*|python3\d*t?\.dll", re.IGNORECASE)
#: What every glibc system has, and the few more that the manylinux policies allow (PEP 600).
_SYSTEM = re.compile(
    r"lib(c|m|mvec|dl|rt|pthread|util|resolv|nsl|anl|crypt)\.so\.[\d.]+|libgcc_s\.so\.1"
    r"|libstdc\+\+\.so\.6|libatomic\.so\.1|libz\.so\.1|libexpat\.so\.1"
    r"|ld-linux-(x86-64|aarch64)\.so\.[12]|linux-vdso\.so\.1|ld64\.so\.[12]"
    r"|lib(GL|X11|Xext|Xrender|ICE|SM|glib-2\.0|gobject-2\.0|gthread-2\.0)\.so\.\d+"
    r"|(kernel32|user32|advapi32|shell32|ole32|oleaut32|ws2_32|gdi32|psapi|dbghelp|shlwapi|version"
    r"|bcrypt|crypt32|iphlpapi|ntdll|setupapi|powrprof|rpcrt4|winmm|msvcrt|ucrtbase|secur32"
    r"|userenv|comdlg32|imm32|d3d11|d3d12|dxgi|opengl32|cfgmgr32|comctl32|mswsock|synchronization)"
    r"\.dll"
    r"|api-ms-win-[\w-]+\.dll|(vcruntime140(_1|_threads)?|msvcp140(_\w+)?|vcomp140|concrt140)\.dll",
    re.IGNORECASE,
)


def owner_of(name: str) -> Owner | None:
    """Return who provides a library that is not inside the wheel; None where nobody is known to."""
    base = name.rsplit("/", 1)[-1]
    if is_torch_library(base):
        return "torch"
    if is_driver_library(base):
        return "driver"
    if nvidia_library(base) is not None:
        return "nvidia"
    if _PYTHON.fullmatch(base):
        return "python"
    return "system" if _SYSTEM.fullmatch(base) else None


def is_torch_library(name: str) -> bool:
    """Return whether this is one of torch's own libraries, on Linux or Windows."""
    return _TORCH.fullmatch(name) is not None


def lies_beside_torch(name: str) -> bool:
    """Return whether torch's folder holds this foreign library too (OpenMP's runtime, ...)."""
    return name in _BESIDE_TORCH or name.lower() in _BESIDE_TORCH


def is_driver_library(name: str) -> bool:
    """Return whether this is part of the GPU driver, whatever hash a repair tool put in it."""
    return _DRIVER.fullmatch(name) is not None


def nvidia_library(name: str) -> NvidiaLibrary | None:
    """Return the CUDA library of this name; None for any other, or a version not in the table."""
    match = _ELF.fullmatch(name) or _PE.fullmatch(name) or _PE_PLAIN.fullmatch(name)
    if match is None:
        return None
    stem, version = match["stem"], match["version"] or ""
    if name.lower().endswith(".dll"):
        stem = _WINDOWS_STEMS.get(stem.lower(), stem.lower())
        version = _windows_version(stem, version)
    for prefix, family in _FAMILIES:
        if stem.startswith(prefix):
            project = family or "npp"
            versions = _TABLE["cudnn"][2] if family else _OWN_MAJOR
            return _library(stem, version, project, loaded=bool(family), versions=versions)
    if stem not in _TABLE:
        return None
    project, loaded, versions = _TABLE[stem]
    return _library(stem, version, project, loaded=loaded, versions=versions)


def _library(
    stem: str, version: str, project: str, *, loaded: bool, versions: dict[str, frozenset[int]]
) -> NvidiaLibrary | None:
    majors = versions.get(version.split(".", maxsplit=1)[0]) if version else _ALL
    if majors is None:
        return None
    return NvidiaLibrary(stem=stem, majors=majors, project=project, preloaded=loaded)


def _windows_version(stem: str, digits: str) -> str:
    """Return a DLL's major: ``cudart64_110`` and ``nvrtc64_120_0`` carry a minor digit too."""
    if len(digits) == 3 and stem in {"cudart", "nvrtc", "nvJitLink", "nvrtc-builtins", "nvfatbin"}:  # noqa: PLR2004 - major and minor
        return digits[:2]
    if stem == "nvvm":
        return digits[:1]
    return digits
