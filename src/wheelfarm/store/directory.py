"""A store in a folder: whole files or none, one lock per package, no server."""

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath

from wheelfarm import files
from wheelfarm.errors import BadInputError
from wheelfarm.store.model import Catalogue, Records, catalogue_bytes
from wheelfarm.store.protocol import (
    Blob,
    BlobMissingError,
    CostState,
    RefusedError,
    StoreConflictError,
    StoreError,
)

#: What a store's folder holds; a first publish that was cut short leaves it without a catalogue.
_AREAS = frozenset({"catalogue", "costs", "files", "locks", "reports"})


class DirectoryStore:
    """A store under ``root``, made on the first write.

    ``files/``, ``reports/`` and ``catalogue/`` may be served as they are. A catalogue's token is
    the hash of its bytes; its lock lies in ``locks/`` and ends with the process that holds it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def location(self) -> str:
        """The folder."""
        return str(self.root)

    def heads(self) -> Mapping[str, str]:
        """Return each package with the hash of its catalogue.

        Raises StoreError for a folder that holds something else: a misspelt store is not an empty
        one, from which everything would be built, and nothing listed.
        """
        folder = self.root / "catalogue"
        if not folder.is_dir():
            found = self.root.iterdir() if self.root.is_dir() else ()
            if foreign := {path.name for path in found} - _AREAS:
                message = f"{self.root} is no store: it has no folder 'catalogue'"
                cause = f"it holds other things, such as {min(foreign)!r}"
                raise StoreError(message, cause=cause, hint="name the store's own folder")
            return {}
        return {
            path.stem: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.glob("*.json"))
            if not path.name.startswith(".")
        }

    def catalogue(self, package: str) -> Catalogue:
        """Return a package's records."""
        path = self._catalogue_path(package)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return Catalogue(package=package)
        return Catalogue(package=package, data=data, token=hashlib.sha256(data).hexdigest())

    def replace(self, package: str, records: Records, token: str) -> str:
        """Write a catalogue whose state is still ``token``."""
        path = self._catalogue_path(package)
        return self._replace(path, catalogue_bytes(package, records), token)

    def costs(self, package: str) -> CostState:
        """Return what the units of a package cost."""
        try:
            data = self._path(f"costs/{package}.json").read_bytes()
        except FileNotFoundError:
            return CostState()
        return CostState(documents=(data,), token=hashlib.sha256(data).hexdigest())

    def replace_costs(self, package: str, data: bytes, token: str) -> None:
        """Write a package's costs whose state is still ``token``."""
        self._replace(self._path(f"costs/{package}.json"), data, token)

    def _replace(self, path: Path, data: bytes, token: str) -> str:
        package = path.stem
        with files.locked(self.root / "locks" / f"{package}.lock"):
            found = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
            if found != token:
                message = f"the {path.parent.name} of {package} changed"
                raise StoreConflictError(message)
            files.write_bytes(path, data)
        return hashlib.sha256(data).hexdigest()

    def put(self, key: str, source: Path, sha256: str) -> str:
        """Store a file's bytes, read them back, and return the key."""
        target = self._path(key)
        if target.exists():
            if files.sha256(target) == sha256:
                return key
            message = f"{key} stands in {self.location} with other bytes"
            raise RefusedError(message, cause="the file was damaged or changed in the store")
        files.remove_dead(target)
        files.copy(source, target)
        found = files.sha256(target)
        if found != sha256:
            files.remove(target)
            message = f"{key} was read back with sha256 {found}, expected {sha256}"
            raise StoreError(
                message, cause="the file changed while it was stored, or the disk lies"
            )
        return key

    def fetch(self, key: str, target: Path) -> None:
        """Copy a blob to ``target``."""
        try:
            files.copy(self._path(key), target)
        except FileNotFoundError as error:
            raise BlobMissingError(key, self.location) from error

    def local(self, key: str) -> Path | None:
        """Return the blob's path; raises BlobMissingError where there is none."""
        path = self._path(key)
        if not path.is_file():
            raise BlobMissingError(key, self.location)
        return path

    def folder(self) -> Path | None:
        """Return the folder of the hosted files."""
        return self.root / "files"

    def hashes(self, package: str) -> frozenset[str]:
        """Return the names of the package's folders, one for each hash."""
        try:
            with os.scandir(self._path(f"files/{package}")) as entries:
                return frozenset(entry.name for entry in entries)
        except FileNotFoundError:
            return frozenset()

    def blobs(self, package: str) -> Iterator[Blob]:
        """Return every file of a package; half-written ones are no files yet."""
        for area in ("files", "reports"):
            folder = self._path(f"{area}/{package}")
            for path in sorted(folder.rglob("*")):
                if path.is_file() and not files.is_unfinished(path):
                    key = path.relative_to(self.root).as_posix()
                    status = path.stat()
                    modified = datetime.fromtimestamp(status.st_mtime, timezone.utc)
                    yield Blob(key=key, size=status.st_size, modified=modified)

    def delete(self, key: str) -> None:
        """Remove a blob, and its folder where that is empty now."""
        path = self._path(key)
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            path.parent.rmdir()

    def _catalogue_path(self, package: str) -> Path:
        return self._path(f"catalogue/{package}.json")

    def _path(self, key: str) -> Path:
        pure = PurePosixPath(key)
        if pure.is_absolute() or ".." in pure.parts:
            message = f"{key!r} is no key of a store"
            raise BadInputError(message)
        return self.root / pure
