"""A floor's folder: made once, kept while it is whole, refused where its source is not."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build.floor.conftest import FLOOR, MakeFloor, Root, glibc_of
from wheelfarm.build.seat_floor import Floor as SeatFloor
from wheelfarm.build.seat_floor import users_of
from wheelfarm.errors import CouldNotLookError
from wheelfarm.model.versions import Minor
from wheelfarm.toolkit.floor import stubs
from wheelfarm.toolkit.floor.binutils import DynamicSymbol, HostCompiler, glibc_version
from wheelfarm.toolkit.floor.libstdcxx import floor_symbols
from wheelfarm.toolkit.floor.prepare import prepare_floor


def test_a_floor_is_made_once_and_anew_where_a_file_is_damaged(
    compiler: HostCompiler, tmp_path: Path
) -> None:
    first = prepare_floor(FLOOR, compiler, cache=tmp_path)
    assert first is not None
    library = first.folder / "libm.so.6"
    made = library.stat().st_mtime_ns
    assert prepare_floor(FLOOR, compiler, cache=tmp_path) == first
    assert library.stat().st_mtime_ns == made
    library.write_bytes(b"damaged")
    again = prepare_floor(FLOOR, compiler, cache=tmp_path)
    assert again == first
    assert library.read_bytes() != b"damaged"
    record = json.loads((first.folder / "record.json").read_text())
    assert record["sha256"]["libc.so.6"] == first.digests["libc.so.6"]
    assert record["source"].startswith("ziglang ")


def test_a_machine_of_the_floor_needs_none(compiler: HostCompiler, tmp_path: Path) -> None:
    assert prepare_floor(compiler.glibc, compiler, cache=tmp_path) is None
    newer = Minor(2, compiler.glibc.minor + 1)
    assert prepare_floor(newer, compiler, cache=tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_is_not_its_wheels_is_refused(tmp_path: Path) -> None:
    source = stubs.stub_source()
    changed = replace(source, sha256={**source.sha256, "zig": "A" * 43})
    with pytest.raises(CouldNotLookError, match="its digest differs"):
        stubs.write_stubs(changed, glibc=FLOOR, machine="x86_64", folder=tmp_path)


def test_a_glibc_that_zig_does_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CouldNotLookError, match="wrote no libraries of glibc"):
        stubs.write_stubs(stubs.stub_source(), glibc=Minor(1, 0), machine="x86_64", folder=tmp_path)


def test_without_ziglang_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(CouldNotLookError) as caught:
        stubs.stub_source()
    assert "wheelfarm[floor]" in caught.value.hint
    assert "floor: native" in caught.value.hint


def test_the_stubs_have_the_symbols_of_their_glibc(
    make_floor: MakeFloor, compiler: HostCompiler
) -> None:
    floor = make_floor("shared")
    versions = [
        version
        for name in stubs.LIBRARIES.values()
        for symbol in compiler.dynamic_symbols(floor.folder / name)
        if (version := glibc_version(symbol.version)) is not None
    ]
    assert max(versions) == FLOOR
    names = {symbol.name for symbol in compiler.dynamic_symbols(floor.folder / "libc.so.6")}
    assert "fcntl64" in names  # 2.28
    assert "gettid" not in names  # 2.30
    assert {"stat", "atexit", "pthread_atfork"} <= compiler.defined_names(
        floor.folder / stubs.REMAINDER
    )


def test_limits_name_what_has_no_answer(make_floor: MakeFloor, compiler: HostCompiler) -> None:
    lines = make_floor("shared").limits.read_text().splitlines()
    assert "floor 2.28 - 2.28" in lines
    assert "allowed GLIBCXX_3.4.24 - 2.28" in lines
    assert "later GLIBCXX_3.4.29 - 2.34" in lines
    symbols = {line.split()[1]: line.split()[2:] for line in lines if line.startswith("symbol")}
    assert "gettid" not in symbols  # there is a fallback
    assert "stat" not in symbols  # the static remainder has it
    assert "memcpy" not in symbols  # an older version will do
    if compiler.glibc >= Minor(2, 34):
        assert symbols["execveat"] == ["GLIBC_2.34", "2.34"]


def symbol(name: str, version: str, *, default: bool = True) -> DynamicSymbol:
    return DynamicSymbol(
        name=name,
        version=version,
        default=default,
        defined=True,
        weak=False,
        kind="function",
        size=1,
    )


def test_an_older_version_of_a_name_becomes_the_default() -> None:
    wait = "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE"
    symbols = [
        symbol(wait, "GLIBCXX_3.4.30"),
        symbol(wait, "GLIBCXX_3.4.11", default=False),
        symbol("_ZSt4cout", "GLIBCXX_3.4"),
        symbol("_ZSt3new", "GLIBCXX_3.4.29"),
        symbol("GLIBCXX_3.4", "GLIBCXX_3.4"),
    ]
    found = floor_symbols(symbols, frozenset(("GLIBCXX_3.4", "GLIBCXX_3.4.11")))
    assert [(item.name, item.version, item.default) for item in found] == [
        (wait, "GLIBCXX_3.4.11", True),
        ("_ZSt4cout", "GLIBCXX_3.4", True),
    ]


_NAMES = st.sampled_from(("a", "b", "c"))
_VERSIONS = st.sampled_from(("GLIBCXX_3.4", "GLIBCXX_3.4.9", "GLIBCXX_3.4.11", "CXXABI_1.3"))


@given(
    st.lists(st.tuples(_NAMES, _VERSIONS), unique=True),
    st.frozensets(_VERSIONS),
)
def test_each_name_of_a_stub_has_one_default(
    pairs: list[tuple[str, str]], allowed: frozenset[str]
) -> None:
    newest = {name: max(v for n, v in pairs if n == name) for name, _ in pairs}
    symbols = [symbol(name, version, default=newest[name] == version) for name, version in pairs]
    found = floor_symbols(symbols, allowed)
    assert {(item.name, item.version) for item in found} == {
        pair for pair in pairs if pair[1] in allowed
    }
    names = {item.name for item in found}
    assert sorted(item.name for item in found if item.default) == sorted(names)


@pytest.fixture
def seat_floor(tmp_path: Path) -> SeatFloor:
    (tmp_path / "limits").write_text(
        "floor 2.28 - 2.28\nallowed GLIBCXX_3.4.24 - 2.28\nlater GLIBCXX_3.4.29 - 2.34\n"
        "symbol c8rtomb GLIBC_2.36 2.36\nsymbol _ZNew GLIBCXX_3.4.99 -\n"
    )
    config = {
        "folder": str(tmp_path),
        "objdump": "",
        "nm": "",
        "c++filt": "",
        "libstdcxx": "shared",
    }
    return SeatFloor(config)


def test_the_judge_reads_what_objdump_lists(seat_floor: SeatFloor) -> None:
    listing = """\
