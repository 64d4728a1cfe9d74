"""A local server that answers as GitHub's REST API does for releases and assets.

Faithful where a store depends on it: pages of at most 100 with a Link header, digests, the 422 for
a name that stands already and for the 1,001st asset, assets in state ``starter`` after an upload
that broke off, downloads that redirect to another host, %2B in browser_download_url.
"""

import contextlib
import hashlib
import http.server
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

TOKEN = "a-secret-that-must-not-travel"  # noqa: S105 - of the test server alone


@dataclass
class Stored:
    id: int
    name: str
    data: bytes
    state: str = "uploaded"
    digest: bool = True


@dataclass
class StoredRelease:
    id: int
    tag: str
    assets: list[Stored] = field(default_factory=list)


@dataclass
class Github:
    """One repository, and what was asked of it. ``faults`` are done once each, oldest first."""

    url: str = ""
    objects: str = ""
    limit: int = 1000
    digests: bool = True
    releases: list[StoredRelease] = field(default_factory=list)
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    elsewhere: list[dict[str, str]] = field(default_factory=list)
    faults: list[tuple[str, str, Callable[["Handler"], None]]] = field(default_factory=list)
    before_delete: Callable[[], None] | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)
    count: int = 0

    @property
    def location(self) -> str:
        return f"github://owner/farm?api={self.url}"

    def number(self) -> int:
        self.count += 1
        return self.count

    def release(self, tag: str) -> StoredRelease:
        return next(each for each in self.releases if each.tag == tag)

    def names(self, tag: str) -> list[str]:
        return [asset.name for asset in self.release(tag).assets]

    def find(self, identifier: int) -> tuple[StoredRelease, Stored] | None:
        for release in self.releases:
            for asset in release.assets:
                if asset.id == identifier:
                    return release, asset
        return None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Server"

    @property
    def github(self) -> Github:
        return self.server.github

    def do_GET(self) -> None:
        self.route("GET")

    def do_POST(self) -> None:
        self.route("POST")

    def do_DELETE(self) -> None:
        self.route("DELETE")

    def route(self, method: str) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        parts = urlsplit(self.path)
        github = self.github
        if method == "DELETE" and github.before_delete is not None:
            action, github.before_delete = github.before_delete, None
            action()
        with github.lock:
            github.requests.append((method, self.path, self.headers.get("Authorization")))
            for number, (verb, pattern, fault) in enumerate(github.faults):
                if verb == method and re.search(pattern, self.path):
                    del github.faults[number]
                    fault(self)
                    return
            if method != "GET" and self.headers.get("Authorization") != f"Bearer {TOKEN}":
                self.answer(401, {"message": "Requires authentication"})
                return
            self.dispatch(method, parts.path, parse_qs(parts.query), body)

    def dispatch(self, method: str, path: str, query: dict[str, list[str]], body: bytes) -> None:
        base = "/repos/owner/farm/releases"
        if method == "GET" and path == base:
            self.page(path, query, [self.release_json(r) for r in self.github.releases])
        elif method == "GET" and path.startswith(f"{base}/tags/"):
            self.by_tag(unquote(path.removeprefix(f"{base}/tags/")))
        elif method == "POST" and path == base:
            self.create(json.loads(body))
        elif (match := re.fullmatch(base + r"/assets/(\d+)", path)) is not None:
            self.one_asset(method, int(match[1]))
        elif (match := re.fullmatch(base + r"/(\d+)/assets", path)) is not None:
            release = next(r for r in self.github.releases if r.id == int(match[1]))
            if method == "POST":
                self.upload(release, query["name"][0], body)
            else:
                self.page(path, query, [self.asset_json(release, a) for a in release.assets])
        else:
            self.answer(404, {"message": "Not Found"})

    def by_tag(self, tag: str) -> None:
        for release in self.github.releases:
            if release.tag == tag:
                self.answer(200, self.release_json(release))
                return
        self.answer(404, {"message": "Not Found"})

    def create(self, document: dict[str, Any]) -> None:
        tag = document["tag_name"]
        if any(release.tag == tag for release in self.github.releases):
            self.answer(
                422,
                {
                    "message": "Validation Failed",
                    "errors": [
                        {"resource": "Release", "code": "already_exists", "field": "tag_name"}
                    ],
                },
            )
            return
        release = StoredRelease(self.github.number(), tag)
        self.github.releases.append(release)
        self.answer(201, self.release_json(release))

    def upload(self, release: StoredRelease, name: str, body: bytes) -> None:
        if any(asset.name == name for asset in release.assets):
            error = {"resource": "ReleaseAsset", "code": "already_exists", "field": "name"}
            self.answer(422, {"message": "Validation Failed", "errors": [error]})
            return
        if len(release.assets) >= self.github.limit:
            error = {
                "resource": "ReleaseAsset",
                "code": "custom",
                "message": "file_count limited to 1000 assets per release",
            }
            self.answer(422, {"message": "Validation Failed", "errors": [error]})
            return
        asset = Stored(self.github.number(), name, body, digest=self.github.digests)
        release.assets.append(asset)
        self.answer(201, self.asset_json(release, asset))

    def one_asset(self, method: str, identifier: int) -> None:
        found = self.github.find(identifier)
        if found is None:
            self.answer(404, {"message": "Not Found"})
            return
        release, asset = found
        if method == "DELETE":
            release.assets.remove(asset)
            self.answer(204, None)
        elif self.headers.get("Accept") == "application/octet-stream":
            self.send_response(302)
            self.send_header("Location", f"{self.github.objects}/{asset.id}")
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self.answer(200, self.asset_json(release, asset))

    def page(self, path: str, query: dict[str, list[str]], items: list[Any]) -> None:
        size = min(100, int(query.get("per_page", ["30"])[0]))
        number = int(query.get("page", ["1"])[0])
        headers = {}
        if number * size < len(items):
            following = f"{self.github.url}{path}?per_page={size}&page={number + 1}"
            headers["Link"] = f'<{following}>; rel="next", <{following}>; rel="last"'
        self.answer(200, items[(number - 1) * size : number * size], headers)

    def release_json(self, release: StoredRelease) -> dict[str, Any]:
        upload = f"{self.github.url}/repos/owner/farm/releases/{release.id}/assets"
        return {
            "id": release.id,
            "tag_name": release.tag,
            "name": release.tag,
            "upload_url": upload + "{?name,label}",
            "assets": [self.asset_json(release, a) for a in release.assets[:30]],
        }

    def asset_json(self, release: StoredRelease, asset: Stored) -> dict[str, Any]:
        digest = "sha256:" + hashlib.sha256(asset.data).hexdigest()
        base = f"{self.github.objects}/owner/farm/releases/download/{release.tag}"
        return {
            "id": asset.id,
            "name": asset.name,
            "size": len(asset.data),
            "state": asset.state,
            "digest": digest if asset.digest and asset.state == "uploaded" else None,
            "updated_at": "2026-01-02T03:04:05Z",
            "browser_download_url": f"{base}/{quote(asset.name)}",
        }

    def answer(self, status: int, document: Any, headers: dict[str, str] | None = None) -> None:
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: Any) -> None:
        """Say nothing."""


