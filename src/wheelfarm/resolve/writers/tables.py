"""A table of the user's own TOML document, made where it is not there yet."""

from collections.abc import Mapping
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


def carry(text: str, carried: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return a TOML text with what it lacks of other tables, and the keys where the two differ.

    What stands in the text stays.
    """
    document = tomlkit.parse(text)
    differing: list[str] = []
    _carry(document, carried, "", differing)
    return tomlkit.dumps(document), differing


def _carry(place: Any, carried: Mapping[str, Any], path: str, differing: list[str]) -> None:
    for key, value in carried.items():
        where = f"{path}.{key}" if path else key
        if key not in place:
            place[key] = value
        elif isinstance(value, Mapping) and hasattr(place[key], "keys"):
            _carry(place[key], value, where, differing)
        elif place[key] != value:
            differing.append(where)
