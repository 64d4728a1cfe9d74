"""Synthetic trees of NVIDIA's wheels and of installed toolkits: names and versions, no code."""

from collections.abc import Iterable
from pathlib import Path

from wheelfarm.toolkit.environment import Environment
from wheelfarm.toolkit.layout import Machine


def touch(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def executable(path: Path, text: str) -> Path:
    touch(path, text).chmod(0o755)
    return path


def header(include: Path, version: str) -> None:
    major, minor = map(int, version.split("."))
    number = major * 1000 + minor * 10
    touch(include / "cuda_runtime_api.h", f"#define CUDART_VERSION  {number}\n")
    touch(include / "cuda_runtime.h")
    touch(include / "cuda.h", f"#define CUDA_VERSION {number}\n")


def dist_info(site: Path, name: str, version: str, requires: Iterable[str] = ()) -> None:
    lines = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in requires]
    touch(
        site / f"{name.replace('-', '_')}-{version}.dist-info" / "METADATA", "\n".join(lines) + "\n"
    )


def torch(site: Path, version: str, cuda: str | None, **more: str | None) -> None:
    lines = [f"__version__ = {version!r}", "debug = False", f"cuda: Optional[str] = {cuda!r}"]
    lines += [f"{name}: Optional[str] = {value!r}" for name, value in more.items()]
    touch(site / "torch" / "version.py", "from typing import Optional\n" + "\n".join(lines) + "\n")


def cu13(
    site: Path, version: str = "13.0", *, without: Iterable[str] = (), patch: int = 88
) -> Path:
    """CUDA 13's wheels, with their compiler; ``without`` leaves out parts by name."""
    top, left_out = site / "nvidia" / "cu13", set(without)
    if "headers" not in left_out:
        header(top / "include", version)
    if "crt" not in left_out:
        touch(top / "include" / "crt" / "host_config.h")
        dist_info(site, "nvidia-cuda-crt", f"{version}.{patch}")
    if "cccl" not in left_out:
        touch(top / "include" / "cccl" / "nv" / "target")
    if "nvcc" not in left_out:
        for name in ("nvcc", "cudafe++", "fatbinary", "nvlink", "ptxas"):
            executable(top / "bin" / name, "#!/bin/sh\nexit 1\n")
        touch(top / "bin" / "nvcc.profile")
        dist_info(site, "nvidia-cuda-nvcc", f"{version}.{patch}")
    if "nvvm" not in left_out:
        executable(top / "nvvm" / "bin" / "cicc", "#!/bin/sh\nexit 1\n")
        touch(top / "nvvm" / "libdevice" / "libdevice.10.bc")
        dist_info(site, "nvidia-nvvm", f"{version}.{patch}")
    touch(top / "lib" / "libcudart.so.13")
    dist_info(site, "nvidia-cuda-runtime", f"{version}.96")
    if "nvrtc" not in left_out:
        touch(top / "include" / "nvrtc.h")
        touch(top / "lib" / "libnvrtc.so.13")
        touch(top / "lib" / "libnvrtc.alt.so.13")
        dist_info(site, "nvidia-cuda-nvrtc", f"{version}.88")
    return top


def cu12(site: Path, version: str = "12.8", *, without: Iterable[str] = ()) -> Path:
    """CUDA 12's wheels: a folder each, and a regular package ``nvidia``."""
    top, left_out = site / "nvidia", set(without)
    touch(top / "__init__.py")
    if "headers" not in left_out:
        header(top / "cuda_runtime" / "include", version)
    touch(top / "cuda_runtime" / "lib" / "libcudart.so.12")
    dist_info(site, "nvidia-cuda-runtime-cu12", f"{version}.90")
    if "crt" not in left_out:
        touch(top / "cuda_nvcc" / "include" / "crt" / "host_config.h")
        executable(top / "cuda_nvcc" / "bin" / "ptxas", "#!/bin/sh\nexit 1\n")
        dist_info(site, "nvidia-cuda-nvcc-cu12", f"{version}.93")
    if "cccl" not in left_out:
        touch(top / "cuda_cccl" / "include" / "nv" / "target")
    if "nvrtc" not in left_out:
        touch(top / "cuda_nvrtc" / "include" / "nvrtc.h")
        touch(top / "cuda_nvrtc" / "lib" / "libnvrtc.so.12")
        dist_info(site, "nvidia-cuda-nvrtc-cu12", f"{version}.93")
    return top


def system(top: Path, version: str, *, nvcc: str = "#!/bin/sh\nexit 1\n") -> Path:
    """An installed toolkit, whole."""
    header(top / "include", version)
    touch(top / "include" / "crt" / "host_config.h")
    touch(top / "include" / "nv" / "target")
    touch(top / "include" / "nvrtc.h")
    major = version.split(".", maxsplit=1)[0]
    for name in ("cudart", "nvrtc"):
        touch(top / "lib64" / f"lib{name}.so.{major}.9.9")
        touch(top / "lib64" / f"lib{name}.so.{major}")
        touch(top / "lib64" / f"lib{name}.so")
    for name in ("nvcc", "cudafe++", "fatbinary", "nvlink", "ptxas"):
        executable(top / "bin" / name, nvcc)
    touch(top / "bin" / "nvcc.profile")
    executable(top / "nvvm" / "bin" / "cicc", nvcc)
    touch(top / "nvvm" / "libdevice" / "libdevice.10.bc")
    return top


def environment(*folders: Path, prefix: Path | None = None) -> Environment:
    return Environment(
        python=Path("/nowhere/python"),
        prefix=prefix or Path("/nowhere"),
        folders=folders,
    )


def machine(top: Path, **environ: str) -> Machine:
    return Machine(environ={"PATH": "", **environ}, top=top)


def windows(top: Path, **environ: str) -> Machine:
    return Machine(environ={"PATH": "", **environ}, top=top, system="windows", processor="amd64")
