"""Which files each step needs, where each layout keeps them, and which wheel supplies them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wheelfarm.model.versions import Minor
from wheelfarm.toolkit.model import Library, Missing, Root, Step

Kind = Literal["include", "bin", "top", "library", "static"]

#: From this major on, NVIDIA's wheels carry no ``-cuNN`` and share one folder, ``nvidia/cuNN``.
UNIFIED_FROM = 13


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A file of CUDA: its kind says below which folders ``names`` are looked for.

    ``wheel`` supplies it from CUDA 13 on, ``wheel12`` (with its ``-cu12``) before; empty: no wheel.
    """

    name: str
    kind: Kind
    names: tuple[str, ...]
    wheel: str
    wheel12: str


def _part(name: str, kind: Kind, names: str, wheel: str, wheel12: str | None = None) -> Part:
    old = wheel if wheel12 is None else wheel12
    return Part(name=name, kind=kind, names=tuple(names.split()), wheel=wheel, wheel12=old)


_NVCC, _CRT, _NVVM = "nvidia-cuda-nvcc", "nvidia-cuda-crt", "nvidia-nvvm"
_RUNTIME, _CCCL = "nvidia-cuda-runtime", "nvidia-cuda-cccl"

#: Every part that is not a library asked for by name.
PARTS: Mapping[str, Part] = {
    part.name: part
    for part in (
        _part("cuda.h", "include", "cuda.h", _RUNTIME),
        _part("cuda_runtime.h", "include", "cuda_runtime.h", _RUNTIME),
        _part("crt", "include", "crt/host_config.h", _CRT, _NVCC),
        _part("cccl", "include", "nv/target", _CCCL),
        # CUDA 12's nvcc wheel has ptxas, crt and libdevice, and none of the compiler's other parts.
        _part("nvcc", "bin", "nvcc", _NVCC, ""),
        _part("nvcc.profile", "bin", "nvcc.profile", _NVCC, ""),
        _part("cudafe++", "bin", "cudafe++", _NVCC, ""),
        _part("fatbinary", "bin", "fatbinary", _NVCC, ""),
        _part("nvlink", "bin", "nvlink", _NVCC, ""),
        _part("ptxas", "bin", "ptxas", _NVCC, _NVCC),
        _part("cicc", "top", "nvvm/bin/cicc", _NVVM, ""),
        _part("libdevice", "top", "nvvm/libdevice/libdevice.10.bc", _NVVM, _NVCC),
        _part("cudart_static", "static", "libcudart_static.a cudart_static.lib", _RUNTIME, ""),
        _part("cudadevrt", "static", "libcudadevrt.a cudadevrt.lib", _RUNTIME, ""),
    )
}

_HOST = ("cuda.h", "cuda_runtime.h", "crt", "cccl")
_DEVICE = ("nvcc", "nvcc.profile", "cudafe++", "fatbinary", "ptxas", "cicc", "libdevice")

#: The parts that a step needs: ``host`` C++ sources, ``device`` .cu sources, ``link`` an extension.
STEPS: Mapping[Step, tuple[str, ...]] = {
    "host": _HOST,
    "device": (*_HOST, *_DEVICE),
    "device-link": (*_HOST, *_DEVICE, "nvlink", "cudadevrt", "cudart_static"),
    "link": (),
}

#: Library -> the wheel that has it, and the header that goes with it (empty: none of its own).
LIBRARIES: Mapping[str, tuple[str, str]] = {
    "cudart": (_RUNTIME, ""),
    "nvrtc": ("nvidia-cuda-nvrtc", "nvrtc.h"),
    "cublas": ("nvidia-cublas", "cublas_v2.h"),
    "cublasLt": ("nvidia-cublas", "cublasLt.h"),
    "cufft": ("nvidia-cufft", "cufft.h"),
    "cupti": ("nvidia-cuda-cupti", "cupti.h"),
    "curand": ("nvidia-curand", "curand.h"),
    "cusolver": ("nvidia-cusolver", "cusolverDn.h"),
    "cusparse": ("nvidia-cusparse", "cusparse.h"),
    "nvJitLink": ("nvidia-nvjitlink", "nvJitLink.h"),
    "cudnn": ("nvidia-cudnn", "cudnn.h"),
    "nccl": ("nvidia-nccl", "nccl.h"),
    "cusparseLt": ("nvidia-cusparselt", "cusparseLt.h"),
}
#: Libraries outside the toolkit: their wheels carry ``-cuNN`` for every major.
COMPANIONS = ("cudnn", "nccl", "cusparselt")

