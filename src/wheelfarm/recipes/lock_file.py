"""Writing ``farm.lock``, and refusing a source that changed under its name."""

import json
from typing import Any

from wheelfarm import files
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
    if entry.says is not None:
        document["says"] = str(entry.says)
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
