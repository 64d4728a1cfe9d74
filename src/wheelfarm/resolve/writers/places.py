"""Which places of a user's own file are ours: the lock's note lists them, as paths of keys.

What is ours may be changed and taken out again; the rest is the user's, and stays.
"""

from collections.abc import Mapping
from typing import Any

import tomlkit

from wheelfarm.resolve.lock import WRITTEN, Question
from wheelfarm.resolve.writers.tables import table_at, value_at

Path = tuple[str, ...]
_PACKAGES = "pypi-dependencies"


class Places:
    """The places that earlier runs wrote into a document, and those that this one does."""

    def __init__(self, document: Any) -> None:
        self.document = document
        listed = value_at(document, "tool", "wheelfarm", "lock", WRITTEN)
        listed = listed if isinstance(listed, list) else []
        self.before = [tuple(map(str, path)) for path in listed if isinstance(path, list)]
        self.now: set[Path] = set()

    def are_ours(self, path: Path) -> bool:
        """Return whether what stands at a place was put there by us."""
        return path in self.before or path in self.now

    def claim(self, path: Path) -> None:
        """Note that a place is ours: nothing is there yet, or we put there what is."""
        if value_at(self.document, *path) is None or self.are_ours(path):
            self.now.add(path)

    def stale(self) -> list[Path]:
        """Return the places that were ours and are not written any more."""
        return [path for path in self.before if path not in self.now]

    def take_out(self, name: str) -> tuple[str, ...]:
        """Take out what was ours and is not written any more; return what is to be said of it."""
        for path in self.stale():
            _remove(self.document, path)
        return self.taken_out(name)

    def taken_out(self, name: str) -> tuple[str, ...]:
        """Return what is to be said of the places that are taken out."""
        gone = {path[-1] for path in self.stale() if path[0] == "project" or _PACKAGES in path}
        gone -= {path[-1] for path in self.now}
        if not gone:
            return ()
        names = ", ".join(sorted(gone))
        return (f"took {names} out of {name}, as what is asked for now has no need of it",)

    def note(self, question: Question) -> None:
        """Say in the document what its lock answers, and which places are ours."""
        lines = tomlkit.array()
        for path in sorted(self.now):
            lines.append(list(path))
        lines.multiline(multiline=True)
        note = question.to_dict()
        profiles = note.pop("profiles")
        table_at(self.document, "tool", "wheelfarm", "lock")
        self.document["tool"]["wheelfarm"]["lock"] = {**note, WRITTEN: lines, "profiles": profiles}


def _remove(document: Any, path: Path) -> None:
    """Take out what stands at a place, and the tables that are empty without it."""
    tables = [document]
    for key in path[:-1]:
        if not isinstance(tables[-1], Mapping) or key not in tables[-1]:
            return
        tables.append(tables[-1][key])
    for table, key in reversed(list(zip(tables, path, strict=True))):
        if not isinstance(table, Mapping) or key not in table:
            return
        found = table[key]
        if key != path[-1] and isinstance(found, Mapping) and len(found):
            return
        del table[key]  # type: ignore[attr-defined] # A table of the document's.
