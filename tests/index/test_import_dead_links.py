"""An import from an index with dead links: what came in stays, what did not is named."""

import functools
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.index.test_importing import NAME, compiled_wheel
from tests.loopback import Loopback, half, reset, serving, status
from wheelfarm import http
from wheelfarm.cli import main
from wheelfarm.http import Client
from wheelfarm.index.importing import SILENCES, import_links, read_source
from wheelfarm.store.directory import DirectoryStore
from wheelfarm.store.protocol import StoreError

pytestmark = pytest.mark.compile


def name(version: str) -> str:
    return NAME.replace("1.0", version)


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host of two wheels; the command line's client does not try again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(http, "Client", functools.partial(Client, attempts=1))
    folder = tmp_path / "upstream"
    folder.mkdir()
    for version in ("1.0", "2.0"):
        compiled_wheel(folder, version)
    return folder


def write_page(folder: Path, *names: str, hashes: bool = True) -> None:
    lines = []
    for each in names:
        path = folder / each
        data = path.read_bytes() if path.is_file() else b""
        fragment = f"#sha256={hashlib.sha256(data).hexdigest()}" if hashes and data else ""
        lines.append(f'<a href="{each}{fragment}">{each}</a>\n')
    (folder / "list.html").write_text("".join(lines))


@pytest.fixture
def take(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, dict[str, Any], str]]:
    """Import from an address; return the status, each row by its link's last part, and stderr."""

    def run(url: str, *words: str) -> tuple[int, dict[str, Any], str]:
        capsys.readouterr()
        code = main(["index", "import", url, "--json", *words])
        said = capsys.readouterr()
        rows = json.loads(said.out)["wheels"]
        return code, {row["url"].rstrip("/").rpartition("/")[2]: row for row in rows}, said.err

    return run


def wheels_asked(server: Loopback) -> list[tuple[str, str]]:
    return [(each.method, each.path[1:]) for each in server.requests if ".whl" in each.path]


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (status(404), "there is nothing at"),
        (status(410), "there is nothing at"),
        (status(403), "answered HTTP 403"),
        (status(500), "could not be read"),
        (reset, "could not be read"),
        (half, "was cut short"),
    ],
    ids=["404", "410", "403", "500", "reset", "half"],
)
def test_a_dead_link_keeps_nothing_else_out(
    upstream: Path, take: Callable[..., Any], failure: Any, reason: str
) -> None:
    write_page(upstream, name("1.0"), name("2.0"))
    with serving(upstream) as server:
        # A kept connection that is torn down is opened anew once.
        server.plan(f"/{name('1.0')}", failure, failure)
        code, rows, told = take(f"{server.url}list.html")
        assert code == 2
        assert rows[name("1.0")]["outcome"] == "missing"
        assert reason in rows[name("1.0")]["reason"]
        assert rows[name("2.0")]["outcome"] == "published"
        assert "1 link could not be read" in told
        assert set(DirectoryStore(Path("store")).catalogue("some-tool").records) == {name("2.0")}

        server.actions.clear()
        server.requests.clear()
        code, rows, told = take(f"{server.url}list.html")
        assert (code, told) == (0, "")
        assert rows[name("1.0")]["outcome"] == "published"
        assert rows[name("2.0")]["outcome"] == "unchanged"
        assert wheels_asked(server) == [("GET", name("1.0"))]


def test_without_hashes_a_second_run_asks_for_sizes_alone(
    upstream: Path, take: Callable[..., Any]
) -> None:
    write_page(upstream, name("1.0"), hashes=False)
    with serving(upstream) as server:
        assert take(f"{server.url}list.html")[0] == 0
        server.requests.clear()
        code, rows, _ = take(f"{server.url}list.html")
        assert (code, rows[name("1.0")]["outcome"]) == (0, "unchanged")
        assert wheels_asked(server) == [("HEAD", name("1.0"))]
        # A host that does not answer that question is asked for the file.
        server.requests.clear()
        server.plan(f"/{name('1.0')}", status(403))
        assert take(f"{server.url}list.html")[1][name("1.0")]["outcome"] == "unchanged"
        assert wheels_asked(server) == [("HEAD", name("1.0")), ("GET", name("1.0"))]
        # Another file under the same name is looked at, and refused.
        (upstream / name("1.0")).write_bytes((upstream / name("2.0")).read_bytes() + b" ")
        code, rows, _ = take(f"{server.url}list.html")
        assert (code, rows[name("1.0")]["outcome"]) == (1, "refused")


