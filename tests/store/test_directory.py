"""The store in a folder: what enters it, what never does, and what a crash leaves."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.store_wheels import WHEN, make_wheel, with_bytes_changed
from wheelfarm.errors import BadInputError
from wheelfarm.store.directory import DirectoryStore
from wheelfarm.store.model import parse_catalogue
from wheelfarm.store.protocol import (
    BlobMissingError,
    RefusedError,
    StoreConflictError,
    key_of,
    metadata_key,
)
from wheelfarm.store.publish import Published, metadata_of, publish, unyank, yank
from wheelfarm.values import replace

NAME = "demo-1.0+cu130torch2.14-cp311-cp311-manylinux_2_28_x86_64.whl"


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "store")


def put(store: DirectoryStore, folder: Path, name: str = NAME) -> Published:
    made = make_wheel(folder, name)
    return publish(store, made.path, made.proof, clock=lambda: WHEN)


def test_a_published_wheel_stands_under_its_hash(store: DirectoryStore, tmp_path: Path) -> None:
    made = make_wheel(tmp_path, NAME, requires_dist=("numpy",))
    done = publish(store, made.path, made.proof, clock=lambda: WHEN)
    assert done.outcome == "published"
    record = store.catalogue("demo").records[NAME]
    assert record == done.record
    assert record.uploaded == "2026-03-04T05:06:07Z"
    assert record.entry.requires_dist == ("numpy",)
    path = store.local(key_of(record))
    assert path is not None
    assert path.read_bytes() == made.path.read_bytes()
    metadata = store.local(metadata_key(key_of(record)))
    assert metadata is not None
    assert metadata.read_bytes() == metadata_of(made.path)
    assert [blob.key.partition("/")[0] for blob in store.blobs("demo")] == [
        "files",
        "files",
        "reports",
    ]


def test_the_same_bytes_again_are_no_change(store: DirectoryStore, tmp_path: Path) -> None:
    put(store, tmp_path)
    before = store.heads()
    assert put(store, tmp_path).outcome == "unchanged"
    assert store.heads() == before


def test_other_bytes_under_a_name_are_refused(store: DirectoryStore, tmp_path: Path) -> None:
    made = make_wheel(tmp_path, NAME)
    publish(store, made.path, made.proof)
    rebuilt = with_bytes_changed(made, tmp_path / "again")
    before = store.heads()
    with pytest.raises(RefusedError, match="other bytes"):
        publish(store, rebuilt.path, rebuilt.proof)
    assert store.heads() == before
    # A build tag makes it another file, and the old hash stays where old locks look for it.
    tagged = make_wheel(tmp_path, NAME.replace("torch2.14-", "torch2.14-2-"), body="# rebuilt\n")
    assert publish(store, tagged.path, tagged.proof).outcome == "published"
    assert len(store.catalogue("demo").records) == 2


def test_another_spelling_of_one_name_is_refused(store: DirectoryStore, tmp_path: Path) -> None:
    put(store, tmp_path)
    with pytest.raises(RefusedError, match="another spelling"):
        put(store, tmp_path, NAME.replace("demo", "Demo"))


def test_no_report_of_these_bytes_no_entry(store: DirectoryStore, tmp_path: Path) -> None:
    made = make_wheel(tmp_path, NAME)
    other = replace(made.proof, facts=replace(made.proof.facts, sha256="0" * 64))
    with pytest.raises(RefusedError, match="not about"):
        publish(store, made.path, other)
    failed = replace(made.proof, passed=False, failures=("torch-axis: it links torch",))
    with pytest.raises(RefusedError, match="links torch"):
        publish(store, made.path, failed)
    assert not store.heads()
    assert not (store.root / "files").exists()


def test_what_is_no_wheel_is_bad_input(store: DirectoryStore, tmp_path: Path) -> None:
    made = make_wheel(tmp_path, NAME)
    garbage = tmp_path / "garbage" / NAME
    garbage.parent.mkdir()
    garbage.write_bytes(b"not a zip")
    import hashlib

    facts = replace(made.proof.facts, sha256=hashlib.sha256(b"not a zip").hexdigest())
    with pytest.raises(BadInputError, match="no readable wheel"):
        publish(store, garbage, replace(made.proof, facts=facts))
    with pytest.raises(BadInputError, match="no wheel file name"):
        publish(store, tmp_path / "x.zip", made.proof)
    with pytest.raises(BadInputError, match="does not exist"):
        publish(store, tmp_path / "nowhere" / NAME, made.proof)


def test_a_yank_is_an_attribute(store: DirectoryStore, tmp_path: Path) -> None:
    put(store, tmp_path)
    (record,) = yank(store, [NAME], "crashes on sm_90")
    assert record.entry.yanked == "crashes on sm_90"
    assert record.revision == 2
    assert store.local(key_of(record)) is not None
    (record,) = unyank(store, [NAME])
    assert record.entry.yanked is None
    with pytest.raises(BadInputError, match="is not in"):
        yank(store, [NAME.replace("1.0", "2.0")], "reason")
    with pytest.raises(BadInputError, match="reason"):
        yank(store, [NAME], "  ")
    with pytest.raises(BadInputError) as caught:
        yank(store, [f"wheelhouse/{NAME}"], "reason")
    assert caught.value.hint == f"give the name without its folder: {NAME}"


def test_a_stale_catalogue_is_not_overwritten(store: DirectoryStore, tmp_path: Path) -> None:
    put(store, tmp_path)
    seen = store.catalogue("demo")
    yank(store, [NAME], "another host was faster")
    with pytest.raises(StoreConflictError):
        store.replace("demo", seen.records, seen.token)
    assert store.catalogue("demo").records[NAME].entry.yanked


def test_a_damaged_blob_is_found(store: DirectoryStore, tmp_path: Path) -> None:
    made = make_wheel(tmp_path, NAME)
    done = publish(store, made.path, made.proof)
    path = store.local(key_of(done.record))
    assert path is not None
    path.write_bytes(b"bit rot")
    with pytest.raises(RefusedError, match="other bytes"):
        store.put(key_of(done.record), made.path, done.record.sha256)
    with pytest.raises(BlobMissingError):
        store.fetch("files/demo/none", tmp_path / "out")


@pytest.mark.parametrize("key", ["../escape", "/etc/passwd", "files/../../x"])
def test_keys_never_leave_the_store(store: DirectoryStore, tmp_path: Path, key: str) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"")
    with pytest.raises(BadInputError):
        store.put(key, source, "0" * 64)


PUBLISHER = """
    import pathlib, sys
    sys.path.insert(0, {repository!r})
    from tests.processes import Killer
    from tests.store_wheels import make_wheel
    from wheelfarm.store.directory import DirectoryStore
    from wheelfarm.store.publish import publish
    from wheelfarm import files

    store = DirectoryStore(pathlib.Path({store!r}))
    folder = pathlib.Path({folder!r})
    files._sync = Killer(int(sys.argv[1])).counted(files._sync)
    for name in sys.argv[2:]:
        made = make_wheel(folder, name)
        publish(store, made.path, made.proof)
    print("done")
