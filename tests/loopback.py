"""A real HTTP server on loopback that serves a folder and can be told to fail in known ways."""

import contextlib
import email.utils
import hashlib
import http.server
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

#: A response or failure that takes the place of the file: it is handed the request's handler.
Action = Callable[["Handler"], None]


@dataclass
class Request:
    """One request as it came: method, path with query, headers with lower-case names."""

    method: str
    path: str
    headers: dict[str, str]


@dataclass
class Loopback:
    """The server: its address, what it was asked, and what it will do instead of serving."""

    folder: Path
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    actions: dict[str, list[Action]] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)
    #: Says who may go on; it answers those itself who may not.
    guard: Callable[["Handler"], bool] = lambda _: True

    def plan(self, path: str, *actions: Action) -> None:
        """Do ``actions``, one per request, before ``path`` is served as usual."""
        self.actions.setdefault(path, []).extend(actions)

    def paths(self) -> list[str]:
        """Return the paths that were asked for, in order."""
        return [request.path for request in self.requests]


class Handler(http.server.BaseHTTPRequestHandler):
    """Serve files with ETag, ranges and conditional requests, or the next planned action."""

    protocol_version = "HTTP/1.1"
    server: "Server"

    def do_GET(self) -> None:
        loopback = self.server.loopback
        headers = {name.lower(): value for name, value in self.headers.items()}
        loopback.requests.append(Request(self.command, self.path, headers))
        if not loopback.guard(self):
            return
        planned = loopback.actions.get(self.path)
        if planned:
            planned.pop(0)(self)
            return
        self.serve_file()

    def do_HEAD(self) -> None:
        self.do_GET()

    def serve_file(self) -> None:
        path = self.file()
        if not path.is_file():
            self.answer(404, b"nothing here")
            return
        data = path.read_bytes()
        tag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
        if self.headers.get("If-None-Match") == tag:
            self.answer(304, b"", {"ETag": tag})
            return
        headers = {"ETag": tag, "Content-Type": kind(path), "Accept-Ranges": "bytes"}
        wanted = self.headers.get("Range", "")
        if wanted.startswith("bytes=") and self.headers.get("If-Range", tag) == tag:
            start = int(wanted.removeprefix("bytes=").partition("-")[0])
            if start >= len(data):
                self.answer(416, b"", {"Content-Range": f"bytes */{len(data)}"})
                return
            span = f"bytes {start}-{len(data) - 1}/{len(data)}"
            self.answer(206, data[start:], {**headers, "Content-Range": span})
            return
        self.answer(200, data, headers)

    def file(self) -> Path:
        path = unquote(urlsplit(self.path).path)
        found = self.server.loopback.folder / path.lstrip("/")
        return found / "index.html" if path.endswith("/") else found

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *words: Any) -> None:
        """Log nothing; what was asked stands in ``requests``."""


def kind(path: Path) -> str:
    """Return the content type of a file, as a static host would guess it."""
    return {".json": "application/json", ".html": "text/html; charset=utf-8"}.get(
        path.suffix, "application/octet-stream"
    )


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    loopback: Loopback

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent: clients that go away are part of the tests."""


@contextlib.contextmanager
def serving(folder: Path, tls: ssl.SSLContext | None = None) -> Iterator[Loopback]:
    """Serve a folder on a free port of loopback until the block ends."""
    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    scheme = "http" if tls is None else "https"
    loopback = Loopback(folder, f"{scheme}://127.0.0.1:{server.server_address[1]}/")
    server.loopback = loopback
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield loopback
    finally:
        loopback.stop.set()
        server.shutdown()
        thread.join()
        server.server_close()


def reset(handler: Handler) -> None:
    """Tear the connection down with a TCP reset."""
    linger = struct.pack("ii", 1, 0)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.close_connection = True
    handler.connection.close()


def stall(handler: Handler) -> None:
    """Say nothing until the test is over."""
    handler.server.loopback.stop.wait(60)
    handler.close_connection = True


def status(code: int, body: bytes = b"", **headers: str) -> Action:
    """Answer with a status."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler: handler.answer(code, body, named)


def half(handler: Handler) -> None:
    """Announce the whole file, send half of it, and close."""
    data = handler.file().read_bytes()
    tag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
    handler.send_response(200)
    handler.send_header("ETag", tag)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data[: len(data) // 2])
    handler.wfile.flush()
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def wrong_length(handler: Handler) -> None:
    """Announce more bytes than come."""
    data = handler.file().read_bytes()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(data) + 10))
    handler.end_headers()
    handler.wfile.write(data)
    handler.close_connection = True


def redirect(to: str, code: int = 302) -> Action:
    """Answer with a redirect."""
    return status(code, Location=to)


def other_bytes(handler: Handler) -> None:
    """Serve a file of the same length and other contents."""
    data = handler.file().read_bytes()
    handler.answer(200, bytes(byte ^ 1 for byte in data))


def retry_after(handler: Handler) -> None:
    """Ask to come again later, with the date form of Retry-After."""
    later = email.utils.formatdate(usegmt=True)
    handler.answer(503, b"", {"Retry-After": later})
