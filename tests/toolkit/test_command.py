"""The verb and its sub-verbs, as a user calls them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit import trees
from wheelfarm.cli import toolkit as verb
from wheelfarm.toolkit.model import SOURCES
from wheelfarm.toolkit.parts import STEPS

SOURCE_FOLDER = Path(__file__).parents[2] / "src"


def call(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    base = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "PYTHONPATH": str(SOURCE_FOLDER)}
    return subprocess.run(
        [sys.executable, "-m", "wheelfarm", "toolkit", *words],
        check=False,
        capture_output=True,
        text=True,
        env={**base, **environ},
    )


def document(completed: subprocess.CompletedProcess[str]) -> Any:
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


def test_the_choices_are_the_rooms_own() -> None:
    assert ("auto", *SOURCES) == verb._SOURCES
    assert set(verb._STEPS) == set(STEPS)


def test_importing_the_room_brings_nothing_heavy() -> None:
    script = "import wheelfarm.toolkit, sys; print(sorted(sys.modules))"
    names = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(SOURCE_FOLDER)},
    ).stdout
    for heavy in ("packaging", "cuda", "elftools", "torch", "subprocess", "json", "ssl"):
        assert f"'{heavy}'" not in names


def test_every_public_name_is_there() -> None:
    import wheelfarm.toolkit as room

    for name in room.__all__:
        assert getattr(room, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        room.__getattr__("nothing")


def test_show(toolkit_python: Path) -> None:
    words = ("show", "--python", str(toolkit_python), "--need", "device", "--cuda", "13.0")
    shown = call(*words)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("CUDA 13.0 from wheels: ")
    answer = document(
        call(
            "show", "--python", str(toolkit_python), "--need", "device", "--cuda", "13.0", "--json"
        )
    )
    assert answer["schema"] == "wheelfarm.toolkit-show/1"
    assert answer["nvcc"] == answer["parts"]["nvcc"]
    assert answer["candidates"][0]["accepted"] is True


def test_show_says_where_a_build_takes_another(toolkit_python: Path, tmp_path: Path) -> None:
    """Wheels come first here, an installed toolkit in ``load``: the two are told apart."""
    cache = str(tmp_path / "cache")
    common = ("--python", str(toolkit_python), "--cuda", "13.0")
    home = call("home", *common, WHEELFARM_CACHE=cache).stdout.strip()
    shown = call("show", *common, WHEELFARM_CACHE=cache, CUDA_HOME=home)
    assert shown.stdout.startswith("CUDA 13.0 from wheels: ")
    assert f"note: load and build_flags take {home} (CUDA 13.0, system, found by " in shown.stdout
    for environ in ({"WHEELFARM_CUDA_FROM_WHEELS": "1"}, {"WHEELFARM_CUDA_FROM_WHEELS": "0"}):
        shown = call("show", *common, WHEELFARM_CACHE=cache, CUDA_HOME=home, **environ)
        assert "note: load" not in shown.stdout


def test_show_a_floor(tmp_path: Path) -> None:
    shown = call("show", "--floor", "2.28", WHEELFARM_CACHE=str(tmp_path))
    assert shown.returncode == 0, shown.stderr
    lines = dict(line.split(": ", 1) for line in shown.stdout.splitlines() if ": " in line)
    assert {"compiler", "linker", "glibc", "source"} <= lines.keys()
    assert lines["floor"] == "2.28"
    answer = document(call("show", "--floor", "2.28", "--json", WHEELFARM_CACHE=str(tmp_path)))
    assert answer["schema"] == "wheelfarm.toolkit-floor/1"
    assert answer["machine"] == lines["machine"]
    folder = tmp_path / "floors"
    assert (answer["folder"] is None) == (not folder.is_dir())
    native = document(call("show", "--floor", "2.99", "--json", WHEELFARM_CACHE=str(tmp_path)))
    assert native["folder"] is None
    assert call("show", "--floor", "two").returncode == 4


def test_nothing_found_is_could_not_look(tmp_path: Path) -> None:
    missing = call("show", "--cuda", "9.2", CUDA_HOME=str(tmp_path))
    assert missing.returncode == 2
    assert f"CUDA_HOME={tmp_path}: invalid variable" in missing.stderr


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ((), 64),
        (("nothing",), 64),
        (("show", "--source", "moon"), 64),
        (("show", "--cuda", "13.0.3"), 4),
        (("show", "--python", "/nonexistent/python"), 4),
    ],
)
def test_bad_calls(words: tuple[str, ...], status: int) -> None:
    completed = call(*words)
    assert completed.returncode == status
    assert "Traceback" not in completed.stderr


@pytest.mark.compile
def test_exports_serve_a_build_that_knows_no_wheels(toolkit_python: Path, tmp_path: Path) -> None:
    """Plain names, a plain compiler: what any Makefile does."""
    cache = str(tmp_path / "a cache")
    common = ("--python", str(toolkit_python), "--cuda", "13.0")
    exports = call("env", *common, WHEELFARM_CACHE=cache)
    assert exports.returncode == 0, exports.stderr
    variables = document(call("env", *common, "--json", WHEELFARM_CACHE=cache))["variables"]
    home = call("home", *common, WHEELFARM_CACHE=cache).stdout.strip()
    assert variables["CUDA_HOME"] == home
    # What a shell evaluates is the output; which CUDA won is said beside it.
    assert "CUDA 13.0 from wheels: " in exports.stderr
    assert not call("env", *common, "-q", WHEELFARM_CACHE=cache).stderr
    words = (*common, "--source", "system")
    system = call("env", *words, WHEELFARM_CACHE=cache, CUDA_HOME=home)
    assert f"CUDA 13.0 from system: {home}" in system.stderr
    source = trees.touch(
        tmp_path / "x.cpp",
        "#include <cuda.h>\n#include <cuda_fp16.h>\n#include <cuda_runtime_api.h>\n"
        'extern "C" int f() { int v = 0; cudaRuntimeGetVersion(&v); return v + 0 * cuInit(0); }\n',
    )
    script = f"{exports.stdout}\ng++ -shared -fPIC -o {tmp_path}/x.so {source} -lcudart -lcuda"
    subprocess.run(["sh", "-euc", script], check=True, env={"PATH": "/usr/bin:/bin"}, cwd=tmp_path)
    load = f"import ctypes; print(ctypes.CDLL({str(tmp_path / 'x.so')!r}).f())"
    stub = f"{home}/lib64/stubs"
    answer = subprocess.run(
        [sys.executable, "-c", load],
        check=True,
        capture_output=True,
        text=True,
        env={"LD_LIBRARY_PATH": stub},
    )
    assert answer.stdout.strip() == "13000"


@pytest.mark.compile
def test_home_elsewhere(toolkit_python: Path, tmp_path: Path) -> None:
    made = document(
        call(
            *("home", "--python", str(toolkit_python), "--cuda", "13", "--json"),
            *("--to", str(tmp_path / "cuda")),
            WHEELFARM_CACHE=str(tmp_path / "cache"),
        )
    )
    assert made["home"] == str(tmp_path / "cuda")
    assert (tmp_path / "cuda" / "lib64" / "stubs" / "libcuda.so").is_file()


@pytest.mark.parametrize("kind", ["file", "folder", "link", "dangling"])
def test_home_takes_the_place_of_nothing_else(
    toolkit_python: Path, tmp_path: Path, kind: str
) -> None:
    """A folder or a file of the user's is never replaced; an empty folder, and a view, are."""
    mine = trees.touch(tmp_path / "mine" / "notes.txt", "my words\n")
    place = {"file": mine, "folder": mine.parent}.get(kind, tmp_path / "link")
    if kind in {"link", "dangling"}:
        place.symlink_to(mine.parent if kind == "link" else tmp_path / "gone")
    common = ("home", "--python", str(toolkit_python), "--cuda", "13", "--to")
    cache = str(tmp_path / "cache")
    refused = call(*common, str(place), WHEELFARM_CACHE=cache)
    assert refused.returncode == 4
    assert "and would be lost" in refused.stderr
    assert mine.read_text() == "my words\n"
    assert place.is_symlink() is (kind in {"link", "dangling"})
    assert sorted(path.name for path in mine.parent.iterdir()) == ["notes.txt"]
    assert not list(tmp_path.glob(".*.lock"))
    (tmp_path / "empty").mkdir()
    for _ in range(2):
        made = call(*common, str(tmp_path / "empty"), WHEELFARM_CACHE=cache)
        assert made.returncode == 0, made.stderr
    assert (tmp_path / "empty/bin/nvcc").exists()


