"""Connections of the standard library: kept open per host, through proxies, with TLS checked.

The library's own client is used as the user side must start within a fraction of a second; what it
lacks (a pool, proxies from the environment, short reads noticed) is here. See the decision on it.
"""

import base64
import http.client
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import SplitResult, quote, unquote

from wheelfarm.http.credentials import origin
from wheelfarm.http.errors import UnreachableError, split_address

if TYPE_CHECKING:
    import ssl

#: Environment variables that name a file of certificates to trust, the first that is set counts.
_CA_VARIABLES = ("WHEELFARM_CA_FILE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy")

Key = tuple[str, str, int]


class Pool:
    """Open connections by origin; safe to use from several threads."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._idle: dict[Key, list[http.client.HTTPConnection]] = {}
        self._lock = threading.Lock()
        self._context: ssl.SSLContext | None = None

    def take(self, parts: SplitResult) -> tuple[http.client.HTTPConnection, bool]:
        """Return a connection to an address's origin, and whether it was used before."""
        with self._lock:
            idle = self._idle.get(origin(parts))
            if idle:
                return idle.pop(), True
        return self._open(parts), False

    def give(self, parts: SplitResult, connection: http.client.HTTPConnection) -> None:
        """Keep a connection whose last answer was read to its end."""
        with self._lock:
            self._idle.setdefault(origin(parts), []).append(connection)

    def close(self) -> None:
        """Close every idle connection."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.close()

    def __del__(self) -> None:
        # A client that nobody closed must not leave sockets to the garbage collector's warnings.
        self.close()

    def _open(self, parts: SplitResult) -> http.client.HTTPConnection:
        scheme, host, port = origin(parts)
        proxy = proxy_for(parts)
        if proxy is None:
            if scheme == "https":
                return http.client.HTTPSConnection(
                    host, port, timeout=self._timeout, context=self._tls()
                )
            return _PlainConnection(host, port, timeout=self._timeout)
        via = proxy.hostname or ""
        if scheme == "http":
            return _PlainConnection(via, proxy.port or 80, timeout=self._timeout)
        connection = http.client.HTTPSConnection(
            via, proxy.port or 80, timeout=self._timeout, context=self._tls()
        )
        connection.set_tunnel(host, port, headers=proxy_headers(proxy))
        return connection

    def _tls(self) -> "ssl.SSLContext":
        with self._lock:
            if self._context is None:
                self._context = _tls_context()
            return self._context


class _PlainConnection(http.client.HTTPConnection):
    """A connection without TLS."""

    def connect(self) -> None:
        """Connect; the name of nearly every host needs no IDNA, whose tables take 4 ms to read."""
        host: Any = self.host.encode("ascii") if self.host.isascii() else self.host
        self.sock = socket.create_connection((host, self.port), self.timeout)
        # Small requests are to leave at once, as the library itself has it.
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def own_certificates() -> str | None:
    """Return the variable that names certificates to trust; None where the system's count."""
    return next((name for name in _CA_VARIABLES if os.environ.get(name)), None)


def _tls_context() -> "ssl.SSLContext":
    import ssl

    name = own_certificates()
    if name is None:
        return ssl.create_default_context()
    path = os.environ[name]
    try:
        if os.path.isdir(path):  # noqa: PTH112 - a string from the environment
            return ssl.create_default_context(capath=path)
        return ssl.create_default_context(cafile=path)
    except OSError as error:
        raise UnreachableError(path, f"the certificates of {name} cannot be read") from error


def proxy_for(parts: SplitResult) -> SplitResult | None:
    """Return the proxy that the environment names for an address; None for a direct way.

    Raises UnreachableError for a proxy of a kind that we do not speak (SOCKS).
    """
    if not any(os.environ.get(name) or os.environ.get(name.upper()) for name in _PROXY_VARIABLES):
        return None
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all")
    if not found or proxy_bypass(parts.hostname or ""):
        return None
    proxy = split_address(found if "://" in found else f"http://{found}")
    if proxy.scheme != "http":
        raise UnreachableError(
            parts.geturl(),
            f"its proxy is of the kind {proxy.scheme!r}",
            hint="only http proxies are spoken to; set https_proxy=http://...",
        )
    return proxy


def proxy_headers(proxy: SplitResult) -> Mapping[str, str]:
    """Return the headers that a proxy wants of us."""
    if not proxy.username:
        return {}
    login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": "Basic " + base64.b64encode(login.encode()).decode("ascii")}


def request_target(parts: SplitResult, proxy: SplitResult | None) -> str:
    """Return what stands in the request line: a path, or the whole address for a proxy."""
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    path += f"?{parts.query}" if parts.query else ""
    if proxy is not None and parts.scheme == "http":
        return f"http://{parts.netloc.rpartition('@')[2]}{path}"
    return path


@contextmanager
def opened(body: "bytes | Path") -> Iterator[bytes | IO[bytes] | None]:
    """Yield what a request sends: bytes, or an open file; None for nothing."""
    if isinstance(body, Path):
        with body.open("rb") as stream:
            yield stream
    else:
        yield body or None
