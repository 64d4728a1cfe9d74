"""Device code is read as NVIDIA's own tool reads it, for every target that nvcc knows."""

import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.binaries import cuobjdump, dll, fatbin, mingw, nvcc, run
from wheelfarm.facts.fatbin import MAGIC, FatbinError, read_fatbins, toolkit_of
from wheelfarm.facts.model import DeviceCode
from wheelfarm.facts.wheel import read_binary, read_binary_file
from wheelfarm.model.arch import Arch
from wheelfarm.model.versions import Minor

#: Every kind of target: machine code and PTX, plain and architecture-specific, ...
PLAIN = (
    "arch=compute_75,code=sm_75",
    "arch=compute_80,code=[sm_80,compute_80]",
    "arch=compute_86,code=sm_86",
    "arch=compute_87,code=sm_87",
    "arch=compute_88,code=sm_88",
    "arch=compute_89,code=sm_89",
    "arch=compute_90,code=sm_90",
    "arch=compute_90a,code=[sm_90a,compute_90a]",
    "arch=compute_100,code=sm_100",
    "arch=compute_100a,code=sm_100a",
    "arch=compute_103,code=sm_103",
    "arch=compute_110,code=sm_110",
    "arch=compute_120,code=[sm_120,compute_120]",
    "arch=compute_121a,code=sm_121a",
)
#: ... and family-specific, which nvcc refuses beside a plain one of the same number.
FAMILY = (
    "arch=compute_80,code=sm_80",
    "arch=compute_100f,code=[sm_100f,compute_100f]",
    "arch=compute_103f,code=sm_103f",
    "arch=compute_120f,code=sm_120f",
)


def expected(targets: tuple[str, ...]) -> set[tuple[str, str]]:
    """Return (kind, architecture) of each target, in nvcc's own words."""
    words = re.findall(r"(sm|compute)_(\d+[af]?)", ",".join(t.split("code=")[1] for t in targets))
    return {("sass" if kind == "sm" else "ptx", str(Arch.of_target(text))) for kind, text in words}


def pairs(code: tuple[DeviceCode, ...]) -> set[tuple[str, str]]:
    return {(entry.kind, str(entry.arch)) for entry in code}


def listed(tool: Path, file: Path) -> set[tuple[str, str]]:
    """Return what cuobjdump lists of a file."""
    text = run(tool, "--list-elf", "--list-ptx", file)
    found = re.findall(r"\.sm_(\d+[af]?)\.(cubin|ptx)", text)
    return {
        ("sass" if kind == "cubin" else "ptx", str(Arch.of_target(target)))
        for target, kind in found
    }


