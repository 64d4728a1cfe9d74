"""Downloads that go on where they broke off, hashed while they stream.

What has come stands in a ``.part`` file beside the target, with the address and validator it came
by; a later attempt, or a later run, asks for the rest (RFC 9110, Range and If-Range).
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from wheelfarm import locks
from wheelfarm.http.errors import HashMismatchError, TooLargeError, redacted

#: Told how many bytes have come and how many are expected (None where the server did not say).
Progress = Callable[[int, int | None], None]

_CHUNK = 1 << 20


@dataclass(kw_only=True)
class Part:
    """A file on its way: its stream, what has come of it, and what it came by."""

    url: str
    path: Path
    stream: IO[bytes]
    note: Path
    validator: str = ""
    done: int = 0
    digest: Any = None
    resumed: bool = False

    @classmethod
    def open(cls, url: str, target: Path) -> "Part":
        """Open the part of a target, with what an earlier run left of the same address."""
        target.parent.mkdir(parents=True, exist_ok=True)
        path = target.parent / f".{target.name}.part"
        stream = path.open("a+b")
        if not locks.try_lock(stream.fileno()):
            stream.close()
            handle, name = tempfile.mkstemp(
                prefix=f".{target.name}.", suffix=".part", dir=target.parent
            )
            path, stream = Path(name), os.fdopen(handle, "a+b")
        part = cls(url=url, path=path, stream=stream, note=path.with_suffix(".part.json"))
        part._continue()
        return part

    def _continue(self) -> None:
        self.digest = hashlib.sha256()
        self.done = 0
        self.stream.seek(0)
        while chunk := self.stream.read(_CHUNK):
            self.digest.update(chunk)
            self.done += len(chunk)
        self.validator = self._noted()
        if self.done and not self.validator:
            self.restart()

    def _noted(self) -> str:
        try:
            noted = json.loads(self.note.read_text(encoding="utf-8"))
            return str(noted["validator"]) if noted["url"] == redacted(self.url) else ""
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    def restart(self) -> None:
        """Throw away what has come."""
        self.stream.seek(0)
        self.stream.truncate()
        self.note.unlink(missing_ok=True)
        self.digest, self.done, self.validator = hashlib.sha256(), 0, ""
        self.resumed = False

    def request_headers(self) -> dict[str, str]:
        """Return the headers that ask for the rest; none where all is asked for."""
        if not self.validator:
            self.restart()
        if not self.done:
            return {}
        self.resumed = True
        return {"Range": f"bytes={self.done}-", "If-Range": self.validator}

    def begin(self, status: int, headers: dict[str, str]) -> int | None:
        """Note what an answer is of; return the whole file's length where it is known."""
        if status == 200:  # noqa: PLR2004 - the whole file, whatever was asked for
            self.restart()
        length = headers.get("content-length", "")
        total = self.done + int(length) if length.isdigit() else None
        self.validator = _validator(headers)
        if self.validator:
            note = {"url": redacted(self.url), "validator": self.validator}
            self.note.write_text(json.dumps(note), encoding="utf-8")
        return total

    def fits(self, headers: dict[str, str]) -> bool:
        """Return whether a partial answer begins where we stopped."""
        return headers.get("content-range", "").startswith(f"bytes {self.done}-")

    def write(self, chunk: bytes, limit: int) -> None:
        """Take the next bytes."""
        self.done += len(chunk)
        if self.done > limit:
            self.restart()
            raise TooLargeError(self.url, limit)
        self.stream.write(chunk)
        self.digest.update(chunk)

    def finish(self, target: Path, sha256: str | None) -> str:
        """Check the hash and give the file its name; HashMismatchError leaves nothing behind."""
        actual: str = self.digest.hexdigest()
        if sha256 is not None and actual != sha256:
            self.discard()
            raise HashMismatchError(redacted(self.url), sha256, actual)
        self.stream.flush()
        os.fsync(self.stream.fileno())
        self.path.chmod(0o644)
        self.path.replace(target)
        self.note.unlink(missing_ok=True)
        self.stream.close()
        return actual

    def discard(self) -> None:
        """Remove what has come."""
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)
        self.stream.close()

    def leave(self) -> None:
        """Close the file and keep what has come for another run."""
        if not self.stream.closed:
            self.stream.close()
            if not self.done or not self.validator:
                self.path.unlink(missing_ok=True)
                self.note.unlink(missing_ok=True)


def _validator(headers: dict[str, str]) -> str:
    """Return a strong validator, as only one may stand in If-Range."""
    tag = headers.get("etag", "")
    if tag and not tag.startswith("W/"):
        return tag
    return "" if tag else headers.get("last-modified", "")
