"""A package's part of a manifest as candidates: each wheel's entry is read only if it may serve.

A site writes one entry a line, its file name first, and most names are of another Python or
platform. No JSON string holds a line's end, so lines can be told apart without reading them. A
part that is laid out in another way is read as a whole.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from wheelfarm.errors import BadInputError
from wheelfarm.http import redacted
from wheelfarm.index.model import PACKAGE_SCHEMA, manifest_reader
from wheelfarm.model.axis import TorchAxis
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.reading import parse_json
from wheelfarm.resolve.candidate import Candidate
from wheelfarm.resolve.pages import Fits, Group, Offer, Page, Unread, foreign_package, known_axis

#: How an entry's line begins, and what stands between two, before the first, after the last.
_ENTRY = b'{"filename": "'
_BETWEEN = b"},\n" + _ENTRY
_BEFORE = b', "wheels": [\n' + _ENTRY
_AFTER = b"}\n]}\n"
_AXIS = re.compile(rb'"torch_axis": "([a-z_]+)"')


class _Part:
    """A part's entries: their file names, and each one's entry when it is asked for.

    An entry is JSON's text, or a value where the part was read as a whole; ``nameless`` are those
    without a name that could be a wheel's.
    """

    def __init__(self, body: bytes, context: str) -> None:
        self.document: Any
        self.names: list[str]
        self._lines: list[bytes] = []
        self._wheels: list[Any] = []
        lines = _lines(body)
        if lines is not None:
            head, self._lines = lines
            self.document = parse_json(head, context)
            names = b"\n".join([line[: line.find(b'"')] for line in self._lines])
            # A name that is not ASCII is no wheel's.
            self.names = names.decode("ascii", "replace").split("\n")
        else:
            self.document = parse_json(body, context)
            wheels = self.document.get("wheels") if isinstance(self.document, dict) else None
            if not isinstance(wheels, list):
                message = f"{context}: wheels: expected a list of wheels"
                raise BadInputError(message)
            self._wheels = wheels
            self.names = [_name(wheel) or "" for wheel in wheels]
        # No wheel's name has a character that JSON would write escaped.
        self.nameless = {
            number for number, name in enumerate(self.names) if not name or "\\" in name
        }

    def entry(self, number: int) -> bytes | Mapping[str, Any]:
        """Return an entry's text or value."""
        if self._lines:
            return _ENTRY + self._lines[number] + b"}"
        found: Mapping[str, Any] = self._wheels[number]
        return found

    def axis(self, number: int) -> TorchAxis | None:
        """Return what an entry says of how it depends on torch."""
        if not self._lines:
            return known_axis(self._wheels[number].get("torch_axis"))
        # A quotation mark inside a string is written escaped: this is a key, and its value.
        found = _AXIS.search(self._lines[number])
        return None if found is None else known_axis(found[1].decode("ascii"))

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
    groups: dict[tuple[str, TorchAxis | None], list[int]] = {}
    unfit: list[int] = []
    for number, fitting in enumerate(fits.names(part.names)):
        if number in part.nameless:
            continue
        if fitting:
            version = part.names[number].partition("-")[2].partition("-")[0]
            groups.setdefault((version, part.axis(number)), []).append(number)
        else:
            unfit.append(number)

    def read(numbers: list[int]) -> tuple[tuple[Candidate, ...], Unread]:
        """Read the entries of a group."""
        found: list[Candidate] = []
        unread: list[tuple[str, str]] = []
        for number, entry in zip(numbers, part.entries(numbers), strict=True):
            try:
                offer = _offer(entry, url, context)
            except BadInputError as error:
                unread.append((part.names[number], error.what))
                continue
            why = foreign_package(offer, package)
            if why:
                unread.append((str(offer.name), why))
            else:
                found.append(offer.candidate())
        return tuple(found), tuple(unread)

    def rest() -> Iterator[Offer]:
        """Read the other entries, which only a report asks for; faulty ones are left out."""
        for number in unfit:
            with contextlib.suppress(BadInputError):
                yield _offer(part.entry(number), url, context)

    return Page(
        package=package,
        url=url,
        groups=tuple(
            Group(version_text=text, torch_axis=axis, source=partial(read, numbers))
            for (text, axis), numbers in groups.items()
        ),
        rest=rest,
        refused=(("None", "the manifest's entry has no file name"),) * len(part.nameless),
    )


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
    # A line's end anywhere else: then some entry is laid out in another way.
    return None if any(b"\n" in line for line in (head, *lines)) else (head + b"}", lines)
