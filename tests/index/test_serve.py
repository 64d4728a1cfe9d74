"""``serve`` negotiates, redirects, and is safe; ``index check`` finds each corruption."""

import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.index.conftest import TAGS, Farm
from tests.index.conftest import Client as Installer
from wheelfarm.cli import main
from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.http import Client
from wheelfarm.index.check import Checker
from wheelfarm.index.server import HTML_TYPE, JSON_TYPE, SiteServer, preferred
from wheelfarm.store.publish import yank

LINKED = f"demo-1.0+cu130torch2.10-{TAGS}.whl"
FREE = f"demo_free-1.0+cu130torch2.14-{TAGS}.whl"


@pytest.fixture
def site(farm: Farm) -> Farm:
    farm.publish(LINKED)
    farm.publish(FREE, axis="free")
    farm.build()
    return farm


@pytest.fixture
def url(site: Farm) -> Iterator[str]:
    server = SiteServer(("127.0.0.1", 0), site.site)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    thread.join()
    server.server_close()


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Message
    body: bytes


def ask(url: str, path: str, accept: str = "*/*", method: str = "GET") -> Answer:
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    connection.request(method, path, headers={"Accept": accept})
    answer = connection.getresponse()
    found = Answer(answer.status, answer.headers, answer.read())
    connection.close()
    return found


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("*/*", "text/html"),
        ("text/html", "text/html"),
        (JSON_TYPE, JSON_TYPE),
        (f"{JSON_TYPE}, {HTML_TYPE};q=0.2, text/html;q=0.01", JSON_TYPE),
        (f"{JSON_TYPE};q=0.1, text/html", "text/html"),
        (f"{JSON_TYPE};q=0", "text/html"),
        (f"{JSON_TYPE};q=nonsense", "text/html"),
        ("application/vnd.pypi.simple.latest+json", JSON_TYPE),
        ("", "text/html"),
    ],
)
def test_what_a_client_prefers(accept: str, expected: str) -> None:
    assert preferred(accept) == expected


def test_one_address_two_forms(url: str) -> None:
    for folder in ("/simple/", "/simple/demo/", "/cu130/torch2.10/simple/demo/"):
        page = ask(url, folder, "text/html")
        assert page.status == 200
        assert page.headers["Content-Type"].startswith("text/html")
        document = ask(url, folder, JSON_TYPE)
        assert document.headers["Content-Type"] == JSON_TYPE
        assert document.headers["Vary"] == "Accept"
        assert json.loads(document.body)["meta"]["api-version"] == "1.1"
    asked = ask(url, f"/simple/?format={JSON_TYPE.replace('+', '%2B')}")
    assert asked.headers["Content-Type"] == JSON_TYPE


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_is_the_end_of_serving(site: Farm, number: int) -> None:
    command = [sys.executable, "-m", "wheelfarm", "serve", str(site.site), "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[0]
        assert ask(address.rstrip("/"), "/simple/").status == 200
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "")


def test_other_spellings_are_sent_to_the_page(url: str) -> None:
    answer = ask(url, "/simple/Demo_Free/")
    assert (answer.status, answer.headers["Location"]) == (301, "/simple/demo-free/")
    answer = ask(url, "/simple/demo")
    assert (answer.status, answer.headers["Location"]) == (301, "/simple/demo/")


@pytest.mark.parametrize(
    "path",
    [
        "/../store/catalogue/demo.json",
        "/%2e%2e/store/catalogue/demo.json",
        "/files/../../.site.state/state.json",
        "/simple/..%2f..%2fstore/",
        "/files/",
        "/nowhere/",
    ],
)
def test_nothing_but_the_site_is_served(url: str, path: str) -> None:
    assert ask(url, path).status in {301, 404}
    assert ask(url, path, method="HEAD").status in {301, 404}


