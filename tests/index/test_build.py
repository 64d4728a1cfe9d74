"""A build changes what depends on a change, and nothing is ever lost by accident."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.index.conftest import Farm, shipped
from tests.loopback import serving
from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.http import Client
from wheelfarm.index.build import build_site, roll_back
from wheelfarm.index.guard import Guard, LocalSite, RemoteSite, ShorterIndexError
from wheelfarm.index.history import History
from wheelfarm.index.storage import StorageMismatchError
from wheelfarm.index.tree import SiteTree
from wheelfarm.store.directory import DirectoryStore
from wheelfarm.store.prune import remove, superseded
from wheelfarm.store.publish import yank

X86 = "manylinux_2_28_x86_64"


def wheel(package: str = "demo", version: str = "1.0", torch: str = "2.10") -> str:
    return f"{package}-{version}+cu130torch{torch}-cp311-cp311-{X86}.whl"


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def fresh(farm: Farm) -> dict[str, bytes]:
    """Return what a build from nothing makes of the same store."""
    other = Farm(farm.folder / "fresh", world=farm.world, config=farm.config)
    other.folder.mkdir(exist_ok=True)
    (other.folder / "store").symlink_to(farm.folder / "store")
    other.build()
    found = snapshot(other.site)
    (other.folder / "store").unlink()
    shutil.rmtree(other.folder)
    return found


def test_an_incremental_build_is_a_full_one(farm: Farm) -> None:
    farm.publish(wheel())
    farm.publish(wheel("other", torch="2.14"), axis="free")
    farm.build()
    assert snapshot(farm.site) == fresh(farm)
    farm.publish(wheel(version="2.0"))
    assert farm.build().rendered == ("demo",)
    assert snapshot(farm.site) == fresh(farm)
    yank(farm.store, [wheel("other", torch="2.14")], "bad")
    assert farm.build().rendered == ("other",)
    assert snapshot(farm.site) == fresh(farm)
    # A new torch makes a channel in which the free wheel of another package stands.
    farm.publish(wheel(version="3.0", torch="2.15"))
    farm.world = shipped({"cu130": "2.9 2.10 2.14 2.15"})
    farm.build()
    assert (farm.site / "cu130/torch2.15/simple/other/index.html").exists()
    assert snapshot(farm.site) == fresh(farm)
    remove(farm.store, "other", frozenset({wheel("other", torch="2.14")}))
    farm.build()
    assert not (farm.site / "simple/other").exists()
    assert snapshot(farm.site) == fresh(farm)
    before = snapshot(farm.site)
    assert farm.build(full=True).written == 0
    assert snapshot(farm.site) == before


def test_nothing_new_writes_nothing(farm: Farm) -> None:
    farm.publish(wheel())
    farm.build()
    built = farm.build()
    assert (built.written, built.removed, built.rendered) == (0, 0, ())
    (farm.site / "simple/demo/index.html").unlink()
    assert farm.build(full=True).written == 1
    # Damage that the notes of the last build do not show.
    whole = snapshot(farm.site)
    (farm.site / "manifest/packages/demo.json").write_bytes(b"")
    (farm.site / "manifest/all.json").write_bytes(b"{}")
    assert farm.build(full=True).written == 2
    assert snapshot(farm.site) == whole


def test_files_of_the_site_itself(farm: Farm) -> None:
    farm.files = "copy"
    farm.publish(wheel())
    farm.publish(wheel(version="2.0"))
    farm.build()
    assert not (farm.site / "files").is_symlink()
    assert len(list((farm.site / "files").rglob("*.metadata"))) == 2
    remove(farm.store, "demo", frozenset({wheel()}))
    farm.build()
    assert len(list((farm.site / "files").rglob("*.whl"))) == 1
    farm.files = "link"
    farm.build(full=True)
    assert (farm.site / "files").is_symlink()
    # The other way round the link goes, and what it led to stays.
    farm.files = "copy"
    farm.build(full=True)
    assert not (farm.site / "files").is_symlink()
    assert len(list((farm.folder / "store/files").rglob("*.whl"))) == 1


KILLED = """
    import pathlib, sys
    sys.path.insert(0, {repository!r})
    from tests.index.conftest import Farm
    from tests.processes import Killer
    from wheelfarm.index import tree

    killer = Killer(int(sys.argv[1]))
    tree._write = killer.counted(tree._write)
    tree._move = killer.counted(tree._move)
    Farm(pathlib.Path({folder!r})).build()
    print(killer.steps)
