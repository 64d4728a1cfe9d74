"""The network client against a server on loopback that fails in every way it can."""

import json
import os
import select
import socket
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from tests import loopback
from tests.loopback import Handler, Loopback, serving
from wheelfarm.http import (
    Cache,
    Client,
    HashMismatchError,
    NotFoundError,
    OfflineError,
    RefusedError,
    TooLargeError,
    UnreachableError,
    redacted,
)
from wheelfarm.http.local import file_path

PAGE = b"<html>a page</html>"
BIG = os.urandom(3 << 20)


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "served"
    path.mkdir()
    (path / "page").write_bytes(PAGE)
    (path / "big").write_bytes(BIG)
    return path


@pytest.fixture
def server(folder: Path) -> Iterator[Loopback]:
    with serving(folder) as found:
        yield found


@pytest.fixture
def client() -> Iterator[Client]:
    found = Client(timeout=20, pause=0.001)
    yield found
    found.close()


def digest(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    "fault",
    [
        loopback.reset,
        loopback.half,
        loopback.wrong_length,
        loopback.status(503),
        loopback.status(502),
        loopback.status(429, Retry_After="0"),
        loopback.retry_after,
    ],
)
def test_one_fault_is_tried_again(server: Loopback, client: Client, fault: loopback.Action) -> None:
    server.plan("/page", fault, fault)
    assert client.get(server.url + "page").body == PAGE
    assert server.paths() == ["/page"] * 3


def test_a_stall_is_a_time_out_and_tried_again(server: Loopback) -> None:
    server.plan("/page", loopback.stall)
    client = Client(timeout=0.2, pause=0.001)
    assert client.get(server.url + "page").body == PAGE
    client.close()


def test_after_all_attempts_it_is_unreachable(server: Loopback, client: Client) -> None:
    server.plan("/page", *[loopback.status(503)] * 4)
    with pytest.raises(UnreachableError, match=r"HTTP 503 \(4 attempts\)"):
        client.get(server.url + "page")


def test_absent_is_told_at_once(server: Loopback, client: Client) -> None:
    with pytest.raises(NotFoundError):
        client.get(server.url + "nothing")
    assert server.paths() == ["/nothing"]


def test_refused_is_neither_absent_nor_tried_again(server: Loopback, client: Client) -> None:
    server.plan("/page", loopback.status(403))
    with pytest.raises(RefusedError, match="403"):
        client.get(server.url + "page")
    assert server.paths() == ["/page"]


def test_nobody_listens(client: Client) -> None:
    with serving(Path("/nonexistent")) as gone:
        url = gone.url
    with pytest.raises(UnreachableError):
        client.get(url)


def test_a_connection_is_kept_and_a_closed_one_is_replaced(
    server: Loopback, client: Client
) -> None:
    ports: list[int] = []

    def note(handler: Handler) -> None:
        ports.append(handler.client_address[1])
        handler.serve_file()

    def note_and_close(handler: Handler) -> None:
        note(handler)
        handler.close_connection = True

    server.plan("/page", note, note_and_close, note)
    for _ in range(3):
        assert client.get(server.url + "page").body == PAGE
    assert ports[0] == ports[1] != ports[2]


def test_gzip_is_unpacked_and_bounded(server: Loopback, client: Client) -> None:
    import gzip

    bomb = gzip.compress(bytes(64 << 20))
    server.plan(
        "/page",
        loopback.status(200, gzip.compress(PAGE), Content_Encoding="gzip"),
        loopback.status(200, bomb, Content_Encoding="gzip"),
    )
    assert client.get(server.url + "page").body == PAGE
    with pytest.raises(TooLargeError):
        client.get(server.url + "page", limit=1 << 20)


def test_a_damaged_gzip_stream_is_asked_for_again(server: Loopback, client: Client) -> None:
    import gzip

    packed = gzip.compress(PAGE)
    damaged = [packed[:12] + b"?" * 20, b"no gzip at all", packed[:-9]]
    faults = [loopback.status(200, each, Content_Encoding="gzip") for each in damaged]
    server.plan("/page", *faults, loopback.status(200, packed, Content_Encoding="gzip"))
    assert client.get(server.url + "page").body == PAGE
    server.plan("/page", *faults[1:2] * 4)
    with pytest.raises(UnreachableError, match=r"gzip stream is damaged .* \(4 attempts\)"):
        client.get(server.url + "page")


