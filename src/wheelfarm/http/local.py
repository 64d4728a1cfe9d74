"""Addresses of this machine (``file://``): an index in a folder, as a bundle has it."""

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from wheelfarm import files
from wheelfarm.http.errors import HashMismatchError, NotFoundError, TooLargeError, UnreachableError

_KINDS = {".json": "application/json", ".html": "text/html"}


def local_path(url: str) -> Path:
    """Return the file at an address, a folder's ``index.html``; NotFoundError where none is."""
    if urlsplit(url).netloc not in {"", "localhost"}:
        raise UnreachableError(url, "a file address of another machine")
    path = Path(file_path(url))
    if path.is_dir():
        path /= "index.html"
    if not path.is_file():
        raise NotFoundError(url, 404)
    return path


def file_path(url: str, *, windows: bool = os.name == "nt") -> str:
    """Return the path that a ``file:`` address names (RFC 8089; on Windows with its drive)."""
    path = unquote(urlsplit(url).path)
    return path[1:] if windows and re.match(r"/[A-Za-z]:", path) else path


def local_headers(path: Path) -> dict[str, str]:
    """Return the headers that a server of files would send."""
    return {"content-type": _KINDS.get(path.suffix, "application/octet-stream")}


def read(path: Path, limit: int) -> bytes:
    """Return a file's bytes; TooLargeError for more than ``limit``."""
    if path.stat().st_size > limit:
        raise TooLargeError(path.as_uri(), limit)
    return path.read_bytes()


def copy(source: Path, target: Path, sha256: str | None, limit: int) -> str:
    """Copy a file, whole or not at all; return its SHA-256, HashMismatchError for another."""
    if source.stat().st_size > limit:
        raise TooLargeError(source.as_uri(), limit)
    actual = files.sha256(source)
    if sha256 is not None and actual != sha256:
        raise HashMismatchError(source.as_uri(), sha256, actual)
    files.copy(source, target)
    return actual
