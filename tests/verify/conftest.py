"""Shared by the gate's tests: fakes of foreign libraries, made once."""

from pathlib import Path

import pytest

from tests.binaries import fake


@pytest.fixture(scope="session")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of empty libraries under the names of torch's, NVIDIA's and the driver's."""
    folder = tmp_path_factory.mktemp("others")
    for soname in (
        "libc10.so",
        "libtorch_cpu.so",
        "libc10_cuda.so",
        "libcudart.so.13",
        "libcudart.so.12",
        "libcublas.so.13",
        "libcufft.so.12",
        "libcuda.so.1",
        "libnvjpeg.so.13",
        "libordinary.so.4",
        "libgomp.so.1",
    ):
        fake(folder, soname)
    return folder