@pytest.fixture(scope="module")
def kernel(toolkit_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fatbin(toolkit_python, tmp_path_factory.mktemp("kernel"), PLAIN)


@pytest.fixture(scope="module")
def family_kernel(toolkit_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fatbin(toolkit_python, tmp_path_factory.mktemp("family"), FAMILY)


@pytest.mark.compile
def test_every_target_is_read(kernel: Path, family_kernel: Path) -> None:
    for file, targets in ((kernel, PLAIN), (family_kernel, FAMILY)):
        facts = read_binary_file(file)
        assert not facts.problem
        assert pairs(facts.device_code) == expected(targets)


@pytest.mark.compile
@pytest.mark.network
@pytest.mark.parametrize("name", ["kernel", "family_kernel"])
def test_cuobjdump_agrees(
    name: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file: Path = request.getfixturevalue(name)
    theirs = listed(cuobjdump(tmp_path_factory.getbasetemp()), file)
    ours = pairs(read_binary_file(file).device_code)
    # cuobjdump names the machine code of a family target without its letter.
    assert {(kind, arch.rstrip("f") if kind == "sass" else arch) for kind, arch in ours} == theirs


@pytest.mark.compile
def test_the_toolkit_is_read_from_ptx(kernel: Path) -> None:
    versions = {code.isa for code in read_binary_file(kernel).device_code if code.kind == "ptx"}
    assert versions == {Minor(9, 0)}
    assert toolkit_of(Minor(9, 0)) == Minor(13, 0)
    assert toolkit_of(Minor(8, 7)) == Minor(12, 8)
    assert toolkit_of(Minor(99, 0)) is None


@pytest.mark.compile
def test_stripped_and_compressed_code_is_read(
    kernel: Path, toolkit_python: Path, tmp_path: Path
) -> None:
    stripped = tmp_path / "libstripped.so"
    run("strip", "-o", stripped, kernel)
    assert read_binary_file(stripped).device_code == read_binary_file(kernel).device_code
    source = kernel.with_name("kernel.cu")
    for mode in ("speed", "size", "none"):
        out = tmp_path / f"{mode}.o"
        flags = (f"--compress-mode={mode}", "-gencode", "arch=compute_90a,code=sm_90a")
        run(nvcc(toolkit_python), "-c", *flags, "-o", out, source)
        assert pairs(read_binary_file(out).device_code) == {("sass", "9.0a")}


@pytest.mark.compile
@pytest.mark.parametrize("target", ["sm_75", "sm_90", "sm_90a", "sm_100f", "sm_120"])
def test_a_loose_cubin_is_read(
    target: str, kernel: Path, toolkit_python: Path, tmp_path: Path
) -> None:
    out = tmp_path / "kernel.cubin"
    run(nvcc(toolkit_python), f"-arch={target}", "-cubin", "-o", out, kernel.with_name("kernel.cu"))
    facts = read_binary_file(out)
    assert facts.kind == "device"
    assert pairs(facts.device_code) == {("sass", str(Arch.of_target(target)))}


@pytest.mark.compile
def test_device_code_of_a_dll_is_read(kernel: Path, tmp_path: Path) -> None:
    """Windows keeps device code in a section of its own, cut to eight letters."""
    section = tmp_path / "section"
    run("objcopy", "-O", "binary", "--only-section=.nv_fatbin", kernel, section)
    module = dll(tmp_path / "_C.pyd", imports={"python311.dll": ["PyModule_Create2"]})
    out = tmp_path / "with_code.pyd"
    tool = mingw().replace("-gcc", "-objcopy")
    run(tool, f"--add-section=.nv_fatb={section}", module, out)
    assert pairs(read_binary_file(out).device_code) == expected(PLAIN)


def container(entries: bytes, *, claimed: int | None = None) -> bytes:
    size = len(entries) if claimed is None else claimed
    return struct.pack("<4sHHQ", MAGIC, 1, 16, size) + entries


def entry(kind: int, number: int, *, flags: int = 0x11, size: int = 8) -> bytes:
    head = struct.pack("<HHIQ8xHHI", kind, 0x101, 64, size, 0, 9, number)
    return head + bytes(8) + struct.pack("<Q", flags) + bytes(64 - 48) + bytes(8)


def test_link_time_code_is_told_apart() -> None:
    data = container(entry(8, 80) + entry(2, 90, flags=0x100011))
    assert pairs(read_fatbins(data, 0, len(data))) == {("lto", "8.0"), ("sass", "9.0a")}


@pytest.mark.parametrize(
    "data",
    [
        container(entry(2, 90), claimed=10_000),
        container(entry(2, 90, size=4000)),
        MAGIC + b"\1\0",
        struct.pack("<4sHHQ", MAGIC, 1, 0, 0),
    ],
)
def test_code_that_is_cut_short_is_a_problem(data: bytes) -> None:
    with pytest.raises(FatbinError):
        read_fatbins(data, 0, len(data))
    assert read_binary(data, "x.fatbin").problem


@given(st.binary(max_size=400), st.binary(max_size=60))
def test_any_bytes_end_in_an_answer(head: bytes, tail: bytes) -> None:
    data = head + MAGIC + tail
    try:
        read_fatbins(data, 0, len(data))
    except FatbinError:
        assert read_binary(MAGIC + data, "x.fatbin").kind == "device"
