"""An answer's fields and bytes: counted, unpacked, limited; where it leads, and why none came."""

import http.client
import socket
import time
from collections.abc import Iterator, Mapping
from urllib.parse import SplitResult, urljoin, urlsplit

from wheelfarm.http.errors import NotFoundError, RefusedError, TooLargeError, UnreachableError

_CHUNK = 1 << 20
_ABSENT = frozenset({404, 410})
_TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
_LONGEST_WAIT = 30.0


class TryAgainError(Exception):
    """An answer that may be better later; ``wait`` (seconds) where the server said when."""

    def __init__(self, why: str, wait: float = 0.0) -> None:
        super().__init__(why)
        self.wait = wait


def fields_of(answer: http.client.HTTPResponse) -> dict[str, str]:
    """Return an answer's headers with lower-case names."""
    return {name.lower(): value for name, value in answer.getheaders()}


def stream(answer: http.client.HTTPResponse, fields: Mapping[str, str]) -> Iterator[bytes]:
    """Yield an answer's bytes; one that ends before its announced length is cut short.

    ``HTTPResponse.read(n)`` returns what there is and says nothing, so we count.
    """
    announced = fields.get("content-length", "")
    done = 0
    while chunk := answer.read(_CHUNK):
        done += len(chunk)
        yield chunk
    if announced.isdigit() and done != int(announced):
        message = f"the answer was cut short ({done} of {announced} bytes)"
        raise TryAgainError(message)


def unpacked(url: str, chunks: Iterator[bytes], fields: Mapping[str, str], limit: int) -> bytes:
    """Return a body, unpacked where it is gzip; TooLargeError beyond ``limit`` bytes."""
    if fields.get("content-encoding", "").lower() in {"gzip", "x-gzip"}:
        return _gunzipped(url, chunks, limit)
    pieces: list[bytes] = []
    left = limit
    for chunk in chunks:
        left -= len(chunk)
        if left < 0:
            raise TooLargeError(url, limit)
        pieces.append(chunk)
    return b"".join(pieces)


def _gunzipped(url: str, chunks: Iterator[bytes], limit: int) -> bytes:
    import zlib

    unpacker = zlib.decompressobj(wbits=31)
    pieces: list[bytes] = []
    left = limit
    for chunk in chunks:
        try:
            piece = unpacker.decompress(chunk, left + 1)
        except zlib.error as error:
            message = f"the answer's gzip stream is damaged ({error})"
            raise TryAgainError(message) from error
        left -= len(piece)
        if left < 0:
            raise TooLargeError(url, limit)
        pieces.append(piece)
    if not unpacker.eof:
        message = "the answer was cut short (its gzip stream has no end)"
        raise TryAgainError(message)
    return b"".join(pieces)


def check_status(url: str, status: int, fields: Mapping[str, str], good: set[int]) -> None:
    """Raise what a status that is none of ``good`` means: absent, refused, or worth another try."""
    if status in good:
        return
    if status in _ABSENT:
        raise NotFoundError(url, status)
    if status not in _TRY_AGAIN:
        raise RefusedError(url, status)
    why = f"HTTP {status}"
    raise TryAgainError(why, seconds_until(fields.get("retry-after", "")))


def seconds_until(retry_after: str) -> float:
    """Return how long a Retry-After header asks to wait (seconds, at most half a minute)."""
    if retry_after.isdigit():
        return min(float(retry_after), _LONGEST_WAIT)
    import email.utils

    try:
        moment = email.utils.parsedate_to_datetime(retry_after)
    except ValueError:
        return 0.0
    return max(0.0, min(moment.timestamp() - time.time(), _LONGEST_WAIT))


def why_it_failed(url: str, error: Exception) -> str:
    """Return why a connection failed; raises where another attempt would fail the same."""
    import ssl

    if isinstance(error, ssl.SSLCertVerificationError):
        raise UnreachableError(
            url,
            f"its certificate is not trusted: {error.verify_message}",
            hint="name your organisation's certificates with SSL_CERT_FILE",
        ) from error
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, socket.gaierror):
        return f"its host name is not known ({error.strerror})"
    if isinstance(error, http.client.IncompleteRead):
        return "the answer was cut short"
    return str(error) or type(error).__name__


def redirected(current: SplitResult, location: str) -> SplitResult:
    """Return where an answer leads; UnreachableError where no client should follow."""
    try:
        target = urlsplit(urljoin(current.geturl(), location))
        _ = target.port
    except ValueError as error:
        raise UnreachableError(current.geturl(), "it redirects to what is no address") from error
    if target.scheme not in {"http", "https"}:
        raise UnreachableError(current.geturl(), f"it redirects to {target.scheme!r}")
    if current.scheme == "https" and target.scheme == "http":
        raise UnreachableError(current.geturl(), "it redirects from https to plain http")
    return target
