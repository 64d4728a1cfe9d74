"""How verbs print: one JSON document, or a table; colour only in a terminal that wants it."""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wheelfarm.errors import FaultsError, WheelfarmError

#: What a failed command prints where it was asked for JSON.
ERROR_SCHEMA = "wheelfarm.error/1"

#: The schemas of what was printed so far: a command prints one document, also where it then fails.
_printed: list[str] = []


def print_json(schema: str, document: Mapping[str, Any]) -> None:
    """Print one document, with its schema (``wheelfarm.plan/1``) first."""
    _printed.append(schema)
    text = {"schema": schema, **document}
    json.dump(text, sys.stdout, indent=2, ensure_ascii=_needs_ascii())
    sys.stdout.write("\n")


def print_json_rows(
    schema: str,
    document: Mapping[str, Any],
    rows: Mapping[str, Iterable[Mapping[str, Any]]],
) -> None:
    """Print one document whose long lists (``rows``) stand one entry a line, written fast."""
    _printed.append(schema)
    encode = json.JSONEncoder(ensure_ascii=_needs_ascii(), separators=(", ", ": ")).encode
    head = encode({"schema": schema, **document})[:-1]
    parts = []
    for key, items in rows.items():
        lines = ",\n".join(map(encode, items))
        parts.append(f"{encode(key)}: [\n{lines}\n]")
    sys.stdout.write(",\n".join([head, *parts]) + "}\n")


def print_error_json(error: WheelfarmError, *, exit_status: int | None = None) -> None:
    """Print an error as the command's one document; nothing where that was printed before."""
    if _printed:
        return
    faults = error.faults if isinstance(error, FaultsError) else ()
    document = {
        "exit_status": error.exit_code if exit_status is None else exit_status,
        "what": error.what,
        "cause": error.cause,
        "next": error.hint,
        "faults": [
            {"place": fault.context, "line": fault.line, "message": fault.message}
            for fault in faults
        ],
    }
    print_json(ERROR_SCHEMA, document)


def _needs_ascii() -> bool:
    """Return whether JSON must escape letters: stdout's encoding is one that lacks some."""
    return "utf" not in (sys.stdout.encoding or "utf-8").lower()


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print columns under a header, each as wide as its widest entry."""
    lines = [tuple(header), *(tuple(map(_one_line, row)) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        cells = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        print("  ".join(cells).rstrip())


def _one_line(text: str) -> str:
    return clean("; ".join(line.strip() for line in text.split("\n") if line.strip()))


def clean(text: str) -> str:
    """Return foreign text without control characters, which could rewrite a terminal's lines."""
    return "".join(char if char.isprintable() else "�" for char in text)


def clean_lines(text: str) -> str:
    """Return foreign text of several lines without control characters; its layout stays."""
    return "".join(char if char in "\n\t" else clean(char) for char in text)


def wants_colour() -> bool:
    """Return whether stdout is a terminal whose user did not switch colour off (no-color.org)."""
    return (
        sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def coloured(text: str, colour: str) -> str:
    """Return ``text`` in ``green``, ``yellow``, ``red`` or ``dim`` where colour is wanted."""
    code = {"green": "32", "yellow": "33", "red": "31", "dim": "2"}[colour]
    return f"\x1b[{code}m{text}\x1b[0m" if wants_colour() else text
