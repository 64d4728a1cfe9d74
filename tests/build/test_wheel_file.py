"""Wheels are rewritten whole: name, metadata, tags, folders and RECORD change together."""

import base64
import contextlib
import csv
import hashlib
import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from wheelfarm.build.retag import curated_requirements, retag_wheel, upstream_requirements
from wheelfarm.build.wheel_file import (
    Content,
    read_members,
    rename_version,
    set_fields,
    write_wheel,
)
from wheelfarm.errors import BadInputError
from wheelfarm.model.axis import TorchAxis
from wheelfarm.model.cell import CellId
from wheelfarm.model.versions import Minor
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.store.publish import metadata_of

CELL = CellId.parse("demo-1.0-cu130-torch2.14-cp311-linux_x86_64")
METADATA = """Metadata-Version: 2.1
Name: demo
Version: 1.0
Requires-Dist: numpy
Requires-Dist: torch>=2.0

Version: 1.0 is what this body says
"""


def make_wheel(folder: Path, file_name: str = "demo-1.0-cp311-cp311-linux_x86_64.whl") -> Path:
    path = folder / file_name
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("demo/__init__.py", "")
        script = zipfile.ZipInfo("demo-1.0.data/scripts/run")
        script.external_attr = 0o100755 << 16
        archive.writestr(script, "#!python\n")
        archive.writestr("demo-1.0.dist-info/METADATA", METADATA)
        archive.writestr(
            "demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: cp311-cp311-linux_x86_64\n"
        )
        archive.writestr("demo-1.0.dist-info/RECORD", "stale,,\n")
    return path


def retagged(tmp_path: Path, **options: object) -> Path:
    return retag_wheel(
        make_wheel(tmp_path),
        tmp_path / "out",
        cell=CELL,
        platform_tag="manylinux_2_34_x86_64",
        requires_dist=("numpy", "torch==2.14.*"),
        **options,  # type: ignore[arg-type] # the build tag alone
    )


def test_all_places_change_together(tmp_path: Path) -> None:
    wheel = retagged(tmp_path)
    assert wheel.name == "demo-1.0+cu130torch2.14-cp311-cp311-manylinux_2_34_x86_64.whl"
    members = read_members(wheel)
    assert set(members) == {
        "demo/__init__.py",
        "demo-1.0+cu130torch2.14.data/scripts/run",
        "demo-1.0+cu130torch2.14.dist-info/METADATA",
        "demo-1.0+cu130torch2.14.dist-info/WHEEL",
        "demo-1.0+cu130torch2.14.dist-info/RECORD",
    }
    metadata = members["demo-1.0+cu130torch2.14.dist-info/METADATA"].data.decode()
    assert "\nVersion: 1.0+cu130torch2.14\n" in metadata
    assert metadata.endswith("\n\nVersion: 1.0 is what this body says\n")
    assert upstream_requirements(wheel) == ("numpy", "torch==2.14.*")
    tags = members["demo-1.0+cu130torch2.14.dist-info/WHEEL"].data.decode()
    assert "Tag: cp311-cp311-manylinux_2_34_x86_64\n" in tags
    assert members["demo-1.0+cu130torch2.14.data/scripts/run"].executable


def test_record_holds(tmp_path: Path) -> None:
    members = read_members(retagged(tmp_path))
    record = members["demo-1.0+cu130torch2.14.dist-info/RECORD"].data.decode()
    rows = list(csv.reader(io.StringIO(record)))
    assert {row[0] for row in rows} == set(members)
    for path, digest, size in rows[:-1]:
        data = members[path].data
        expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        assert digest == f"sha256={expected}"
        assert size == str(len(data))


def test_same_inputs_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    first = retagged(tmp_path).read_bytes()
    assert retagged(tmp_path / "other").read_bytes() == first


def test_a_build_tag_is_named_twice(tmp_path: Path) -> None:
    wheel = retagged(tmp_path, build="2")
    assert wheel.name == "demo-1.0+cu130torch2.14-2-cp311-cp311-manylinux_2_34_x86_64.whl"
    text = read_members(wheel)["demo-1.0+cu130torch2.14.dist-info/WHEEL"].data.decode()
    assert "\nBuild: 2\n" in text


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("other-1.0-cp311-cp311-linux_x86_64.whl", "expected a wheel of demo"),
        ("demo-2.0-cp311-cp311-linux_x86_64.whl", "the cell says 1.0"),
        ("demo-1.0-py3-none-any.whl", "not cp311"),
    ],
)
def test_a_wheel_of_something_else_is_refused(tmp_path: Path, name: str, what: str) -> None:
    wheel = make_wheel(tmp_path, name)
    with pytest.raises(BadInputError, match=what):
        retag_wheel(wheel, tmp_path, cell=CELL, platform_tag="linux_x86_64", requires_dist=None)


