"""The store in GitHub Releases, against a local server that answers as GitHub does."""

import hashlib
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.github_server import (
    TOKEN,
    Github,
    Stored,
    StoredRelease,
    broken_upload,
    github_server,
    status,
)
from tests.store_wheels import WHEN, make_wheel, with_bytes_changed
from wheelfarm.build.costs import Costs, Measured
from wheelfarm.store.costs import StoredCosts
from wheelfarm.store.github import GithubStore
from wheelfarm.store.github_api import GithubApi
from wheelfarm.store.location import open_store
from wheelfarm.store.model import Record
from wheelfarm.store.protocol import RefusedError, StoreError, key_of, update
from wheelfarm.store.prune import remove
from wheelfarm.store.publish import publish, yank

NAME = "demo-1.0+cu130torch2.14-cp311-cp311-manylinux_2_28_x86_64.whl"


@pytest.fixture
def github() -> Iterator[Github]:
    with github_server() as server:
        yield server


def store_of(github: Github, room: int = 1000) -> GithubStore:
    api = GithubApi("owner", "farm", api=github.url, token=TOKEN, pause=0.001)
    return GithubStore(api, github.location, room=room)


def named(version: str) -> str:
    return NAME.replace("1.0+", f"{version}+")


def test_a_release_holds_wheel_metadata_report_and_catalogue(
    github: Github, tmp_path: Path
) -> None:
    store = store_of(github)
    made = make_wheel(tmp_path, NAME)
    done = publish(store, made.path, made.proof, clock=lambda: WHEN)
    names = github.names("demo-latest")
    assert names[:2] == [NAME, NAME + ".metadata"]
    assert names[2].endswith(".report.json")
    assert names[3].startswith("catalogue-")
    assert len(names) == 4
    assert done.record.entry.url == (
        f"{github.objects}/owner/farm/releases/download/demo-latest/{NAME.replace('+', '%2B')}"
    )
    assert store.catalogue("demo").records == {NAME: done.record}
    assert set(store.heads()) == {"demo"}
    target = tmp_path / "fetched"
    store.fetch(key_of(done.record), target)
    assert target.read_bytes() == made.path.read_bytes()


def test_published_again_and_rebuilt(github: Github, tmp_path: Path) -> None:
    store = store_of(github)
    made = make_wheel(tmp_path, NAME)
    publish(store, made.path, made.proof)
    assert publish(store, made.path, made.proof).outcome == "unchanged"
    rebuilt = with_bytes_changed(made, tmp_path / "again")
    with pytest.raises(RefusedError):
        publish(store, rebuilt.path, rebuilt.proof)
    assert github.release("demo-latest").assets[0].data == made.path.read_bytes()