"""


def test_a_kill_at_any_step_leaves_a_whole_index(repository: Path, farm: Farm) -> None:
    farm.publish(wheel())
    farm.publish(wheel("other"))
    farm.build()
    before = snapshot(farm.site)
    farm.publish(wheel(version="2.0"))
    after = fresh(farm)
    environment = {**os.environ, "PYTHONPATH": str(repository / "src")}

    def run(folder: Path, step: int) -> subprocess.CompletedProcess[str]:
        code = textwrap.dedent(KILLED).format(repository=str(repository), folder=str(folder))
        return subprocess.run(
            [sys.executable, "-c", code, str(step)],
            check=False,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )

    shutil.copytree(farm.folder, farm.folder.parent / "copy", symlinks=True)
    # The very first build too: what it leaves is taken for a site's own.
    first = farm.folder.parent / "first"
    first.mkdir()
    shutil.copytree(farm.folder / "store", first / "store")
    for step in (2, 60, 20):
        assert run(first, step).returncode == -signal.SIGKILL
    assert run(first, 0).returncode == 0
    assert snapshot(first / "site") == after

    steps = int(run(farm.folder.parent / "copy", 0).stdout)
    # Twice while staging, once while moving, once while that is being finished.
    for step in (1, 4, steps - 5, 5):
        assert run(farm.folder, step).returncode == -signal.SIGKILL
        now = snapshot(farm.site)
        # Every page is whole: as it was or as it will be; and none is missing.
        assert now.keys() >= before.keys()
        assert all(data in {before.get(path), after[path]} for path, data in now.items())
    farm.build()
    assert snapshot(farm.site) == after


def test_a_shorter_index_is_not_written(farm: Farm) -> None:
    for package in ("cumesh", "cubvh", "demo"):
        farm.publish(wheel(package))
    farm.publish(wheel(version="2.0"))
    farm.build()
    before = snapshot(farm.site)
    # A store that lost a package, and one file of another.
    (farm.folder / "store/catalogue/cumesh.json").unlink()
    remove(farm.store, "demo", frozenset({wheel()}))
    guard = Guard(LocalSite(farm.tree))
    with pytest.raises(ShorterIndexError) as caught:
        farm.build(guards=(guard,))
    assert caught.value.lost == ("cumesh", wheel("cumesh"), wheel())
    assert snapshot(farm.site) == before
    with pytest.raises(ShorterIndexError) as caught:
        farm.build(guards=(Guard(LocalSite(farm.tree), ["cumesh"]),))
    assert caught.value.lost == (wheel(),)
    farm.build(guards=(Guard(LocalSite(farm.tree), ["cumesh", wheel()]),))
    assert not (farm.site / "simple/cumesh").exists()


def test_the_live_site_is_what_counts(farm: Farm, tmp_path: Path) -> None:
    farm.publish(wheel())
    farm.publish(wheel("other"))
    farm.build()
    client = Client(attempts=1)
    with serving(farm.site) as server:
        elsewhere = Farm(tmp_path / "elsewhere")
        elsewhere.publish(wheel())
        with pytest.raises(ShorterIndexError) as caught:
            elsewhere.build(guards=(Guard(RemoteSite(server.url, client)),))
        assert caught.value.lost == ("other", wheel("other"))
        assert not elsewhere.site.exists()
        # Parts that did not change are not fetched.
        asked = len(server.requests)
        farm.build(full=True, guards=(Guard(RemoteSite(server.url, client)),))
        assert server.paths()[asked:] == ["/manifest/index.json"]
    # A site that does not answer, or has no manifest, is never an empty one.
    # (Another client, as the first one keeps its connection.)
    silent = RemoteSite(server.url, Client(attempts=1))
    with pytest.raises(CouldNotLookError):
        farm.build(full=True, guards=(Guard(silent),))
    empty = tmp_path / "empty"
    empty.mkdir()
    with serving(empty) as server:
        with pytest.raises(CouldNotLookError, match="nobody can say"):
            farm.build(full=True, guards=(Guard(RemoteSite(server.url, client)),))
        farm.build(full=True, guards=(Guard(RemoteSite(server.url, client, new=True)),))


def test_storage_and_catalogue_must_agree(farm: Farm) -> None:
    farm.publish(wheel())
    farm.build()
    before = snapshot(farm.site)
    lost = next((farm.folder / "store/files").rglob("*.whl"))
    stray = farm.folder / f"store/files/demo/{'0' * 64}/{wheel(version='9.9')}"
    stray.parent.mkdir()
    stray.write_bytes(b"dropped in by hand")
    # A publish may be under way, so a young file is nobody's fault.
    farm.build(full=True)
    os.utime(stray, (0, 0))
    with pytest.raises(StorageMismatchError) as caught:
        farm.build(full=True)
    assert caught.value.unlisted == (f"files/demo/{'0' * 64}/{stray.name}",)
    stray.unlink()
    moved = lost.parent.rename(farm.folder / "moved")
    with pytest.raises(StorageMismatchError) as caught:
        farm.build(full=True)
    assert caught.value.missing == (wheel(),)
    moved.rename(lost.parent)
    farm.build(full=True)
    assert snapshot(farm.site) == before


def test_rollback_returns_yesterdays_index(farm: Farm) -> None:
    farm.publish(wheel())
    farm.build()
    first = snapshot(farm.site)
    farm.publish(wheel(version="2.0"))
    farm.build()
    second = snapshot(farm.site)
    farm.publish(wheel("other"))
    farm.build()
    third = snapshot(farm.site)
    assert [each.number for each in History(farm.tree).generations()] == [1, 2, 3]
    roll_back(farm.store, farm.tree, farm.world)
    assert snapshot(farm.site) == second
    roll_back(farm.store, farm.tree, farm.world)
    assert snapshot(farm.site) == first
    # The store still has everything: the next build shows it.
    farm.build()
    assert snapshot(farm.site) == third


def test_prune_proposes_what_is_superseded(farm: Farm) -> None:
    for version in ("1.0rc1", "1.0", "2.0b0", "2.0", "3.0rc1", "1.9"):
        farm.publish(wheel(version=version))
    farm.publish(wheel(version="2.0").replace("torch2.10-", "torch2.10-1-"))
    farm.publish(wheel(version="1.5", torch="2.14"))
    records = farm.store.catalogue("demo").records.values()
    kept = {
        each.candidate.entry.name.version_text.partition("+")[0] + each.candidate.entry.name.build
        for each in superseded(records)
        if each.accepted
    }
    assert kept == {"2.01", "3.0rc1", "1.5"}
    reasons = {each.candidate.filename: each.reason for each in superseded(records)}
    assert reasons[wheel(version="2.0")].startswith("build superseded by")
    assert (
        wheel(version="2.0").replace("torch2.10-", "torch2.10-1-") in reasons[wheel(version="1.0")]
    )
    # A yanked wheel supersedes nothing.
    yank(farm.store, [wheel(version="1.5", torch="2.14")], "bad")
    farm.publish(wheel(version="1.4", torch="2.14"))
    records = farm.store.catalogue("demo").records.values()
    reasons = {each.candidate.filename: each.reason for each in superseded(records)}
    assert reasons[wheel(version="1.4", torch="2.14")] == ""
    # A final beats every pre-release of it, whatever is asked.
    assert not reasons[wheel(version="3.0rc1")]


def test_a_file_where_a_folder_should_be(farm: Farm) -> None:
    farm.publish(wheel())
    farm.site.mkdir()
    (farm.site / "cu130").write_text("mine")
    with pytest.raises(BadInputError, match="needs a folder"):
        farm.build()
    assert snapshot(farm.site) == {"cu130": b"mine"}
    (farm.site / "cu130").unlink()
    farm.build()
    shutil.rmtree(farm.site)
    farm.site.write_text("mine")
    for site in (farm.site, farm.site / "deeper"):
        with pytest.raises(BadInputError, match="is a file where the site needs a folder"):
            build_site(farm.store, SiteTree(site), farm.config, farm.world)
    assert farm.site.read_text() == "mine"


@pytest.mark.parametrize("place", ["store", "store/site", "store/files"])
def test_a_site_never_lies_in_its_store(farm: Farm, place: str) -> None:
    farm.publish(wheel())
    before = snapshot(farm.folder / "store")
    with pytest.raises(BadInputError, match="would lie in each other"):
        build_site(farm.store, SiteTree(farm.folder / place), farm.config, farm.world)
    assert snapshot(farm.folder / "store") == before


def test_a_store_never_lies_where_a_site_has_its_files(farm: Farm) -> None:
    farm.publish(wheel())
    farm.build()
    inside = farm.site / "reports/store"
    (farm.site / "reports").unlink()
    shutil.copytree(farm.folder / "store", inside)
    before = snapshot(inside)
    with pytest.raises(BadInputError, match="would lie in each other"):
        build_site(DirectoryStore(inside), farm.tree, farm.config, farm.world)
    assert snapshot(inside) == before


@pytest.mark.parametrize("name", ["files", "packages", "index.html"])
def test_a_folder_of_somebody_elses_is_no_place_for_a_site(farm: Farm, name: str) -> None:
    farm.publish(wheel())
    (farm.site / name).mkdir(parents=True)
    (farm.site / name / "thesis.txt").write_text("mine")
    with pytest.raises(BadInputError, match=f"is no site, and holds '{name}'"):
        farm.build()
    assert snapshot(farm.site) == {f"{name}/thesis.txt": b"mine"}


@pytest.mark.parametrize("name", ["farm.yml", "recipes/demo/recipe.yml", "photos/2026/me.jpg"])
def test_a_folder_with_other_things_is_no_place_for_a_site(farm: Farm, name: str) -> None:
    farm.publish(wheel())
    path = farm.site / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(BadInputError, match="which is none of a site's"):
        farm.build()
    assert snapshot(farm.site) == {name: b"mine"}


def test_what_a_host_keeps_in_a_sites_folder_may_stay(farm: Farm) -> None:
    farm.publish(wheel())
    for name in ("CNAME", ".nojekyll", ".git/config", ".well-known/security.txt"):
        path = farm.site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("host")
    (farm.site / "cu130/torch2.10").mkdir(parents=True)
    farm.build()
    assert snapshot(farm.site)["CNAME"] == b"host"
    assert (farm.site / "simple/index.html").is_file()
    # Once it is a site, other folders beside its pages are its owner's business.
    (farm.site / "blog").mkdir()
    (farm.site / "blog/post.html").write_text("mine")
    farm.publish(wheel(version="2.0"))
    farm.build()
    assert (farm.site / "blog/post.html").read_text() == "mine"


@pytest.mark.parametrize("place", ["..", "../..", "/"])
def test_a_site_never_lies_around_its_store(farm: Farm, place: str) -> None:
    farm.publish(wheel())
    before = snapshot(farm.folder)
    tree = SiteTree(Path("/") if place == "/" else farm.folder / "store" / place)
    with pytest.raises(BadInputError, match=r"would lie in each other|the whole file system"):
        build_site(farm.store, tree, farm.config, farm.world)
    assert snapshot(farm.folder) == before


def test_a_site_without_its_state_is_taken_over(farm: Farm) -> None:
    # A checkout of the published pages on another machine.
    farm.publish(wheel())
    farm.build()
    whole = snapshot(farm.site)
    shutil.rmtree(farm.tree.state)
    farm.build()
    assert snapshot(farm.site) == whole


def test_a_file_that_the_store_lacks_is_not_removed_for_a_link(farm: Farm) -> None:
    farm.files = "copy"
    farm.publish(wheel())
    farm.build()
    note = farm.site / "files/notes.txt"
    note.write_text("mine")
    farm.files = "link"
    with pytest.raises(BadInputError, match="is in the way, and not in the store"):
        farm.build(full=True)
    assert note.read_text() == "mine"
    note.unlink()
    farm.build(full=True)
    assert (farm.site / "files").is_symlink()


def test_the_lock_is_per_site(farm: Farm) -> None:
    farm.publish(wheel())
    with SiteTree(farm.folder / "another").locked():
        farm.build()
    assert json.loads(farm.text("manifest/index.json"))["packages"]


def _states(farm: Farm) -> list[Path]:
    return [farm.tree.state / "state.json", farm.tree.state / "packages/demo.json"]


@pytest.mark.parametrize("damage", [b"", b"[1]", b"{", b'{"pages": 1, "sha256": 7}', b"\xff"])
@pytest.mark.parametrize("which", [0, 1])
def test_a_damaged_state_is_told_with_the_way_out(farm: Farm, which: int, damage: bytes) -> None:
    farm.publish(wheel())
    farm.build()
    whole = snapshot(farm.site)
    path = _states(farm)[which]
    path.write_bytes(damage)
    farm.publish(wheel(version="2.0"))
    with pytest.raises(BadInputError) as caught:
        farm.build()
    assert str(path) in caught.value.what
    assert f"remove {path}" in caught.value.hint
    assert snapshot(farm.site) == whole
    path.unlink()
    farm.build()
    assert snapshot(farm.site) == fresh(farm)


@pytest.mark.parametrize("which", [0, 1])
def test_a_state_with_another_value_is_damaged_too(farm: Farm, which: int) -> None:
    farm.publish(wheel())
    farm.build()
    path = _states(farm)[which]
    whole = path.read_text()
    path.write_text(whole.replace('"pages": {', '"pages": {"../../outside": "0", ', 1))
    assert path.read_text() != whole
    farm.publish(wheel(version="2.0"))
    with pytest.raises(BadInputError, match="is damaged"):
        farm.build()


def test_a_state_of_an_older_wheelfarm_is_taken_as_it_is(farm: Farm) -> None:
    farm.publish(wheel())
    farm.build()
    for path in _states(farm):
        document = json.loads(path.read_bytes())
        del document["sha256"]
        path.write_text(json.dumps(document))
    farm.publish(wheel(version="2.0"))
    farm.build()
    assert snapshot(farm.site) == fresh(farm)


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"[]",
        b"{}",
        b'{"number": "1", "time": "x", "packages": {}, "config": {}}',
        b'{"number": 2, "time": "x", "packages": {"demo": "../x"}, "config": {}}',
        b'{"number": 2, "time": "x", "packages": null, "config": "x"}',
    ],
)
def test_a_damaged_build_is_left_out_and_the_others_stay(
    farm: Farm, caplog: pytest.LogCaptureFixture, damage: bytes
) -> None:
    farm.publish(wheel())
    farm.build()
    first = snapshot(farm.site)
    farm.publish(wheel(version="2.0"))
    farm.build()
    (farm.tree.state / "history/00000002.json").write_bytes(damage)
    farm.publish(wheel("other"))
    farm.build()
    assert "a kept build is left out: " in caplog.text
    assert [each.number for each in History(farm.tree).generations()] == [1, 3]
    # What the damaged one said of the packages that this build did not read is not guessed.
    third = snapshot(farm.site)
    farm.publish(wheel(version="3.0"))
    farm.build()
    roll_back(farm.store, farm.tree, farm.world)
    assert snapshot(farm.site) == third
    roll_back(farm.store, farm.tree, farm.world)
    assert snapshot(farm.site) == first


def test_a_damaged_catalogue_of_a_kept_build_is_told(farm: Farm) -> None:
    farm.publish(wheel())
    farm.build()
    farm.publish(wheel(version="2.0"))
    farm.build()
    second = snapshot(farm.site)
    (digest,) = History(farm.tree).generations()[0].packages.values()
    path = farm.tree.state / f"history/catalogues/{digest}.json"
    path.write_text("{}")
    with pytest.raises(BadInputError, match="is damaged"):
        roll_back(farm.store, farm.tree, farm.world)
    assert snapshot(farm.site) == second