def test_hostile_wheels_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../outside", "")
    with pytest.raises(BadInputError, match="leave its folder"):
        read_members(path)
    path.write_bytes(b"no zip")
    with pytest.raises(BadInputError, match="no readable wheel"):
        read_members(path)


@pytest.mark.parametrize("name", ["METADATA", "WHEEL"])
def test_a_text_that_is_none_is_told(tmp_path: Path, name: str) -> None:
    path = tmp_path / "demo-1.0-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for each in ("METADATA", "WHEEL"):
            archive.writestr(f"demo-1.0.dist-info/{each}", b"\xff" if each == name else b"A: b\n")
    old = WheelName.parse(path.name)
    with pytest.raises(BadInputError, match=f"{name} of .* is not UTF-8"):
        rename_version(read_members(path), old, old)


@given(st.integers(0, 600), st.binary(min_size=1, max_size=8), st.integers(0, 60))
def test_no_damage_of_a_wheel_breaks_its_readers(
    tmp_path_factory: pytest.TempPathFactory, at: int, damage: bytes, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    path = folder / "demo-1.0-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("demo-1.0.dist-info/METADATA", METADATA * 5)
        archive.writestr("demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
    data = path.read_bytes()
    data = data[:at] + damage + data[at + len(damage) :]
    path.write_bytes(data[: max(0, len(data) - cut)])
    old = WheelName.parse(path.name)
    with contextlib.suppress(BadInputError):
        rename_version(read_members(path), old, old)
    with contextlib.suppress(BadInputError):
        metadata_of(path)


PINNED: list[tuple[TorchAxis, list[str], tuple[str, ...]]] = [
    ("linked", ["numpy", "torch>=2.0"], ("numpy", "torch==2.14.*")),
    ("linked", ["trimesh"], ("trimesh", "torch==2.14.*")),
    ("linked", ["torch==2.14.1"], ("torch==2.14.1",)),
    ("linked", ["torch==2.*"], ("torch==2.14.*",)),
    ("linked", ["torch; extra == 'all'"], ("torch; extra == 'all'", "torch==2.14.*")),
    ("stable_abi", ["torch"], ("torch>=2.10",)),
    ("free", ["numpy"], ("numpy",)),
    ("abi_flag", [], ()),
]


@pytest.mark.parametrize(("axis", "upstream", "expected"), PINNED)
def test_pinned_requirements(
    axis: TorchAxis, upstream: list[str], expected: tuple[str, ...]
) -> None:
    found = curated_requirements(
        upstream, policy="pinned", axis=axis, torch=Minor(2, 14), from_torch=Minor(2, 10)
    )
    assert found == expected


def test_other_requirement_policies() -> None:
    upstream = ("numpy", "torch")
    assert curated_requirements(upstream, policy="upstream", axis="linked", torch=Minor(2, 14)) == (
        "numpy",
        "torch",
    )
    assert curated_requirements(upstream, policy="blank", axis="linked", torch=Minor(2, 14)) == ()


values = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=8)


@given(
    body=st.text(max_size=40).filter(lambda text: "\r" not in text),
    before=st.lists(values, max_size=3),
    after=st.lists(values, max_size=3),
)
def test_fields_are_replaced_and_the_body_is_not(
    body: str, before: list[str], after: list[str]
) -> None:
    header = "".join(f"Requires-Dist: {value}\n" for value in before)
    text = f"Metadata-Version: 2.1\n{header}Name: x\n\n{body}"
    changed = set_fields(text, {"Requires-Dist": after})
    new_header, _, new_body = changed.partition("\n\n")
    assert new_body == body
    lines = new_header.splitlines()
    assert [line for line in lines if line.startswith("Requires-Dist")] == [
        f"Requires-Dist: {value}" for value in after
    ]
    assert [line for line in lines if not line.startswith("Requires-Dist")] == [
        "Metadata-Version: 2.1",
        "Name: x",
    ]


def test_a_written_wheel_is_read_back(tmp_path: Path) -> None:
    name = WheelName.of_cell(CELL, "linux_x86_64")
    members = {"demo/a.so": Content(data=b"\x7fELF", executable=True)}
    wheel = write_wheel(tmp_path, name, members)
    back = read_members(wheel)
    assert back["demo/a.so"] == members["demo/a.so"]
    assert WheelName.parse(wheel.name).version == Version("1.0+cu130torch2.14")
