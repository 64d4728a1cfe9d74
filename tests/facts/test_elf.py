"""ELF files are read as the loader sees them, stripped or not, and never trusted."""

import random
import re
from pathlib import Path

import pytest

from tests.binaries import fake, library, run
from wheelfarm.facts.wheel import read_binary, read_binary_file


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("elf")
    other = fake(folder, "libother.so.3", ["other"])
    return library(
        folder / "libsample.so",
        needs=[other],
        takes=["other", "pthread_create", "somebody"],
        gives=["PyInit_sample"],
        soname="libsample.so.1",
        flags=["-Wl,-rpath,$ORIGIN/../torch/lib:/usr/local/cuda/lib64"],
    )


def test_the_dynamic_segment_is_read(sample: Path) -> None:
    facts = read_binary_file(sample)
    assert (facts.kind, facts.machine, facts.problem) == ("elf", "x86_64", "")
    assert facts.soname == "libsample.so.1"
    assert facts.needed[0] == "libother.so.3"
    assert facts.runpath == ("$ORIGIN/../torch/lib", "/usr/local/cuda/lib64")
    assert {"other", "somebody", "pthread_create"} <= set(facts.undefined)
    assert "PyInit_sample" in facts.defined
    need = next(need for need in facts.version_needs if need.version == "GLIBC_2.34")
    assert (need.library, need.symbol) == ("libc.so.6", "pthread_create")


def test_readelf_agrees(sample: Path) -> None:
    facts = read_binary_file(sample)
    text = run("readelf", "-dW", sample)
    assert facts.needed == tuple(re.findall(r"\(NEEDED\).*\[(.*)\]", text))
    names = run("nm", "-D", "--undefined-only", sample).split()
    theirs = {name.split("@")[0] for name in names if name not in {"U", "w"}}
    assert set(facts.undefined) == theirs


def test_a_second_library_agrees(sample: Path) -> None:
    lief = pytest.importorskip("lief")
    theirs = lief.parse(str(sample))
    facts = read_binary_file(sample)
    assert list(facts.needed) == theirs.libraries
    undefined = {symbol.name for symbol in theirs.dynamic_symbols if symbol.shndx == 0}
    assert set(facts.undefined) == undefined - {""}


def test_stripping_changes_nothing(sample: Path, tmp_path: Path) -> None:
    stripped = tmp_path / "libsample.so"
    run("strip", "-o", stripped, sample)
    first, second = read_binary_file(sample), read_binary_file(stripped)
    assert (first.needed, first.undefined, first.defined) == (
        second.needed,
        second.undefined,
        second.defined,
    )


def test_a_file_without_sections_is_read(sample: Path, tmp_path: Path) -> None:
    """The loader needs no section table; tools such as sstrip remove it."""
    data = bytearray(sample.read_bytes())
    data[40:48] = bytes(8)  # e_shoff
    data[58:64] = bytes(6)  # e_shentsize, e_shnum, e_shstrndx
    facts = read_binary(bytes(data), "libsample.so")
    whole = read_binary_file(sample)
    assert (facts.needed, facts.undefined) == (whole.needed, whole.undefined)


def test_a_file_that_is_cut_in_half_is_a_problem(sample: Path) -> None:
    data = sample.read_bytes()
    for part in (4, 60, 64, len(data) // 4, len(data) // 2, len(data) - 1):
        facts = read_binary(data[:part], "half.so")
        assert facts.problem
        assert not facts.needed


def test_text_under_a_librarys_name_is_a_problem() -> None:
    facts = read_binary(b"INPUT(libfoo.so.1)\n", "libfoo.so")
    assert facts.problem == "named like a binary, but it starts with 49 4e 50 55"


def test_a_32_bit_file_is_said_not_to_be_read(sample: Path) -> None:
    data = bytearray(sample.read_bytes())
    data[4] = 1
    assert read_binary(bytes(data), "x.so").problem == "not a 64-bit little-endian ELF file"


def test_a_changed_byte_never_crashes(sample: Path) -> None:
    data = sample.read_bytes()
    source = random.Random(7)  # noqa: S311 - a repeatable test
    for _ in range(400):
        changed = bytearray(data)
        for _ in range(source.randint(1, 4)):
            changed[source.randrange(len(data) if source.random() < 0.3 else 2000)] = (
                source.randrange(256)
            )
        read_binary(bytes(changed), "x.so")
