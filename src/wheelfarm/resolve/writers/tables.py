"""A table of the user's own TOML document, made where it is not there yet."""

import itertools
from collections.abc import Mapping
from typing import Any

import tomlkit
from tomlkit.items import InlineTable

from wheelfarm.errors import BadInputError
from wheelfarm.model.project_name import normalized
from wheelfarm.reading import parse_toml


def table_at(document: Any, *path: str) -> Any:
    """Return the table at a path; BadInputError where something else stands there."""
    place = document
    for depth, key in enumerate(path):
        if key not in place:
            # What stands in braces has nothing but braces in it.
            place[key] = (
                tomlkit.inline_table()
                if isinstance(place, InlineTable)
                else tomlkit.table(is_super_table=depth + 1 < len(path))
            )
        place = place[key]
        if not hasattr(place, "keys"):
            message = f"{'.'.join(path[: depth + 1])} is no table"
            raise BadInputError(message)
    return place


def value_at(document: Any, *path: str) -> Any:
    """Return what stands at a path; None where nothing does, or no table on the way."""
    place = document
    for key in path:
        if not isinstance(place, Mapping) or key not in place:
            return None
        place = place[key]
    return place


def list_at(table: Any, key: str, where: str) -> Any:
    """Return the list at a table's key, made where there is none; BadInputError for another."""
    found = table.setdefault(key, tomlkit.array().multiline(multiline=True))
    if not isinstance(found, list):
        message = f"{where} is no list"
        raise BadInputError(message)
    return found


def text_of(document: Any, name: str, before: str) -> str:
    """Return a document's text; BadInputError where its layout would lose or move a key.

    Keys with dots at the top that come back to a table they left are such a layout. ``before`` is
    the text that it had: a table that is new beside its neighbour stands apart from it.
    """
    text = _spaced(tomlkit.dumps(document), before)
    try:
        same = parse_toml(text, name) == document.unwrap()
    except BadInputError:
        same = False
    if not same:
        message = f"{name} is laid out so that it cannot be changed without loss"
        hint = "write its dotted keys as tables, each table in one piece, and run again"
        raise BadInputError(message, hint=hint)
    return text


def _spaced(text: str, before: str) -> str:
    """Return a text with a blank line before each table that did not follow its line before."""
    old = [line.rstrip("\r") for line in before.split("\n")]
    followed = set(itertools.pairwise(old))
    lines = text.split("\n")
    found = lines[:1]
    for previous, line in itertools.pairwise(lines):
        pair = (previous.rstrip("\r"), line.rstrip("\r"))
        loose = not pair[0] or pair[0].startswith(("#", "["))
        if line.startswith("[") and not loose and pair not in followed:
            found.append("")
        found.append(line)
    return "\n".join(found)


def key_of(table: Any, name: str) -> str:
    """Return the key that stands in a table for a project, as its user spells it, else ``name``."""
    return next((str(key) for key in table if normalized(str(key)) == normalized(name)), name)


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
