"""The one protocol of all stores: blobs by content hash, and one catalogue per package.

Keys are paths with ``/``: ``files/<package>/<sha256>/<wheel>``, ``…/<wheel>.metadata`` and
``reports/<package>/<sha256>.json``. A blob under a key never changes. Catalogues, and beside them
what a package's units cost to build, change as a whole and only from the state that the writer has
seen.
"""

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from wheelfarm.errors import BadInputError, CouldNotLookError, NegativeVerdictError
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.store.model import Catalogue, Record, Records

#: How often a catalogue's change is tried again when another host was faster.
ATTEMPTS = 20


class StoreError(CouldNotLookError):
    """A store did not answer, or not with what was put into it."""


class StoreConflictError(CouldNotLookError):
    """A catalogue is no longer in the state from which it should be changed."""


class RefusedError(NegativeVerdictError):
    """A wheel may not enter the store; the store is as it was."""


class BlobMissingError(CouldNotLookError):
    """The store has nothing under a key."""

    def __init__(self, key: str, location: str) -> None:
        self.key = key
        super().__init__(f"{location} has no {key}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Blob:
    """A file in the store: its key, size in bytes, and when it was written (UTC)."""

    key: str
    size: int
    modified: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class CostState:
    """What a store has of a package's costs: documents (their union counts), the state's token."""

    documents: tuple[bytes, ...] = ()
    token: str = ""


class StoreReader(Protocol):
    """What a store tells. All methods may raise StoreError."""

    @property
    def location(self) -> str:
        """What a user gives to open this store; it never holds a secret."""

    def heads(self) -> Mapping[str, str]:
        """Return each package with what tells its catalogue's present state from any other.

        A catalogue that was read tells it too, as ``head``.
        """

    def catalogue(self, package: str) -> Catalogue:
        """Return a package's records; an unknown package has none."""

    def fetch(self, key: str, target: Path) -> None:
        """Write a blob's bytes to ``target``; raises BlobMissingError."""

    def local(self, key: str) -> Path | None:
        """Return the path of a blob that lies on this machine, None for stores elsewhere.

        Raises BlobMissingError where a store on this machine has none.
        """

    def folder(self) -> Path | None:
        """Return the folder that holds all ``files/`` of a store on this machine, else None."""

    def hashes(self, package: str) -> frozenset[str]:
        """Return the hashes under which files of a package stand: cheaper than ``blobs``."""

    def blobs(self, package: str) -> Iterator[Blob]:
        """Return every file of a package."""


class Store(StoreReader, Protocol):
    """Where wheels, their reports and catalogues are kept. All methods may raise StoreError."""

    def replace(self, package: str, records: Records, token: str) -> str:
        """Write a catalogue whose state is still ``token``; return the new one.

        Raises StoreConflictError where it is not.
        """

    def costs(self, package: str) -> CostState:
        """Return what the units of a package cost; an unknown package has none."""

    def replace_costs(self, package: str, data: bytes, token: str) -> None:
        """Write a package's costs whose state is still ``token``.

        Raises StoreConflictError where it is not.
        """

    def put(self, key: str, source: Path, sha256: str) -> str:
        """Store a file's bytes; read them back; return the blob's address for records.

        The same bytes again are no change. Raises RefusedError where other bytes stand there,
        StoreError where what was read back is not what was written.
        """

    def delete(self, key: str) -> None:
        """Remove a blob; nothing there is fine."""


def wheel_key(package: str, sha256: str, filename: str) -> str:
    """Return the key of a wheel; raises BadInputError where the name is no wheel's."""
    WheelName.parse(filename)
    return f"files/{_checked(package)}/{_digest(sha256)}/{filename}"


def metadata_key(key: str) -> str:
    """Return the key of a wheel's metadata file (PEP 658)."""
    return f"{key}.metadata"


def report_key(package: str, sha256: str) -> str:
    """Return the key of a report."""
    return f"reports/{_checked(package)}/{_digest(sha256)}.json"


def key_of(record: Record) -> str:
    """Return the key of a record's wheel."""
    return wheel_key(record.entry.name.package, record.sha256, record.filename)


def update(
    store: Store, package: str, change: Callable[[dict[str, Record]], dict[str, Record] | None]
) -> Records:
    """Change a package's catalogue whoever else does so at once; return its new records.

    ``change`` gets the records and returns the new ones, or None for no change; it may run several
    times. Raises what ``change`` raises, and StoreConflictError after too many attempts.
    """
    for _ in attempts(f"the catalogue of {package} in {store.location}"):
        state = store.catalogue(package)
        records = state.records
        changed = change(dict(records))
        if changed is None or changed == records:
            return records
        with contextlib.suppress(StoreConflictError):
            store.replace(package, changed, state.token)
            return changed
    raise AssertionError  # ``attempts`` ends with an error of its own.


def attempts(what: str) -> Iterator[int]:
    """Count attempts at a change that other hosts may make at once, with a pause between them.

    Raises StoreConflictError after too many.
    """
    for attempt in range(ATTEMPTS):
        yield attempt
        # Not for security: two hosts only must not try again in step.
        time.sleep(random.uniform(0, 0.02 * 2 ** min(attempt, 6)))  # noqa: S311
    message = f"{what} changes all the time"
    raise StoreConflictError(message, hint="run again when fewer hosts publish at once")


def _checked(package: str) -> str:
    if not package or not set(package) <= set("abcdefghijklmnopqrstuvwxyz0123456789-"):
        message = f"{package!r} is no normalised package name"
        raise BadInputError(message)
    return package


def _digest(text: str) -> str:
    if len(text) != 64 or not set(text) <= set("0123456789abcdef"):  # noqa: PLR2004 - SHA-256
        message = f"{text!r} is no SHA-256"
        raise BadInputError(message)
    return text
