"""The arguments for compilers and linkers, and when a package is told to build as before."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toolkit import trees
from wheelfarm.errors import BadInputError
from wheelfarm.toolkit.driver import find_driver
from wheelfarm.toolkit.environment import Environment
from wheelfarm.toolkit.flags import BuildFlags, Variables, build_flags, read_mode
from wheelfarm.toolkit.layout import Machine
from wheelfarm.toolkit.model import CpuOnlyTorchError, NoToolkitError

MODE = "WHEELFARM_CUDA_FROM_WHEELS"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site-packages"
    trees.cu13(folder)
    trees.touch(folder / "nvidia" / "cu13" / "include" / "cublas_v2.h")
    trees.touch(folder / "nvidia" / "cu13" / "lib" / "libcublas.so.13")
    trees.torch(folder, "2.14.1+cu130", "13.0")
    return folder


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A machine with a driver and no toolkit."""
    trees.touch(tmp_path / "usr" / "lib" / "x86_64-linux-gnu" / "libcuda.so.1")
    return tmp_path


def dynamic_section(library: Path) -> str:
    return subprocess.run(
        ["readelf", "-d", library], check=True, capture_output=True, text=True
    ).stdout


def flags(site: Path, machine: Machine) -> BuildFlags:
    made = build_flags(environment=trees.environment(site), machine=machine)
    assert made is not None
    return made


def test_libraries_are_linked_by_soname_and_the_driver_last(site: Path, top: Path) -> None:
    made = flags(site, trees.machine(top))
    lib = site / "nvidia" / "cu13" / "lib"
    driver = top / "usr" / "lib" / "x86_64-linux-gnu"
    assert made.link_args == (
        "-Wl,--disable-new-dtags",
        f"-L{lib}",
        "-l:libcudart.so.13",
        "-l:libnvrtc.so.13",
        "-l:libcublas.so.13",
        f"-Wl,-rpath,{lib}",
        f"-L{driver}",
        "-l:libcuda.so.1",
    )
    include = site / "nvidia" / "cu13" / "include"
    assert made.include_dirs == (str(include), str(include / "cccl"))
    assert made.runtime_dirs == (lib,)


def test_one_folder_is_named_once_and_split_folders_each(tmp_path: Path, top: Path) -> None:
    site = tmp_path / "old"
    trees.cu12(site)
    trees.torch(site, "2.7.0+cu128", "12.8")
    made = build_flags(
        ("cudart", "nvrtc"),
        driver=False,
        environment=trees.environment(site),
        machine=trees.machine(top),
    )
    assert made is not None
    folders = [word for word in made.link_args if word.startswith("-L")]
    assert folders == [
        f"-L{site}/nvidia/cuda_runtime/lib",
        f"-L{site}/nvidia/cuda_nvrtc/lib",
    ]
    assert "-l:libcudart.so.12" in made.link_args
    assert "-l:libcuda.so.1" not in made.link_args


def test_paths_with_blanks_and_commas_survive(tmp_path: Path, top: Path) -> None:
    site = tmp_path / "a b,c"
    trees.cu13(site)
    made = build_flags(("cudart",), environment=trees.environment(site), machine=trees.machine(top))
    assert made is not None
    lib = f"{site}/nvidia/cu13/lib"
    at = made.link_args.index("-Xlinker")
    assert made.link_args[at : at + 4] == ("-Xlinker", "-rpath", "-Xlinker", lib)
    assert f"'-L{lib}'" in made.ldflags


@pytest.mark.parametrize(
    ("value", "mode"), [("", "auto"), ("auto", "auto"), (" AUTO ", "auto"), ("1", "1"), ("0", "0")]
)
def test_modes(value: str, mode: str) -> None:
    assert read_mode({MODE: value}, MODE) == mode


@pytest.mark.parametrize("value", ["yes", "2", "true"])
def test_another_mode_is_named_as_invalid(value: str) -> None:
    with pytest.raises(BadInputError, match=f"{MODE}={value} is invalid"):
        read_mode({MODE: value}, MODE)


