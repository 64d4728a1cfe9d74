"""From what a user writes after ``--store`` to the store itself."""

from pathlib import Path

from wheelfarm.errors import BadInputError
from wheelfarm.store.directory import DirectoryStore
from wheelfarm.store.protocol import Store

#: Schemes of object storage (see ``wheelfarm.store.objects``).
OBJECT_SCHEMES = ("s3", "gs", "az", "azure")


def open_store(location: str) -> Store:
    """Return the store at a location: a folder, ``s3://bucket/prefix``, ``github://owner/repo``.

    Raises BadInputError for a scheme that is none and for a file. Only the kind that is asked for
    is imported.
    """
    scheme, separator, _ = location.partition("://")
    if not separator:
        folder = Path(location)
        if any(path.is_file() for path in (folder, *folder.parents)):
            message = f"{location} is a file, or lies in one; a store is a folder"
            raise BadInputError(message, hint="name another folder")
        return DirectoryStore(folder)
    if scheme == "github":
        from wheelfarm.store.github import GithubStore  # noqa: PLC0415 - one kind at a time

        return GithubStore.open(location)
    if scheme in OBJECT_SCHEMES:
        from wheelfarm.store.objects import ObjectStore  # noqa: PLC0415 - an extra

        return ObjectStore.open(location)
    message = f"{scheme!r} is no kind of store"
    known = ", ".join(f"{each}://" for each in (*OBJECT_SCHEMES, "github"))
    raise BadInputError(message, hint=f"name a folder, or an address that starts with {known}")
