"""A table of the user's own TOML document, made where it is not there yet."""

from typing import Any

import tomlkit

from wheelfarm.errors import BadInputError


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