#: Whose version is the toolkit's own, so that a major can be read from the file name.
_OF_THE_RELEASE = frozenset({"cudart", "nvrtc", "cublas", "cublasLt", "nvJitLink"})


def find_part(root: Root, part: Part) -> Path | None:
    """Return the file of a part below a root; None where it is not there."""
    suffix = ".exe" if part.kind == "bin" and root.system == "windows" else ""
    for folder in _folders(root, part.kind):
        for name in part.names:
            path = folder / f"{name}{'' if '.' in name else suffix}"
            if path.is_file():
                return path
    return None


def find_library(root: Root, name: str) -> Library | None:
    """Return a shared library of a root under the name that is linked; None where it is not there.

    Of ``libcudart.so``, ``.so.13`` and ``.so.13.0.96`` it is the one with the fewest numbers, at
    least one: the soname. ``libnvrtc.alt.so.13`` is no ``libnvrtc``.
    """
    if root.system == "windows":
        for folder in root.library_dirs:
            if (folder / f"{name}.lib").is_file():
                return Library(name=name, file_name=f"{name}.lib", folder=folder)
        return None
    pattern = re.compile(rf"lib{re.escape(name)}\.so((?:\.\d+)+)", re.ASCII)
    for folder in root.library_dirs:
        found = [match for path in _entries(folder) if (match := pattern.fullmatch(path))]
        if name in _OF_THE_RELEASE and root.major is not None:
            found = [match for match in found if match[1].split(".")[1] == str(root.major)]
        if found:
            best = min(found, key=lambda match: (match[1].count("."), match[0]))
            return Library(name=name, file_name=best[0], folder=folder)
    return None


def missing_part(root: Root, part: Part, wanted: Minor | None) -> Missing:
    """Return what to install for a part that a root lacks."""
    wheel = part.wheel if _unified(root, wanted) else part.wheel12
    return Missing(
        part=part.name, file=part.names[0], requirement=_requirement(root, wheel, wanted)
    )


def missing_library(root: Root, name: str, wanted: Minor | None) -> Missing:
    """Return what to install for a library that a root lacks."""
    wheel = LIBRARIES[name][0] if name in LIBRARIES else ""
    file = f"{name}.lib" if root.system == "windows" else f"lib{name}.so.*"
    return Missing(part=name, file=file, requirement=_requirement(root, wheel, wanted))


def wheel_name(wheel: str, major: int) -> str:
    """Return a wheel's name for a CUDA major: ``nvidia-cublas-cu12``, ``nvidia-cublas``."""
    companion = wheel.removeprefix("nvidia-") in COMPANIONS
    return f"{wheel}-cu{major}" if companion or major < UNIFIED_FROM else wheel


def _requirement(root: Root, wheel: str, wanted: Minor | None) -> str:
    if not wheel or root.source != "wheels":
        return ""
    version = root.version or wanted
    major = version.major if version else root.major
    if major is None:
        return wheel
    name = wheel_name(wheel, major)
    if name in root.pins:
        return f"{name}{root.pins[name]}"
    # nvcc, nvvm and crt work together only when they are of one release.
    if wheel in {_NVCC, _NVVM, _CRT}:
        for sibling in (_NVCC, _NVVM, _CRT):
            release = root.distributions.get(wheel_name(sibling, major))
            if release is not None:
                return f"{name}=={release}"
    if version is None or name.removesuffix(f"-cu{major}").removeprefix("nvidia-") in COMPANIONS:
        return name
    return (
        name if not wheel.startswith("nvidia-cuda-") and wheel != _NVVM else f"{name}=={version}.*"
    )


def _unified(root: Root, wanted: Minor | None) -> bool:
    major = root.major or (wanted.major if wanted else UNIFIED_FROM)
    return major >= UNIFIED_FROM


def _folders(root: Root, kind: Kind) -> tuple[Path, ...]:
    if kind == "include":
        return root.include_dirs
    if kind == "bin":
        return root.bin_dirs
    return root.folders if kind == "top" else root.library_dirs


def _entries(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []
