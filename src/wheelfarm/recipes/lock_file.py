"""Writing ``farm.lock``, and refusing a source that changed under its name."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from wheelfarm import files
from wheelfarm.errors import Fault, FaultsError
from wheelfarm.http import redacted
from wheelfarm.recipes.lock import (
    SCHEMA,
    FarmLock,
    LockedArchive,
    LockedCommit,
    LockedFolder,
    LockEntry,
)
from wheelfarm.recipes.model import Farm


def dump_lock(lock: FarmLock) -> str:
    """Return a lock's text: sorted by package, so that a difference shows what changed."""
    packages = {name: _entry_dict(entry) for name, entry in sorted(lock.entries.items())}
    return json.dumps({"schema": SCHEMA, "packages": packages}, indent=2) + "\n"


def _entry_dict(entry: LockEntry) -> dict[str, Any]:
    document: dict[str, Any] = {"source": entry.spec}
    if entry.version is not None:
        document["version"] = str(entry.version)
    match entry.source:
        case LockedArchive(url=url, file_name=name, sha256=sha256):
            document |= {"file": name, "url": redacted(url), "sha256": sha256}
        case LockedCommit(url=url, commit=commit, submodules=submodules):
            document |= {"url": url, "commit": commit}
            if submodules:
                document["submodules"] = True
        case LockedFolder(path=path):
            document["folder"] = path
    if entry.survey:
        document |= {"survey": entry.survey, "evidence": entry.evidence}
        document["patches"] = entry.patches
    return document


def save_lock(farm: Farm, lock: FarmLock) -> None:
    """Write a farm's lock, whole or not at all; entries without a recipe are left out."""
    kept = {name: entry for name, entry in lock.entries.items() if name in farm.recipes}
    files.write_text(farm.lock_path, dump_lock(FarmLock(entries=kept)))


def check_unchanged(
    lock: FarmLock, found: Mapping[str, LockEntry], packages: Iterable[str]
) -> None:
    """Raise FaultsError for every package whose source is not what the lock says.

    An entry that was made from another spec (the recipe was changed) is not compared.
    """
    faults = []
    for name in packages:
        old, new = lock.entries.get(name), found.get(name)
        if old is None or new is None or old.spec != new.spec:
            continue
        if old.source.identity != new.source.identity:
            message = f"{new.spec} was {old.source.identity} and is now {new.source.identity}"
            faults.append(Fault(name, message))
    if faults:
        title = "the source changed under its name; nothing was written"
        raise FaultsError(
            title, faults, hint="find out why; `wheelfarm lock --update` takes the new one"
        )
