"""The doors: programs leave nothing running, files are whole or untouched, readers say where."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheelfarm import files
from wheelfarm.errors import BadInputError, CouldNotLookError, FaultsError
from wheelfarm.reading import (
    Reader,
    parse_json,
    parse_toml,
    read_exact_text,
    read_json,
    read_text,
    read_toml,
)
from wheelfarm.run import ProgramFailedError, ProgramNotFoundError, find_program, run


def test_output_is_kept_on_failure(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "step.log"
    code = "import sys; print('out'); print('why', file=sys.stderr); sys.exit(3)"
    with pytest.raises(ProgramFailedError) as caught:
        run([sys.executable, "-c", code], log=log)
    assert caught.value.completed.returncode == 3
    assert "exit status 3" in str(caught.value)
    assert "why" in str(caught.value)
    text = log.read_text(encoding="utf-8")
    assert text.startswith("$ ")
    assert "out\n" in text


def test_a_log_is_appended_and_its_own_part_returned(tmp_path: Path) -> None:
    log = tmp_path / "log"
    run(["echo", "first"], log=log)
    assert run(["echo", "second"], log=log).stdout == "second\n"
    assert "first" in log.read_text(encoding="utf-8")


def test_a_time_limit_ends_the_whole_group(tmp_path: Path) -> None:
    child = tmp_path / "child"
    script = f"sleep 60 & echo $! > {child}; wait"
    with pytest.raises(ProgramFailedError, match="SIGKILL"):
        run(["sh", "-c", script], timeout=1)
    number = int(child.read_text(encoding="utf-8"))
    for _ in range(100):
        state = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(number)], capture_output=True, text=True, check=False
        ).stdout
        if state.strip() in {"", "Z", "Z+"}:
            break
        time.sleep(0.05)
    else:
        pytest.fail("the child outlived its group")


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(ProgramNotFoundError, match="no-such-program is not installed"):
        run(["no-such-program"])
    with pytest.raises(ProgramNotFoundError, match="apt-get"):
        find_program("no-such-program", hint="apt-get install it")
    with pytest.raises(CouldNotLookError, match="working folder"):
        run(["true"], cwd=Path("/no/such/folder"))


def write_half(path: Path) -> None:
    with files.replacing(path) as temporary:
        temporary.write_text("half", encoding="utf-8")
        message = "killed"
        raise RuntimeError(message)


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    files.write_text(path, "old")
    with pytest.raises(RuntimeError, match="killed"):
        write_half(path)
    assert path.read_text(encoding="utf-8") == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    """A real full disk: a file system of 64 KiB."""
    mounted = tmp_path / "small"
    mounted.mkdir()
    script = (
        f'mount -t tmpfs -o size=64k none {mounted} && exec {sys.executable} -c "\n'
        "from pathlib import Path\n"
        "from wheelfarm import files\n"
        f"path = Path('{mounted}/file')\n"
        "files.write_text(path, 'old')\n"
        "try:\n"
        "    files.write_bytes(path, bytes(1 << 20))\n"
        "except files.DiskFullError as error:\n"
        "    print(error.exit_code, path.read_text(), len(list(path.parent.iterdir())))\n"
        '"'
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, check=False
    )
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip("this user may not mount a file system")
    assert done.stdout == "2 old 1\n", done.stderr


def test_the_lock_of_a_dead_process_is_free(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    code = (
        "import os\nfrom pathlib import Path\nfrom wheelfarm.files import locked\n"
        f"with locked(Path({str(lock)!r})):\n    os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    with files.locked(lock):
        pass


WINDOWS = """
import http.client, socket, ssl, subprocess, sys, tempfile, types, zipfile
locking = types.ModuleType("msvcrt")
sys.modules["msvcrt"], sys.modules["fcntl"] = locking, None
sys.platform = "win32"
import wheelfarm.files, wheelfarm.run, wheelfarm.http
import wheelfarm.resolve.detect, wheelfarm.resolve.choose, wheelfarm.toolkit
"""


def test_the_user_side_needs_nothing_that_windows_lacks() -> None:
    # A stand-in for the system that is not here: what only Linux has may not be imported.
    subprocess.run([sys.executable, "-c", WINDOWS], check=True, timeout=60)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_a_reader_never_fails_but_with_faults(value: object) -> None:
    reader = Reader(value, "document")
    reader.string("a", "")
    reader.integer("b", 0, least=1)
    reader.boolean("c", default=False)
    reader.strings("d")
    reader.string_map("e")
    for table in reader.tables("f"):
        table.string("g")
        table.done()
    reader.parsed("h", Path)
    reader.choice("i", ("x", "y"), "x")
    reader.done()
    if reader.faults:
        with pytest.raises(FaultsError, match="document has"):
            reader.finish()
    else:
        reader.finish()


def test_faults_say_where_and_all_at_once() -> None:
    document = {"name": 3, "matrix": [{"torch": 2.1}], "extra_dep": "x", "extra_deps": []}
    reader = Reader(document, "recipe diso", lines={("name",): 1, ("matrix", 0): 4})
    reader.string("name")
    for row in reader.tables("matrix"):
        row.string("torch")
    reader.strings("extra_deps")
    reader.done()
    with pytest.raises(FaultsError) as caught:
        reader.finish()
    quote = "quote it (unquoted, 2.10 would be read as 2.1)"
    assert str(caught.value).splitlines() == [
        "recipe diso has 3 faults",
        f"  recipe diso: name (line 1): expected a string, found 3; {quote}",
        f"  recipe diso: matrix[0].torch (line 4): expected a string, found 2.1; {quote}",
        "  recipe diso: extra_dep: unknown key 'extra_dep'; did you mean 'extra_deps'?",
    ]


@pytest.mark.parametrize("text", ["{", "[1,", "nul", "[" * 100_000])
def test_damaged_documents_are_bad_input(text: str, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no valid JSON"):
        parse_json(text, "it")
    with pytest.raises(BadInputError, match="no valid TOML"):
        parse_toml("= 1", "it")
    with pytest.raises(BadInputError, match="does not exist"):
        read_json(tmp_path / "absent.json")


def test_text_that_begins_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes('\ufeffkey = "wört"\r\nother = 1\r\n'.encode())
    assert read_text(path) == 'key = "wört"\nother = 1\n'
    assert read_toml(path) == {"key": "wört", "other": 1}
    assert read_exact_text(path).encode() == path.read_bytes()
    path.write_bytes('\ufeff{"key": 1}'.encode())
    assert read_json(path) == {"key": 1}


@pytest.mark.parametrize(
    ("encoding", "name"),
    [("utf-16", "UTF-16"), ("utf-32", "UTF-32"), ("latin-1", "could not be read")],
)
def test_text_of_another_encoding_is_said(tmp_path: Path, encoding: str, name: str) -> None:
    path = tmp_path / "file"
    path.write_text("wört = 1\n", encoding=encoding)
    for read in (read_text, read_toml, read_json, read_exact_text):
        with pytest.raises(BadInputError, match=name):
            read(path)


def test_a_rewritten_file_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    real = tmp_path / "real" / "pixi.toml"
    real.parent.mkdir()
    real.write_text("old", encoding="utf-8")
    real.chmod(0o600)
    link = tmp_path / "pixi.toml"
    link.symlink_to("real/pixi.toml")
    files.rewrite_text(link, "new\r\n")
    assert link.is_symlink()
    assert real.read_bytes() == b"new\r\n"
    assert real.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in real.parent.iterdir()) == ["pixi.toml"]
    files.rewrite_text(tmp_path / "fresh.toml", "new")
    assert (tmp_path / "fresh.toml").read_text(encoding="utf-8") == "new"
