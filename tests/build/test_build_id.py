"""Build IDs from content: two links that differ in a stripped symbol's name give the same bytes."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheelfarm.build.build_id import with_content_build_id


def linked(folder: Path, symbol: str) -> bytes:
    source, library = folder / "unit.c", folder / f"{symbol}.so"
    source.write_text(
        f"static int {symbol}(void) {{ return 7; }}\nint f(void) {{ return {symbol}(); }}\n"
    )
    command = [
        "gcc",
        "-g",
        "-shared",
        "-fPIC",
        "-Wl,--build-id=sha1",
        "-o",
        str(library),
        str(source),
    ]
    subprocess.run(command, check=True)
    subprocess.run(["strip", str(library)], check=True)
    return library.read_bytes()


@pytest.mark.compile
def test_a_stripped_name_leaves_no_trace(tmp_path: Path) -> None:
    one, two = linked(tmp_path, "tmpxft_0001"), linked(tmp_path, "tmpxft_0002")
    assert one != two
    assert with_content_build_id(one) == with_content_build_id(two)
    assert with_content_build_id(with_content_build_id(one)) == with_content_build_id(one)
    changed = tmp_path / "changed.so"
    changed.write_bytes(with_content_build_id(one))
    notes = subprocess.run(
        ["readelf", "-n", str(changed)], check=True, text=True, capture_output=True
    ).stdout
    assert "Build ID: " in notes


@given(st.binary(max_size=300))
def test_other_files_and_broken_ones_are_left(data: bytes) -> None:
    assert with_content_build_id(data) == data
    assert len(with_content_build_id(b"\x7fELF\x02\x01" + data)) == len(data) + 6