class Objects(http.server.BaseHTTPRequestHandler):
    """The host that downloads redirect to: another origin, which must never see the token."""

    protocol_version = "HTTP/1.1"
    server: "Server"

    def do_GET(self) -> None:
        github = self.server.github
        with github.lock:
            github.elsewhere.append({name.lower(): value for name, value in self.headers.items()})
            path = unquote(urlsplit(self.path).path)
            asset = self.find(github, path)
        data = b"" if asset is None else asset.data
        self.send_response(404 if asset is None else 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def do_HEAD(self) -> None:
        self.do_GET()

    @staticmethod
    def find(github: Github, path: str) -> Stored | None:
        if path.removeprefix("/").isdigit():
            found = github.find(int(path[1:]))
            return None if found is None else found[1]
        *_, tag, name = path.split("/")
        for release in github.releases:
            for asset in release.assets:
                if release.tag == tag and asset.name == name:
                    return asset
        return None

    def log_message(self, *words: Any) -> None:
        """Say nothing."""


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    github: Github

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: broken connections are part of the tests."""


def status(code: int) -> Callable[[Handler], None]:
    """Answer with a server's error."""
    return lambda handler: handler.answer(code, {"message": "Server Error"})


def broken_upload(handler: Handler) -> None:
    """Take half an upload and fail, as GitHub does: the asset stays in state ``starter``."""
    parts = urlsplit(handler.path)
    identifier = int(re.findall(r"/(\d+)/assets", parts.path)[0])
    release = next(r for r in handler.github.releases if r.id == identifier)
    name = parse_qs(parts.query)["name"][0]
    release.assets.append(Stored(handler.github.number(), name, b"half", state="starter"))
    handler.answer(502, {"message": "Bad Gateway"})


@contextlib.contextmanager
def github_server() -> Iterator[Github]:
    """Run the API and the objects' host until the block ends."""
    github = Github()
    servers = [Server(("127.0.0.1", 0), Handler), Server(("127.0.0.1", 0), Objects)]
    threads = []
    for server in servers:
        server.github = github
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        threads.append(thread)
    github.url, github.objects = (
        f"http://127.0.0.1:{server.server_address[1]}" for server in servers
    )
    try:
        yield github
    finally:
        for server, thread in zip(servers, threads, strict=True):
            server.shutdown()
            thread.join()
            server.server_close()
