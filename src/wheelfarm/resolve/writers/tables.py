"""A table of the user's own TOML document, made where it is not there yet."""

from typing import Any

import tomlkit

from wheelfarm.errors import BadInputError
from wheelfarm.model.project_name import normalized
from wheelfarm.resolve.lock import Question


def table_at(document: Any, *path: str) -> Any:
    """Return the table at a path; BadInputError where something else stands there."""
    place = document
    for depth, key in enumerate(path):
        if key not in place:
            place[key] = tomlkit.table(is_super_table=depth + 1 < len(path))
        place = place[key]
        if not hasattr(place, "keys"):
            message = f"{'.'.join(path[: depth + 1])} is no table"
            raise BadInputError(message)
    return place


def key_of(table: Any, name: str) -> str:
    """Return the key that stands in a table for a project, as its user spells it, else ``name``."""
    return next((str(key) for key in table if normalized(str(key)) == normalized(name)), name)


def write_note(document: Any, question: Question) -> None:
    """Say in a document what its lock answers."""
    table_at(document, "tool", "wheelfarm", "lock")
    document["tool"]["wheelfarm"]["lock"] = question.to_dict()
