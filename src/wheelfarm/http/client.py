"""The client: retries with back-off, redirects without secrets, limits, a cache, downloads."""

import http.client
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import SplitResult, urlsplit

from wheelfarm import __version__
from wheelfarm.http.answer import (
    Response,
    TryAgainError,
    check_status,
    fields_of,
    redirected,
    stream,
    unpacked,
    why_it_failed,
)
from wheelfarm.http.cache import Cache, Cached
from wheelfarm.http.connection import (
    Pool,
    opened,
    own_certificates,
    proxy_for,
    proxy_headers,
    request_target,
)
from wheelfarm.http.credentials import (
    Login,
    Origin,
    authorization,
    login_of,
    origin,
    told_to_us_alone,
    without_login,
)
from wheelfarm.http.errors import (
    HashMismatchError,
    NotFoundError,
    OfflineError,
    TooLargeError,
    UnreachableError,
    redacted,
    split_address,
)
from wheelfarm.values import NOTHING

if TYPE_CHECKING:
    from wheelfarm.http.ahead import Ahead
    from wheelfarm.http.download import Part, Progress

T = TypeVar("T")

_CHUNK = 1 << 20
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_REDIRECTS = 10
_NOT_MODIFIED = 304
_PARTIAL = 206
_BAD_RANGE = 416
#: The largest page that is read into memory (bytes, unpacked).
MAX_PAGE = 256 << 20
#: The largest file that is downloaded (bytes).
MAX_FILE = 16 << 30


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
        self._pool = Pool(timeout)
        self._ahead: dict[tuple[str, str], Ahead[Response]] = {}
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
        trusted = url.startswith("https://") and own_certificates() is not None
        return trusted or self.told_login(url)

    def get(self, url: str, *, accept: str = "*/*", limit: int = MAX_PAGE) -> Response:
        """Return what stands at ``url``.

        Raises NotFoundError for 404 and 410, RefusedError for other refusals, UnreachableError
        where the server cannot be read after all attempts, TooLargeError for more than ``limit``
        bytes, OfflineError where we are offline and the page is not in the cache.
        """
        begun = self._ahead.pop((url, accept), None)
        return self._get(url, accept, limit) if begun is None else begun.result()

    def ahead(
        self, url: str, *, accept: str = "*/*", then: "Callable[[Response], None] | None" = None
    ) -> None:
        """Begin to ask for what is sure to be needed; the next ``get`` of it takes the answer.

        ``then`` sees the answer first, in the thread that asked, and may begin to ask for more.
        """
        from wheelfarm.http.ahead import Ahead

        def ask() -> Response:
            answer = self._get(url, accept, MAX_PAGE)
            if then is not None:
                then(answer)
            return answer

        if (url, accept) not in self._ahead:
            self._ahead[url, accept] = Ahead(ask)

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
        return self._retried(url, lambda: self._get_once(url, accept, limit, cached))

    def json(self, url: str) -> Any:
        """Return the JSON value that stands at ``url``."""
        from wheelfarm.reading import parse_json

        return parse_json(self.get(url, accept="application/json").body, redacted(url))

    def head(self, url: str) -> Response:
        """Return an answer's headers without its body."""
        return self._retried(url, lambda: self._head_once(url))

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
            self._retried(url, lambda: self._download_once(part, progress, limit, accept))
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
        parts = split_address(url)
        headers = {"Accept": accept, "Content-Type": content_type, "Accept-Encoding": "identity"}
        size = body.stat().st_size if isinstance(body, Path) else len(body)
        headers["Content-Length"] = str(size)
        try:
            # A kept connection may be closed by now, and then nobody knows what arrived: a new one.
            self._pool.close()
            connection, answer = self._send(method, parts, parts, headers, body)
            try:
                fields = fields_of(answer)
                data = unpacked(url, stream(answer, fields), fields, MAX_PAGE)
            finally:
                connection.close()
        except (http.client.HTTPException, OSError, zlib.error, TryAgainError) as error:
            why = str(error) if isinstance(error, TryAgainError) else why_it_failed(url, error)
            raise UnreachableError(url, why) from error
        return Response(url=url, status=answer.status, headers=fields, body=data)

    def close(self) -> None:
        """Close the connections that are kept open."""
        self._pool.close()

    def _get_once(self, url: str, accept: str, limit: int, cached: Cached | None) -> Response:
        headers = {"Accept": accept, "Accept-Encoding": "gzip"}
        if cached is not None:
            headers |= cached.conditions()
        with self._answer("GET", url, headers) as (final, answer):
            if answer.status == _NOT_MODIFIED and cached is not None:
                return _response_of(cached)
            fields = fields_of(answer)
            check_status(url, answer.status, fields, {200})
            body = unpacked(url, stream(answer, fields), fields, limit)
        if self.cache is not None and ("etag" in fields or "last-modified" in fields):
            self.cache.put(url, accept, final, fields, body)
        return Response(url=final, status=200, headers=fields, body=body)

    def _head_once(self, url: str) -> Response:
        with self._answer("HEAD", url, {"Accept-Encoding": "identity"}) as (final, answer):
            fields = fields_of(answer)
            check_status(url, answer.status, fields, {200})
            return Response(url=final, status=answer.status, headers=fields, body=b"")

    def _download_once(
        self, part: "Part", progress: "Progress | None", limit: int, accept: str
    ) -> None:
        headers = {"Accept": accept, "Accept-Encoding": "identity", **part.request_headers()}
        with self._answer("GET", part.url, headers) as (_, answer):
            fields = fields_of(answer)
            if answer.status == _BAD_RANGE or (answer.status == _PARTIAL and not part.fits(fields)):
                part.restart()
                message = "the server no longer has the rest of the file"
                raise TryAgainError(message)
            check_status(part.url, answer.status, fields, {200, _PARTIAL})
            total = part.begin(answer.status, fields)
            if total is not None and total > limit:
                raise TooLargeError(part.url, limit)
            for chunk in stream(answer, fields):
                part.write(chunk, limit)
                if progress is not None:
                    progress(part.done, total)

    @contextmanager
    def _answer(
        self, method: str, url: str, headers: Mapping[str, str]
    ) -> Iterator[tuple[str, http.client.HTTPResponse]]:
        """Yield the final address and its answer; the connection is kept if it was read whole."""
        asked = split_address(url)
        current = asked
        for _ in range(_MAX_REDIRECTS + 1):
            connection, answer = self._send(method, current, asked, headers)
            if answer.status not in _REDIRECTS or not answer.getheader("Location"):
                break
            answer.read(_CHUNK)
            self._release(current, connection, answer)
            current = redirected(current, answer.getheader("Location", ""))
        else:
            raise UnreachableError(url, f"it redirects more than {_MAX_REDIRECTS} times")
        try:
            yield current._replace(netloc=current.netloc.rpartition("@")[2]).geturl(), answer
        except NotFoundError:
            answer.read(_CHUNK)
            self._release(current, connection, answer)
            raise
        except BaseException:
            connection.close()
            raise
        self._release(current, connection, answer)

    def _send(
        self,
        method: str,
        parts: SplitResult,
        asked: SplitResult,
        headers: Mapping[str, str],
        body: "bytes | Path" = b"",
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Send a request; one on a kept connection that the server had closed is sent anew."""
        proxy = proxy_for(parts)
        own = {"User-Agent": f"wheelfarm/{__version__}", **headers}
        login = authorization(parts, asked, self._logins)
        if (token := self._tokens.get(origin(parts))) is not None:
            login = f"Bearer {token}"
        if login is not None:
            own["Authorization"] = login
        if proxy is not None and parts.scheme == "http":
            own |= proxy_headers(proxy)
            own["Host"] = parts.netloc.rpartition("@")[2]
        while True:
            connection, used = self._pool.take(parts)
            try:
                with opened(body) as data:
                    connection.request(method, request_target(parts, proxy), data, headers=own)
                return connection, connection.getresponse()
            except (http.client.RemoteDisconnected, ConnectionError, BrokenPipeError):
                connection.close()
                if not used:
                    raise
            except BaseException:
                connection.close()
                raise

    def _release(
        self,
        parts: SplitResult,
        connection: http.client.HTTPConnection,
        answer: http.client.HTTPResponse,
    ) -> None:
        if answer.length == 0:
            answer.read()
        if answer.isclosed() and not answer.will_close:
            self._pool.give(parts, connection)
        else:
            connection.close()

    def _retried(self, url: str, once: Callable[[], T]) -> T:
        if not url.startswith(("http://", "https://")):
            raise UnreachableError(url, "it is no http or https address")
        why, wait = "no attempt was made", 0.0
        for attempt in range(self.attempts):
            if attempt:
                import logging
                import random

                backoff = self.pause * 2 ** (attempt - 1) * random.uniform(0.8, 1.2)  # noqa: S311
                time.sleep(max(wait, backoff))
                logging.getLogger(__name__).info("trying %s again: %s", redacted(url), why)
            try:
                return once()
            except TryAgainError as error:
                why, wait = str(error), error.wait
            except (http.client.HTTPException, OSError, zlib.error) as error:
                why, wait = why_it_failed(url, error), 0.0
        raise UnreachableError(url, f"{why} ({self.attempts} attempts)")


def _response_of(cached: Cached) -> Response:
    return Response(url=cached.url, status=200, headers=cached.headers, body=cached.body)
