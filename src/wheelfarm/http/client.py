"""The client: retries with back-off, redirects without secrets, limits, a cache, downloads."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from wheelfarm.http.cache import Cache, Cached
from wheelfarm.http.credentials import (
    Login,
    Origin,
    login_of,
    origin,
    told_to_us_alone,
    without_login,
)
from wheelfarm.http.errors import (
    HashMismatchError,
    OfflineError,
    redacted,
    split_address,
)
from wheelfarm.http.response import Response
from wheelfarm.values import NOTHING

if TYPE_CHECKING:
    from wheelfarm.http.ahead import Ahead
    from wheelfarm.http.download import Progress
    from wheelfarm.http.helper import Helper
    from wheelfarm.http.transport import Transport

#: The largest page that is read into memory (bytes, unpacked).
MAX_PAGE = 256 << 20
#: The largest file that is downloaded (bytes).
MAX_FILE = 16 << 30
#: What is asked ahead: an address, and the form in which it is asked for.
Key = tuple[str, str]
#: Headers by which a server tells later whether a page changed.
_VALIDATORS = frozenset({"etag", "last-modified"})
#: Sees an answer first.
Then = Callable[[Response], None]


class Client:
    """An HTTP client.

    ``timeout`` (seconds) holds for each wait for bytes; ``attempts`` and ``pause`` (seconds,
    doubled each time) are for tests. With ``cache`` pages are kept and only asked whether they
    changed; with ``offline`` nothing is asked at all. ``tokens`` are bearer tokens by the address
    of the host that each belongs to, ``logins`` the user's settings by such addresses; no other
    host ever sees one.
    """

    def __init__(
        self,
        *,
        timeout: float = 30,
        attempts: int = 4,
        pause: float = 0.5,
        cache: Cache | None = None,
        offline: bool = False,
        tokens: Mapping[str, str] | None = None,
        logins: Mapping[str, Login] = NOTHING,
    ) -> None:
        self.timeout = timeout
        self.attempts = attempts
        self.pause = pause
        self.cache = cache
        self.offline = offline
        self._transport: Transport | None = None
        self._ahead: dict[Key, Ahead[Response]] = {}
        self._helper: Helper | None = None
        self._tokens = {
            origin(urlsplit(address)): token for address, token in (tokens or {}).items()
        }
        self._logins: dict[Origin, Login] = {
            origin(urlsplit(address)): login for address, login in logins.items()
        }

    def learn_login(self, url: str) -> str:
        """Return an address without its login, which is told to that host from here on."""
        parts = urlsplit(url)
        login = login_of(parts)
        if login is None:
            return url
        self._logins[origin(parts)] = login
        return without_login(url)

    def told_login(self, url: str) -> bool:
        """Return whether a login is known for an address's host that an installer won't know."""
        parts = urlsplit(url)
        return origin(parts) in self._tokens or told_to_us_alone(parts, self._logins)

    def opens_alone(self, url: str) -> bool:
        """Return whether an installer may be refused what we are given: a login, certificates."""
        from wheelfarm.http.connection import own_certificates

        trusted = url.startswith("https://") and own_certificates() is not None
        return trusted or self.told_login(url)

    def get(self, url: str, *, accept: str = "*/*", limit: int = MAX_PAGE) -> Response:
        """Return what stands at ``url``.

        Raises NotFoundError for 404 and 410, RefusedError for other refusals, UnreachableError
        where the server cannot be read after all attempts, TooLargeError for more than ``limit``
        bytes, OfflineError where we are offline and the page is not in the cache.
        """
        key = (url, accept)
        begun = self._ahead.pop(key, None)
        if begun is not None:
            return begun.result()
        told = None if self._helper is None else self._helper.take(key)
        return self._get(url, accept, limit) if told is None else told

    def ahead(self, url: str, *, accept: str = "*/*", then: Then | None = None) -> None:
        """Begin to ask for what is sure to be needed; the next ``get`` of it takes the answer.

        ``then`` sees the answer first, in the thread that asked, and may begin to ask for more.
        """
        from wheelfarm.http.ahead import Ahead

        def ask() -> Response:
            answer = self._get(url, accept, MAX_PAGE)
            # Hashing lets other threads go on: here it costs nobody's time.
            _ = answer.sha256
            if then is not None:
                then(answer)
            return answer

        key = (url, accept)
        if key in self._ahead or (self._helper is not None and self._helper.brings(key)):
            return
        if not self.offline:
            # Brought in here, as threads must not each make one.
            _ = self._network
        self._ahead[key] = Ahead(ask)

    def ahead_apart(self, url: str, *, accept: str = "*/*", then: Then | None = None) -> None:
        """Begin to ask, as ``ahead`` does, in a process of its own where there can be one.

        What ``then`` begins to ask for comes with it.
        """
        from wheelfarm.http.helper import Helper

        def ask() -> "Mapping[Key, Ahead[Response]]":
            self.ahead(url, accept=accept, then=then)
            return self._ahead

        if not self.offline and self._helper is None:
            self._helper = Helper.fork(ask, (url, accept))
        if self._helper is None:
            ask()

    def forget(self, url: str, *, accept: str = "*/*") -> None:
        """Let go of what was asked ahead and is not needed; waits until its connection is done."""
        begun = self._ahead.pop((url, accept), None)
        if begun is not None:
            begun.wait()

    def _get(self, url: str, accept: str, limit: int) -> Response:
        if url.startswith("file://"):
            from wheelfarm.http.local import local_headers, local_path, read

            path = local_path(url)
            return Response(
                url=url, status=200, headers=local_headers(path), body=read(path, limit)
            )
        split_address(url)
        cached = None if self.cache is None else self.cache.get(url, accept)
        if self.offline:
            if cached is None:
                raise OfflineError(url)
            return _response_of(cached)
        conditions = NOTHING if cached is None else cached.conditions()
        answer, news = self._network.page(url, accept, limit, conditions)
        if cached is not None and not news:
            return _response_of(cached)
        if self.cache is not None and not answer.headers.keys().isdisjoint(_VALIDATORS):
            self.cache.put(url, accept, answer.url, answer.headers, answer.body)
        return answer

    def json(self, url: str) -> Any:
        """Return the JSON value that stands at ``url``."""
        from wheelfarm.reading import parse_json

        return parse_json(self.get(url, accept="application/json").body, redacted(url))

    def head(self, url: str) -> Response:
        """Return an answer's headers without its body."""
        return self._network.head(url)

    def download(
        self,
        url: str,
        path: Path,
        *,
        sha256: str | None = None,
        progress: "Progress | None" = None,
        limit: int = MAX_FILE,
        accept: str = "*/*",
    ) -> str:
        """Write what stands at ``url`` to ``path``, whole or not at all; return its SHA-256.

        What has come is kept beside ``path`` when the connection breaks, and gone on with in the
        next attempt or run. Raises HashMismatchError where it is not ``sha256``.
        """
        from wheelfarm.http.download import Part

        if url.startswith("file://"):
            from wheelfarm.http.local import copy, local_path

            return copy(local_path(url), path, sha256, limit)
        split_address(url)
        if self.offline:
            raise OfflineError(url)
        part = Part.open(url, path)
        resumed = False
        try:
            self._network.download(part, progress, limit, accept)
            resumed = part.resumed
            return part.finish(path, sha256)
        except HashMismatchError:
            if not resumed:
                raise
        finally:
            part.leave()
        # The first half came from another run and may be of another file: once more, from nothing.
        return self.download(
            url, path, sha256=sha256, progress=progress, limit=limit, accept=accept
        )

    def send(
        self,
        method: str,
        url: str,
        *,
        body: "bytes | Path" = b"",
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Response:
        """Send a request that changes something, once, and return its answer whatever the status.

        No redirect is followed and nothing is tried again: only the caller knows whether what was
        sent took effect. Raises UnreachableError where no answer came.
        """
        return self._network.send(
            method, url, body=body, content_type=content_type, accept=accept, limit=MAX_PAGE
        )

    def close(self) -> None:
        """Close the connections that are kept open, and end what is still asked for."""
        if self._helper is not None:
            self._helper.close()
        if self._transport is not None:
            self._transport.close()

    @property
    def _network(self) -> "Transport":
        """The way to servers, brought in when one is first asked."""
        if self._transport is None:
            from wheelfarm.http.transport import Transport

            self._transport = Transport(
                timeout=self.timeout,
                attempts=self.attempts,
                pause=self.pause,
                tokens=self._tokens,
                logins=self._logins,
            )
        return self._transport


def _response_of(cached: Cached) -> Response:
    return Response(url=cached.url, status=200, headers=cached.headers, body=cached.body)
