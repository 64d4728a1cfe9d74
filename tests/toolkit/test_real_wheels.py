"""What is found in NVIDIA's real CUDA 13 wheels, and what is made of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from wheelfarm.model.versions import Minor
from wheelfarm.toolkit import NoToolkitError, Toolkit, find_toolkit, make_driver_stub, make_view
from wheelfarm.toolkit.layout import Machine
from wheelfarm.toolkit.stub import driver_functions, is_stub

pytestmark = pytest.mark.compile
GCC = Path("/usr/bin/gcc")


@pytest.fixture(scope="session")
def toolkit(toolkit_python: Path) -> Toolkit:
    return find_toolkit(
        Minor(13, 0), "wheels", python=toolkit_python, needs=("device-link", "link")
    )


@pytest.fixture(scope="session")
def stub(toolkit: Toolkit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_driver_stub(
        toolkit.parts["cuda.h"].parent, tmp_path_factory.mktemp("stub") / "driver", GCC
    )


@pytest.fixture(scope="session")
def view(toolkit: Toolkit, stub: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_view(toolkit, tmp_path_factory.mktemp("view") / "cuda", stub=stub)


def bare(**more: str) -> dict[str, str]:
    """An environment that knows nothing of any CUDA."""
    return {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), **more}


def test_all_parts_lie_in_the_environment(toolkit: Toolkit, toolkit_python: Path) -> None:
    prefix = Path(
        subprocess.run(
            [toolkit_python, "-c", "import sys; print(sys.prefix)"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
    )
    assert toolkit.version == Minor(13, 0)
    assert toolkit.source == "wheels"
    assert toolkit.missing == ()
    assert toolkit.outside(prefix) == {}
    assert "nvcc" in toolkit.outside(prefix / "nowhere")
    assert toolkit.nvcc is not None
    assert toolkit.libraries["cudart"].file_name == "libcudart.so.13"


def test_another_major_is_refused_with_the_places(toolkit_python: Path) -> None:
    with pytest.raises(NoToolkitError, match=r"it is CUDA 13\.0, and CUDA 12 is wanted"):
        find_toolkit(12, "wheels", python=toolkit_python, needs=("device",))


def test_nvcc_takes_the_view_as_its_top(view: Path, tmp_path: Path) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text(
        "#include <cuda.h>\n"
        "__global__ void kernel() {}\n"
        "int main() { kernel<<<1, 1>>>(); return cuInit(0) == CUDA_ERROR_NO_DEVICE ? 0 : 1; }\n"
    )
    nvcc = view / "bin" / "nvcc"
    dry = subprocess.run(
        [nvcc, "--dryrun", source], capture_output=True, text=True, check=True, env=bare()
    )
    assert f"#$ TOP={view}/bin/.." in dry.stderr
    # As of an installed toolkit: nvcc takes it, and Meson's dependency('cuda') looks there alone.
    target = f"targets/{Machine.here().targets[0]}"
    assert f"#$ _TARGET_DIR_={target}" in dry.stderr
    assert (view / target / "include/cuda.h").is_file()
    assert (view / target / "lib/libcudart.so").resolve().is_file()
    program = tmp_path / "program"
    # -lcuda is met by the stubs folder and -lcudart by the unversioned name: neither is in a wheel.
    subprocess.run(
        [nvcc, "-arch=sm_90", "-cudart", "shared", "-o", program, source, "-lcuda"],
        check=True,
        env=bare(),
    )
    needed = subprocess.run(
        ["readelf", "-d", program], check=True, capture_output=True, text=True
    ).stdout
    assert "[libcuda.so.1]" in needed
    assert "[libcudart.so.13]" in needed
    folders = f"{view}/lib64:{view}/lib64/stubs"
    assert subprocess.run([program], check=False, env=bare(LD_LIBRARY_PATH=folders)).returncode == 0


def test_a_view_is_made_once(toolkit: Toolkit, stub: Path, tmp_path: Path) -> None:
    folder = make_view(toolkit, tmp_path / "cuda", stub=stub)
    inode = folder.stat().st_ino
    assert make_view(toolkit, folder, stub=stub).stat().st_ino == inode
    assert make_view(toolkit, folder).stat().st_ino != inode
    assert not (folder / "lib64" / "stubs" / "libcuda.so").exists()


def test_the_view_writes_nothing_into_the_wheels(toolkit: Toolkit, view: Path) -> None:
    assert not (toolkit.path / "lib64").exists()
    assert not (toolkit.path / "lib" / "libcudart.so").exists()
    assert (view / "lib64" / "libcudart.so").resolve() == (
        toolkit.path / "lib" / "libcudart.so.13"
    ).resolve()


def test_the_stub_has_what_cuda_h_declares(toolkit: Toolkit, stub: Path) -> None:
    names = driver_functions(toolkit.parts["cuda.h"].parent, GCC)
    assert len(names) > 540
    assert {"cuInit", "cuMemAlloc_v2", "cuMemAlloc", "cuLaunchKernel", "cuGetProcAddress"} <= {
        *names
    }
    listing = subprocess.run(["nm", "-D", stub], check=True, capture_output=True, text=True).stdout
    exported = {line.split()[2] for line in listing.splitlines() if " T cu" in line}
    assert exported >= set(names)
    assert is_stub(stub)
    assert not is_stub(Path(os.__file__))


def test_the_stub_answers_as_a_driver_without_a_device(stub: Path) -> None:
    program = f"""
