"""The seat in the place of real compilers: what it decides, hands to the cache and records."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from wheelfarm.build.calls import summarise
from wheelfarm.build.seat_setup import SeatPart

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.build.sharding.conftest import Root

SM80 = ("-gencode", "arch=compute_80,code=sm_80")
KERNEL = """\
__global__ void kernel(float* x) { x[0] = 1.0f; }
void launch(float* x) { kernel<<<1, 1>>>(x); }
"""
LONG = ("--generate-dependencies-with-compile", "--dependency-output")

pytestmark = pytest.mark.compile


def test_long_dependency_options_hit_and_are_served(root: Root) -> None:
    source = root.write("src/a.cu", f'#include "a b.h"\n{KERNEL}')
    root.write("src/a b.h", "#define B 1\n")
    results = []
    for _ in range(2):
        (root.path / "a.d").unlink(missing_ok=True)
        results.append(root.nvcc("-c", source, "-o", "a.o", *SM80, *LONG, "a.d").cache)
    assert results == ["miss", "hit"]
    depfile = (root.path / "a.d").read_text()
    assert depfile.startswith(f"a.o: {source} \\\n")
    assert f"{root.path}/src/a\\ b.h" in depfile
    lines = [line.strip(" \\") for line in depfile.splitlines()]
    header = next(line for line in lines if line.endswith("/include/cuda_runtime.h"))
    assert header.startswith(f"{root.view}/")


def test_the_call_is_recorded(root: Root) -> None:
    source = root.write("src/a.cu", KERNEL)
    call = root.nvcc("-c", source, "-o", "a.o", *SM80)
    assert (call.unit, call.output, call.kind, call.role) == ("src/a.cu", "a.o", "cu", "nvcc")
    assert (call.action, call.status, call.archs) == ("compile", 0, ("80",))
    assert call.size == len(KERNEL)
    assert call.seconds > 0.05
    assert call.peak > 20_000_000
    root.cxx("--version")
    assert summarise(root.calls).real == 1
    assert summarise(root.calls).cache == {"miss": 1}


def test_relocatable_and_whole_program_objects_are_kept_apart(root: Root) -> None:
    source = root.write("a.cu", KERNEL)
    assert root.nvcc("-c", source, "-o", "a.o", *SM80).cache == "miss"
    assert root.nvcc("-dc", source, "-o", "b.o", *SM80).cache == "miss"
    sections = subprocess.run(
        ["readelf", "-SW", root.path / "b.o"], check=True, capture_output=True, text=True
    )
    assert "nvFatBinSegment" in sections.stdout or "__nv_relfatbin" in sections.stdout
    assert "__nv_relfatbin" in sections.stdout


def test_another_shards_unit_becomes_an_empty_object(root: Root) -> None:
    source = root.write("src/a.cu", KERNEL)
    root.prepare(SeatPart(mode="shard", shard=1, shards=2, units={"src/a.cu": 2}))
    call = root.nvcc("-c", source, "-o", "a.o", *SM80, "-MD", "-MF", "a.d")
    assert call.action == "stub"
    assert (root.path / "a.d").read_text() == f"a.o: {source}\n"
    link = root.cxx("-shared", "a.o", "-o", "a.so", "-Wl,-z,defs")
    assert (link.action, link.reason, link.status) == ("real", "link", 0)


def test_the_link_job_refuses_an_empty_object(root: Root) -> None:
    source = root.write("src/a.cu", KERNEL)
    root.prepare(SeatPart(mode="census"))
    root.nvcc("-c", source, "-o", "a.o", *SM80)
    root.prepare(SeatPart(mode="link"))
    done = root.run("g++", "-shared", "a.o", "-o", "a.so", check=False)
    assert done.returncode == 1
    assert "empty object" in done.stderr


def test_what_the_build_runs_is_made_real(root: Root) -> None:
    source = root.write("gen.cpp", "int main() { return 0; }\n")
    root.prepare(SeatPart(mode="census"))
    assert root.cxx("-c", source, "-o", "gen.o").action == "stub"
    root.cxx("gen.o", "-o", "gen")
    assert root.run("./gen").returncode == 0
    assert [call.action for call in root.calls] == ["stub", "compile", "real"]


def test_a_program_that_links_a_static_library_is_made_real(root: Root) -> None:
    root.write("gen.cpp", "int helper(); int main() { return helper(); }\n")
    root.write("helper.cpp", "int helper() { return 0; }\n")
    root.write("kernel.cpp", "int kernel() { return 1; }\n")
    root.prepare(SeatPart(mode="census"))
    for name in ("gen", "helper", "kernel"):
        root.cxx("-c", f"{name}.cpp", "-o", f"{name}.o")
    root.run("ar", "rcs", "libhelper.a", "helper.o")
    root.cxx("gen.o", "-L.", "libhelper.a", "-o", "gen")
    assert root.run("./gen").returncode == 0
    compiled = [call.unit for call in root.calls if call.action == "compile"]
    assert compiled == ["gen.cpp", "helper.cpp"]


def test_objects_do_not_know_their_build_root(make_root: Callable[[str], Root]) -> None:
    # nvcc names what has no linkage after a hash of the source's absolute path.
    hidden = KERNEL.replace("__global__", "namespace { __device__ float state; }\n__global__", 1)
    hidden = hidden.replace("= 1.0f", "= state")
    objects = []
    for name in ("one", "a/much/longer/two"):
        root = make_root(name)
        root.cache = None
        for source in ("src/a b.cu", "oth,er/a b.cu"):
            root.write(source, hidden)
            root.nvcc("-c", source, "-o", "a.o", *SM80)
            subprocess.run(["strip", "--strip-debug", root.path / "a.o"], check=True)
            objects.append((root.path / "a.o").read_bytes())
    assert objects[:2] == objects[2:]
    assert objects[0] != objects[1]


def test_a_compile_error_is_told_once(root: Root) -> None:
    source = root.write("a.cu", "int f() { return wrong; }\n")
    done = root.run("nvcc", "-c", source, "-o", "a.o", *SM80, check=False)
    assert done.returncode != 0
    assert (done.stdout + done.stderr).count('identifier "wrong" is undefined') == 1
    assert [call.cache for call in root.calls] == ["failed"]
