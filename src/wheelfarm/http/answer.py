"""An answer's fields and bytes: counted, unpacked, limited; one cut short is worth another try."""

import http.client
import zlib
from collections.abc import Iterator, Mapping

from wheelfarm.http.errors import TooLargeError

_CHUNK = 1 << 20


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
    packed = fields.get("content-encoding", "").lower() in {"gzip", "x-gzip"}
    unpacker = zlib.decompressobj(wbits=31) if packed else None
    body = bytearray()
    for chunk in chunks:
        body += chunk if unpacker is None else unpacker.decompress(chunk, limit + 1 - len(body))
        if len(body) > limit:
            raise TooLargeError(url, limit)
    if unpacker is not None and not unpacker.eof:
        message = "the answer was cut short (its gzip stream has no end)"
        raise TryAgainError(message)
    return bytes(body)
