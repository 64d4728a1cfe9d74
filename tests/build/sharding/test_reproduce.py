"""Builds that are alike, and builds that are not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from packaging.version import Version

from wheelfarm.build.request import BuildRequest
from wheelfarm.build.source import FolderSource
from wheelfarm.build.wheel_file import Content, write_wheel
from wheelfarm.build.workspace import Workspace
from wheelfarm.engines.reproduce import (
    NotTorchFreeError,
    TwoBuildsDifferError,
    different_members,
    prove_torch_free,
    prove_twice,
)
from wheelfarm.errors import BadInputError
from wheelfarm.model.arch import ArchList
from wheelfarm.model.cell import Cell, CellId
from wheelfarm.model.versions import Minor
from wheelfarm.model.wheel_name import WheelName

if TYPE_CHECKING:
    from pathlib import Path

    from wheelfarm.build.environment import Environment

CELL = "dated-1.0-cu130-torch2.14-cp311-linux_x86_64"
SETUP = """\
from setuptools import Extension, setup
setup(name="dated", version="1.0", ext_modules=[Extension("dated", ["dated.c"])])
"""
MODULE = """\
#include <Python.h>
const char *built = STAMP;
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "dated", built_doc, -1, NULL};
PyMODINIT_FUNC PyInit_dated(void) { return PyModule_Create(&module); }
"""


def request_of(folder: Path, stamp: str) -> BuildRequest:
    folder.mkdir()
    (folder / "setup.py").write_text(SETUP)
    text = MODULE.replace("STAMP", stamp).replace("built_doc", "NULL")
    (folder / "dated.c").write_text(text)
    return BuildRequest(
        cell=Cell(CellId.parse(CELL), Version("2.14.1")),
        source=FolderSource(folder=folder),
        archs=ArchList.parse("8.0"),
        torch_axis="free",
    )


def test_members_that_differ_are_named(tmp_path: Path) -> None:
    same, one, other = Content(data=b"same"), Content(data=b"one"), Content(data=b"other")
    dist = {"p-1.dist-info/WHEEL": same, "p-1.dist-info/METADATA": same}
    name = WheelName.parse("p-1-py3-none-any.whl")
    wheels = [
        write_wheel(tmp_path / folder, name, {**dist, **extra})
        for folder, extra in (("a", {"x.so": one}), ("b", {"x.so": other, "y.so": one}))
    ]
    assert [name for name in different_members(*wheels) if name.endswith(".so")] == ["x.so", "y.so"]
    assert different_members(wheels[0], wheels[0]) == ()


def test_a_package_that_links_torch_has_no_one_binary(tmp_path: Path) -> None:
    request = request_of(tmp_path / "source", '"same"')
    linked = BuildRequest(
        cell=request.cell, source=request.source, archs=request.archs, torch_axis="linked"
    )
    with pytest.raises(BadInputError, match="declared linked"):
        prove_torch_free(linked, Workspace.of(tmp_path), [Version("2.14.1")])


def test_a_binary_that_knows_its_torch_is_not_free_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = []

    def build(request: BuildRequest, workspace: Workspace, **_: object) -> SimpleNamespace:
        # As a build would: apart from the farm's own, with no kept result.
        assert not list(workspace.root.rglob("*.so"))
        assert workspace.compilers.is_relative_to(workspace.root)
        built.append((request.cell.identifier.torch, request.cell.torch_release))
        name = WheelName.parse("dated-1.0+cu130torch2.14-cp311-cp311-linux_x86_64.whl")
        binary = Content(data=f"torch {baked or request.cell.torch_release}".encode())
        plain = Content(data=str(request.cell).encode())
        members = {f"{name.dist_info}/METADATA": plain, "dated.so": binary}
        return SimpleNamespace(wheel=write_wheel(workspace.root, name, members))

    monkeypatch.setattr("wheelfarm.engines.reproduce.build_cell", build)
    request = request_of(tmp_path / "source", '"same"')
    releases = [Version("2.14.1"), Version("2.12.0")]
    baked = "of no release"
    proof = prove_torch_free(request, Workspace.of(tmp_path), releases)
    assert proof.members == ("dated.so",)
    assert built == [(Minor(2, 14), releases[0]), (Minor(2, 12), releases[1])]
    baked = ""
    with pytest.raises(
        NotTorchFreeError, match=r"for torch 2\.14\.1 and 2\.12\.0 differ"
    ) as caught:
        prove_torch_free(request, Workspace.of(tmp_path), releases)
    assert caught.value.members == ("dated.so",)
    assert caught.value.exit_code == 1


@pytest.mark.full
@pytest.mark.torch
@pytest.mark.compile
def test_a_build_with_the_time_in_it_is_found_out(
    torch_environment: Environment, tmp_path: Path
) -> None:
    from wheelfarm.build.pipeline import build_cell

    workspace = Workspace.of(tmp_path)
    same = request_of(tmp_path / "same", '"same"')
    wheel = build_cell(same, workspace).wheel
    proof = prove_twice(same, workspace, wheel)
    assert "dated.cpython-311-x86_64-linux-gnu.so" in proof.members
    free = prove_torch_free(same, workspace, [Version("2.14.1"), Version("2.14.1")])
    assert free.members == ("dated.cpython-311-x86_64-linux-gnu.so",)
    # SOURCE_DATE_EPOCH stills __DATE__, not what a build script looks up itself.
    dated = request_of(tmp_path / "dated", "NOW")
    (tmp_path / "dated/setup.py").write_text(
        SETUP.replace('["dated.c"]', '["dated.c"], define_macros=[("NOW", NOW)]').replace(
            "setup(", "import os\nNOW = '\"' + os.urandom(8).hex() + '\"'\nsetup(", 1
        )
    )
    wheel = build_cell(dated, Workspace.of(tmp_path / "other")).wheel
    with pytest.raises(TwoBuildsDifferError) as caught:
        prove_twice(dated, Workspace.of(tmp_path / "other"), wheel)
    assert "dated.cpython-311-x86_64-linux-gnu.so" in caught.value.members
