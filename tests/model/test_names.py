"""Cells, jobs and wheel names are read and printed back exactly."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from wheelfarm.errors import BadInputError
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.arch import Arch, ArchList
from wheelfarm.model.cell import CellId, JobId
from wheelfarm.model.platform import LINUX_AARCH64, LINUX_X86_64, PLATFORMS, WINDOWS_AMD64, Platform
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor
from wheelfarm.model.wheel_name import Label, WheelName

minors = st.builds(Minor, st.integers(1, 30), st.integers(0, 30))
pythons = st.one_of(
    st.just(PythonTag("none")),
    st.builds(lambda minor: PythonTag("abi3", Minor(3, minor)), st.integers(7, 20)),
    st.builds(
        lambda minor, free: PythonTag("exact", Minor(3, minor), free),
        st.integers(7, 20),
        st.booleans(),
    ),
)
cells = st.builds(
    CellId,
    st.from_regex(r"[a-z][a-z0-9]{0,8}(_[a-z0-9]{1,8}){0,2}", fullmatch=True),
    st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){0,3}(rc[1-9])?(\.post[1-9])?", fullmatch=True).map(
        Version
    ),
    st.builds(Accelerator.cuda, st.builds(Minor, st.integers(10, 20), st.integers(0, 12))),
    minors,
    pythons,
    st.sampled_from(PLATFORMS),
)


@given(cells)
def test_a_cell_is_read_back(cell: CellId) -> None:
    assert CellId.parse(str(cell)) == cell


@given(cells, st.integers(1, 40), st.data())
def test_a_job_is_read_back(cell: CellId, shards: int, data: st.DataObject) -> None:
    job = JobId(cell, data.draw(st.integers(1, shards)), shards)
    assert JobId.parse(str(job)) == job
    assert JobId.parse(f"{cell}-link") == JobId(cell, link=True)
    assert JobId.parse(str(cell)) == JobId(cell)


@given(cells)
def test_a_cells_wheel_name_is_read_back(cell: CellId) -> None:
    name = WheelName.of_cell(cell, "manylinux_2_28_x86_64")
    assert WheelName.parse(str(name)) == name
    assert name.label.accelerator == cell.accelerator
    assert name.label.torch == cell.torch
    assert name.python == cell.python
    assert name.version.public == str(cell.version)


WILD = [
    ("+cu130torch2.14", "cu130", "2.14", None, None),
    ("+cu128torch29", "cu128", "2.9", None, None),
    ("+pt26cu124", "cu124", "2.6", None, None),
    ("+pt210cu128", "cu128", "2.10", None, None),
    ("+pt2.8cu128", "cu128", "2.8", None, None),
    ("+cu12torch2.8cxx11abiTRUE", "cu12", "2.8", None, True),
    ("+cu12torch2.4cxx11abiFALSE", "cu12", "2.4", None, False),
    ("+cu128torch2.8.0", "cu128", "2.8", "2.8.0", None),
    ("+torch280cu128", "cu128", "2.8", "2.8.0", None),
    ("+torch2100cu128", "cu128", "2.10", "2.10.0", None),
    ("+torch2.9.0andhigher.cu128", "cu128", "2.9", "2.9.0", None),
    ("+cu129", "cu129", None, None, None),
    ("+torch2.8", None, "2.8", None, None),
    ("+cu130torch2.9gite2743ab", "cu130", "2.9", None, None),
    ("+rocm7.0torch2.9", "rocm7.0", "2.9", None, None),
    ("", None, None, None, None),
]


@pytest.mark.parametrize(("local", "accelerator", "torch", "release", "abi"), WILD)
def test_labels_in_the_wild(
    local: str, accelerator: str | None, torch: str | None, release: str | None, abi: bool | None
) -> None:
    label = WheelName.parse(f"x-1.0{local}-cp311-cp311-linux_x86_64.whl").label
    assert label.accelerator == (None if accelerator is None else Accelerator.parse(accelerator))
    assert label.torch == (None if torch is None else Minor.parse(torch))
    assert label.torch_release == (None if release is None else Version(release))
    assert label.cxx11_abi is abi


def test_higher_is_a_claim_that_is_kept() -> None:
    assert Label.parse("torch2.9.0andhigher.cu128").or_higher
    assert not Label.parse("cu128torch2.9").or_higher


@pytest.mark.parametrize(
    ("name", "python"),
    [
        ("vllm-0.19.0+cu129-cp38-abi3-manylinux_2_31_x86_64.whl", "cp38.abi3"),
        ("llama_cpp_python-0.3.35+cu130torch2.14-py3-none-linux_x86_64.whl", "py3"),
        ("x-1.0-cp313-cp313t-win_amd64.whl", "cp313t"),
        ("x-1.0-2-cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl", "cp311"),
    ],
)
def test_python_parts(name: str, python: str) -> None:
    parsed = WheelName.parse(name)
    assert str(parsed) == name
    assert str(parsed.python) == python


@pytest.mark.parametrize(
    "text",
    ["", "x.whl", "../x-1.0-py3-none-any.whl", "x-1.0-py3-none-any.zip", "x-oops-py3-none-any.whl"],
)
def test_no_wheel_names(text: str) -> None:
    with pytest.raises(BadInputError):
        WheelName.parse(text)


def test_real_names_are_printed_back() -> None:
    listing = Path(__file__).parents[3] / "shared/reference/wheel_names.txt"
    if not listing.exists():
        pytest.skip("the list of real names is not here")
    names = listing.read_text(encoding="utf-8").split()
    assert len(names) > 1000
    for name in names:
        parsed = WheelName.parse(name)
        assert str(parsed) == name
        assert parsed.label.accelerator is not None
        assert parsed.label.torch is not None
        assert parsed.platform is not None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("cu130", "13.0"),
        ("cu92", "9.2"),
        ("cu118", "11.8"),
        ("cu1210", "12.10"),
        ("rocm7.0", "7.0"),
    ],
)
def test_accelerators(text: str, version: str) -> None:
    accelerator = Accelerator.parse(text)
    assert accelerator.version == Minor.parse(version)
    assert str(accelerator) == text


@pytest.mark.parametrize(
    ("code", "gpu", "runs"),
    [
        ("8.0", "8.6", True),
        ("8.0", "8.9", True),
        ("8.6", "8.0", False),
        ("8.0", "9.0", False),
        ("9.0a", "9.0", True),
        ("10.0a", "10.3", False),
        ("10.0f", "10.3", True),
        ("10.0f", "12.0", False),
        ("8.0", "8.7", False),
        ("8.7", "8.9", False),
        ("8.7", "8.7", True),
        ("12.0", "12.1", True),
    ],
)
def test_machine_code_runs_within_its_major(code: str, gpu: str, runs: bool) -> None:
    assert Arch.parse(code).sass_runs_on(Arch.parse(gpu)) is runs


@pytest.mark.parametrize(
    ("code", "gpu", "runs"),
    [
        ("9.0", "12.0", True),
        ("9.0", "8.9", False),
        ("9.0a", "10.0", False),
        ("10.0f", "10.3", True),
    ],
)
def test_ptx_runs_on_what_is_later(code: str, gpu: str, runs: bool) -> None:
    assert Arch.parse(code).ptx_runs_on(Arch.parse(gpu)) is runs


def test_arch_lists_are_sorted_and_merged() -> None:
    assert str(ArchList.parse("9.0+PTX 8.0;8.0,9.0a")) == "8.0;9.0+PTX;9.0a"


@pytest.mark.parametrize(
    ("tag", "python", "serves"),
    [
        ("cp311", "cp311", True),
        ("cp311.abi3", "cp310", False),
        ("cp39.abi3", "cp313", True),
        ("cp39.abi3", "cp313t", False),
        ("cp313t", "cp313", False),
        ("py3", "cp313t", True),
    ],
)
def test_which_python_a_wheel_serves(tag: str, python: str, serves: bool) -> None:
    assert PythonTag.parse(tag).serves(PythonTag.parse(python)) is serves


@pytest.mark.parametrize(
    ("tag", "platform"),
    [
        ("linux_x86_64", LINUX_X86_64),
        ("manylinux1_x86_64", LINUX_X86_64),
        ("manylinux2014_aarch64", LINUX_AARCH64),
        ("manylinux_2_28_x86_64", LINUX_X86_64),
        ("musllinux_1_2_aarch64", LINUX_AARCH64),
        ("win_amd64", WINDOWS_AMD64),
        ("manylinux_2_28_manylinux1_x86_64", None),
        ("manylinux_x86_64", None),
        ("manylinux_2_28_i686", None),
        ("any", None),
    ],
)
def test_the_platform_of_a_tag(tag: str, platform: Platform | None) -> None:
    assert Platform.of_tag(tag) == platform
