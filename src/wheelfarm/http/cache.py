"""Pages kept on disk with their ETag: asked again only whether they changed, and read offline.

An entry is one file, written whole or not at all; one that is damaged counts as absent. The folder
is the user's alone.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from wheelfarm.places import cache_root
from wheelfarm.values import value

_KEPT_HEADERS = ("etag", "last-modified", "content-type")


@value
class Cached:
    """A page as it was: final address, the headers that are kept, body."""

    url: str
    headers: dict[str, str]
    body: bytes

    def conditions(self) -> dict[str, str]:
        """Return the request headers that ask whether the page has changed."""
        if "etag" in self.headers:
            return {"If-None-Match": self.headers["etag"]}
        if "last-modified" in self.headers:
            return {"If-Modified-Since": self.headers["last-modified"]}
        return {}


def default_folder() -> Path:
    """Return the folder of the user's pages, beside all other caches."""
    return cache_root() / "pages"


class Cache:
    """Pages by address and kind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, url: str, accept: str) -> Cached | None:
        """Return the page as it was last seen; None where it is not here whole."""
        try:
            data = self._path(url, accept).read_bytes()
            head, _, body = data.partition(b"\n")
            entry = json.loads(head)
            if entry["sha256"] != hashlib.sha256(body).hexdigest():
                return None
            headers = {str(name): str(value) for name, value in entry["headers"].items()}
            return Cached(url=str(entry["url"]), headers=headers, body=body)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def put(
        self, url: str, accept: str, final: str, headers: Mapping[str, str], body: bytes
    ) -> None:
        """Keep a page; a cache that cannot be written is no error."""
        kept = {name: headers[name] for name in _KEPT_HEADERS if name in headers}
        digest = hashlib.sha256(body).hexdigest()
        head = json.dumps({"url": _public(final), "headers": kept, "sha256": digest})
        import tempfile

        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=".page.", suffix=".part", dir=self.folder)
            try:
                with os.fdopen(handle, "wb") as stream:
                    stream.write(head.encode() + b"\n" + body)
                Path(name).replace(self._path(url, accept))
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise

    def _path(self, url: str, accept: str) -> Path:
        key = hashlib.sha256(f"{accept}\n{_public(url)}".encode()).hexdigest()
        return self.folder / f"{key}.page"


def _public(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
