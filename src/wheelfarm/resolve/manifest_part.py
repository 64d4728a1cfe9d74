"""A package's part of a manifest as candidates: each wheel's entry is read only if it may serve.

A site writes one entry a line, its file name first, and most names are of another Python or
platform. No JSON string holds a line's end, so lines can be told apart without reading them. A
part that is laid out in another way is read as a whole.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from wheelfarm.errors import BadInputError
from wheelfarm.http import redacted
from wheelfarm.index.model import PACKAGE_SCHEMA, manifest_reader
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.reading import parse_json
from wheelfarm.resolve.pages import Fits, Offer, Page, page_of

#: An entry: as its line without what all lines begin and end with, or as it was read.
_Row = str | Mapping[str, Any]
_WHEELS = ', "wheels": [\n'
_START = '{"filename": "'
_BETWEEN = '},\n{"filename": "'
_END = "}\n]}\n"


def manifest_page(package: str, body: bytes, url: str, fits: Fits) -> Page:
    """Read a manifest's part; BadInputError where it is not one."""
    context = redacted(url)
    document, rows = _rows(body, context)
    manifest_reader(document, context, PACKAGE_SCHEMA)
    offers: list[Offer] = []
    unfit: list[_Row] = []
    unread: list[tuple[str, str]] = []
    for name, row in rows:
        if name is None or "\\" in name:
            # No wheel's name has a character that JSON would write escaped.
            unread.append(("None", "the manifest's entry has no file name"))
        elif fits.name(name):
            try:
                offers.append(_offer(row, url, context))
            except BadInputError as error:
                unread.append((name, error.what))
        else:
            unfit.append(row)
    return page_of(package, url, offers, unread, fits, rest=_reading(unfit, url, context))


def _reading(rows: list[_Row], url: str, context: str) -> Callable[[], Iterator[Offer]]:
    """Return what reads entries when a report asks for them; faulty ones are left out."""

    def offers() -> Iterator[Offer]:
        for row in rows:
            with contextlib.suppress(BadInputError):
                yield _offer(row, url, context)

    return offers


def _offer(row: _Row, url: str, context: str) -> Offer:
    raw = parse_json(f"{_START}{row}}}", context) if isinstance(row, str) else row
    name = WheelName.parse(raw["filename"])
    address = raw.get("url")
    if not isinstance(address, str):
        message = "the manifest's entry has no address"
        raise BadInputError(message)
    return Offer(name=name, serves=name, address=address, page=url, raw=raw, proven=True)


def _rows(body: bytes, context: str) -> tuple[Mapping[str, Any], Iterable[tuple[str | None, _Row]]]:
    """Return a part without its wheels, and each wheel's file name and entry."""
    found = _lines(body)
    if found is not None:
        return parse_json(found[0], context), [(row[: row.find('"')], row) for row in found[1]]
    document = parse_json(body, context)
    wheels = document.get("wheels") if isinstance(document, dict) else None
    if not isinstance(wheels, list):
        message = f"{context}: wheels: expected a list of wheels"
        raise BadInputError(message)
    return document, [(_name(wheel), wheel) for wheel in wheels]


def _name(wheel: Any) -> str | None:
    name = wheel.get("filename") if isinstance(wheel, dict) else None
    return name if isinstance(name, str) else None


def _lines(body: bytes) -> tuple[str, list[str]] | None:
    """Return a part's head and its entries' lines; None where it is not one entry a line."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return None
    # Split at once: each further copy of a long text costs as much as reading it.
    rows = text.split(_BETWEEN)
    head, found, rows[0] = rows[0].partition(_WHEELS + _START)
    if not found or not rows[-1].endswith(_END):
        return None
    rows[-1] = rows[-1].removesuffix(_END)
    # Line ends stand between two entries, and three around them all.
    return (f"{head}}}", rows) if text.count("\n") == len(rows) + 2 else None