def test_auto_leaves_an_installed_toolkit_alone(
    site: Path, top: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trees.system(top / "usr" / "local" / "cuda", "12.6")
    environment = trees.environment(site)
    with caplog.at_level(logging.INFO):
        assert build_flags(environment=environment, machine=trees.machine(top)) is None
    assert "is not of torch's CUDA 13.0" in caplog.text
    made = build_flags(environment=environment, machine=trees.machine(top, **{MODE: "1"}))
    assert made is not None
    assert made.toolkit.source == "wheels"


def test_auto_takes_wheels_beside_an_invalid_variable(
    site: Path, top: Path, caplog: pytest.LogCaptureFixture
) -> None:
    machine = trees.machine(top, CUDA_HOME=":/usr/local/cuda-12.8")
    assert flags(site, machine).toolkit.source == "wheels"
    assert "CUDA_HOME=:/usr/local/cuda-12.8: invalid variable" in caplog.text


def test_auto_without_whole_wheels_is_none_with_the_reason(
    tmp_path: Path, top: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site = tmp_path / "partial"
    trees.cu13(site, without=("cccl", "crt"))
    environment = trees.environment(site)
    assert build_flags(("cudart",), environment=environment, machine=trees.machine(top)) is None
    assert "nvidia-cuda-cccl==13.0.*" in caplog.text
    assert "nvidia-cuda-crt==13.0.88" in caplog.text
    with pytest.raises(NoToolkitError, match="nvidia-cuda-cccl"):
        build_flags(("cudart",), environment=environment, machine=trees.machine(top, **{MODE: "1"}))


def test_never_is_never(site: Path, top: Path) -> None:
    machine = trees.machine(top, **{MODE: "0"})
    assert build_flags(environment=trees.environment(site), machine=machine) is None


@pytest.mark.parametrize("other", [{"hip": "7.0.2"}, {"xpu": "20250201"}])
def test_other_accelerators_pass_untouched(
    tmp_path: Path, top: Path, other: dict[str, str | None]
) -> None:
    site = tmp_path / "other"
    trees.torch(site, "2.9.0", None, **other)
    for mode in ("auto", "1"):
        machine = trees.machine(top, **{MODE: mode})
        assert build_flags(environment=trees.environment(site), machine=machine) is None


def test_torch_without_cuda_is_refused(tmp_path: Path, top: Path) -> None:
    site = tmp_path / "cpu"
    trees.torch(site, "2.14.1+cpu", None, hip=None)
    with pytest.raises(CpuOnlyTorchError):
        build_flags(environment=trees.environment(site), machine=trees.machine(top))


def test_a_package_brings_its_own_variables(site: Path, top: Path) -> None:
    own = Variables(mode="OEQ_CUDA_FROM_WHEELS", driver_dir="OEQ_CUDA_DRIVER_DIR")
    driver = trees.touch(top / "driver" / "libcuda.so.1").parent
    environment = trees.environment(site)
    machine = trees.machine(top, OEQ_CUDA_FROM_WHEELS="0", **{MODE: "1"})
    assert build_flags(variables=own, environment=environment, machine=machine) is None
    machine = trees.machine(top, OEQ_CUDA_DRIVER_DIR=str(driver))
    made = build_flags(variables=own, environment=environment, machine=machine)
    assert made is not None
    assert made.link_args[-2:] == (f"-L{driver}", "-l:libcuda.so.1")
    assert driver in made.runtime_dirs


@pytest.mark.parametrize(
    ("folder", "reason"), [("", "has no libcuda.so.1"), ("no", "is no folder")]
)
def test_a_wrong_driver_folder_is_named(tmp_path: Path, folder: str, reason: str) -> None:
    value = str(tmp_path / folder)
    machine = trees.machine(tmp_path, WHEELFARM_CUDA_DRIVER_DIR=value)
    with pytest.raises(
        BadInputError, match=f"WHEELFARM_CUDA_DRIVER_DIR={value} is invalid.*{reason}"
    ):
        find_driver(machine, variable="WHEELFARM_CUDA_DRIVER_DIR")


def test_wsls_driver_comes_first_and_needs_an_rpath(top: Path, site: Path) -> None:
    wsl = trees.touch(top / "usr" / "lib" / "wsl" / "lib" / "libcuda.so.1").parent
    made = flags(site, trees.machine(top))
    assert made.driver is not None
    assert made.driver.folder == wsl
    assert wsl in made.runtime_dirs


@pytest.mark.parametrize(
    "folder", ["usr/lib64", "usr/lib64-nvidia", "usr/lib/x86_64-linux-gnu/nvidia/current"]
)
def test_other_usual_driver_folders(tmp_path: Path, folder: str) -> None:
    place = trees.touch(tmp_path / folder / "libcuda.so.1").parent
    found = find_driver(trees.machine(tmp_path), variable="X")
    assert found is not None
    assert found.folder == place


def test_windows_names_import_libraries(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    top = trees.cu13(site)
    trees.touch(top / "lib" / "x64" / "cudart.lib")
    trees.touch(top / "bin" / "x86_64" / "cudart64_13.dll")
    made = build_flags(
        ("cudart",), environment=trees.environment(site), machine=trees.windows(tmp_path / "c")
    )
    assert made is not None
    assert made.link_args == (f"/LIBPATH:{top}/lib/x64", "cudart.lib", "cuda.lib")
    assert top / "bin" / "x86_64" in made.runtime_dirs


@pytest.mark.compile
def test_without_a_driver_a_stand_in_is_made_behind_the_usual_folders(
    toolkit_python: Path, tmp_path: Path
) -> None:
    environment = Environment.of_python(toolkit_python)
    machine = trees.machine(tmp_path, PATH="/usr/bin:/bin", WHEELFARM_CACHE=str(tmp_path / "cache"))
    made = build_flags(("cudart",), environment=environment, machine=machine)
    assert made is not None
    assert made.driver is not None
    assert made.driver.stand_in
    assert made.driver.folder.is_relative_to(tmp_path / "cache")
    # A driver that is installed later must win over the stand-in.
    assert made.runtime_dirs[-1] == made.driver.folder
    assert tmp_path / "usr" / "lib" / "x86_64-linux-gnu" in made.runtime_dirs[:-1]


@pytest.mark.compile
@pytest.mark.torch
def test_another_cudas_development_links_earlier_on_the_line_are_not_picked(
    torch_python: Path, tmp_path: Path
) -> None:
    """The folder of libpython, named first, also holds links of a system's CUDA 11.5."""
    trap = tmp_path / "libpython"
    trap.mkdir()
    for name in ("cudart", "nvrtc"):
        soname = f"lib{name}.so.11.0"
        empty = ["gcc", "-shared", "-x", "c", "/dev/null", f"-Wl,-soname,{soname}"]
        subprocess.run([*empty, "-o", trap / soname], check=True)
        (trap / f"lib{name}.so").symlink_to(f"lib{name}.so.11.0")
    # The trap is one: a plain name takes CUDA 11's.
    bait = ["gcc", "-shared", "-x", "c", "/dev/null", "-o", str(tmp_path / "bait.so")]
    subprocess.run([*bait, f"-L{trap}", "-Wl,--no-as-needed", "-lcudart"], check=True)
    assert "libcudart.so.11.0" in dynamic_section(tmp_path / "bait.so")
    source = trees.touch(
        tmp_path / "x.cpp",
        "#include <cuda_fp16.h>\n#include <cuda_runtime_api.h>\n#include <nvrtc.h>\n"
        'extern "C" int f() { int a, b; return cudaRuntimeGetVersion(&a) + nvrtcVersion(&a, &b); }',
    )
    made = build_flags(
        ("cudart", "nvrtc"),
        driver=False,
        environment=Environment.of_python(torch_python),
        machine=trees.machine(tmp_path, PATH="/usr/bin:/bin"),
    )
    assert made is not None
    result = tmp_path / "x.so"
    includes = [f"-I{folder}" for folder in made.include_dirs]
    command = ["g++", "-shared", "-fPIC", "-o", str(result), str(source), *includes, f"-L{trap}"]
    subprocess.run([*command, *made.link_args], check=True)
    dynamic = dynamic_section(result)
    assert "[libcudart.so.13]" in dynamic
    assert "[libnvrtc.so.13]" in dynamic
    assert ".so.11" not in dynamic
    load = f"import ctypes; print(ctypes.CDLL({str(result)!r}).f())"
    clean = subprocess.run(
        [sys.executable, "-c", load], check=True, capture_output=True, text=True, env={}
    )
    assert clean.stdout.strip() == "0"