@pytest.mark.compile
def test_check(toolkit_python: Path, tmp_path: Path) -> None:
    answer = document(
        call(
            *("check", "--python", str(toolkit_python), "--cuda", "13.0", "--json"),
            WHEELFARM_CACHE=str(tmp_path / "cache"),
        )
    )
    by_name = {step["id"]: step for step in answer["checks"]}
    assert by_name["build"]["status"] == "pass"
    assert "runtime 13000" in by_name["load"]["evidence"]
    assert by_name["device code"]["status"] == "pass"


@pytest.mark.compile
def test_check_that_fails_shows_the_compilers_words(toolkit_python: Path, tmp_path: Path) -> None:
    compiler = trees.executable(tmp_path / "c++", "#!/bin/sh\necho 'no room left' >&2\nexit 1\n")
    # The stand-in for the driver must be there, as this compiler cannot make it.
    driver = trees.touch(tmp_path / "driver" / "libcuda.so.1").parent
    answer = call(
        *("check", "--python", str(toolkit_python), "--cuda", "13.0"),
        WHEELFARM_CACHE=str(tmp_path / "cache"),
        WHEELFARM_CUDA_DRIVER_DIR=str(driver),
        CXX=str(compiler),
    )
    assert answer.returncode == 1
    assert "fail  build" in answer.stdout
    assert "no room left" in answer.stdout


