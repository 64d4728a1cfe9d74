"""The one door to foreign data: typed getters over parsed documents that know where they stand.

A ``Reader`` walks one parsed document. Every getter takes a key and the kind that must stand
there; a fault is collected with its key path (``recipe diso: build_matrix.combinations[2].torch``)
and the reading goes on, so that a user sees all mistakes of a file at once. ``finish`` raises them
together. A key that nobody asked for is a fault, with the nearest known key as a suggestion.
"""

import codecs
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from wheelfarm.errors import BadInputError, Fault, FaultsError

T = TypeVar("T")

#: (key path) -> line, for formats whose parser knows lines; paths are tuples of keys and indexes.
Lines = Mapping[tuple[str | int, ...], int]

#: What Windows' editors put before UTF-8 text; it is no part of the text.
BYTE_ORDER_MARK = "\ufeff"
#: UTF-32's marks begin like UTF-16's, so they are looked for first.
_OTHER_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)

_NAMES = {str: "a string", int: "a whole number", bool: "true or false", float: "a number"}


class Reader:
    """One mapping of a document, and where it stands in it."""

    def __init__(
        self,
        data: object,
        context: str,
        *,
        path: tuple[str | int, ...] = (),
        lines: Lines | None = None,
        faults: list[Fault] | None = None,
    ) -> None:
        self.context = context
        self.path = path
        self.lines = lines or {}
        self.faults: list[Fault] = [] if faults is None else faults
        self._asked: set[str] = set()
        self._data: Mapping[str, Any] = {}
        if isinstance(data, Mapping):
            for key in data:
                if not isinstance(key, str):
                    self.fault(f"the key {key!r} is not a string; quote it", str(key))
            self._data = {str(key): value for key, value in data.items()}
        else:
            self.fault(f"expected a table of keys, found {describe(data)}")

    def where(self, *more: str | int) -> str:
        """Return the context with the path of this reader, and ``more`` behind it."""
        text = ""
        for part in (*self.path, *more):
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
        return f"{self.context}: {text}" if text else self.context

    def fault(self, message: str, *more: str | int) -> None:
        """Note one fault at this place; ``finish`` raises it with the others."""
        place = (*self.path, *more)
        line = None
        for length in range(len(place), -1, -1):
            line = self.lines.get(place[:length])
            if line is not None:
                break
        self.faults.append(Fault(self.where(*more), message, line))

    def keys(self) -> tuple[str, ...]:
        """Return the keys that stand here, in their order."""
        return tuple(self._data)

    def has(self, key: str) -> bool:
        """Return whether a key stands here (``null`` counts as absent)."""
        self._asked.add(key)
        return self._data.get(key) is not None

    def raw(self, key: str) -> Any:
        """Return what stands at a key, unread; None where there is nothing."""
        self._asked.add(key)
        return self._data.get(key)

    def string(self, key: str, default: str | None = None) -> str:
        """Return a string; without ``default`` the key is required."""
        return self._scalar(key, str, default, "")

    def integer(self, key: str, default: int | None = None, *, least: int | None = None) -> int:
        """Return a whole number of at least ``least``."""
        value = self._scalar(key, int, default, 0)
        if least is not None and self.has(key) and value < least:
            self.fault(f"must be at least {least}, found {value}", key)
        return value

    def boolean(self, key: str, default: bool | None = None) -> bool:  # noqa: FBT001 - a value
        """Return true or false."""
        return self._scalar(key, bool, default, empty=False)

    def optional_string(self, key: str) -> str | None:
        """Return a string, or None where the key is absent."""
        return self.string(key) if self.has(key) else None

    def strings(self, key: str) -> tuple[str, ...]:
        """Return a list of strings; an absent key is the empty list."""
        values = self._list(key)
        for index, value in enumerate(values):
            if not isinstance(value, str):
                self.fault(f"expected a string, found {describe(value)}", key, index)
        return tuple(value for value in values if isinstance(value, str))

    def string_map(self, key: str) -> dict[str, str]:
        """Return a table whose values are strings; an absent key is the empty table."""
        reader = self.table(key)
        return {} if reader is None else {name: reader.string(name) for name in reader}

    def table(self, key: str) -> "Reader | None":
        """Return a reader of the table at a key, None where the key is absent."""
        if not self.has(key):
            return None
        return self._child(self._data[key], key)

    def tables(self, key: str) -> "tuple[Reader, ...]":
        """Return readers of a list of tables; an absent key is the empty list."""
        return tuple(self._child(value, key, index) for index, value in enumerate(self._list(key)))

    def choice(self, key: str, allowed: tuple[str, ...], default: str | None = None) -> str:
        """Return one of the ``allowed`` words."""
        value = self.string(key, default)
        if self.has(key) and value and value not in allowed:
            self.fault(f"must be one of {', '.join(allowed)}; found {value!r}", key)
            return default or allowed[0]
        return value

    def parsed(self, key: str, parse: Callable[[str], T]) -> T | None:
        """Return ``parse(string)``; its BadInputError or ValueError is a fault at this place.

        None where the key is absent or faulty.
        """
        if not self.has(key):
            return None
        text = self.string(key)
        return self.attempt(lambda: parse(text), key) if isinstance(self._data[key], str) else None

    def each(self, key: str, parse: Callable[[str], T]) -> tuple[T, ...]:
        """Return ``parse`` of each string of a list; faults as with ``parsed``, at their places."""
        found = []
        for index, text in enumerate(self.strings(key)):
            made = self.attempt(partial(parse, text), key, index)
            if made is not None:
                found.append(made)
        return tuple(found)

    def attempt(self, make: Callable[[], T], *more: str | int) -> T | None:
        """Return what ``make`` returns; its BadInputError or ValueError is a fault here."""
        try:
            return make()
        except FaultsError as error:
            self.faults.extend(error.faults)
        except (BadInputError, ValueError) as error:
            self.fault(str(error), *more)
        return None

    def done(self) -> None:
        """Note every key that nobody asked for as a fault, with the nearest known one."""
        for key in self._data:
            if key not in self._asked:
                import difflib

                near = difflib.get_close_matches(key, sorted(self._asked), n=1)
                advice = f"; did you mean {near[0]!r}?" if near else ""
                self.fault(f"unknown key {key!r}{advice}", key)

    def finish(self, *, hint: str = "") -> None:
        """Raise FaultsError with all faults of the document, where there are any."""
        if self.faults:
            count = len(self.faults)
            title = f"{self.context} has {count} fault{'s' if count > 1 else ''}"
            raise FaultsError(title, self.faults, hint=hint)

    def _child(self, value: object, *more: str | int) -> "Reader":
        return Reader(
            value, self.context, path=(*self.path, *more), lines=self.lines, faults=self.faults
        )

    def _list(self, key: str) -> list[Any]:
        if not self.has(key):
            return []
        value = self._data[key]
        if not isinstance(value, list):
            self.fault(f"expected a list, found {describe(value)}", key)
            return []
        return value

    def _scalar(self, key: str, kind: type[T], default: T | None, empty: T) -> T:
        if not self.has(key):
            if default is None:
                self.fault(f"the key {key!r} is required", key)
                return empty
            return default
        value = self._data[key]
        if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
            return value
        advice = ""
        if kind is str and isinstance(value, int | float) and not isinstance(value, bool):
            advice = "; quote it (unquoted, 2.10 would be read as 2.1)"
        self.fault(f"expected {_NAMES[kind]}, found {describe(value)}{advice}", key)
        return empty if default is None else default

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)


