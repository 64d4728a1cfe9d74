"""The network behind the client: requests that are tried again, redirects without secrets, limits.

Its imports (``http.client``, and with it ``email`` and ``ssl``) are a sixth of a short run's time,
so the client brings it in when something is first asked of a server.
"""

import http.client
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import SplitResult

from wheelfarm import __version__
from wheelfarm.http.answer import (
    TryAgainError,
    check_status,
    fields_of,
    redirected,
    stream,
    unpacked,
    why_it_failed,
)
from wheelfarm.http.connection import Pool, opened, proxy_for, proxy_headers, request_target
from wheelfarm.http.credentials import Login, Origin, authorization, origin
from wheelfarm.http.errors import (
    NotFoundError,
    TooLargeError,
    UnreachableError,
    redacted,
    split_address,
)
from wheelfarm.http.response import Response

if TYPE_CHECKING:
    from wheelfarm.http.download import Part, Progress

T = TypeVar("T")

_CHUNK = 1 << 20
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_REDIRECTS = 10
_NOT_MODIFIED = 304
_PARTIAL = 206
_BAD_RANGE = 416


class Transport:
    """Requests to servers; safe to use from several threads.

    ``timeout`` (seconds) holds for each wait for bytes; ``pause`` (seconds) before another of
    ``attempts`` is doubled each time. ``tokens`` and ``logins`` are by the origin that each belongs
    to, and are the client's own: what it learns later counts.
    """

    def __init__(
        self,
        *,
        timeout: float,
        attempts: int,
        pause: float,
        tokens: Mapping[Origin, str],
        logins: Mapping[Origin, Login],
    ) -> None:
        self._attempts = attempts
        self._pause = pause
        self._tokens = tokens
        self._logins = logins
        self._pool = Pool(timeout)

    def page(
        self, url: str, accept: str, limit: int, conditions: Mapping[str, str]
    ) -> tuple[Response, bool]:
        """Return a page of at most ``limit`` bytes, and whether it is news.

        With ``conditions`` (If-None-Match) a server may answer that nothing changed; then the
        response has no body.
        """
        return self._retried(url, lambda: self._page_once(url, accept, limit, conditions))

    def head(self, url: str) -> Response:
        """Return an answer's headers without its body."""
        return self._retried(url, lambda: self._head_once(url))

    def download(self, part: "Part", progress: "Progress | None", limit: int, accept: str) -> None:
        """Bring a part of a file to its end."""
        self._retried(part.url, lambda: self._download_once(part, progress, limit, accept))

    def send(
        self,
        method: str,
        url: str,
        *,
        body: "bytes | Path",
        content_type: str,
        accept: str,
        limit: int,
    ) -> Response:
        """Send a request once, and return its answer whatever the status."""
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
                data = unpacked(url, stream(answer, fields), fields, limit)
            finally:
                connection.close()
        except (http.client.HTTPException, OSError, TryAgainError) as error:
            why = str(error) if isinstance(error, TryAgainError) else why_it_failed(url, error)
            raise UnreachableError(url, why) from error
        return Response(url=url, status=answer.status, headers=fields, body=data)

    def close(self) -> None:
        """Close the connections that are kept open."""
        self._pool.close()

    def _page_once(
        self, url: str, accept: str, limit: int, conditions: Mapping[str, str]
    ) -> tuple[Response, bool]:
        headers = {"Accept": accept, "Accept-Encoding": "gzip", **conditions}
        with self._answer("GET", url, headers) as (final, answer):
            fields = fields_of(answer)
            if answer.status == _NOT_MODIFIED and conditions:
                return Response(url=final, status=_NOT_MODIFIED, headers=fields, body=b""), False
            check_status(url, answer.status, fields, {200})
            body = unpacked(url, stream(answer, fields), fields, limit)
        return Response(url=final, status=200, headers=fields, body=body), True

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
        for attempt in range(self._attempts):
            if attempt:
                import logging
                import random

                backoff = self._pause * 2 ** (attempt - 1) * random.uniform(0.8, 1.2)  # noqa: S311
                time.sleep(max(wait, backoff))
                logging.getLogger(__name__).info("trying %s again: %s", redacted(url), why)
            try:
                return once()
            except TryAgainError as error:
                why, wait = str(error), error.wait
            except (http.client.HTTPException, OSError) as error:
                why, wait = why_it_failed(url, error), 0.0
        raise UnreachableError(url, f"{why} ({self._attempts} attempts)")
