"""Which places of a user's own file are ours: the lock's note lists them, as paths of keys.

What is ours may be changed and taken out again; the rest is the user's, and stays.
"""

from collections.abc import Collection
from typing import Any

import tomlkit

from wheelfarm.resolve.lock import WRITTEN, Question
from wheelfarm.resolve.writers.tables import table_at, value_at

Path = tuple[str, ...]


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

    def stale(self) -> list[Path]:
        """Return the places that were ours and are not written any more."""
        return [path for path in self.before if path not in self.now]

    def note(self, question: Question, gone: Collection[Path]) -> None:
        """Say in the document what its lock answers, and which places are ours."""
        kept = {path for path in self.before if path not in gone}
        lines = tomlkit.array()
        for path in sorted(kept | self.now):
            lines.append(list(path))
        lines.multiline(multiline=True)
        note = question.to_dict()
        profiles = note.pop("profiles")
        table_at(self.document, "tool", "wheelfarm", "lock")
        self.document["tool"]["wheelfarm"]["lock"] = {**note, WRITTEN: lines, "profiles": profiles}

    def taken_out(self, name: str, gone: Collection[Path]) -> tuple[str, ...]:
        """Return what is to be said of places that were ours and are no more."""
        names = sorted({path[-1] for path in gone} - {path[-1] for path in self.now})
        if not names:
            return ()
        return (f"took {', '.join(names)} out of {name}: it is not asked for any more",)