def describe(value: object) -> str:
    """Return a foreign value's kind and a short look at it, for a message."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    kind = "the string" if isinstance(value, str) else ""
    text = repr(value)
    shown = text if len(text) <= 60 else f"{text[:59]}…"  # noqa: PLR2004 - a line's rest
    return f"{kind} {shown}".strip()


def parse_json(text: str | bytes, context: str) -> Any:
    """Return parsed JSON; BadInputError with the place where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"{context} is no valid JSON: {error}"
        raise BadInputError(message) from error


def parse_toml(text: str, context: str) -> dict[str, Any]:
    """Return parsed TOML; BadInputError with the place where it is none."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"{context} is no valid TOML: {error}"
        raise BadInputError(message) from error


def read_text(path: Path) -> str:
    """Return a UTF-8 file's text with Unix line ends, without the mark that may stand first.

    Windows' editors begin a file with a byte order mark. Raises BadInputError where it is absent,
    unreadable or not UTF-8.
    """
    text = read_exact_text(path).removeprefix(BYTE_ORDER_MARK)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_exact_text(path: Path) -> str:
    """Return a UTF-8 file's text with its own line ends and byte order mark, to be written back.

    Raises BadInputError as ``read_text`` does.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        message = f"{path} does not exist"
        raise BadInputError(message) from error
    except OSError as error:
        message = f"{path} could not be read: {error}"
        raise BadInputError(message) from error
    for mark, kind in _OTHER_MARKS:
        if data.startswith(mark):
            message = f"{path} is {kind} text, and UTF-8 is what is read"
            hint = "save it as UTF-8; in PowerShell: ... | Out-File -Encoding utf8 FILE"
            raise BadInputError(message, hint=hint)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        message = f"{path} could not be read: {error}"
        raise BadInputError(message) from error


def read_json(path: Path) -> Any:
    """Return a JSON file's value."""
    return parse_json(read_text(path), str(path))


def read_toml(path: Path) -> dict[str, Any]:
    """Return a TOML file's table."""
    return parse_toml(read_text(path), str(path))