def test_a_dead_link_may_be_told_to_be_gone(upstream: Path, take: Callable[..., Any]) -> None:
    write_page(upstream, name("1.0"), name("2.0"), name("3.0"))
    with serving(upstream) as server:
        url = f"{server.url}list.html"
        assert take(url)[0] == 2
        assert take(url, "--allow-missing", name("2.0"))[0] == 2
        for words in (name("3.0"), "Some_Tool"):
            code, rows, told = take(url, "--allow-missing", words)
            assert (code, told) == (0, "")
            assert rows[name("3.0")]["outcome"] == "missing"
        # What the gate refuses is told by its own status once nothing is missing.
        (upstream / name("3.0")).write_bytes(b"cut short")
        assert take(url)[0] == 1
        write_page(upstream, name("1.0"), name("3.0"), name("4.0"))
        assert take(url)[0] == 2


def test_a_dead_project_page_keeps_no_other_project_out(
    upstream: Path, take: Callable[..., Any]
) -> None:
    for project in ("Some_Tool", "other"):
        (upstream / "simple" / project).mkdir(parents=True)
    (upstream / "simple/index.html").write_text(
        '<a href="other/">other</a><a href="Some_Tool/">Some_Tool</a>'
    )
    text = f'<a href="../../{name("1.0")}">{name("1.0")}</a>'
    (upstream / "simple/Some_Tool/index.html").write_text(text)
    with serving(upstream) as server:
        code, rows, _ = take(f"{server.url}simple/")
        assert code == 2
        assert rows["other"]["wheel"] == ""
        assert rows["other"]["outcome"] == "missing"
        assert "there is nothing at" in rows["other"]["reason"]
        assert rows[name("1.0")]["outcome"] == "published"
        assert take(f"{server.url}simple/", "--allow-missing", "other")[0] == 0
        server.requests.clear()
        assert take(f"{server.url}simple/", "--package", "some-tool")[0] == 0
        assert "/simple/other/" not in server.paths()


def test_a_silent_host_is_not_asked_for_thousands_of_files(upstream: Path) -> None:
    wheels = [name(f"{number}.0") for number in range(1, SILENCES + 4)]
    write_page(upstream, *wheels)
    client = Client(attempts=1)
    with serving(upstream) as server:
        for each in wheels[2:]:
            server.plan(f"/{each}", status(500))
        links = read_source(f"{server.url}list.html", client).links
        done = list(import_links(DirectoryStore(upstream.parent / "store"), links, client))
    assert [each.outcome for each in done[:2]] == ["published", "published"]
    assert {each.outcome for each in done[2:]} == {"missing"}
    assert len(wheels_asked(server)) == 2 + SILENCES
    assert all(f"did not answer {SILENCES} times in a row" in each.reason for each in done[-1:])


def test_a_store_that_fails_ends_the_import_and_keeps_what_came_in(upstream: Path) -> None:
    class Failing(DirectoryStore):
        def put(self, key: str, source: Path, sha256: str) -> str:
            if "2.0" in key:
                message = "the store did not answer"
                raise StoreError(message)
            return super().put(key, source, sha256)

    write_page(upstream, name("1.0"), name("2.0"))
    store, client = Failing(upstream.parent / "store"), Client(attempts=1)
    with serving(upstream) as server:
        links = read_source(f"{server.url}list.html", client).links
        taken = import_links(store, links, client)
        assert next(taken).outcome == "published"
        with pytest.raises(StoreError):
            next(taken)
    assert set(store.catalogue("some-tool").records) == {name("1.0")}


def test_rows_are_printed_as_they_come(upstream: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_page(upstream, name("1.0"), name("9.0"))
    with serving(upstream) as server:
        assert main(["index", "import", f"{server.url}list.html"]) == 2
    said = capsys.readouterr()
    assert f"published   {name('1.0')}\nmissing     {name('9.0')}\n" in said.out
    assert said.out.endswith("1 missing, 1 published\n")
    assert "next:  run again for the rest" in said.err
