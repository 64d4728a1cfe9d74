"""The one door to the network: one client with retries, size limits and hash checks.

Absent (404, 410) is not failed: the first is ``NotFoundError``, the second ``UnreachableError``.
"""

import hashlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from wheelfarm import __version__, files
from wheelfarm.errors import BadInputError, CouldNotLookError

if TYPE_CHECKING:
    import urllib3

T = TypeVar("T")

logger = logging.getLogger(__name__)

#: Told how many bytes have come and how many are expected (None where the server did not say).
Progress = Callable[[int, int | None], None]

_CHUNK = 1 << 20
_ABSENT = frozenset({404, 410})
_TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
#: The largest page that is read into memory (bytes).
MAX_PAGE = 256 << 20


class UnreachableError(CouldNotLookError):
    """A server did not answer, or not with what it announced."""

    def __init__(self, url: str, why: str) -> None:
        self.url = url
        super().__init__(
            f"{redacted(url)} could not be read: {why}",
            hint="check the network, the proxy settings and the address",
        )


class NotFoundError(CouldNotLookError):
    """The server answered, and there is nothing at this address."""

    def __init__(self, url: str, status: int) -> None:
        self.url = url
        self.status = status
        super().__init__(f"there is nothing at {redacted(url)} (HTTP {status})")


class HashMismatchError(BadInputError):
    """A file's bytes are not those that were promised."""

    def __init__(self, what: str, expected: str, actual: str) -> None:
        self.expected = expected
        self.actual = actual
        super().__init__(
            f"{what} has sha256 {actual}, expected {expected}",
            cause="the file changed under its name, or was damaged or replaced on the way",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """An answer: final address (after redirects), status, headers with lower-case names, body."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes


def redacted(url: str) -> str:
    """Return an address without its user name and password."""
    parts = urlsplit(url)
    if parts.username is None and parts.password is None:
        return url
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


class Client:
    """An HTTP client. ``attempts`` and ``pause`` (seconds, doubled each time) are for tests."""

    def __init__(self, *, timeout: float = 30, attempts: int = 4, pause: float = 0.5) -> None:
        self.timeout = timeout
        self.attempts = attempts
        self.pause = pause
        self._pool: urllib3.PoolManager | None = None

    def get(self, url: str, *, accept: str = "*/*", limit: int = MAX_PAGE) -> Response:
        """Return what stands at ``url``.

        Raises NotFoundError for 404 and 410, UnreachableError where the server cannot be read
        after all attempts, BadInputError for an answer of more than ``limit`` bytes.
        """
        return self._retried(url, lambda: self._get_once(url, accept, limit))

    def json(self, url: str) -> Any:
        """Return the JSON value that stands at ``url``."""
        from wheelfarm.reading import parse_json

        return parse_json(self.get(url, accept="application/json").body, redacted(url))

    def download(
        self, url: str, path: Path, *, sha256: str | None = None, progress: Progress | None = None
    ) -> str:
        """Write what stands at ``url`` to ``path``, whole or not at all; return its SHA-256.

        Raises HashMismatchError where it is not ``sha256``.
        """
        return self._retried(url, lambda: self._download_once(url, path, sha256, progress))

    def _manager(self) -> "urllib3.PoolManager":
        if self._pool is None:
            import urllib3

            self._pool = urllib3.PoolManager(headers={"User-Agent": f"wheelfarm/{__version__}"})
        return self._pool

    def _open(self, url: str, accept: str) -> "urllib3.BaseHTTPResponse":
        import urllib3

        answer = self._manager().request(
            "GET",
            url,
            headers={"User-Agent": f"wheelfarm/{__version__}", "Accept": accept},
            preload_content=False,
            timeout=self.timeout,
            retries=urllib3.Retry(total=False, redirect=5, raise_on_redirect=False),
        )
        if answer.status in _ABSENT:
            answer.drain_conn()
            raise NotFoundError(url, answer.status)
        if answer.status != 200:  # noqa: PLR2004 - the one good status of a plain GET
            answer.drain_conn()
            raise _StatusError(url, answer.status)
        return answer

    def _get_once(self, url: str, accept: str, limit: int) -> Response:
        answer = self._open(url, accept)
        body = bytearray()
        for chunk in answer.stream(_CHUNK, decode_content=True):
            body += chunk
            if len(body) > limit:
                answer.close()
                message = f"{redacted(url)} is larger than {limit} bytes"
                raise BadInputError(message)
        answer.release_conn()
        headers = {name.lower(): value for name, value in answer.headers.items()}
        final = answer.geturl() or url
        return Response(url=final, status=answer.status, headers=headers, body=bytes(body))

    def _download_once(
        self, url: str, path: Path, sha256: str | None, progress: Progress | None
    ) -> str:
        answer = self._open(url, "*/*")
        length = answer.headers.get("content-length")
        total = int(length) if length is not None and length.isdigit() else None
        digest = hashlib.sha256()
        done = 0
        with files.replacing(path) as temporary, temporary.open("wb") as out:
            for chunk in answer.stream(_CHUNK, decode_content=False):
                out.write(chunk)
                digest.update(chunk)
                done += len(chunk)
                if progress is not None:
                    progress(done, total)
            out.flush()
            if sha256 is not None and digest.hexdigest() != sha256:
                raise HashMismatchError(redacted(url), sha256, digest.hexdigest())
        answer.release_conn()
        return digest.hexdigest()

    def _retried(self, url: str, once: Callable[[], T]) -> T:
        from urllib3.exceptions import HTTPError

        why = "no attempt was made"
        for attempt in range(self.attempts):
            if attempt:
                time.sleep(self.pause * 2 ** (attempt - 1))
                logger.info("trying %s again: %s", redacted(url), why)
            try:
                return once()
            except _StatusError as error:
                why = f"HTTP {error.status}"
                if error.status not in _TRY_AGAIN:
                    break
            except HTTPError as error:
                why = str(error) or type(error).__name__
        raise UnreachableError(url, why)


class _StatusError(Exception):
    def __init__(self, url: str, status: int) -> None:
        super().__init__(f"{redacted(url)}: HTTP {status}")
        self.status = status
