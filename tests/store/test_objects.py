"""The store in object storage: S3, Google Cloud Storage and Azure, one contract for all three.

S3 is moto's server in a process of its own, Azure is Microsoft's Azurite from npm (full tier), and
Google's is a local server of ours, as no emulator speaks the API that obstore uses there.
"""

import http.client
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.index.conftest import Farm
from tests.store import azure_container, gcs_server
from tests.store_wheels import WHEN, make_wheel, with_bytes_changed
from wheelfarm.build.costs import Costs, Measured
from wheelfarm.errors import CouldNotLookError
from wheelfarm.index.build import build_site
from wheelfarm.index.render import SiteConfig
from wheelfarm.store.costs import StoredCosts
from wheelfarm.store.location import open_store
from wheelfarm.store.model import Record
from wheelfarm.store.protocol import (
    BlobMissingError,
    CostState,
    RefusedError,
    Store,
    StoreConflictError,
    StoreError,
    key_of,
    metadata_key,
    update,
)
from wheelfarm.store.prune import remove
from wheelfarm.store.publish import metadata_of, publish, yank

pytest.importorskip("obstore", reason="the extra 'objects' is not installed")
pytest.importorskip("moto", reason="moto is not installed")

NAME = "demo-1.0+cu130torch2.14-cp311-cp311-manylinux_2_28_x86_64.whl"
SERVER = """
import sys
from werkzeug.serving import make_server
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True)
print(server.server_port, flush=True)
server.serve_forever()
"""


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of moto's server."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SERVER],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    port = process.stdout.readline().strip()
    yield f"http://127.0.0.1:{port}"
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.fixture(scope="module")
def google() -> Iterator[gcs_server.Bucket]:
    """A bucket as Google's XML API shows it."""
    with gcs_server.running(gcs_server.Bucket()) as bucket:
        yield bucket


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of Azurite, installed by npm for this run."""
    folder = tmp_path_factory.mktemp("azurite")
    with azure_container.azurite(folder) as address:
        yield address


@pytest.fixture(
    params=["s3", "gs", pytest.param("az", marks=[pytest.mark.full, pytest.mark.network])]
)
def location(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A new bucket, or a new place in one; the environment leads there."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    kind = request.param
    bucket = f"bucket-{abs(hash(request.node.name))}"
    if kind == "gs":
        google = request.getfixturevalue("google")
        monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", google.credentials)
        monkeypatch.setenv("GOOGLE_BASE_URL", google.url)
        return f"gs://{google.name}/{bucket}"
    if kind == "az":
        azurite = request.getfixturevalue("azure")
        for name, value in azure_container.environment(azurite).items():
            monkeypatch.setenv(name, value)
        azure_container.create(azurite, bucket)
        return f"az://{bucket}/farm"
    endpoint = request.getfixturevalue("s3")
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-key")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    connection = http.client.HTTPConnection(endpoint.removeprefix("http://"))
    connection.request("PUT", f"/{bucket}")
    assert connection.getresponse().status == 200
    connection.close()
    return f"s3://{bucket}/farm"


@pytest.fixture
def store(location: str) -> Store:
    return open_store(location)


def test_a_published_wheel_can_be_read_by_another_host(
    store: Store, location: str, tmp_path: Path
) -> None:
    made = make_wheel(tmp_path, NAME)
    done = publish(store, made.path, made.proof, clock=lambda: WHEN)
    other = open_store(location)
    assert other.catalogue("demo").records == {NAME: done.record}
    assert other.heads() == store.heads()
    assert other.heads()["demo"] == other.catalogue("demo").head
    target = tmp_path / "fetched"
    other.fetch(key_of(done.record), target)
    assert target.read_bytes() == made.path.read_bytes()
    other.fetch(metadata_key(key_of(done.record)), target)
    assert target.read_bytes() == metadata_of(made.path)
    assert len(list(other.blobs("demo"))) == 3
    assert publish(other, made.path, made.proof).outcome == "unchanged"


def test_other_bytes_under_a_name_are_refused(store: Store, tmp_path: Path) -> None:
    made = make_wheel(tmp_path, NAME)
    publish(store, made.path, made.proof)
    rebuilt = with_bytes_changed(made, tmp_path / "again")
    with pytest.raises(RefusedError):
        publish(store, rebuilt.path, rebuilt.proof)
    done = store.catalogue("demo").records[NAME]
    with pytest.raises(RefusedError, match="other bytes"):
        store.put(key_of(done), rebuilt.path, rebuilt.proof.facts.sha256)


def test_the_first_of_two_writers_wins_and_the_other_goes_again(
    store: Store, location: str, tmp_path: Path
) -> None:
    made = make_wheel(tmp_path, NAME)
    publish(store, made.path, made.proof)
    seen = store.catalogue("demo")
    yank(open_store(location), [NAME], "another host")
    with pytest.raises(StoreConflictError):
        store.replace("demo", seen.records, seen.token)
    with pytest.raises(StoreConflictError):
        store.replace("demo", seen.records, "")

    calls = []
    other = make_wheel(tmp_path, NAME.replace("1.0", "2.0"))

    def change(records: dict[str, Record]) -> dict[str, Record]:
        calls.append(set(records))
        if len(calls) == 1:
            publish(open_store(location), other.path, other.proof)
        return {name: record.yanked("late") for name, record in records.items()}

    records = update(store, "demo", change)
    assert len(calls) == 2
    assert set(records) == {NAME, other.name}
    assert store.catalogue("demo").records == records


def test_costs_are_written_only_onto_the_state_that_was_read(store: Store, location: str) -> None:
    assert store.costs("demo") == CostState()
    mine = StoredCosts(lambda: store)
    mine.add("demo", Costs({"a.cu": {1: Measured(archs=1, seconds=2.0, peak=3)}}))
    seen = store.costs("demo")
    theirs = StoredCosts(lambda: open_store(location))
    theirs.add("demo", Costs({"b.cu": {1: Measured(archs=1, seconds=4.0, peak=3)}}))
    for token in (seen.token, ""):
        with pytest.raises(StoreConflictError):
            store.replace_costs("demo", seen.documents[0], token)
    assert set(mine.read("demo").measured) == {"a.cu", "b.cu"}
    assert store.heads() == {}


def test_two_processes_publish_into_one_bucket(
    store: Store, location: str, repository: Path, tmp_path: Path
) -> None:
    code = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[1])\n"
        "from tests.store_wheels import make_wheel\n"
        "from wheelfarm.store.location import open_store\n"
        "from wheelfarm.store.publish import publish\n"
        "store = open_store(sys.argv[2])\n"
        "for name in sys.argv[4:]:\n"
        "    made = make_wheel(pathlib.Path(sys.argv[3]), name)\n"
        "    publish(store, made.path, made.proof)\n"
    )
    names = [NAME.replace("1.0", f"1.{number}") for number in range(8)]
    environment = {**os.environ, "PYTHONPATH": str(repository / "src")}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(repository), location, str(tmp_path / str(n)), *part],
            env=environment,
        )
        for n, part in enumerate((names[:5], names[:2:-1]))
    ]
    assert [process.wait() for process in processes] == [0, 0]
    assert sorted(store.catalogue("demo").records) == sorted(names)


def test_removal(store: Store, tmp_path: Path) -> None:
    made = make_wheel(tmp_path, NAME)
    done = publish(store, made.path, made.proof)
    remove(store, "demo", frozenset({NAME}))
    assert store.catalogue("demo").records[NAME].removed
    with pytest.raises(BlobMissingError):
        store.fetch(key_of(done.record), tmp_path / "x")
    store.delete(key_of(done.record))


def test_a_list_of_many_pages_is_whole(store: Store, tmp_path: Path) -> None:
    names = [NAME.replace("1.0", f"1.{number}") for number in range(4)]
    for made in (make_wheel(tmp_path, name) for name in names):
        publish(store, made.path, made.proof)
    assert len(list(store.blobs("demo"))) == 12
    assert len(store.hashes("demo")) == 4


def test_a_site_is_built_and_a_second_build_finds_nothing_new(store: Store, tmp_path: Path) -> None:
    made = make_wheel(tmp_path, NAME)
    publish(store, made.path, made.proof)
    farm = Farm(tmp_path, config=SiteConfig(files_url="https://files.example"))
    first = build_site(store, farm.tree, farm.config, farm.world)
    assert first.rendered == ("demo",)
    again = build_site(store, farm.tree, farm.config, farm.world)
    assert (again.rendered, again.written) == ((), 0)
    yank(store, [NAME], "bad")
    assert build_site(store, farm.tree, farm.config, farm.world).rendered == ("demo",)


def test_a_bucket_that_is_not_there_is_an_error_without_secrets(
    location: str, tmp_path: Path
) -> None:
    store = open_store(f"{location.partition('://')[0]}://no-such-bucket-anywhere/farm")
    made = make_wheel(tmp_path, NAME)
    for action in (store.heads, lambda: publish(store, made.path, made.proof)):
        with pytest.raises(StoreError) as caught:
            action()
        assert isinstance(caught.value, CouldNotLookError)
        assert "a-secret-key" not in str(caught.value)
        assert azure_container.KEY not in str(caught.value)