"""


def run_publisher(
    repository: Path, store: DirectoryStore, folder: Path, *words: str
) -> subprocess.CompletedProcess[str]:
    code = textwrap.dedent(PUBLISHER).format(
        repository=str(repository), store=str(store.root), folder=str(folder)
    )
    environment = {**os.environ, "PYTHONPATH": str(repository / "src")}
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )


@pytest.mark.parametrize("step", range(1, 9))
def test_a_kill_at_any_write_loses_nothing(
    repository: Path, store: DirectoryStore, tmp_path: Path, step: int
) -> None:
    # Two syncs for each of wheel, metadata, report and catalogue: a kill before each of them.
    put(store, tmp_path, NAME.replace("1.0", "0.9"))
    killed = run_publisher(repository, store, tmp_path, str(step), NAME)
    assert killed.returncode == -signal.SIGKILL
    records = store.catalogue("demo").records
    assert set(records) - {NAME} == {NAME.replace("1.0", "0.9")}
    if NAME in records:
        assert step == 8
    again = run_publisher(repository, store, tmp_path, "0", NAME)
    assert again.returncode == 0, again.stderr
    assert set(store.catalogue("demo").records) == {NAME, NAME.replace("1.0", "0.9")}
    data = (store.root / "catalogue" / "demo.json").read_bytes()
    assert len(parse_catalogue(data, "catalogue")) == 2


def test_publishers_at_once_lose_nothing(
    repository: Path, store: DirectoryStore, tmp_path: Path
) -> None:
    names = [NAME.replace("1.0", f"1.{number}") for number in range(12)]
    environment = {**os.environ, "PYTHONPATH": str(repository / "src")}
    # Each wheel is published by two processes, in opposite orders, from folders of their own.
    orders = (names[:8], names[11:3:-1], names[4:])
    with contextlib.ExitStack() as stack:
        processes = []
        for number, order in enumerate(orders):
            code = textwrap.dedent(PUBLISHER).format(
                repository=str(repository),
                store=str(store.root),
                folder=str(tmp_path / f"wheels{number}"),
            )
            words = [sys.executable, "-c", code, "0", *order]
            process = subprocess.Popen(words, stdout=subprocess.PIPE, env=environment)
            processes.append(stack.enter_context(process))
        for process in processes:
            assert process.communicate()[0] == b"done\n"
            assert process.returncode == 0
    assert sorted(store.catalogue("demo").records) == sorted(names)
