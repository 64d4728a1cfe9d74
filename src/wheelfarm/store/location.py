"""From what a user writes after ``--store`` to the store itself."""

from pathlib import Path

from wheelfarm.errors import BadInputError
from wheelfarm.store.directory import DirectoryStore
from wheelfarm.store.protocol import Store


def open_store(location: str) -> Store:
    """Return the store at a location: so far a folder.

    Raises BadInputError for a scheme that is none.
    """
    if "://" in location:
        scheme = location.partition("://")[0]
        message = f"{scheme!r} is no kind of store"
        raise BadInputError(message, hint="name a folder")
    return DirectoryStore(Path(location))