import ctypes
driver = ctypes.CDLL({str(stub)!r})
assert driver.cuInit(0) == 100
count, version = ctypes.c_int(-1), ctypes.c_int(-1)
assert driver.cuDeviceGetCount(ctypes.byref(count)) == 100 and count.value == 0
assert driver.cuDriverGetVersion(ctypes.byref(version)) == 0 and version.value == 13000
text = ctypes.c_char_p()
assert driver.cuGetErrorName(100, ctypes.byref(text)) == 0 and text.value == b"CUDA_ERROR_NO_DEVICE"
place, status = ctypes.c_void_p(), ctypes.c_int(-1)
get = driver.cuGetProcAddress_v2
assert get(b"cuInit", ctypes.byref(place), 13000, ctypes.c_ulonglong(0), ctypes.byref(status)) == 0
assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint)(place.value)(0) == 100
assert get(b"cuNo", ctypes.byref(place), 13000, ctypes.c_ulonglong(0), ctypes.byref(status)) == 500
assert place.value is None and status.value == 1
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.torch
def test_torch_behind_the_stub_sees_no_device(torch_python: Path, stub: Path) -> None:
    program = "import torch; print(torch.cuda.is_available(), torch.cuda.device_count())"
    completed = subprocess.run(
        [torch_python, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env=bare(LD_LIBRARY_PATH=str(stub.parent)),
    )
    assert completed.stdout.split() == ["False", "0"]


@pytest.mark.torch
def test_our_answer_is_cuda_pathfinders(torch_python: Path) -> None:
    """For CUDA 13's wheels NVIDIA's own finder is the judge."""
    program = """
import json
from cuda import pathfinder
header = pathfinder.find_nvidia_header_directory
print(json.dumps({
    "headers": {name: header(name) for name in ("cudart", "nvrtc", "cublas")},
    "nvcc": pathfinder.find_nvidia_binary_utility("nvcc"),
    "cudadevrt": pathfinder.find_static_lib("cudadevrt"),
    "cudart": pathfinder.load_nvidia_dynamic_lib("cudart").abs_path,
}))
"""
    command = [str(torch_python), "-c", program]
    answer = subprocess.run(command, check=True, capture_output=True, text=True, env=bare())
    theirs = json.loads(answer.stdout)
    ours = find_toolkit(
        python=torch_python, needs=("device-link", "link"), libraries=("cudart", "nvrtc", "cublas")
    )
    assert {Path(folder).resolve() for folder in theirs["headers"].values()} == {
        ours.include_dirs[0].resolve()
    }
    cudart = ours.libraries["cudart"]
    assert Path(theirs["cudart"]).resolve() == (cudart.folder / cudart.file_name).resolve()
    assert Path(theirs["nvcc"]).resolve() == ours.parts["nvcc"].resolve()
    assert Path(theirs["cudadevrt"]).resolve() == ours.parts["cudadevrt"].resolve()
