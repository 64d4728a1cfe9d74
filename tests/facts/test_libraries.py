"""Whose a library is, by name, for both systems and all CUDA majors."""

from pathlib import Path

import pytest

from wheelfarm.facts.libraries import (
    is_driver_library,
    is_torch_library,
    nvidia_library,
    owner_of,
)

MAJORS = [
    ("libcudart.so.13", {13}),
    ("libcudart.so.12", {12}),
    ("libcudart.so.11.0", {11}),
    ("libcudart-9335f6a2.so.12.8.90", {12}),
    ("libcublasLt.so.13", {13}),
    ("libcufft.so.10", {11}),
    ("libcufft.so.11", {12}),
    ("libcufft.so.12", {13}),
    ("libcusparse.so.12", {12, 13}),
    ("libcusolver.so.11", {11, 12}),
    ("libcusolver.so.12", {13}),
    ("libcurand.so.10", {11, 12, 13}),
    ("libnvrtc.so.13", {13}),
    ("libnvrtc-builtins.so.12.8", {12}),
    ("libnvJitLink.so.12", {12}),
    ("libcudnn.so.9", {11, 12, 13}),
    ("libcudnn_graph.so.9", {11, 12, 13}),
    ("libnppicc.so.13", {13}),
    ("cudart64_110.dll", {11}),
    ("cudart64_12.dll", {12}),
    ("cudart64_13.dll", {13}),
    ("CUBLAS64_13.dll", {13}),
    ("cufft64_12.dll", {13}),
    ("cusparse64_12.dll", {12, 13}),
    ("nvrtc64_120_0.dll", {12}),
    ("nvrtc64_130_0.dll", {13}),
    ("nvJitLink_130_0.dll", {13}),
    ("cudnn64_9.dll", {11, 12, 13}),
    ("cuTENSOR.dll", {11, 12, 13}),
    ("libnvtx3interop.so.1", {12, 13}),
    ("libcufile_rdma.so.1", {11, 12, 13}),
    ("nvvm64_40_0.dll", {11, 12, 13}),
]


@pytest.mark.parametrize(("name", "majors"), MAJORS)
def test_a_soname_fits_its_majors(name: str, majors: set[int]) -> None:
    library = nvidia_library(name)
    assert library is not None
    assert library.majors == majors
    assert owner_of(name) == "nvidia"


@pytest.mark.parametrize("name", ["libcudart.so.99", "libcufoo.so.12", "libc.so.6", "x.dll"])
def test_what_the_table_does_not_know_is_nobodys(name: str) -> None:
    assert nvidia_library(name) is None


def test_the_wheels_that_ship_a_library_are_named() -> None:
    runtime = nvidia_library("libcudart.so.13")
    older = nvidia_library("libcudart.so.12")
    either = nvidia_library("libcusparse.so.12")
    assert runtime is not None
    assert older is not None
    assert either is not None
    assert runtime.distributions(13)[0] == "nvidia-cuda-runtime"
    assert older.distributions(12) == ("nvidia-cuda-runtime-cu12",)
    assert either.distributions(12) == ("nvidia-cusparse-cu12",)


DRIVER = [
    "libcuda.so.1",
    "libcuda-984fdb42.so.570.133.07",
    "libnvidia-ml.so.1",
    "libnvidia-ptxjitcompiler.so.570.133.07",
    "libnvcuvid.so.1",
    "nvcuda.dll",
    "NVML.dll",
]


@pytest.mark.parametrize("name", DRIVER)
def test_the_drivers_libraries_are_known(name: str) -> None:
    assert is_driver_library(name)
    assert owner_of(name) == "driver"


@pytest.mark.parametrize("name", ["libcudart.so.13", "libcudadevrt.so", "libnvrtc.so.13"])
def test_the_toolkits_libraries_are_not_the_drivers(name: str) -> None:
    assert not is_driver_library(name)


@pytest.mark.parametrize(
    "name", ["libtorch_cpu.so", "libc10_cuda.so", "libtorch_python.so", "c10.dll", "torch_cuda.dll"]
)
def test_torchs_libraries_are_known(name: str) -> None:
    assert is_torch_library(name)


@pytest.mark.parametrize("name", ["libtorchaudio.so", "libtorchvision.so", "libc10x.so.1"])
def test_other_libraries_are_not_torchs(name: str) -> None:
    assert owner_of(name) is None


OTHERS = [
    ("libstdc++.so.6", "system"),
    ("ld-linux-x86-64.so.2", "system"),
    ("KERNEL32.dll", "system"),
    ("api-ms-win-crt-heap-l1-1-0.dll", "system"),
    ("VCRUNTIME140_1.dll", "system"),
    ("python311.dll", "python"),
    ("libpython3.11.so.1.0", "python"),
    ("libgomp.so.1", None),
    ("libssl.so.3", None),
]


@pytest.mark.parametrize(("name", "owner"), OTHERS)
def test_the_rest_is_the_systems_or_unexplained(name: str, owner: str | None) -> None:
    assert owner_of(name) == owner


@pytest.mark.compile
def test_every_library_of_the_toolkits_wheels_is_known(toolkit_python: Path) -> None:
    """A library of NVIDIA's wheels that the table lacks would be called unexplained."""
    folders = toolkit_python.parents[1].glob("lib/python3*/site-packages/nvidia/*/lib")
    names = {path.name for folder in folders for path in folder.glob("lib*.so.*")}
    assert names
    unknown = {name for name in names if nvidia_library(name) is None}
    assert not {name for name in unknown if ".alt." not in name}
