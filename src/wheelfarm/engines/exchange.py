"""What jobs hand to each other: named files in a shared folder or an object storage.

Shard plans, shards' archives, wheels and reports pass through here, never through a scheduler. A
file is there whole or not at all; one that must exist once only (a cell's shard plan) is put with
``put_new``.
"""

import os
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from wheelfarm import files
from wheelfarm.errors import BadInputError, CouldNotLookError


class Exchange(Protocol):
    """Named files; every method may raise CouldNotLookError."""

    @property
    def location(self) -> str:
        """What a user gives to open this exchange; it never holds a secret."""

    def put(self, name: str, source: Path) -> None:
        """Store a file under a name, in the place of what stood there."""

    def put_new(self, name: str, source: Path) -> bool:
        """Store a file under a name that must be free; False where it is taken."""

    def get(self, name: str, target: Path) -> bool:
        """Write a file's bytes to ``target``; False where there is none of that name."""


class FolderExchange:
    """An exchange in a folder that all workers see."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def location(self) -> str:
        """The folder."""
        return str(self.root)

    def put(self, name: str, source: Path) -> None:
        """Copy a file into the folder."""
        files.copy(source, self._path(name))

    def put_new(self, name: str, source: Path) -> bool:
        """Copy a file into the folder where its name is free."""
        return files.copy_new(source, self._path(name))

    def get(self, name: str, target: Path) -> bool:
        """Copy a file out of the folder."""
        try:
            files.copy(self._path(name), target)
        except FileNotFoundError:
            return False
        return True

    def _path(self, name: str) -> Path:
        return self.root / _checked(name)


class ObjectExchange:
    """An exchange under an object storage's address, such as ``s3://bucket/jobs``.

    ``store`` is an obstore store. Credentials come from where the storage's own tools take them.
    """

    def __init__(self, location: str, store: Any) -> None:
        self._location = location
        self._store = store

    @property
    def location(self) -> str:
        """The address."""
        return self._location

    def put(self, name: str, source: Path) -> None:
        """Upload a file."""
        self._upload(name, source, "overwrite")

    def put_new(self, name: str, source: Path) -> bool:
        """Upload a file whose name must be free; the storage itself decides who was first."""
        return self._upload(name, source, "create")

    def get(self, name: str, target: Path) -> bool:
        """Download a file."""
        import obstore  # noqa: PLC0415 - an extra; only its users pay for it

        try:
            found = obstore.get(self._store, _checked(name))
            with files.replacing(target) as temporary, temporary.open("wb") as stream:
                for chunk in found.stream():
                    stream.write(chunk)
        except FileNotFoundError:
            return False
        except obstore.exceptions.BaseError as error:
            raise self._failed(name, error) from error
        return True

    def _upload(self, name: str, source: Path, mode: Literal["create", "overwrite"]) -> bool:
        import obstore  # noqa: PLC0415 - as above

        try:
            obstore.put(self._store, _checked(name), source, mode=mode)
        except obstore.exceptions.AlreadyExistsError:
            return False
        except obstore.exceptions.BaseError as error:
            raise self._failed(name, error) from error
        return True

    def _failed(self, name: str, error: Exception) -> CouldNotLookError:
        # The storage's own text may hold a signed address: only its first words are shown.
        message = f"{self._location} did not take or give {name}"
        return CouldNotLookError(
            message,
            cause=str(error).splitlines()[0].partition("?")[0][:200] or type(error).__name__,
            hint="an expired token or a missing right gives this too: renew the credentials",
        )


def open_exchange(location: str) -> Exchange:
    """Return the exchange at a location: a folder, or an address that obstore knows.

    Raises BadInputError for an address of no known kind, CouldNotLookError without obstore.
    """
    if "://" not in location:
        return FolderExchange(Path(location).absolute())
    try:
        import obstore.store as stores  # noqa: PLC0415 - as above
        from obstore.exceptions import BaseError  # noqa: PLC0415 - as above
    except ImportError as error:
        message = f"the exchange {location} needs obstore, which is not installed"
        raise CouldNotLookError(message, hint="pip install 'wheelfarm[objects]'") from error
    try:
        # Plain HTTP carries the credentials for all to read: on this machine alone.
        endpoint = urlsplit(os.environ.get("AWS_ENDPOINT_URL", "")).hostname
        plain = endpoint in {"127.0.0.1", "localhost", "::1"}
        store = stores.from_url(location, client_options={"allow_http": plain})
    except (BaseError, ValueError) as error:
        message = f"{location} is no exchange"
        raise BadInputError(message, cause=str(error).splitlines()[0]) from error
    return ObjectExchange(location, store)


def _checked(name: str) -> str:
    pure = PurePosixPath(name)
    if not name or pure.is_absolute() or ".." in pure.parts:
        message = f"{name!r} is no name in an exchange"
        raise BadInputError(message)
    return name
