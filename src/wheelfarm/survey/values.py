"""Abstract values of the Python reader: what a script's names stand for, as far as can be told.

Plain strings, numbers, booleans, bytes and None stand for themselves.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from wheelfarm.survey.guards import Guards, contradictory, merged

#: A value of the interpreter: a plain constant or one of the classes below.
Value = Any

#: More alternatives than this are one Unknown.
MAX_OPTIONS = 48

#: Stands for the part of a string that could not be told.
HOLE = "\0"


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that cannot be told.

    ``origins`` names what it was made of (``abi``: torch's C++ ABI flag; ``env``, ``gpu``, ...);
    ``text`` is what is known of it where it is a string, with HOLE for each unknown part.
    """

    origins: frozenset[str] = frozenset()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Assumed:
    """What a value is in a plain build; with other settings (``causes``) it may be another."""

    value: Value
    causes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Choice:
    """Several values, each under its guards."""

    options: tuple[tuple[Guards, Value], ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One element of a sequence and the guards under which it is there."""

    value: Value
    guards: Guards = ()


@dataclass(eq=False, slots=True)
class Items:
    """A list, tuple or set. ``open`` means that there may be elements which cannot be told."""

    entries: list[Entry] = field(default_factory=list)
    open: bool = False
    kind: str = "list"
    origins: frozenset[str] = frozenset()
    #: The guards in force where the sequence was made; they hold for every element.
    born: Guards = ()

    def add(self, value: Value, guards: Guards = ()) -> None:
        """Append a value; each option of a Choice becomes an element of its own."""
        for more, option in options(value):
            together = tuple(guard for guard in merged(guards, more) if guard not in self.born)
            self.entries.append(Entry(option, together))

    def plain_values(self) -> list[Value]:
        """Return the values without their guards."""
        return [entry.value for entry in self.entries]


@dataclass(eq=False, slots=True)
class Table:
    """A dictionary. ``open`` means that there may be keys which cannot be told."""

    entries: dict[Value, Value] = field(default_factory=dict)
    open: bool = False
    #: The guards in force where the table was made.
    born: Guards = ()


@dataclass(frozen=True, slots=True)
class External:
    """A name of a module outside the tree, such as ``torch.utils.cpp_extension.CUDAExtension``.

    ``module`` says that it was imported as a module, and so is true wherever it is tested.
    """

    name: str
    module: bool = False


@dataclass(eq=False, slots=True)
class Scope:
    """Names of one module, function or class, and the scope around it."""

    names: dict[str, Value] = field(default_factory=dict)
    parent: "Scope | None" = None

    def find(self, name: str) -> "Scope | None":
        """Return the nearest scope that holds a name."""
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.parent
        return scope


@dataclass(eq=False, slots=True)
class Module:
    """A module of the tree: its file (relative) and its names."""

    file: str
    scope: Scope


@dataclass(frozen=True, slots=True)
class Lazy:
    """What an import names in a module of the tree, before the module is followed.

    Helper packages import far more than a build uses; only what is used is followed.
    """

    path: str
    dotted: str
    name: str


@dataclass(eq=False, slots=True)
class Function:
    """A function of the tree, with the receiver where it is bound."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
    file: str
    defaults: dict[str, Value]
    receiver: Value = None
    owner: "Klass | None" = None
    decorators: tuple[Value, ...] = ()


@dataclass(eq=False, slots=True)
class Klass:
    """A class of the tree."""

    name: str
    bases: tuple[Value, ...]
    scope: Scope
    file: str
    line: int

    def lineage(self) -> Iterator["Klass | External"]:
        """Yield this class and its bases, nearest first; alternatives of a base all count."""
        yield from self._lineage(set())

    def _lineage(self, seen: set[int]) -> Iterator["Klass | External"]:
        if id(self) in seen:
            return
        seen.add(id(self))
        yield self
        for base in self.bases:
            for _, option in options(base):
                if isinstance(option, Klass):
                    yield from option._lineage(seen)  # noqa: SLF001 - the same class
                elif isinstance(option, External):
                    yield option


@dataclass(eq=False, slots=True)
class Instance:
    """An object of a class of the tree."""

    klass: Klass
    attributes: dict[str, Value] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Built:
    """An extension object: the class that made it, its keywords, and where."""

    factory: str
    keywords: dict[str, Value]
    file: str
    line: int
    guards: Guards
    klass: Klass | None = None


@dataclass(eq=False, slots=True)
class Partial:
    """What ``functools.partial`` gives: a callable with some arguments already there."""

    callee: Value
    arguments: list[Value]
    keywords: dict[str, Value]


@dataclass(frozen=True, slots=True)
class PathValue:
    """A ``pathlib`` path."""

    text: str


class Yes(str):
    """A setting that a farm switches on: equal to every usual word for "on"."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Bound:
    """A method of a built-in or external value, not yet called."""

    receiver: Value
    name: str


def options(value: Value) -> tuple[tuple[Guards, Value], ...]:
    """Return the alternatives of a value; one without guards where it is no Choice."""
    return value.options if isinstance(value, Choice) else (((), value),)


def choice(found: Iterable[tuple[Guards, Value]]) -> Value:
    """Return one value for several alternatives: flat, without impossible or repeated ones."""
    flat: list[tuple[Guards, Value]] = []
    for guards, value in found:
        for more, option in options(value):
            together = merged(guards, more)
            if not contradictory(together):
                flat.append((together, option))
    if not flat:
        return Unknown()
    if len(flat) > MAX_OPTIONS:
        return Unknown(frozenset().union(*(origins(value) for _, value in flat)))
    first = flat[0][1]
    if all(same(first, other) for _, other in flat[1:]):
        return first
    return Choice(tuple(flat))


def same(first: Value, second: Value) -> bool:
    """Return whether two values are one: identical objects, or equal constants."""
    if first is second:
        return True
    plain = (str, int, float, bool, bytes, External, PathValue, Assumed, Unknown)
    return isinstance(first, plain) and type(first) is type(second) and bool(first == second)


def strip(value: Value) -> Value:
    """Return what an Assumed holds; other values as they are."""
    return value.value if isinstance(value, Assumed) else value


def causes(value: Value) -> frozenset[str]:
    """Return the settings on which a value hangs."""
    return value.causes if isinstance(value, Assumed) else frozenset()


def origins(value: Value, depth: int = 4) -> frozenset[str]:  # noqa: PLR0911 - one return per kind
    """Return what a value was made of (see Unknown), looked up through sequences and choices."""
    if depth == 0:
        return frozenset()
    match value:
        case Unknown():
            return value.origins
        case External():
            return external_origins(value.name)
        case Assumed():
            return origins(value.value, depth - 1) | value.causes
        case Choice():
            return union(origins(option, depth - 1) for _, option in value.options)
        case Items():
            inner = union(origins(entry.value, depth - 1) for entry in value.entries)
            return inner | value.origins
        case Table():
            return union(origins(item, depth - 1) for item in value.entries.values())
        case _:
            return frozenset()


def settings(value: Value, depth: int = 3) -> frozenset[str]:
    """Return the settings on which a value or its alternatives hang."""
    if isinstance(value, Choice) and depth:
        inner = union(settings(option, depth - 1) for _, option in value.options)
        return inner | {name for guards, _ in value.options for g in guards for name in g.settings}
    return causes(value)


def union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    """Return the union of sets of origins."""
    return frozenset().union(*sets)


def external_origins(name: str) -> frozenset[str]:
    """Return the origins of a foreign name: torch's ABI flag, torch's folders, a GPU's presence."""
    if not name.startswith("torch"):
        return frozenset()
    if "GLIBCXX_USE_CXX11_ABI" in name or name.endswith("compiled_with_cxx11_abi"):
        return frozenset({"abi"})
    if name.startswith("torch.cuda"):
        return frozenset({"gpu"})
    return frozenset({"torch"})


def render(value: Value) -> str:  # noqa: PLR0911 - one return per kind
    """Return a value as text: constants as they are, HOLE for what cannot be told."""
    match value:
        case str():
            return value
        case bytes():
            return value.decode("utf-8", errors="replace")
        case bool() | int() | float():
            return str(value)
        case PathValue():
            return value.text
        case Assumed():
            return render(value.value)
        case Unknown():
            return value.text or HOLE
        case _:
            return HOLE


def texts(value: Value, depth: int = 5) -> list[str]:
    """Return every string that a value may hold, through sequences, tables and choices."""
    if depth == 0:
        return []
    match value:
        case Choice():
            return [text for _, option in value.options for text in texts(option, depth)]
        case Items():
            return [text for entry in value.entries for text in texts(entry.value, depth - 1)]
        case Table():
            inner = [text for item in value.entries.values() for text in texts(item, depth - 1)]
            return inner + [key for key in value.entries if isinstance(key, str)]
        case _:
            return [render(value)]


def is_open(value: Value, depth: int = 5) -> bool:  # noqa: PLR0911 - one return per kind
    """Return whether a value may hold strings that cannot be told."""
    if depth == 0:
        return True
    match value:
        case None | str() | bytes() | bool() | int() | float() | PathValue():
            return False
        case Assumed():
            return is_open(value.value, depth - 1)
        case Choice():
            return any(is_open(option, depth) for _, option in value.options)
        case Items():
            return value.open or any(is_open(entry.value, depth - 1) for entry in value.entries)
        case Table():
            return value.open or any(is_open(item, depth - 1) for item in value.entries.values())
        case _:
            return True
