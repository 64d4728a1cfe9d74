"""Shards without a seat: kernels are parted at CUDAExtension, objects are handed on."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from packaging.version import Version

from wheelfarm import files
from wheelfarm.build import source_filter_hook
from wheelfarm.build.environment import open_environment
from wheelfarm.build.handoff import pack_cache, read_product, unite
from wheelfarm.build.part import Prepared
from wheelfarm.build.request import BuildRequest
from wheelfarm.build.sharded import MissingShardsError, source_filter_variables
from wheelfarm.build.source import FolderSource
from wheelfarm.build.source_filter import (
    collect_objects,
    filtered_plan,
    run_filtered_link,
    run_filtered_shard,
)
from wheelfarm.model.arch import ArchList
from wheelfarm.model.cell import Cell, CellId
from wheelfarm.toolkit.find import find_toolkit

if TYPE_CHECKING:
    from pathlib import Path

KERNEL = """\
__global__ void kernel_NAME(float* x) { x[0] += 1.0f; }
extern "C" int launch_NAME(float* x) { kernel_NAME<<<1, 1>>>(x); return 0; }
"""
NAMES = ("one", "two", "three")
BIND = """\
#include <Python.h>
extern "C" int launch_one(float*); extern "C" int launch_two(float*);
extern "C" int launch_three(float*);
static PyObject* all(PyObject*, PyObject*) {
  return PyLong_FromLong(launch_one(nullptr) + launch_two(nullptr) + launch_three(nullptr));
}
static PyMethodDef methods[] = {{"all", all, METH_NOARGS, nullptr}, {nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, methods};
PyMODINIT_FUNC PyInit__C() { return PyModule_Create(&module); }
"""
SETUP = """\
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
setup(name="three", version="1.0", cmdclass={"build_ext": BuildExtension}, ext_modules=[
    CUDAExtension("three_C", ["csrc/bind.cpp", "csrc/one.cu", "csrc/two.cu", "csrc/three.cu"]),
])
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "csrc").mkdir(parents=True)
    for name in NAMES:
        (folder / f"csrc/{name}.cu").write_text(KERNEL.replace("NAME", name))
    (folder / "csrc/bind.cpp").write_text(BIND)
    (folder / "setup.py").write_text(SETUP)
    return folder


def test_every_kernel_has_one_shard_and_the_link_has_their_objects(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sources)
    listed = ["csrc/bind.cpp", *(f"csrc/{name}.cu" for name in NAMES)]
    monkeypatch.setenv("WHEELFARM_OBJECTS", str(tmp_path / "objects"))
    monkeypatch.setenv("WHEELFARM_SOURCE_FILTER", "shard")
    kept = []
    for shard in (1, 2):
        for name, value in source_filter_variables(shard, 2).items():
            monkeypatch.setenv(name, value)
        compiled, objects = source_filter_hook.filtered(listed)
        assert objects == []
        assert compiled[0] == "csrc/bind.cpp"
        kept += compiled[1:]
    assert sorted(kept) == sorted(listed[1:])
    monkeypatch.setenv("WHEELFARM_SOURCE_FILTER", "link")
    with pytest.raises(FileNotFoundError, match=r"no shard compiled csrc/one\.cu"):
        source_filter_hook.filtered(listed)
    (tmp_path / "objects/csrc").mkdir(parents=True)
    for name, suffix in zip(NAMES, ("o", "obj", "o"), strict=True):
        (tmp_path / f"objects/csrc/{name}.{suffix}").touch()
    compiled, objects = source_filter_hook.filtered(listed)
    assert compiled == ["csrc/bind.cpp"]
    assert [path.rpartition("/")[2] for path in objects] == ["one.o", "two.obj", "three.o"]
    only_kernels, _ = source_filter_hook.filtered(listed[1:])
    assert only_kernels == ["wheelfarm_no_host_source.cpp"]


def test_objects_of_both_kinds_of_compiler_are_packed(sources: Path, tmp_path: Path) -> None:
    for path in ("build/temp.linux/csrc/one.o", "build/temp.win/Release/csrc/two.obj"):
        (sources / path).parent.mkdir(parents=True)
        (sources / path).write_bytes(path.encode())
    (sources / "build/temp.linux/csrc/bind.o").write_bytes(b"host")
    found = collect_objects(sources, tmp_path / "objects")
    assert sorted(found) == ["csrc/one.cu", "csrc/two.cu"]
    archive = tmp_path / "s.tar.zst"
    pack_cache(
        "objects", tmp_path / "objects", archive, plan="p", shard=1, identity="i", units={}
    )  # fmt: skip
    product = read_product(archive, plan="p", identity="i")
    assert unite("objects", [product], tmp_path / "union").taken == 2
    assert (tmp_path / "union/csrc/two.obj").read_bytes() == b"build/temp.win/Release/csrc/two.obj"


@pytest.mark.full
@pytest.mark.torch
@pytest.mark.compile
def test_an_extension_of_torchs_is_linked_from_its_shards_objects(
    sources: Path, tmp_path: Path, torch_python: Path, toolkit_view: Path
) -> None:
    (tmp_path / "packages").mkdir()
    cell = CellId.parse("three-1.0-cu130-torch2.14-cp311-linux_x86_64")
    prepared = Prepared(
        request=BuildRequest(
            cell=Cell(cell, Version("2.14.1")),
            source=FolderSource(folder=sources),
            archs=ArchList.parse("8.0"),
            torch_axis="linked",
        ),
        tree=sources,
        packages=tmp_path / "packages",
        environment=open_environment(torch_python.parents[1]),
        toolkit=find_toolkit(source="wheels", python=torch_python, needs=("device",)),
        view=toolkit_view,
        driver_stub=tmp_path,
        kept=tmp_path / "kept",
    )
    plan = filtered_plan(prepared, tmp_path / "census", cell="c", build="b", shards=2)
    archives = [tmp_path / f"shard{shard}of2.tar.zst" for shard in (1, 2)]
    compiled: list[str] = []
    for shard, archive in enumerate(archives, 1):
        _, calls = run_filtered_shard(
            prepared, plan, shard, tmp_path / f"root{shard}", archive, log=tmp_path / "log"
        )
        compiled += [call.unit for call in calls if call.unit.endswith(".cu")]
    assert sorted(compiled) == [f"tree/csrc/{name}.cu" for name in sorted(NAMES)]
    with pytest.raises(MissingShardsError, match="shard 2: it is missing"):
        run_filtered_link(prepared, plan, archives[:1], tmp_path / "no", log=tmp_path / "log")
    linked = run_filtered_link(prepared, plan, archives, tmp_path / "link", log=tmp_path / "log")
    assert [call.unit for call in linked.calls if call.is_unit] == ["tree/csrc/bind.cpp"]
    files.unpack(linked.wheel, tmp_path / "wheel")
    (library,) = (tmp_path / "wheel").rglob("*.so")
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True
    )
    assert all(f"launch_{name}" in symbols.stdout for name in NAMES)
