"""Frozen values from annotated classes, as ``dataclasses`` makes them, at a fraction of the cost.

A start of the user side makes half a hundred such classes. ``dataclasses`` writes and compiles up
to ten functions for each (a millisecond a class) and imports ``inspect``; here all classes share
the methods of ``Value``. What is left out is what these values never use.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from operator import attrgetter
from types import GetSetDescriptorType, MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, overload

T = TypeVar("T")

__all__ = ["NOTHING", "Value", "replace", "value"]

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[T], T]:
        """Do nothing: only type checkers read it (PEP 681)."""
        return lambda made: made


#: The default of a field that is a mapping: nobody can put anything into it.
NOTHING: Mapping[Any, Any] = MappingProxyType({})
#: Where a member of a class keeps its function.
_INSIDE = {
    property: "fget",
    cached_property: "func",
    classmethod: "__func__",
    staticmethod: "__func__",
}
#: Members of a class that hold no function.
_PLAIN = frozenset({str, int, bool, float, tuple, dict, type(None), GetSetDescriptorType})
#: Attributes of a class that belong to its first making, not to the class made from it.
_NOT_KEPT = frozenset({"__dict__", "__weakref__"})


class Value:
    """What all values can do; ``@value`` puts it under a class and fills in its fields.

    A field is written by its slot's own setter, as a frozen value refuses all others.
    """

    __slots__ = ()

    field_names: tuple[str, ...] = ()
    field_positions: int = 0
    field_defaults: Mapping[str, Any] = NOTHING
    field_puts: tuple[tuple[str, Callable[[Any, Any], None]], ...] = ()
    field_seen: tuple[str, ...] = ()
    field_key: Callable[[Any], Any]

    def __init__(self, /, *args: Any, **given: Any) -> None:
        kind = type(self)
        names = kind.field_names
        if not given and len(args) == len(names) == kind.field_positions:
            # The usual way of small values, of which a plan makes very many.
            for (_, put), given_value in zip(kind.field_puts, args, strict=True):
                put(self, given_value)
            return
        if args:
            twice = given and not given.keys().isdisjoint(names[: len(args)])
            if twice or len(args) > kind.field_positions:
                message = f"{kind.__qualname__}() does not take these arguments by position"
                raise TypeError(message)
            given.update(zip(names, args, strict=False))
        if len(given) != len(names):
            given = {**kind.field_defaults, **given}
        try:
            for name, put in kind.field_puts:
                put(self, given[name])
        except KeyError:
            raise TypeError(_wrong(kind, given)) from None
        if len(given) != len(names):
            raise TypeError(_wrong(kind, given))

    def __setattr__(self, name: str, new: object) -> None:
        message = f"{type(self).__qualname__} is frozen; {name!r} stays as it is"
        raise AttributeError(message)

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.field_seen)
        return f"{type(self).__qualname__}({shown})"

    def __reduce__(self) -> Any:
        return _again, (type(self), self.fields_and_values())

    def fields_and_values(self) -> dict[str, Any]:
        """Return each field's value by its name."""
        return {name: getattr(self, name) for name in self.field_names}


#: What a value has of its own, which no field can be named.
_OWN = frozenset(vars(Value))


class Ordered(Value):
    """A value that is compared as the tuple of its fields."""

    __slots__ = ()

    def __lt__(self, other: object) -> Any:
        key = self.field_key
        return key(self) < key(other) if type(other) is type(self) else NotImplemented

    def __le__(self, other: object) -> Any:
        key = self.field_key
        return key(self) <= key(other) if type(other) is type(self) else NotImplemented

    def __gt__(self, other: object) -> Any:
        key = self.field_key
        return key(self) > key(other) if type(other) is type(self) else NotImplemented

    def __ge__(self, other: object) -> Any:
        key = self.field_key
        return key(self) >= key(other) if type(other) is type(self) else NotImplemented


@overload
def value(made: type[T], /) -> type[T]: ...
@overload
def value(
    *, kw_only: bool = ..., order: bool = ..., unseen: tuple[str, ...] = ...
) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(kw_only_default=True, frozen_default=True)
def value(
    made: type[T] | None = None,
    /,
    *,
    kw_only: bool = True,
    order: bool = False,
    unseen: tuple[str, ...] = (),
) -> "type[T] | Callable[[type[T]], type[T]]":
    """Make an annotated class a frozen value with slots, equal and hashed by its fields.

    Fields are given by name; by position too where ``kw_only`` is False. ``order`` compares values
    as tuples of their fields. Fields named in ``unseen`` are neither compared nor shown. A class
    with a ``cached_property`` keeps a ``__dict__`` for it. Raises TypeError for a default that
    could be changed, and for what such a class cannot have: fields of another value that it is made
    from, fields with a name of ``Value``'s own, a ClassVar with an annotation, ``__post_init__``.
    """

    def make(first: type[T]) -> type[T]:
        return _made(first, Ordered if order else Value, kw_only=kw_only, unseen=unseen)

    return make if made is None else make(made)


