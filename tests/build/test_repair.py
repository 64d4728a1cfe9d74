"""Repair grafts what is ordinary, leaves vendors' libraries outside, and makes paths relative."""

import subprocess
from pathlib import Path

import pytest

from wheelfarm.build.repair import glibc_of, repair_wheel, tag_at_floor
from wheelfarm.build.search_paths import relative_search_paths, wanted_search_path
from wheelfarm.build.wheel_file import Content, read_members, write_wheel
from wheelfarm.facts.elf import read_elf
from wheelfarm.facts.model import BinaryFacts
from wheelfarm.model.versions import Minor
from wheelfarm.model.wheel_name import WheelName

pytestmark = pytest.mark.compile

VENDORS = (
    "libcudart.so.13",
    "libcublas.so.13",
    "libc10.so",
    "libtorch_cpu.so",
    "libc10_cuda.so",
    "libcuda.so.1",
)
NAME = WheelName.parse("demo-1.0-cp311-cp311-linux_x86_64.whl")


def gcc(*words: str) -> None:
    subprocess.run(["gcc", *words], check=True, capture_output=True)


def make_library(folder: Path, soname: str) -> str:
    symbol = "f_" + soname.replace(".", "_").replace("-", "_")
    source = folder / f"{symbol}.c"
    source.write_text(f"int {symbol}(void) {{ return 1; }}\n", encoding="utf-8")
    library = folder / soname
    gcc("-shared", "-fPIC", f"-Wl,-soname,{soname}", "-o", str(library), str(source))
    return symbol


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A wheel whose extension needs six vendors' libraries and an ordinary one."""
    folder = tmp_path_factory.mktemp("libraries")
    needed = (*VENDORS, "libordinary.so.2")
    symbols = [make_library(folder, soname) for soname in needed]
    source = folder / "extension.c"
    calls = " + ".join(f"{symbol}()" for symbol in symbols)
    declarations = "".join(f"int {symbol}(void);\n" for symbol in symbols)
    body = f'int PyInit__C(void) {{ return {calls} + (getenv("X") != 0); }}\n'
    source.write_text(f"#include <stdlib.h>\n{declarations}{body}", encoding="utf-8")
    extension = folder / "_C.so"
    links = [str(folder / soname) for soname in needed]
    rpath = "-Wl,-rpath,/opt/hostedtoolcache/Python/3.12.9/x64/lib"
    gcc("-shared", "-fPIC", rpath, "-o", str(extension), str(source), *links)
    members = {
        "demo/__init__.py": Content(data=b""),
        "demo/_C.so": Content(data=extension.read_bytes()),
        f"{NAME.dist_info}/METADATA": Content(
            data=b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"
        ),
        f"{NAME.dist_info}/WHEEL": Content(
            data=b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-cp311-linux_x86_64\n"
        ),
    }
    return write_wheel(folder / "wheels", NAME, members), folder


def test_only_the_ordinary_library_is_grafted(
    built: tuple[Path, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wheel, libraries = built
    repaired = repair_wheel(
        wheel,
        tmp_path / "out",
        library_folders=(libraries,),
        keep_external=("libnothing.so*",),
        log=tmp_path / "log",
    )
    assert [name.split("-")[0] for name in repaired.grafted] == ["libordinary"]
    assert repaired.unused_patterns == ("libnothing.so*",)
    assert "libnothing.so* matched no library" in caplog.text
    binary = read_elf(read_members(repaired.wheel)["demo/_C.so"].data, "demo/_C.so")
    assert set(VENDORS) < set(binary.needed)


def test_a_floor_above_the_policys_keeps_the_true_tag(
    built: tuple[Path, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wheel, libraries = built
    repaired = repair_wheel(
        wheel,
        tmp_path / "out",
        library_folders=(libraries,),
        floor=Minor(2, 1),
        log=tmp_path / "log",
    )
    true = glibc_of(repaired.platform_tag)
    assert true is not None
    assert true > Minor(2, 1)
    assert "tagged with what is true" in caplog.text


def test_the_build_hosts_path_does_not_leave(built: tuple[Path, Path]) -> None:
    wheel, _ = built
    changed = relative_search_paths(read_members(wheel), cuda_major=13)
    binary = read_elf(changed["demo/_C.so"].data, "demo/_C.so")
    assert (*binary.rpath, *binary.runpath) == (
        "$ORIGIN/../torch/lib",
        "$ORIGIN/../nvidia/cu13/lib",
    )
    assert changed["demo/__init__.py"] == Content(data=b"")


@pytest.mark.parametrize(
    ("path", "needed", "major", "expected"),
    [
        ("demo/_C.so", ("libcudart.so.12",), 12, ("$ORIGIN/../nvidia/cuda_runtime/lib",)),
        (
            "_C.so",
            ("libtorch.so", "libcublas.so.13"),
            13,
            ("$ORIGIN/torch/lib", "$ORIGIN/nvidia/cu13/lib"),
        ),
        ("a/b/_C.so", ("libcudnn.so.9",), 13, ("$ORIGIN/../../nvidia/cudnn/lib",)),
        ("x-1.data/platlib/a/_C.so", ("libc10.so",), 13, ("$ORIGIN/../torch/lib",)),
        ("demo/_C.so", ("libm.so.6",), 13, ()),
    ],
)
def test_search_paths_lead_to_site_packages(
    path: str, needed: tuple[str, ...], major: int, expected: tuple[str, ...]
) -> None:
    facts = BinaryFacts(path=path, kind="elf", machine="x86_64", size=1, needed=needed)
    assert wanted_search_path(facts, major) == expected


@pytest.mark.parametrize(
    ("tag", "floor", "expected"),
    [
        ("manylinux_2_27_x86_64", Minor(2, 28), "manylinux_2_28_x86_64"),
        ("manylinux_2_17_x86_64.manylinux2014_x86_64", Minor(2, 28), "manylinux_2_28_x86_64"),
        ("manylinux1_x86_64.manylinux_2_5_x86_64", Minor(2, 28), "manylinux_2_28_x86_64"),
        ("manylinux2014_aarch64.manylinux_2_17_aarch64", Minor(2, 28), "manylinux_2_28_aarch64"),
        ("manylinux2014_x86_64", Minor(2, 28), "manylinux_2_28_x86_64"),
        ("manylinux_2_24_aarch64", Minor(2, 28), "manylinux_2_28_aarch64"),
        ("manylinux_2_34_x86_64", Minor(2, 28), "manylinux_2_34_x86_64"),
        ("manylinux_2_28_x86_64", Minor(2, 28), "manylinux_2_28_x86_64"),
        ("manylinux_2_27_x86_64", None, "manylinux_2_27_x86_64"),
        ("linux_x86_64", Minor(2, 28), "linux_x86_64"),
    ],
)
def test_a_tag_is_at_least_the_floors(tag: str, floor: Minor | None, expected: str) -> None:
    assert tag_at_floor(tag, floor) == expected


@pytest.mark.parametrize(
    ("tag", "floor"),
    [
        ("manylinux_2_17_x86_64.manylinux2014_x86_64", Minor(2, 17)),
        ("manylinux_2_34_x86_64.manylinux_2_28_x86_64", Minor(2, 28)),
        ("manylinux1_x86_64", Minor(2, 5)),
        ("linux_x86_64", None),
    ],
)
def test_the_floor_of_a_tag(tag: str, floor: Minor | None) -> None:
    assert glibc_of(tag) == floor
