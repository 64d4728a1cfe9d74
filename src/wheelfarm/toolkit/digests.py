"""Contents of files and whole folders as digests, remembered by their stat so that looks are cheap.

A remembered digest counts only while size, times and inode are what they were; new time stamps cost
one reading, never a wrong answer.
"""

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from wheelfarm import files
from wheelfarm.errors import WheelfarmError

_FORMAT = 1
#: A file changed this recently (seconds) could change again within one tick of its time stamp.
_SETTLED = 2.0


class Digests:
    """Digests of paths, remembered in one folder."""

    def __init__(self, memory: Path) -> None:
        self._memory = memory

    def of_file(self, path: Path) -> str:
        """Return the SHA-256 of a file's bytes; OSError where it cannot be read."""
        status = path.stat()
        stamp = _stamp(status)
        return self._remembered(
            path, stamp, max(status.st_mtime, status.st_ctime), lambda: files.sha256(path)
        )

    def of_folder(self, folder: Path) -> str:
        """Return a digest of every file below a folder, by relative name and contents."""
        found = sorted(_walk(str(folder), ""))
        lines = "\n".join(f"{name} {_stamp(status)}" for name, _, status in found)
        stamp = hashlib.sha256(lines.encode(errors="surrogateescape")).hexdigest()
        newest = max((max(item[2].st_mtime, item[2].st_ctime) for item in found), default=0.0)

        def contents() -> str:
            digest = hashlib.sha256()
            for name, path, _ in found:
                line = f"{name}\0{files.sha256(Path(path))}\n"
                digest.update(line.encode(errors="surrogateescape"))
            return digest.hexdigest()

        return self._remembered(folder, stamp, newest, contents)

    def _remembered(self, path: Path, stamp: str, newest: float, compute: Callable[[], str]) -> str:
        real = os.path.realpath(path)
        name = hashlib.sha256(real.encode()).hexdigest()[:32]
        record = self._memory / f"{name}.json"
        try:
            known = json.loads(record.read_text(encoding="utf-8"))
            if known["format"] == _FORMAT and known["path"] == real and known["stamp"] == stamp:
                return str(known["digest"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        digest = compute()
        if newest < time.time() - _SETTLED:
            document = {"format": _FORMAT, "path": real, "stamp": stamp, "digest": digest}
            # A memory that cannot be written (a shared cache, a full disk) only costs time.
            with contextlib.suppress(OSError, WheelfarmError):
                files.write_text(record, json.dumps(document))
        return digest


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def _walk(folder: str, prefix: str) -> Iterator[tuple[str, str, os.stat_result]]:
    # Thousands of headers: plain strings and the scan's own entries keep this a few hundredths of
    # a second.
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name == "__pycache__":
                continue
            if entry.is_dir():
                yield from _walk(entry.path, f"{prefix}{entry.name}/")
            elif entry.is_file():
                yield prefix + entry.name, entry.path, entry.stat()
