"""CUDA 12's real wheels, alone and beside CUDA 13's: what is linked, and where it is found."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.toolkit import trees
from wheelfarm.model.versions import Minor
from wheelfarm.toolkit.environment import Environment
from wheelfarm.toolkit.find import find_toolkit
from wheelfarm.toolkit.flags import BuildFlags, build_flags
from wheelfarm.toolkit.model import NoToolkitError
from wheelfarm.toolkit.view import make_view

pytestmark = [pytest.mark.compile, pytest.mark.network]

#: One release's wheels. The crt headers come in the nvcc wheel, which has no nvcc.
SMALL = (
    "nvidia-cuda-runtime-cu12==12.8.90",
    "nvidia-cuda-cccl-cu12==12.8.90",
    "nvidia-cuda-nvcc-cu12==12.8.93",
)
LARGE = ("nvidia-cuda-nvrtc-cu12==12.8.93", "nvidia-cublas-cu12==12.8.4.1")


def install(target: Path, *requirements: str) -> Path:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-input"]
    command += ["--disable-pip-version-check", "--target", str(target), *requirements]
    subprocess.run(command, check=True, capture_output=True)
    return target


@pytest.fixture(scope="session")
def site12(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("cuda12"), *SMALL)


def build(flags: BuildFlags, source: str, folder: Path) -> Path:
    text = trees.touch(folder / "source.cpp", source)
    result = folder / "result.so"
    includes = [f"-I{path}" for path in flags.include_dirs]
    subprocess.run(
        ["g++", "-shared", "-fPIC", "-o", result, text, *includes, *flags.link_args], check=True
    )
    return result


def needed(library: Path) -> set[str]:
    text = subprocess.run(
        ["readelf", "-d", library], check=True, capture_output=True, text=True
    ).stdout
    return {line.split("[")[1].rstrip("]") for line in text.splitlines() if "(NEEDED)" in line}


def answer(library: Path, **environ: str) -> int:
    """What ``f`` of a library says in a process that knows nothing else."""
    load = f"import ctypes; print(ctypes.CDLL({str(library)!r}).f())"
    completed = subprocess.run(
        [sys.executable, "-c", load], check=True, capture_output=True, text=True, env=environ
    )
    return int(completed.stdout)


RUNTIME = """\
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
extern "C" int f() { int version = 0; cudaRuntimeGetVersion(&version); return version; }
"""


def with_torch(folder: Path, cuda: str | None) -> Path:
    trees.torch(folder, "2.9.0", cuda)
    return folder


@pytest.mark.parametrize(("cuda", "number"), [("12.6", 12080), ("13.0", 13000)])
def test_torchs_major_is_linked_with_both_installed(
    site12: Path, toolkit_python: Path, tmp_path: Path, cuda: str, number: int
) -> None:
    torch = with_torch(tmp_path / "torch", cuda)
    new = Environment.of_python(toolkit_python).folders
    # Whichever comes first on the path, torch's major decides.
    for index, folders in enumerate(((torch, site12, *new), (torch, *new, site12))):
        made = build_flags(
            ("cudart",),
            driver=False,
            environment=trees.environment(*folders),
            machine=trees.machine(tmp_path, PATH="/usr/bin:/bin"),
        )
        assert made is not None
        folder = tmp_path / str(index)
        library = build(made, RUNTIME, folder)
        major = cuda.split(".", maxsplit=1)[0]
        assert f"libcudart.so.{major}" in needed(library)
        assert sum(name.startswith("libcudart") for name in needed(library)) == 1
        assert answer(library) == number
        # What is injected is resolved before anything else is loaded, by its own search path.
        assert answer(library, LD_PRELOAD=str(library)) == number


def test_the_wheels_of_cuda_12_have_no_compiler(site12: Path, tmp_path: Path) -> None:
    machine = trees.machine(tmp_path)
    host = find_toolkit(12, environment=trees.environment(site12), machine=machine)
    assert host.version == Minor(12, 8)
    assert host.root.layout == "split"
    assert host.nvcc is None
    with pytest.raises(NoToolkitError, match=r"nvcc \(no wheel has it\)"):
        find_toolkit(12, environment=trees.environment(site12), machine=machine, needs=("device",))


def test_a_view_of_the_split_wheels_is_one_toolkit(site12: Path, tmp_path: Path) -> None:
    toolkit = find_toolkit(
        12, environment=trees.environment(site12), machine=trees.machine(tmp_path)
    )
    view = make_view(toolkit, tmp_path / "cuda")
    source = trees.touch(tmp_path / "source.cpp", RUNTIME)
    library = tmp_path / "x.so"
    command = ["g++", "-shared", "-fPIC", "-o", str(library), str(source), f"-I{view}/include"]
    subprocess.run([*command, f"-L{view}/lib64", "-lcudart"], check=True)
    assert "libcudart.so.12" in needed(library)
    assert answer(library, LD_LIBRARY_PATH=str(view / "lib64")) == 12080
    assert (view / "bin" / "ptxas").is_file()
    assert not (view / "bin" / "nvcc").exists()


def test_what_torch_itself_brings_lacks_crt_and_cccl(
    site12: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runtime = tmp_path / "runtime"
    (runtime / "nvidia").mkdir(parents=True)
    for name in ("cuda_runtime", "__init__.py"):
        (runtime / "nvidia" / name).symlink_to(site12 / "nvidia" / name)
    trees.torch(runtime, "2.9.0+cu128", "12.8")
    machine = trees.machine(tmp_path, PATH="/usr/bin:/bin")
    assert build_flags(("cudart",), environment=trees.environment(runtime), machine=machine) is None
    assert "nvidia-cuda-cccl-cu12==12.8.*" in caplog.text
    assert "nvidia-cuda-nvcc-cu12==12.8.*" in caplog.text


@pytest.mark.full
def test_nvrtc_and_cublas_of_cuda_12(
    site12: Path, toolkit_python: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    large = install(tmp_path_factory.mktemp("cuda12-large"), *SMALL, *LARGE)
    torch = with_torch(tmp_path / "torch", "12.8")
    environment = trees.environment(torch, large, *Environment.of_python(toolkit_python).folders)
    machine = trees.machine(tmp_path, PATH="/usr/bin:/bin")
    made = build_flags(driver=False, environment=environment, machine=machine)
    assert made is not None
    source = RUNTIME.replace("f()", "runtime()") + (
        "#include <cublas_v2.h>\n#include <nvrtc.h>\n"
        'extern "C" int f() { int a = 0, b = 0; nvrtcVersion(&a, &b); size_t v = 0;\n'
        "return a * 100 + (cublasGetCudartVersion() == 12080 ? b : 99); }\n"
    )
    library = build(made, source, tmp_path / "large")
    assert {"libcudart.so.12", "libnvrtc.so.12", "libcublas.so.12"} <= needed(library)
    assert answer(library) == 1208
    assert answer(library, LD_PRELOAD=str(library)) == 1208