def test_a_page_larger_than_its_limit_is_refused(server: Loopback, client: Client) -> None:
    with pytest.raises(TooLargeError):
        client.get(server.url + "big", limit=1000)


def test_redirects_are_followed_and_bounded(server: Loopback, client: Client) -> None:
    server.plan("/old", loopback.redirect("page", 308))
    answer = client.get(server.url + "old")
    assert answer.body == PAGE
    assert answer.url == server.url + "page"
    server.plan("/loop", *[loopback.redirect("loop")] * 20)
    with pytest.raises(UnreachableError, match="redirects more than"):
        client.get(server.url + "loop")


def test_secrets_stay_with_their_host(
    server: Loopback, folder: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = server.url.removeprefix("http://").rstrip("/")
    variable = "WHEELFARM_TOKEN_" + host.replace(".", "_").replace(":", "_")
    monkeypatch.setenv(variable, "s3cret")
    with serving(folder) as foreign:
        server.plan("/page", loopback.redirect(foreign.url + "page"))
        assert client.get(server.url + "page").body == PAGE
        assert server.requests[0].headers["authorization"] == "Bearer s3cret"
        assert "authorization" not in foreign.requests[0].headers
        server.plan("/page", loopback.redirect(foreign.url + "page"))
        client.get(f"http://user:word@{host}/page")
        assert server.requests[1].headers["authorization"].startswith("Basic ")
        assert "authorization" not in foreign.requests[1].headers


def test_netrc_is_read(
    server: Loopback, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "logins"
    path.write_text("machine 127.0.0.1 login me password word\n", encoding="utf-8")
    path.chmod(0o600)
    monkeypatch.setenv("NETRC", str(path))
    client.get(server.url + "page")
    assert server.requests[0].headers["authorization"] == "Basic bWU6d29yZA=="


def test_messages_hold_no_secret(client: Client) -> None:
    assert redacted("https://u:p@h/x?sig=abc") == "https://h/x?..."
    with serving(Path("/nonexistent")) as gone:
        url = gone.url.replace("http://", "http://user:hidden@")
    with pytest.raises(UnreachableError) as caught:
        client.get(url)
    assert "hidden" not in str(caught.value)


def test_the_user_agent_is_our_own(server: Loopback, client: Client) -> None:
    client.get(server.url + "page")
    assert server.requests[0].headers["user-agent"].startswith("wheelfarm/")


def test_a_proxy_is_used_and_bypassed(
    folder: Path, server: Loopback, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(folder) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("http://", "http://me:word@"))
        assert client.get("http://wheels.invalid/page").body == PAGE
        assert proxy.requests[0].path == "http://wheels.invalid/page"
        assert proxy.requests[0].headers["host"] == "wheels.invalid"
        assert proxy.requests[0].headers["proxy-authorization"] == "Basic bWU6d29yZA=="
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert client.get(server.url + "page").body == PAGE
        assert len(proxy.requests) == 1


def test_a_socks_proxy_is_named(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "socks5://127.0.0.1:1")
    with pytest.raises(UnreachableError, match="socks5"):
        client.get("http://wheels.invalid/page")


def test_pages_are_kept_by_etag_and_read_offline(server: Loopback, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    client = Client(cache=cache)
    assert client.get(server.url + "page").body == PAGE
    assert client.get(server.url + "page").body == PAGE
    assert "if-none-match" in server.requests[1].headers
    client.close()
    offline = Client(cache=cache, offline=True)
    assert offline.get(server.url + "page").body == PAGE
    assert len(server.requests) == 2
    with pytest.raises(OfflineError):
        offline.get(server.url + "big")


def test_a_damaged_cache_entry_counts_as_absent(server: Loopback, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    client = Client(cache=cache)
    client.get(server.url + "page")
    for entry in cache.folder.iterdir():
        entry.write_bytes(entry.read_bytes()[:-3])
    assert client.get(server.url + "page").body == PAGE
    assert "if-none-match" not in server.requests[1].headers
    client.close()


def test_a_download_goes_on_where_it_broke_off(
    server: Loopback, client: Client, tmp_path: Path
) -> None:
    server.plan("/big", loopback.half, loopback.reset)
    seen: list[tuple[int, int | None]] = []
    target = tmp_path / "out" / "big"
    found = client.download(
        server.url + "big",
        target,
        sha256=digest(BIG),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert target.read_bytes() == BIG
    assert found == digest(BIG)
    assert server.requests[-1].headers["range"] == f"bytes={len(BIG) // 2}-"
    assert seen[-1] == (len(BIG), len(BIG))
    assert [path.name for path in target.parent.iterdir()] == ["big"]


def test_a_later_run_goes_on_too(server: Loopback, tmp_path: Path) -> None:
    target = tmp_path / "big"
    server.plan("/big", loopback.half)
    with pytest.raises(UnreachableError):
        Client(attempts=1).download(server.url + "big", target)
    assert not target.exists()
    Client().download(server.url + "big", target, sha256=digest(BIG))
    assert target.read_bytes() == BIG
    assert "range" in server.requests[-1].headers


def test_a_file_that_changed_meanwhile_begins_anew(
    server: Loopback, folder: Path, tmp_path: Path
) -> None:
    target = tmp_path / "big"
    server.plan("/big", loopback.half)
    with pytest.raises(UnreachableError):
        Client(attempts=1).download(server.url + "big", target)
    (folder / "big").write_bytes(PAGE)
    Client().download(server.url + "big", target, sha256=digest(PAGE))
    assert target.read_bytes() == PAGE


def test_wrong_bytes_leave_nothing_behind(server: Loopback, client: Client, tmp_path: Path) -> None:
    server.plan("/big", loopback.other_bytes)
    with pytest.raises(HashMismatchError) as caught:
        client.download(server.url + "big", tmp_path / "out" / "big", sha256=digest(BIG))
    assert caught.value.expected == digest(BIG)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_download_larger_than_its_limit_is_refused(
    server: Loopback, client: Client, tmp_path: Path
) -> None:
    with pytest.raises(TooLargeError):
        client.download(server.url + "big", tmp_path / "out" / "big", limit=1000)
    assert list((tmp_path / "out").iterdir()) == []


def test_two_at_once_write_one_whole_file(server: Loopback, tmp_path: Path) -> None:
    target = tmp_path / "big"
    threads = [
        threading.Thread(
            target=lambda: Client().download(server.url + "big", target, sha256=digest(BIG))
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert target.read_bytes() == BIG


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    path = tmp_path / "pair.pem"
    made = subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", str(tmp_path / "key.pem"), "-out", str(path)),
        ],
        check=False,
        capture_output=True,
    )
    if made.returncode != 0:
        pytest.skip("openssl cannot make a certificate here")
    return path


def test_a_custom_authority_is_trusted_and_a_stranger_is_not(
    folder: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.parent / "key.pem")
    with serving(folder, context) as server:
        url = server.url.replace("127.0.0.1", "localhost") + "page"
        with pytest.raises(UnreachableError, match="not trusted"):
            Client().get(url)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        client = Client()
        assert client.get(url).body == PAGE
        server.plan("/page", loopback.redirect("http://localhost/page"))
        with pytest.raises(UnreachableError, match="from https to plain http"):
            client.get(url)
        client.close()


class Tunnel(socketserver.StreamRequestHandler):
    """A proxy that knows CONNECT alone, and leads every tunnel to one port of loopback."""

    port = 0
    asked: ClassVar[list[str]] = []

    def handle(self) -> None:
        head = []
        while (line := self.rfile.readline()) not in {b"\r\n", b""}:
            head.append(line.decode().strip())
        Tunnel.asked += head
        with socket.create_connection(("127.0.0.1", Tunnel.port)) as far:
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            ends = {self.connection: far, far: self.connection}
            while True:
                for ready in select.select(list(ends), [], [], 10)[0]:
                    data = ready.recv(65536)
                    if not data:
                        return
                    ends[ready].sendall(data)


def test_tls_goes_through_a_proxys_tunnel_and_is_checked_at_its_end(
    folder: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.parent / "key.pem")
    with (
        serving(folder, context) as server,
        socketserver.ThreadingTCPServer(("127.0.0.1", 0), Tunnel) as proxy,
    ):
        proxy.daemon_threads = True
        Tunnel.port = int(server.url.rstrip("/").rpartition(":")[2])
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("https_proxy", f"http://me:word@127.0.0.1:{proxy.server_address[1]}")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        client = Client(timeout=20)
        try:
            assert client.get("https://localhost:4443/page").body == PAGE
            with pytest.raises(UnreachableError, match="not trusted"):
                client.get("https://other.invalid:4443/page")
        finally:
            client.close()
            proxy.shutdown()
            thread.join()
    assert Tunnel.asked[0].startswith("CONNECT localhost:4443 ")
    assert "Proxy-Authorization: Basic bWU6d29yZA==" in Tunnel.asked
    assert not any(line.startswith("Authorization") for line in Tunnel.asked)


def test_json_is_read(server: Loopback, folder: Path, client: Client) -> None:
    (folder / "x.json").write_text(json.dumps({"a": 1}), encoding="utf-8")
    assert client.json(server.url + "x.json") == {"a": 1}


def test_what_is_asked_ahead_is_asked_once_and_fails_where_it_is_needed(tmp_path: Path) -> None:
    (tmp_path / "page").write_text("here")
    with serving(tmp_path) as server:
        client = Client(attempts=1)
        client.ahead(f"{server.url}page")
        client.ahead(f"{server.url}gone")
        assert client.get(f"{server.url}page").body == b"here"
        with pytest.raises(NotFoundError):
            client.get(f"{server.url}gone")
        assert sorted(server.paths()) == ["/gone", "/page"]
        assert client.get(f"{server.url}page").body == b"here"
        assert len(server.requests) == 3
        client.close()


def test_an_answer_that_came_ahead_may_begin_more_and_one_may_be_forgotten(tmp_path: Path) -> None:
    (tmp_path / "first").write_text("second")
    (tmp_path / "second").write_text("here")
    with serving(tmp_path) as server:
        client = Client(attempts=1)
        second = f"{server.url}second"
        client.ahead(f"{server.url}first", then=lambda answer: client.ahead(second))
        assert client.get(f"{server.url}first").body == b"second"
        # It was begun before the first answer was handed out, so nothing is asked twice.
        assert client.get(second).body == b"here"
        assert server.paths() == ["/first", "/second"]
        client.ahead(second)
        client.forget(second)
        assert client.get(second).body == b"here"
        assert server.paths() == ["/first", "/second", "/second", "/second"]
        client.close()


@pytest.mark.parametrize("url", ["http://[bad/x", "http://host:99999/x", "http://me:pw@[bad/x?k=v"])
def test_what_is_no_address_is_unreachable_and_shows_no_secret(url: str, tmp_path: Path) -> None:
    client = Client(cache=Cache(tmp_path))
    for ask in (
        client.get,
        client.head,
        lambda bad: client.download(bad, tmp_path / "file"),
        lambda bad: client.send("POST", bad),
    ):
        with pytest.raises(UnreachableError, match="is no address") as caught:
            ask(url)
        assert "pw" not in str(caught.value)
        assert "k=v" not in str(caught.value)


def test_a_redirect_or_a_proxy_that_is_no_address_is_unreachable(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(attempts=1)
    for bad in ("http://[bad/x", "http://host:99999/x"):
        server.plan("/page", loopback.redirect(bad))
        with pytest.raises(UnreachableError, match="no address"):
            client.get(server.url + "page")
        with monkeypatch.context() as patch:
            patch.setenv("http_proxy", bad)
            patch.setenv("no_proxy", "")
            with pytest.raises(UnreachableError, match="no address"):
                client.get(server.url + "page")


@pytest.mark.parametrize(
    ("url", "windows", "path"),
    [
        ("file:///C:/Users/me/a%20bundle%2B1%25/", True, "C:/Users/me/a bundle+1%/"),
        ("file:///d:/%C3%BC/%23", True, "d:/ü/#"),
        ("file:///home/me/a%20bundle%2B1%25", False, "/home/me/a bundle+1%"),
        ("file:///C:/odd", False, "/C:/odd"),
    ],
)
def test_a_file_address_names_its_path(url: str, windows: bool, path: str) -> None:
    assert file_path(url, windows=windows) == path