made.so:     file format elf64-x86-64

DYNAMIC SYMBOL TABLE:
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.2.5) free
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.34) later_in_glibc
0000000000000000      DF *UND*\t0000000000000000  GLIBCXX_3.4.29 later_in_libstdcxx
0000000000000000      DF *UND*\t0000000000000000 (GLIBCXX_3.4.24) fine
0000000000000000      DF *UND*\t0000000000000000 (GLIBCXX_3.4.77) unheard_of
0000000000000000      DF *UND*\t0000000000000000 (LIBXY_9) foreign
0000000000000000      D  *UND*\t0000000000000000  Base        Py_None
0000000000000000      D  *UND*\t0000000000000000              c8rtomb
0000000000000000  w   D  *UND*\t0000000000000000  Base        _ZNew
0000000000001139 g    DF .text\t000000000000000b  Base        work
"""
    assert seat_floor.faults(listing) == {
        "later_in_glibc": ("GLIBC_2.34", "2.34"),
        "later_in_libstdcxx": ("GLIBCXX_3.4.29", "2.34"),
        "unheard_of": ("GLIBCXX_3.4.77", ""),
        "c8rtomb": ("GLIBC_2.36", "2.36"),
    }


def test_a_version_without_numbers_is_later_than_all(seat_floor: SeatFloor) -> None:
    assert seat_floor.since("GLIBC_ABI_DT_RELR") == "ABI_DT_RELR"
    assert seat_floor.since("GLIBC_2.28") is None
    assert seat_floor.since("GLIBC_2.9") is None


def test_users_are_the_first_objects_that_take_a_name() -> None:
    listing = "a.o:                 U other\nb.o:                 U name\nlib.a:c.o: U name\n"
    assert users_of(listing, {"name"}) == {"name": "b.o"}


@given(st.text())
def test_no_listing_breaks_the_judge(text: str) -> None:
    users_of(text, {"name"})


def test_glibc_versions() -> None:
    assert glibc_version("GLIBC_2.2.5") == Minor(2, 2)
    assert glibc_version("GLIBC_2.34") == Minor(2, 34)
    assert glibc_version("GLIBC_PRIVATE") is None
    assert glibc_version("GLIBC_ABI_DT_RELR") is None
    assert glibc_version("GLIBCXX_3.4") is None


def test_a_cache_in_a_folder_whose_name_a_linker_would_part(
    compiler: HostCompiler, tmp_path: Path
) -> None:
    floor = prepare_floor(FLOOR, compiler, cache=tmp_path / "two, parts")
    assert floor is not None
    root = Root(tmp_path, floor)
    lowest = glibc_of(root.library("#include <new>\nint* f() { return new int; }\n"))
    assert lowest is not None
    assert lowest <= FLOOR