def test_the_token_stays_with_the_api(
    github: Github, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    store = store_of(github)
    made = make_wheel(tmp_path, NAME)
    done = publish(store, made.path, made.proof)
    store.fetch(key_of(done.record), tmp_path / "fetched")
    assert github.elsewhere
    assert not any("authorization" in headers for headers in github.elsewhere)
    assert TOKEN not in caplog.text
    github.faults += [("GET", "/tags/", status(401))]
    with pytest.raises(Exception, match="401") as caught:
        store.catalogue("demo")
    assert TOKEN not in str(caught.value)


def test_lists_are_read_to_their_last_page(github: Github, tmp_path: Path) -> None:
    store = store_of(github)
    github.releases += [StoredRelease(github.number(), f"other-{n}") for n in range(110)]
    made = make_wheel(tmp_path, NAME)
    publish(store, made.path, made.proof)
    release = github.release("demo-latest")
    wheel = release.assets.pop(0)
    release.assets += [Stored(github.number(), f"filler-{n}", b"") for n in range(150)]
    release.assets.append(wheel)
    # The release is the 111th, its wheel the 154th asset.
    assert set(store.heads()) == {"demo"}
    assert publish(store, made.path, made.proof).outcome == "unchanged"
    blobs = [blob.key for blob in store.blobs("demo") if blob.key.endswith(".whl")]
    assert blobs == [key_of(store.catalogue("demo").records[NAME])]


def test_a_full_release_is_split_and_a_wheel_keeps_its_metadata_beside_it(
    github: Github, tmp_path: Path
) -> None:
    github.limit = 30
    store = store_of(github, room=30)
    for number in range(4):
        made = make_wheel(tmp_path, named(f"1.{number}"))
        publish(store, made.path, made.proof)
    tags = [release.tag for release in github.releases]
    assert tags == ["demo-latest", "demo-latest-2"]
    for tag in tags:
        names = github.names(tag)
        assert len(names) <= 30
        for name in names:
            if name.endswith(".whl"):
                assert name + ".metadata" in names
    assert len(store.catalogue("demo").records) == 4
    assert set(store.heads()) == {"demo"}


def test_a_limit_that_is_lower_than_known_still_splits(github: Github, tmp_path: Path) -> None:
    # Another host filled the release between our look and our upload.
    store = store_of(github)
    made = make_wheel(tmp_path, NAME)
    publish(store, made.path, made.proof)
    github.limit = len(github.names("demo-latest"))
    other = make_wheel(tmp_path, named("2.0"))
    with pytest.raises(StoreError, match="could not be stored"):
        publish(store, other.path, other.proof)
    assert set(store.catalogue("demo").records) == {NAME}


@pytest.mark.parametrize("fault", [status(500), status(503), broken_upload])
def test_a_servers_error_in_an_upload_is_tried_again(
    github: Github, tmp_path: Path, fault: object
) -> None:
    store = store_of(github)
    made = make_wheel(tmp_path, NAME)
    github.faults += [("POST", r"assets\?name=demo", fault)] * 2  # type: ignore[list-item]
    done = publish(store, made.path, made.proof)
    assert store.catalogue("demo").records == {NAME: done.record}
    assets = github.release("demo-latest").assets
    assert [asset.name for asset in assets].count(NAME) == 1
    assert all(asset.state == "uploaded" for asset in assets)


def test_an_outage_publishes_nothing_and_a_second_run_finishes(
    github: Github, tmp_path: Path
) -> None:
    store = store_of(github)
    made = make_wheel(tmp_path, NAME)
    github.faults += [("POST", r"assets\?name=catalogue", status(500))] * 4
    with pytest.raises(StoreError, match="4 attempts"):
        publish(store, made.path, made.proof)
    assert not store.catalogue("demo").records
    assert publish(store, made.path, made.proof).outcome == "published"
    assert github.names("demo-latest").count(NAME) == 1


def test_what_a_killed_publish_left_may_be_replaced(github: Github, tmp_path: Path) -> None:
    store = store_of(github)
    made = make_wheel(tmp_path, NAME)
    github.faults += [("POST", r"assets\?name=catalogue", status(500))] * 4
    with pytest.raises(StoreError):
        publish(store, made.path, made.proof)
    rebuilt = with_bytes_changed(made, tmp_path / "again")
    assert publish(store, rebuilt.path, rebuilt.proof).outcome == "published"
    assert github.release("demo-latest").assets[-1].name.startswith("catalogue")
    digest = hashlib.sha256(rebuilt.path.read_bytes()).hexdigest()
    assert store.catalogue("demo").records[NAME].sha256 == digest


def test_assets_without_a_digest_are_read_back(github: Github, tmp_path: Path) -> None:
    github.digests = False
    store = store_of(github)
    made = make_wheel(tmp_path, NAME)
    publish(store, made.path, made.proof)
    assert github.elsewhere
    assert publish(store, made.path, made.proof).outcome == "unchanged"


def test_two_hosts_that_change_one_catalogue_at_once_lose_nothing(
    github: Github, tmp_path: Path
) -> None:
    store, other = store_of(github), store_of(github)
    first = make_wheel(tmp_path, NAME)
    publish(store, first.path, first.proof)
    late = make_wheel(tmp_path, named("2.0"))
    later = make_wheel(tmp_path, named("3.0"))

    def at_the_worst_moment() -> None:
        # We have put our catalogue up and are about to take the old one down.
        release = github.release("demo-latest")
        ours = [a for a in release.assets if a.name.startswith("catalogue")]
        assert len(ours) == 2
        release.assets.remove(ours[1])
        publish(other, later.path, later.proof)
        release.assets.append(ours[1])

    github.before_delete = at_the_worst_moment
    publish(store, late.path, late.proof)
    assert set(store.catalogue("demo").records) == {NAME, named("2.0"), named("3.0")}
    # The next change leaves one catalogue.
    yank(store, [NAME], "bad")
    catalogues = [n for n in github.names("demo-latest") if n.startswith("catalogue")]
    assert len(catalogues) == 1
    assert len(store.catalogue("demo").records) == 3


def test_costs_of_two_hosts_at_once_stand_side_by_side_until_the_next_change(
    github: Github, tmp_path: Path
) -> None:
    store = store_of(github)
    mine, theirs = StoredCosts(lambda: store), StoredCosts(lambda: store_of(github))
    assert mine.read("demo").measured == {}
    one, two, three, four = (
        Costs({f"{name}.cu": {1: Measured(archs=1, seconds=2.0, peak=3)}}) for name in "abcd"
    )
    mine.add("demo", one)

    def at_the_worst_moment() -> None:
        release = github.release("demo-latest")
        ours = [a for a in release.assets if a.name.startswith("costs")]
        release.assets.remove(ours[1])
        theirs.add("demo", three)
        release.assets.append(ours[1])

    github.before_delete = at_the_worst_moment
    mine.add("demo", two)
    assert len(store.costs("demo").documents) == 2
    assert set(mine.read("demo").measured) == {"a.cu", "b.cu", "c.cu"}
    mine.add("demo", four)
    assert len(store.costs("demo").documents) == 1
    assert set(theirs.read("demo").measured) == {"a.cu", "b.cu", "c.cu", "d.cu"}
    # Beside wheels they are no wheels, and no catalogue either.
    made = make_wheel(tmp_path, NAME)
    publish(store, made.path, made.proof)
    assert set(store.catalogue("demo").records) == {NAME}
    assert len(list(store.blobs("demo"))) == 3


def test_yank_and_removal(github: Github, tmp_path: Path) -> None:
    store = store_of(github)
    made = make_wheel(tmp_path, NAME)
    publish(store, made.path, made.proof)
    yank(store, [NAME], "bad")
    assert store.catalogue("demo").records[NAME].entry.yanked == "bad"
    remove(store, "demo", frozenset({NAME}))
    assert store.catalogue("demo").records[NAME].removed
    assert NAME not in github.names("demo-latest")
    rebuilt = with_bytes_changed(made, tmp_path / "again")
    with pytest.raises(RefusedError, match="was removed"):
        publish(store, rebuilt.path, rebuilt.proof)


def test_a_change_that_changes_nothing_writes_nothing(github: Github, tmp_path: Path) -> None:
    store = store_of(github)
    made = make_wheel(tmp_path, NAME)
    publish(store, made.path, made.proof)
    github.requests.clear()

    def same(records: dict[str, Record]) -> dict[str, Record]:
        return records

    update(store, "demo", same)
    assert {method for method, _, _ in github.requests} == {"GET"}


def test_a_file_that_github_would_not_take_is_refused_before_the_upload(
    github: Github, tmp_path: Path
) -> None:
    store = store_of(github)
    huge = tmp_path / NAME
    with huge.open("wb") as stream:
        stream.truncate(2 << 30)
    with pytest.raises(RefusedError, match="GitHub takes less"):
        store.put(f"files/demo/{'0' * 64}/{NAME}", huge, "0" * 64)
    assert not github.requests


def test_the_location_opens_it(monkeypatch: pytest.MonkeyPatch, github: Github) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    store = open_store(github.location)
    assert isinstance(store, GithubStore)
    assert store.heads() == {}
    assert TOKEN not in store.location