if TYPE_CHECKING:
    # Type checkers know this very function, and hold each change against its field's type.
    from dataclasses import replace
else:

    def replace(original: T, /, **changes: Any) -> T:
        """Return a copy of a value, or of a dataclass, in which some fields are others.

        Raises TypeError for fields that it does not have.
        """
        if isinstance(original, Value):
            return type(original)(**{**original.fields_and_values(), **changes})
        import dataclasses

        return dataclasses.replace(original, **changes)


def _made(first: type[T], base: type[Value], *, kw_only: bool, unseen: tuple[str, ...]) -> type[T]:
    space = {name: each for name, each in vars(first).items() if name not in _NOT_KEPT}
    names = tuple(first.__annotations__)
    defaults = {name: space.pop(name) for name in names if name in space}
    _check(first, defaults, unseen)
    cached = any(isinstance(each, cached_property) for each in space.values())
    seen = tuple(name for name in names if name not in unseen)
    key: Callable[[Any], Any] = attrgetter(*seen) if seen else _nothing
    space |= {
        "__slots__": (*names, "__dict__") if cached else names,
        "__match_args__": () if kw_only else names,
        "field_names": names,
        "field_positions": 0 if kw_only else len(names),
        "field_defaults": defaults,
        "field_seen": seen,
        "field_key": key,
    }
    space.setdefault("__eq__", _equality(key))
    space.setdefault("__hash__", _hashing(key))
    bases = tuple(each for each in first.__bases__ if each is not object)
    anew: Any = type(first)
    made: Any = anew(first.__name__, (base, *bases), space)
    made.field_puts = tuple((name, vars(made)[name].__set__) for name in names)
    for member in vars(first).values():
        if type(member) not in _PLAIN:
            _tell_class(member, first, made)
    return made  # type: ignore[no-any-return] # the class that was given, made anew


def _tell_class(member: Any, first: type, made: type) -> None:
    """Let ``super()`` and ``__class__`` in a method mean the class that was made in the end."""
    kind = type(member)
    function = getattr(member, _INSIDE[kind]) if kind in _INSIDE else member
    function = getattr(function, "__wrapped__", function)
    if not getattr(function, "__closure__", None):
        return
    names = function.__code__.co_freevars
    if "__class__" in names:
        cell = function.__closure__[names.index("__class__")]
        if cell.cell_contents is first:
            cell.cell_contents = made


def _check(first: type, defaults: Mapping[str, Any], unseen: tuple[str, ...]) -> None:
    """Raise TypeError for what ``dataclasses`` would do and this does not."""
    fields = first.__annotations__
    if not _OWN.isdisjoint(fields) or not fields.keys() >= set(unseen):
        wrong = sorted((_OWN & fields.keys()) | (set(unseen) - fields.keys()))
        message = (
            f"{first.__qualname__}.{wrong[0]} can be no field, or is none that could be unseen"
        )
        raise TypeError(message)
    for name, default in defaults.items():
        # Who can be changed has no hash; the one exception is a view that changes nothing.
        if type(default).__hash__ is None and not isinstance(default, MappingProxyType):
            message = f"the default of {first.__qualname__}.{name} could be changed"
            raise TypeError(message)
        if "ClassVar" in str(first.__annotations__[name]):
            message = f"{first.__qualname__}.{name} is no field; write it without an annotation"
            raise TypeError(message)
    if any(issubclass(each, Value) for each in first.__bases__):
        message = f"{first.__qualname__} is made from another value; their fields are not joined"
        raise TypeError(message)
    if "__post_init__" in vars(first):
        message = f"{first.__qualname__}.__post_init__ would never be called"
        raise TypeError(message)


# Values are keys of large tables: these two find their key in a closure, not through the class.
def _equality(key: Callable[[Any], Any]) -> Callable[[Any, object], Any]:
    def equal(one: Any, other: object) -> Any:
        return key(one) == key(other) if type(other) is type(one) else NotImplemented

    return equal


def _hashing(key: Callable[[Any], Any]) -> Callable[[Any], int]:
    def hashed(one: Any) -> int:
        return hash(key(one))

    return hashed


def _nothing(_: Any) -> tuple[()]:
    return ()


def _again(kind: Any, table: Mapping[str, Any]) -> Any:
    return kind(**table)


def _wrong(kind: type[Value], given: Mapping[str, Any]) -> str:
    """Return what is wrong with the arguments of a making."""
    foreign = ", ".join(name for name in given if name not in kind.field_names)
    absent = ", ".join(name for name in kind.field_names if name not in given)
    said = [f"unknown: {foreign}"] * bool(foreign) + [f"not given: {absent}"] * bool(absent)
    return f"{kind.__qualname__}() takes other fields; {'; '.join(said)}"