CMAKE = """\
cmake_minimum_required(VERSION 3.20)
project(demo LANGUAGES CXX CUDA)
find_package(CUDAToolkit REQUIRED)
message(STATUS "include ${CUDAToolkit_INCLUDE_DIRS}")
add_library(demo SHARED demo.cu)
target_link_libraries(demo PRIVATE CUDA::cudart CUDA::cuda_driver)
"""


@pytest.mark.compile
def test_cmake_takes_the_wheels(toolkit_python: Path, tmp_path: Path) -> None:
    """find_package(CUDAToolkit) and enable_language(CUDA), with CMake from PyPI."""
    cmake = Path(sys.executable).parent / "cmake"
    if not cmake.exists():
        pytest.skip("CMake is not installed in this environment")
    trees.touch(tmp_path / "CMakeLists.txt", CMAKE)
    trees.touch(
        tmp_path / "demo.cu",
        "#include <cuda.h>\n__global__ void k() {}\n"
        'extern "C" int f() { k<<<1, 1>>>(); return cuInit(0); }\n',
    )
    exports = call(
        *("env", "--cmake", "--python", str(toolkit_python), "--cuda", "13.0", "--need", "device"),
        WHEELFARM_CACHE=str(tmp_path / "cache"),
    )
    assert exports.returncode == 0, exports.stderr
    script = (
        f"{exports.stdout}\n{cmake} -S . -B build -DCMAKE_CUDA_ARCHITECTURES=90 "
        f"-DCMAKE_MAKE_PROGRAM={Path(sys.executable).parent / 'ninja'} -G Ninja\n"
        f"{cmake} --build build"
    )
    completed = subprocess.run(
        ["sh", "-euc", script],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/")},
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert f"include {tmp_path}/cache/view" in completed.stdout
    dynamic = subprocess.run(
        ["readelf", "-d", tmp_path / "build" / "libdemo.so"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "[libcudart.so.13]" in dynamic
    assert "[libcuda.so.1]" in dynamic
