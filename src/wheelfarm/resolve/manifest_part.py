"""A package's part of a manifest as candidates: each wheel's entry is read only if it may serve.

A site writes one entry a line, its file name first, and most names are of another Python or
platform. No JSON string holds a line's end, so lines can be told apart without reading them. A
part that is laid out in another way is read as a whole.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from wheelfarm.errors import BadInputError
from wheelfarm.http import redacted
from wheelfarm.index.model import PACKAGE_SCHEMA, manifest_reader
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.reading import parse_json
from wheelfarm.resolve.pages import Fits, Offer, Page, page_of

#: How an entry's line begins, and what stands between two, before the first, after the last.
_ENTRY = b'{"filename": "'
_BETWEEN = b"},\n" + _ENTRY
_BEFORE = b', "wheels": [\n' + _ENTRY
_AFTER = b"}\n]}\n"


class _Part:
    """A part's entries: their file names, and each one's entry when it is asked for.

    An entry is JSON's text, or a value where the part was read as a whole; ``name`` is None where
    it has none.
    """

    def __init__(self, body: bytes, context: str) -> None:
        self.names: list[str | None]
        lines = _lines(body)
        if lines is not None:
            self.document: Any = parse_json(lines[0], context)
            self._lines, self._wheels = lines[1], []
            names = b"\n".join([line[: line.find(b'"')] for line in self._lines])
            # A name that is not ASCII is no wheel's.
            self.names = [*names.decode("ascii", "replace").split("\n")]
            return
        self.document = parse_json(body, context)
        wheels = self.document.get("wheels") if isinstance(self.document, dict) else None
        if not isinstance(wheels, list):
            message = f"{context}: wheels: expected a list of wheels"
            raise BadInputError(message)
        self._lines, self._wheels = [], wheels
        self.names = [_name(wheel) for wheel in wheels]

    def entry(self, number: int) -> bytes | Mapping[str, Any]:
        """Return an entry's text or value."""
        if self._lines:
            return _ENTRY + self._lines[number] + b"}"
        found: Mapping[str, Any] = self._wheels[number]
        return found

    def entries(self, numbers: list[int]) -> Iterable[bytes | Mapping[str, Any]]:
        """Return entries as values, read at once; as texts where one of them is faulty."""
        found = [self.entry(number) for number in numbers]
        lines = [each for each in found if isinstance(each, bytes)]
        if len(lines) != len(found):
            return found
        try:
            values = parse_json(b"[%b]" % b",".join(lines), "")
        except BadInputError:
            return found
        # A faulty line may yet have made two values of itself, or given another name.
        same = [_name(value) for value in values] == [self.names[number] for number in numbers]
        return values if same else found


def manifest_page(package: str, body: bytes, url: str, fits: Fits) -> Page:
    """Read a manifest's part; BadInputError where it is not one."""
    context = redacted(url)
    part = _Part(body, context)
    manifest_reader(part.document, context, PACKAGE_SCHEMA)
    # No wheel's name has a character that JSON would write escaped.
    bad = {number for number, name in enumerate(part.names) if name is None or "\\" in name}
    unread = [("None", "the manifest's entry has no file name")] * len(bad)
    fitting = fits.names([name or "" for name in part.names])
    fit = [number for number, fits_it in enumerate(fitting) if fits_it and number not in bad]
    unfit = [number for number, fits_it in enumerate(fitting) if not fits_it and number not in bad]
    offers: list[Offer] = []
    for number, entry in zip(fit, part.entries(fit), strict=True):
        try:
            offers.append(_offer(entry, url, context))
        except BadInputError as error:
            unread.append((str(part.names[number]), error.what))

    def rest() -> Iterator[Offer]:
        """Read the other entries, which only a report asks for; faulty ones are left out."""
        for number in unfit:
            with contextlib.suppress(BadInputError):
                yield _offer(part.entry(number), url, context)

    return page_of(package, url, offers, unread, fits, rest=rest)


def _offer(entry: bytes | Mapping[str, Any], url: str, context: str) -> Offer:
    raw = parse_json(entry, context) if isinstance(entry, bytes) else entry
    name = WheelName.parse(raw["filename"])
    address = raw.get("url")
    if not isinstance(address, str):
        message = "the manifest's entry has no address"
        raise BadInputError(message)
    return Offer(name=name, serves=name, address=address, page=url, raw=raw, proven=True)


def _name(wheel: Any) -> str | None:
    name = wheel.get("filename") if isinstance(wheel, dict) else None
    return name if isinstance(name, str) else None


def _lines(body: bytes) -> tuple[bytes, list[bytes]] | None:
    """Return a part's head and its entries' lines, without what all of them begin and end with.

    None where it is not one entry a line.
    """
    # Split at once: each further copy of a long text costs as much as reading it.
    lines = body.split(_BETWEEN)
    head, found, lines[0] = lines[0].partition(_BEFORE)
    if not found or not lines[-1].endswith(_AFTER):
        return None
    lines[-1] = lines[-1].removesuffix(_AFTER)
    # Line ends stand between two entries, and three around them all.
    return (head + b"}", lines) if body.count(b"\n") == len(lines) + 2 else None
