"""YAML files in, plain values and their lines out; what YAML would quietly misread is a fault.

Only the part of YAML that means the same to every reader is taken: tables, lists, strings, whole
and decimal numbers, ``true``/``false`` and ``null``. YAML 1.1 turns ``no`` into false, ``010``
into 8, ``12:30`` into 750, ``2026-01-01`` into a date and keeps the last of two equal keys; here
each of these is a fault with its line. Anchors, aliases, merges and tags are refused, so no file
can be small on disk and large in memory.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from wheelfarm.errors import BadInputError, Fault
from wheelfarm.reading import Reader, read_text

#: libyaml's parser where PyYAML was built with it, ten times as fast as the one in Python.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_TAG = "tag:yaml.org,2002:"
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})", re.ASCII)
_DECIMAL = re.compile(r"[-+]?[0-9]+\.[0-9]+", re.ASCII)
#: No recipe or policy nests deeper than this.
_DEEPEST = 24


class WrittenFloat(float):
    """A decimal number that still knows how it was written: ``2.10``, not 2.1."""

    __slots__ = ("text",)
    text: str

    @classmethod
    def of(cls, text: str) -> "WrittenFloat":
        """Read a decimal number."""
        value = cls(text)
        value.text = text
        return value

    def __repr__(self) -> str:
        return self.text


class Misread(Fault):
    """A fault of the YAML itself; what a reader says of the same place only follows from it."""

    __slots__ = ()


def without_echoes(faults: list[Fault]) -> list[Fault]:
    """Return the faults, those left out that only follow from a misread place or document."""
    misread = {fault.context for fault in faults if isinstance(fault, Misread)}
    return [
        item
        for item in faults
        if isinstance(item, Misread)
        or not {item.context, item.context.partition(": ")[0]} & misread
    ]


@dataclass(slots=True)
class Document:
    """One YAML file: its value, the line of each place in it, and what was wrong on the way."""

    context: str
    value: Any = None
    lines: dict[tuple[str | int, ...], int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    @property
    def reader(self) -> Reader:
        """A reader of the document's table; the document's faults are its first."""
        return Reader(self.value, self.context, lines=self.lines, faults=self.faults)


def read_document(path: Path, context: str, faults: list[Fault]) -> Document:
    """Read one file; every fault goes to ``faults``, also that it could not be read at all."""
    try:
        text = read_text(path)
    except BadInputError as error:
        faults.append(Misread(context, error.what))
        return Document(context, value={}, faults=faults)
    return parse_document(text, context, faults)


def parse_document(text: str, context: str, faults: list[Fault]) -> Document:
    """Read YAML text; text that is no YAML at all is one fault and an empty table."""
    document = Document(context, faults=faults)
    try:
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = None if error.problem_mark is None else error.problem_mark.line + 1
        faults.append(Misread(context, f"this is no valid YAML: {error.problem}", line))
        document.value = {}
        return document
    except (yaml.YAMLError, RecursionError) as error:
        what = " ".join(str(error).split())
        faults.append(Misread(context, f"this is no valid YAML: {what}"))
        document.value = {}
        return document
    document.value = {} if node is None else _Converter(document).convert(node, ())
    return document


class _Converter:
    """Turns the nodes of one document into plain values."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.seen: set[int] = set()

    def convert(self, node: yaml.Node, path: tuple[str | int, ...]) -> Any:
        self.document.lines.setdefault(path, node.start_mark.line + 1)
        if id(node) in self.seen:
            return self.fault(node, path, "anchors and aliases are not read; write it out")
        self.seen.add(id(node))
        if len(path) > _DEEPEST:
            return self.fault(node, path, "this is nested too deeply")
        if isinstance(node, yaml.MappingNode):
            return self.table(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.convert(item, (*path, index)) for index, item in enumerate(node.value)]
        return self.scalar(node, path)

    def table(self, node: yaml.MappingNode, path: tuple[str | int, ...]) -> dict[Any, Any]:
        table: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = self.key(key_node, path)
            if key is None:
                continue
            place = (*path, key)
            if key in table:
                self.fault(key_node, place, "this key stands here twice")
                continue
            self.document.lines[place] = key_node.start_mark.line + 1
            table[key] = self.convert(value_node, place)
        return table

    def key(self, node: yaml.Node, path: tuple[str | int, ...]) -> str | None:
        if not isinstance(node, yaml.ScalarNode):
            self.fault(node, path, "a key must be a string")
            return None
        if node.tag == f"{_TAG}merge":
            self.fault(node, path, "merges (<<) are not read; write the keys out")
            return None
        if node.tag != f"{_TAG}str":
            self.fault(node, path, f"the key {node.value} must be quoted: '{node.value}'")
            return None
        return str(node.value)

    def scalar(self, node: yaml.Node, path: tuple[str | int, ...]) -> Any:
        text = str(node.value)
        kind = node.tag.removeprefix(_TAG)
        if kind in {"str", "null"}:
            return text if kind == "str" else None
        if kind == "bool":
            return self.boolean(node, path)
        if kind == "int" and _WHOLE.fullmatch(text):
            return int(text)
        if kind == "float" and _DECIMAL.fullmatch(text):
            return WrittenFloat.of(text)
        return self.odd(node, path)

    def boolean(self, node: yaml.Node, path: tuple[str | int, ...]) -> bool | None:
        word = str(node.value)
        if word.lower() in {"true", "false"}:
            return word.lower() == "true"
        advice = "quote it, or write true or false"
        self.fault(node, path, f"YAML reads the bare word {word} as a boolean; {advice}")
        return None

    def odd(self, node: yaml.Node, path: tuple[str | int, ...]) -> Any:
        text = str(node.value)[:40]
        if not node.tag.startswith(_TAG):
            return self.fault(node, path, f"tags ({node.tag!r}) are not read")
        kind = node.tag.removeprefix(_TAG)
        return self.fault(node, path, f"YAML reads {text} as {kind}, not as written; quote it")

    def fault(self, node: yaml.Node, path: tuple[str | int, ...], message: str) -> None:
        reader = Reader({}, self.document.context, path=path)
        line = node.start_mark.line + 1
        self.document.faults.append(Misread(reader.where(), message, line))