def test_clients_install_through_negotiation(url: str, client: Installer) -> None:
    done = client.install("--index-url", f"{url}cu130/torch2.10/simple/", "demo", "Demo.Free")
    assert done.returncode == 0, done.stderr
    assert client.version("demo") == "1.0+cu130torch2.10"


def found(url: str, *, download: bool = True) -> set[tuple[str, str]]:
    checked = Checker(url, Client(attempts=1), download=download).run()
    return {(each.kind, each.url.removeprefix(url)) for each in checked.findings}


def test_a_whole_site_has_no_faults(site: Farm, url: str) -> None:
    yank(site.store, [LINKED], "bad")
    site.build()
    checked = Checker(url, Client(attempts=1)).run()
    assert checked.findings == []
    assert checked.files == 2
    assert checked.pages > 10


def test_each_corruption_is_found(site: Farm, url: str) -> None:
    site.files = "copy"
    site.build(full=True)
    wheel = next((site.site / "files/demo").rglob("*.whl"))
    path = wheel.relative_to(site.site).as_posix().replace("+", "%2B")
    good = {each: each.read_bytes() for each in site.site.rglob("*") if each.is_file()}

    def damaged(target: Path, data: bytes | None) -> set[tuple[str, str]]:
        target.unlink()
        if data is not None:
            target.write_bytes(data)
        findings = found(url)
        target.write_bytes(good[target])
        return findings

    data = good[wheel]
    flipped = data[:-1] + bytes([data[-1] ^ 1])
    assert damaged(wheel, flipped) == {("hash", path)}
    assert damaged(wheel, data + b"x") == {("size", path), ("hash", path)}
    assert damaged(wheel, None) == {("unreachable", path)}
    metadata = wheel.with_name(wheel.name + ".metadata")
    assert damaged(metadata, b"other") == {("hash", f"{path}.metadata")}
    assert damaged(metadata, None) == {("unreachable", f"{path}.metadata")}
    page = site.site / "simple/demo/index.html"
    assert ("differ", "simple/demo/") in damaged(page, good[page].replace(b"3.8", b"3.9"))
    assert ("unreachable", "simple/demo/") in damaged(page, None)
    assert ("hash", "simple/demo/") in damaged(page, good[page].replace(b"#sha256=", b"#nothing="))
    document = site.site / "simple/demo/index.json"
    assert ("unreadable", "simple/demo/index.json") in damaged(document, b"{")
    part = site.site / "manifest/packages/demo.json"
    assert ("hash", "manifest/packages/demo.json") in damaged(part, good[part] + b"\n")
    root = site.site / "simple/index.html"
    assert ("missing", "simple/") in damaged(root, good[root].replace(b"demo-free", b"demo-gone"))
    channel = site.site / "cu130/torch2.14/simple/demo-free/index.html"
    assert ("differ", "cu130/torch2.14/simple/demo-free/") in damaged(
        channel, good[channel].replace(b"3.8", b"3.9")
    )
    assert found(url) == set()


def test_a_host_that_drops_large_files(site: Farm, url: str) -> None:
    # The deploy reported success, and every wheel is 404.
    site.files = "copy"
    site.build(full=True)
    for wheel in (site.site / "files").rglob("*.whl"):
        wheel.unlink()
    assert {kind for kind, _ in found(url, download=False)} == {"unreachable"}


def test_a_site_that_does_not_answer_is_no_verdict(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(CouldNotLookError):
        Checker(f"http://127.0.0.1:{port}/", Client(attempts=1)).run()
    for words in ([str(tmp_path)], ["nowhere"], [tmp_path.as_uri()]):
        with pytest.raises(BadInputError, match="is no http or https address"):
            main(["index", "check", *words])


def test_a_store_that_is_absent_or_none_makes_no_site(tmp_path: Path) -> None:
    out = tmp_path / "site"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    for name in ("absent", "other"):
        with pytest.raises(CouldNotLookError, match=f"{name}"):
            main(["index", "build", "--store", str(tmp_path / name), "--out", str(out)])
    assert not out.exists()
