"""What a kill -9 leaves half-written: found, removed, and never taken from a living process."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wheelfarm import files, locks
from wheelfarm.build.cache_budget import collect, inventory
from wheelfarm.cli import main

WRITER = """
import sys
from pathlib import Path
from wheelfarm import files
with getattr(files, sys.argv[1])(Path(sys.argv[2])) as temporary:
    if temporary.is_dir():
        (temporary / "half").write_text("written")
    else:
        temporary.write_text("half")
    print(temporary, flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def writing(how: str, path: Path) -> Iterator[tuple[Path, Callable[[], None]]]:
    """Run a process in the middle of writing ``path``; yield its temporary and its kill -9."""
    words = [sys.executable, "-c", WRITER, how, str(path)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None

        def kill() -> None:
            process.send_signal(signal.SIGKILL)
            process.wait()

        try:
            yield Path(process.stdout.readline().strip()), kill
        finally:
            kill()


@pytest.fixture(params=["replacing", "replacing_folder"])
def how(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_only_what_a_dead_process_left_is_dead(tmp_path: Path, how: str) -> None:
    target = tmp_path / "deep" / "target[1]"
    with writing(how, target) as (temporary, kill):
        assert temporary.parent == target.parent
        assert files.is_unfinished(temporary)
        # However long ago it was begun.
        os.utime(temporary, (0, 0))
        assert list(files.dead(tmp_path, deep=True)) == []
        files.remove_dead(target)
        assert temporary.exists()
        kill()
        assert list(files.dead(tmp_path, deep=True)) == [temporary]
        assert list(files.dead(tmp_path)) == []
        files.remove_dead(target.with_name("target1"))
        assert temporary.exists()
        files.remove_dead(target)
        assert list(target.parent.iterdir()) == []


def test_a_second_run_of_a_killed_preparation_cleans_up(tmp_path: Path) -> None:
    target = tmp_path / "glibc-2.28"
    with writing("replacing_folder", target) as (temporary, kill):
        kill()
        with files.replacing_folder(target) as made:
            assert not temporary.exists()
            (made / "whole").touch()
    assert [path.name for path in tmp_path.iterdir()] == ["glibc-2.28"]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_sweep_between_making_and_locking_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    lock = locks.lock
    swept: list[Path] = []

    def sweep_first(handle: int) -> None:
        if not swept:
            swept.extend(files.dead(tmp_path))
            files.remove(swept[0])
        lock(handle)

    monkeypatch.setattr(locks, "lock", sweep_first)
    target = tmp_path / "target"
    if kind == "file":
        files.write_text(target, "whole")
        assert target.read_text() == "whole"
    else:
        with files.replacing_folder(target) as made:
            (made / "whole").touch()
        assert (target / "whole").exists()
    assert len(swept) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("kept")
    (tmp_path / ".x.abcdefgh.part").symlink_to("precious")
    assert list(files.dead(tmp_path)) == []


def test_a_copy_to_a_free_name_alone(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "into" / "target"
    source.write_text("first")
    assert files.copy_new(source, target)
    source.write_text("second")
    assert not files.copy_new(source, target)
    assert target.read_text() == "first"
    assert [path.name for path in target.parent.iterdir()] == ["target"]


def test_gc_removes_leftovers_whatever_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = tmp_path / "cache"
    with (
        writing("replacing_folder", cache / "floors/glibc-2.28-x") as (floor, kill_floor),
        writing("replacing", cache / "facts/v1/ab/abc.json") as (facts, kill_facts),
        writing("replacing_folder", cache / "view/root") as (living, _),
    ):
        kill_floor()
        kill_facts()
        monkeypatch.setenv("WHEELFARM_CACHE", str(cache))
        assert main(["cache", "gc", "--dry-run", "--json"]) == 0
        planned = json.loads(capsys.readouterr().out)
        assert floor.exists()
        assert facts.exists()
        assert main(["cache", "gc", "--json"]) == 0
        done = json.loads(capsys.readouterr().out)
        assert planned == done
        assert {each["path"] for each in done["removed"]} == {str(floor), str(facts)}
        assert {each["kind"] for each in done["removed"]} == {"leftover"}
        assert not floor.exists()
        assert not facts.exists()
        assert living.exists()
        assert list(files.dead(cache, deep=True)) == []


def test_a_budget_holds_all_that_the_cache_keeps(tmp_path: Path) -> None:
    for place in (
        "compilers/cu130/8d/object", "downloads/source.tar.gz", "facts/v1/ab/abc.json",
        "pages/1.page",
        "environments/cu130/lib.so", "floors/glibc-2.28-x/record.json",
        "jit/v1/name/key/result-1/name.so",
    ):  # fmt: skip
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(100))
    assert {item.kind for item in inventory(tmp_path)} == {
        "compiler result", "download", "environment", "facts", "floor", "JIT result", "page",
    }  # fmt: skip
    with files.locked(tmp_path / "jit/v1/name/key/lock"):
        busy = collect(tmp_path, 0)
        assert busy.in_use == (tmp_path / "jit/v1/name/key",)
        assert busy.after == 100
    assert collect(tmp_path, 0).after == 0
    assert list((tmp_path / "jit/v1/name/key").iterdir()) == [tmp_path / "jit/v1/name/key/lock"]


def test_a_download_that_is_under_way_stays(tmp_path: Path) -> None:
    part = tmp_path / "downloads" / ".source.tar.gz.part"
    part.parent.mkdir()
    with part.open("wb") as stream:
        stream.write(bytes(100))
        stream.flush()
        locks.lock(stream.fileno())
        assert collect(tmp_path, 0).in_use == (part,)
    # Nobody goes on with it: what has come serves a later run until room is needed.
    assert collect(tmp_path, 100).removed == ()
    assert [item.path for item in collect(tmp_path, 0).removed] == [part]


def test_prune_takes_out_what_a_killed_publish_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    (store / "catalogue").mkdir(parents=True)
    words = ["prune", "--store", str(store), "--json"]
    with writing("replacing", store / "files/demo/00ff/demo-1.0-py3-none-any.whl") as (half, kill):
        assert main(words) == 0
        assert json.loads(capsys.readouterr().out)["left"] == []
        kill()
        assert main(words) == 0
        assert json.loads(capsys.readouterr().out)["left"] == [str(half)]
        assert half.exists()
        assert main([*words, "--apply"]) == 0
        assert json.loads(capsys.readouterr().out)["left"] == [str(half)]
        assert not half.exists()
