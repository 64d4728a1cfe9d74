"""A package's part of a manifest as candidates: each wheel's entry is read only if it may serve.

A site writes one entry a line, its file name first, and most names are of another Python or
platform. No JSON string holds a line's end, so lines can be told apart without reading them. A
part that is laid out in another way is read as a whole.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from wheelfarm.errors import BadInputError
from wheelfarm.http import redacted
from wheelfarm.index.model import PACKAGE_SCHEMA, manifest_reader
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.reading import parse_json
from wheelfarm.resolve.host import Host
from wheelfarm.resolve.pages import Fits, Offer, Page, page_of

#: An entry: as its line, or as it was read.
_Row = str | Mapping[str, Any]
_WHEELS = ', "wheels": [\n'
_END = "\n]}\n"
_BETWEEN = ",\n"
_NAME = '{"filename": "'


def manifest_page(package: str, body: bytes, url: str, host: Host) -> Page:
    """Read a manifest's part; BadInputError where it is not one."""
    document, rows = _rows(body, redacted(url))
    manifest_reader(document, redacted(url), PACKAGE_SCHEMA)
    fits = Fits(host)
    offers: list[Offer] = []
    unfit: list[_Row] = []
    unread: list[tuple[str, str]] = []
    for name, row in rows:
        if name is None:
            unread.append((str(name), "the manifest's entry has no file name"))
        elif fits.name(name):
            try:
                offers.append(_offer(row, url))
            except BadInputError as error:
                unread.append((name, error.what))
        else:
            unfit.append(row)
    return page_of(package, url, offers, unread, fits, rest=_reading(unfit, url))


def _reading(rows: list[_Row], url: str) -> Callable[[], Iterator[Offer]]:
    """Return what reads entries when a report asks for them; faulty ones are left out."""

    def offers() -> Iterator[Offer]:
        for row in rows:
            with contextlib.suppress(BadInputError):
                yield _offer(row, url)

    return offers


def _offer(row: _Row, url: str) -> Offer:
    raw = parse_json(row, redacted(url)) if isinstance(row, str) else row
    name = WheelName.parse(raw["filename"])
    address = raw.get("url")
    if not isinstance(address, str):
        message = "the manifest's entry has no address"
        raise BadInputError(message)
    return Offer(name=name, serves=name, address=address, page=url, raw=raw, proven=True)


def _rows(body: bytes, context: str) -> tuple[Mapping[str, Any], list[tuple[str | None, _Row]]]:
    """Return a part without its wheels, and each wheel's file name and entry."""
    found = _lines(body)
    if found is not None:
        return parse_json(found[0], context), [(_name(line), line) for line in found[1]]
    document = parse_json(body, context)
    wheels = document.get("wheels") if isinstance(document, dict) else None
    if not isinstance(wheels, list):
        message = f"{context}: wheels: expected a list of wheels"
        raise BadInputError(message)
    rows: list[tuple[str | None, _Row]] = []
    for wheel in wheels:
        name = wheel.get("filename") if isinstance(wheel, dict) else None
        rows.append((name if isinstance(name, str) else None, wheel))
    return document, rows


def _lines(body: bytes) -> tuple[str, list[str]] | None:
    """Return a part's head and its entries' lines; None where it is not one entry a line."""
    try:
        head, found, rest = body.decode("utf-8").partition(_WHEELS)
    except UnicodeDecodeError:
        return None
    if not found or not rest.endswith(_END):
        return None
    lines = rest.removesuffix(_END).split(_BETWEEN)
    plain = all(line.startswith(_NAME) and line.endswith("}") for line in lines)
    return (head + "}", lines) if plain else None


def _name(line: str) -> str | None:
    """Return an entry's file name; one with an escape is no wheel's, and None."""
    name = line[len(_NAME) : line.find('"', len(_NAME))]
    return None if "\\" in name else name
