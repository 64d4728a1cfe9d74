"""Traps that builds in the wild have met: each must end in the right object, and be told."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from wheelfarm.build.calls import failures, summarise
from wheelfarm.build.handoff import results_in
from wheelfarm.build.seat_run import Finished
from wheelfarm.build.seat_setup import STUB_MARK, SeatPart, SeatSpec, prepare_seat
from wheelfarm.values import replace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.build.sharding.conftest import Root

SM80 = ("-gencode", "arch=compute_80,code=sm_80")
KERNEL = """\
__global__ void kernel(float* x) { x[0] = 1.0f; }
void launch(float* x) { kernel<<<1, 1>>>(x); }
"""
UNIT = '#include "shared.h"\nint value_NAME() { return SHARED; }\n'

pytestmark = pytest.mark.compile


def symbols(path: Path) -> str:
    return subprocess.run(["nm", path], check=True, capture_output=True, text=True).stdout


def test_nvcc_with_the_seat_as_host_compiler_gives_a_whole_object(root: Root) -> None:
    source = root.write("a.cu", KERNEL)
    seat = root.prepare(SeatPart(mode="shard", shard=1, shards=2, units={"a.cu": 1}))
    root.nvcc("-c", source, "-o", "a.o", "-ccbin", seat.environment["CC"], *SM80)
    assert "T _Z6launchPf" in symbols(root.path / "a.o")
    assert [call.action for call in root.calls] == ["compile"]
    assert STUB_MARK not in (root.path / "a.o").read_bytes()


def test_nvcc_by_its_absolute_path_and_through_a_linked_toolkit(
    make_root: Callable[[str], Root], tmp_path: Path
) -> None:
    results = []
    for name, toolkit in (("one", "cuda-13.0"), ("two", "cuda")):
        root = make_root(name)
        link = tmp_path / toolkit
        link.symlink_to(root.view)
        root.view = link
        source = root.write("a.cu", KERNEL)
        seat = root.prepare()
        nvcc = f"{seat.environment['CUDA_HOME']}/bin/nvcc"
        before = sorted(path.name for path in (link / "bin").iterdir())
        root.run(nvcc, "-c", source, "-o", "a.o", *SM80, f"-I{link}/include")
        assert sorted(path.name for path in (link / "bin").iterdir()) == before
        results.append(root.calls[-1].cache)
    assert results == ["miss", "hit"]


def test_threads_are_given_and_not_part_of_the_key(root: Root) -> None:
    source = root.write("a.cu", KERNEL)
    assert root.nvcc("-c", source, "-o", "a.o", *SM80, "--threads", "2").cache == "miss"
    assert root.nvcc("-c", source, "-o", "a.o", *SM80, "--threads=4").cache == "hit"


def test_several_sources_are_several_units(root: Root) -> None:
    for name in "ab":
        root.write(f"{name}.cu", KERNEL.replace("kernel", f"kernel_{name}"))
    root.prepare(SeatPart(mode="shard", shard=1, shards=2, units={"a.cu": 1, "b.cu": 2}))
    root.run("nvcc", "-c", "a.cu", "b.cu", *SM80)
    assert [(call.unit, call.action) for call in root.calls] == [
        ("a.cu", "compile"), ("b.cu", "stub"),
    ]  # fmt: skip
    assert STUB_MARK in (root.path / "b.o").read_bytes()


def test_a_response_file_and_a_forced_language(root: Root) -> None:
    root.write("kernel.cpp", KERNEL)
    root.write("words.rsp", f"-x cu -c kernel.cpp -o k.o {' '.join(SM80)}")
    call = root.nvcc("--options-file", "words.rsp")
    assert (call.unit, call.kind, call.cache) == ("kernel.cpp", "cu", "miss")
    assert root.nvcc("-optf=words.rsp").cache == "hit"
    assert "T _Z6launchPf" in symbols(root.path / "k.o")


def test_a_target_of_ptx_alone_is_built(root: Root) -> None:
    source = root.write("a.cu", KERNEL)
    call = root.nvcc("-c", source, "-o", "a.o", "--generate-code=arch=compute_90,code=[compute_90]")
    assert (call.status, call.cache, call.archs) == (0, "miss", ("90",))


def test_a_cache_that_fails_is_no_failed_build(root: Root, tmp_path: Path) -> None:
    assert root.cache is not None
    script = tmp_path / "ccache"
    script.write_text("#!/bin/sh\necho 'Missing \"cubin\" file output' >&2\nexit 2\n")
    script.chmod(0o755)
    root.cache = replace(root.cache, program=script)
    root.write("shared.h", "#define SHARED 1\n")
    source = root.write("a.cpp", UNIT)
    done = root.run("g++", "-c", source, "-o", "a.o")
    (call,) = root.calls
    assert (call.status, call.cache) == (0, "bypass")
    assert 'cache error: Missing "cubin" file output' in call.reason
    assert "cubin" not in done.stderr
    assert summarise(root.calls).bypassed == {call.reason: 1}


def test_a_cache_that_the_build_finds_for_itself_keeps_nothing(root: Root) -> None:
    # torch 2.14 and CMake projects put a ccache of PATH before the compiler.
    root.write("shared.h", "#define SHARED 1\n")
    source = root.write("a.cpp", UNIT)
    root.prepare(SeatPart(mode="census"))
    foreign = root.path / "foreign"
    root.environment = {"CCACHE_DIR": str(foreign)}
    root.run("ccache", "g++", "-c", source, "-o", "a.o")
    root.run("sccache", "g++", "-c", source, "-o", "b.o")
    assert [call.action for call in root.calls] == ["stub", "stub"]
    assert not foreign.exists()
    assert root.cache is not None
    assert not list(results_in("ccache", root.cache.folder))


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("build/CMakeFiles/CMakeScratch/TryCompile-aBc", "testCXXCompiler.cxx"),
        ("build/CMakeFiles/3.30/CompilerIdCXX", "CMakeCXXCompilerId.cpp"),
        ("build/meson-private/tmp123", "testfile.c"),
        ("build", "conftest.c"),
        ("build", "_configtest.c"),
    ],
)
def test_a_build_systems_probes_are_always_real(root: Root, folder: str, name: str) -> None:
    root.write(f"{folder}/{name}", "int main(void) { return 0; }\n")
    root.prepare(SeatPart(mode="census"))
    compiler = "gcc" if name.endswith(".c") else "g++"
    root.run(compiler, "-c", name, "-o", "out.o", cwd=root.path / folder)
    (call,) = root.calls
    assert (call.action, call.reason) == ("real", "probe")
    assert "main" in symbols(root.path / folder / "out.o")


def test_an_unplanned_unit_falls_to_one_shard_and_is_counted(root: Root) -> None:
    root.write("shared.h", "#define SHARED 1\n")
    actions = []
    for shard in (1, 2):
        root.prepare(SeatPart(mode="shard", shard=shard, shards=2, units={"known.cpp": 1}))
        for name in ("generated", "other", "third", "fourth"):
            root.write(f"{name}.cpp", UNIT.replace("NAME", name))
            root.run("g++", "-c", f"{name}.cpp", "-o", f"{name}.o")
        actions.append([call.action for call in root.calls])
        assert summarise(root.calls).unplanned == 4
    assert all(sorted(pair) == ["compile", "stub"] for pair in zip(*actions, strict=True))


def test_a_random_build_environment_still_hits(make_root: Callable[[str], Root]) -> None:
    results = []
    for name, random, text in (("one", "aaaa", "1"), ("two", "bbbb", "1"), ("three", "cccc", "2")):
        root = make_root(name)
        seat = root.prepare()
        overlay = seat.folder / "temporary" / f"pip-build-env-{random}" / "overlay/include"
        overlay.mkdir(parents=True)
        (overlay / "shared.h").write_text(f"#define SHARED {text}\n")
        (overlay / "unused.h").write_text(f"// {random}\n")
        root.write("a.cpp", UNIT)
        results.append(root.cxx("-c", "a.cpp", "-o", "a.o", f"-I{overlay}", "-g").cache)
    assert results == ["miss", "hit", "miss"]


def test_a_resumed_build_compiles_what_is_missing_by_content(
    make_root: Callable[[str], Root],
) -> None:
    names = ("one", "two", "three", "four", "five", "six")

    def build(name: str, units: tuple[str, ...], header: str = "#define SHARED 1\n") -> list[str]:
        root = make_root(name)
        root.write("src/shared.h", "#define SHARED 0\n")
        root.write("src/own.h", header)
        for unit in names:
            include = "own.h" if unit in {"five", "six"} else "shared.h"
            root.write(f"src/{unit}.cpp", UNIT.replace("NAME", unit).replace("shared.h", include))
        return [root.cxx("-c", f"src/{unit}.cpp", "-o", f"{unit}.o").cache for unit in units]

    # The first run is killed after four units and leaves half an object behind.
    assert build("killed", names[:4]) == ["miss"] * 4
    # New checkouts and headers are newer than all that was kept; content decides.
    assert build("resumed", names) == ["hit"] * 4 + ["miss"] * 2
    changed = build("changed", names, header="#define SHARED 2\n")
    assert changed == ["hit"] * 4 + ["miss"] * 2


def test_another_python_reuses_what_does_not_include_it(
    make_root: Callable[[str], Root], tmp_path: Path
) -> None:
    results: dict[str, list[str]] = {"free": [], "bound": []}
    for version in ("3.11", "3.12"):
        include = tmp_path / f"python{version}/include/python{version}"
        include.mkdir(parents=True)
        (include / "Python.h").write_text(f'#define PY_VERSION "{version}"\n')
        site = tmp_path / f"env{version}/lib/python{version}/site-packages"
        (site / "torch/include").mkdir(parents=True)
        (site / "torch/include/torch.h").write_text("#define SHARED 1\n")
        root = make_root(f"root{version}")
        root.folders = {"python": include, "site": site}
        root.write("free.cpp", "#include <torch.h>\nint value() { return SHARED; }\n")
        root.write("bound.cpp", "#include <Python.h>\nconst char* v = PY_VERSION;\n")
        for name, found in results.items():
            output = f"build/temp.linux-x86_64-cpython-{version}/{name}.o"
            (root.path / output).parent.mkdir(parents=True, exist_ok=True)
            folders = (f"-I{site}/torch/include", f"-I{include}")
            found.append(root.cxx("-c", f"{name}.cpp", "-o", output, *folders).cache)
    assert results == {"free": ["miss", "hit"], "bound": ["miss", "miss"]}


def host_compiler(folder: Path, body: str) -> str:
    """Return a PATH whose g++ runs ``body`` for compiles and is the real one for the rest."""
    folder.mkdir()
    real = shutil.which("g++", path="/usr/bin:/bin")
    script = folder / "g++"
    script.write_text(f'#!/bin/sh\ncase " $* " in *" -c "*) {body};; esac\nexec {real} "$@"\n')
    script.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def test_the_signs_of_a_killed_compiler_are_known() -> None:
    signs = (
        b"g++: fatal error: Killed signal terminated program cc1plus",
        b"nvcc error   : 'cicc' died due to signal 9 (Kill signal)",
        b"virtual memory exhausted: cc1plus: out of memory allocating 65536 bytes",
    )
    for sign in signs:
        assert Finished(1, b"", sign, 1.0, 1).killed
        assert not Finished(0, b"", sign, 1.0, 1).killed
    assert Finished(137, b"", b"", 1.0, 1).killed
    assert not Finished(1, b"", b"a.cpp:1: error: no", 1.0, 1).killed


@pytest.mark.parametrize("always", [False, True])
def test_a_killed_unit_is_tried_again_alone(root: Root, tmp_path: Path, always: bool) -> None:
    mark = tmp_path / "killed-once"
    body = "kill -9 $$" if always else f"[ -e {mark} ] || {{ touch {mark}; kill -9 $$; }}"
    path = host_compiler(tmp_path / "compilers", body)
    root.write("shared.h", "#define SHARED 1\n")
    root.write("a.cpp", UNIT)
    root.seat = prepare_seat(
        SeatSpec(
            root=root.path, folder=root.path / "seat", toolkit=None, cache=root.cache, path=path
        )
    )
    root.seat = replace(root.seat, cuda_home=root.path)
    done = root.run("g++", "-c", "a.cpp", "-o", "a.o", check=False)
    (call,) = root.calls
    assert call.alone
    assert (done.returncode == 0) is not always
    assert ("was killed, also when it ran alone; its compilers" in done.stderr) is always
    assert bool(failures(root.calls)) is always


def test_nothing_is_left_in_the_users_toolkit_or_temporary_folder(root: Root) -> None:
    source = root.write("a.cu", KERNEL)
    before = {path: os.lstat(path).st_mtime_ns for path in root.view.rglob("*")}
    root.nvcc("-c", source, "-o", "a.o", *SM80)
    assert {path: os.lstat(path).st_mtime_ns for path in root.view.rglob("*")} == before
    assert root.seat is not None
    assert list((root.seat.folder / "work").iterdir()) == []
