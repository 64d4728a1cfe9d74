"""Truth, comparison and arithmetic over abstract values; nothing here touches the tree."""

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from wheelfarm.survey.guards import Guards
from wheelfarm.survey.values import (
    Assumed,
    Bound,
    Built,
    Choice,
    External,
    Function,
    Instance,
    Items,
    Klass,
    Module,
    Partial,
    PathValue,
    Table,
    Unknown,
    Value,
    Yes,
    causes,
    choice,
    options,
    origins,
    render,
    settings,
    strip,
    union,
)

#: No string or list grows beyond this, however a file multiplies it.
MAX_SIZE = 100_000

_ON = frozenset({"1", "on", "true", "yes", "y", "t"})
_CONSTANT = (str, int, float, bool, bytes, type(None), PathValue)
_OBJECTS = (Function, Klass, Module, Instance, Built, Bound, Partial)


class Truth(NamedTuple):
    """Whether a value is true in a plain build (None: cannot be told), and whether in every one."""

    plain: bool | None
    certain: bool


def truth(value: Value) -> Truth:  # noqa: PLR0911 - one return per kind
    """Return what a value is where it is tested."""
    match value:
        case Assumed():
            return Truth(truth(value.value).plain, certain=False)
        case Choice():
            return _truth_of_choice(value)
        case Items():
            return _truth_of_items(value)
        case Table():
            if value.entries:
                return Truth(plain=True, certain=True)
            return Truth(None if value.open else False, certain=not value.open)
        case External():
            known = value.module or value.name.rpartition(".")[2][:1].isupper()
            return Truth(True if known else None, certain=known)
        case None | str() | bytes() | bool() | int() | float():
            return Truth(bool(value), certain=True)
        case _:
            known = isinstance(value, (*_OBJECTS, PathValue))
            return Truth(True if known else None, certain=known)


def holds_plainly(guards: Guards) -> bool | None:
    """Return whether all guards hold in a plain build; None where that cannot be told."""
    if any(guard.plain is False for guard in guards):
        return False
    return None if any(guard.plain is None for guard in guards) else True


def _truth_of_choice(value: Choice) -> Truth:
    found = [(holds_plainly(guards), truth(option)) for guards, option in value.options]
    seen = {each.plain for _, each in found}
    if len(seen) == 1 and all(each.certain for _, each in found):
        return found[0][1]
    plainly = {each.plain for held, each in found if held is not False}
    return Truth(plainly.pop() if len(plainly) == 1 else None, certain=False)


def _truth_of_items(value: Items) -> Truth:
    held = [holds_plainly(entry.guards) for entry in value.entries]
    if any(not entry.guards for entry in value.entries):
        return Truth(plain=True, certain=True)
    if True in held:
        return Truth(plain=True, certain=False)
    if None in held or value.open:
        return Truth(None, certain=False)
    return Truth(plain=False, certain=not held)


def lift(function: Callable[..., Value], *arguments: Value) -> Value:
    """Return ``function`` of the arguments, over each alternative and through what is assumed."""
    for index, argument in enumerate(arguments):
        if isinstance(argument, Choice):
            before, after = arguments[:index], arguments[index + 1 :]
            found = [
                (guards, lift(function, *before, option, *after))
                for guards, option in argument.options
            ]
            return choice(found)
    why = union(causes(argument) for argument in arguments)
    result = function(*(strip(argument) for argument in arguments))
    return assume(result, why)


def assume(value: Value, why: frozenset[str]) -> Value:
    """Return ``value`` as one that hangs on the settings ``why``."""
    if not why or isinstance(value, Unknown):
        return value
    if isinstance(value, Choice):
        return choice([(guards, assume(option, why)) for guards, option in value.options])
    return Assumed(strip(value), why | causes(value))


def unknown_of(*parts: Value) -> Unknown:
    """Return an Unknown that was made of the parts."""
    return Unknown(union(origins(part) for part in parts))


def joined(*parts: Value) -> Value:
    """Return the string of all parts in a row, with holes for what cannot be told."""
    text = "".join(render(part) for part in parts)[:MAX_SIZE]
    why = union(causes(part) for part in parts)
    if all(isinstance(strip(part), (str, int, float, bool, PathValue)) for part in parts):
        return assume(text, why)
    return Unknown(union(origins(part) for part in parts), text)


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}


def compare(operation: str, left: Value, right: Value) -> Value:
    """Return the outcome of one comparison, named as in ``ast``."""
    return lift(lambda a, b: _compare(operation, a, b), left, right)


def _compare(operation: str, left: Value, right: Value) -> Value:  # noqa: PLR0911 - one return per kind
    if operation in {"In", "NotIn"}:
        found = _contains(right, left)
        return found if operation == "In" else negate(found)
    if operation in {"Is", "IsNot"}:
        return _is(left, right, wanted=operation == "Is")
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Yes) and isinstance(other, str) and operation in {"Eq", "NotEq"}:
            return (other.lower() in _ON) == (operation == "Eq")
    if isinstance(left, Items) and isinstance(right, Items):
        return _compare_items(operation, left, right)
    if isinstance(left, _CONSTANT) and isinstance(right, _CONSTANT):
        try:
            return bool(_COMPARE[operation](left, right))
        except TypeError:
            return Unknown()
    if operation in {"Eq", "NotEq"} and _no_version(left, right):
        return operation == "NotEq"
    return unknown_of(left, right)


def _no_version(left: Value, right: Value) -> bool:
    """Return whether torch's version is compared with a word that is no version."""
    return (
        isinstance(left, Unknown)
        and "torch version" in left.origins
        and isinstance(right, str)
        and not right[:1].isdigit()
    )


def _compare_items(operation: str, left: Items, right: Items) -> Value:
    pairs = []
    for side in (left, right):
        values = [strip(value) for value in side.plain_values()]
        if side.open or not all(isinstance(value, _CONSTANT) for value in values):
            return unknown_of(left, right)
        pairs.append(values)
    try:
        return bool(_COMPARE[operation](pairs[0], pairs[1]))
    except TypeError:
        return Unknown()


def _is(left: Value, right: Value, *, wanted: bool) -> Value:
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return unknown_of(left, right)
    if isinstance(left, External) or isinstance(right, External):
        known = truth(left).plain and truth(right).plain is False
        return (not wanted) if known else unknown_of(left, right)
    same = left is right or (isinstance(left, _CONSTANT) and left == right)
    return same == wanted


def _contains(container: Value, value: Value) -> Value:
    match container:
        case str() if isinstance(value, str):
            return value in container
        case Items():
            return _items_contain(container, value)
        case Table():
            if isinstance(value, (str, int)) and value in container.entries:
                return True
            closed = not container.open and isinstance(value, (str, int))
            return False if closed else Unknown()
        case _:
            return unknown_of(container, value)


def _items_contain(container: Items, value: Value) -> Value:
    if "command line" in container.origins:
        inner = Items(container.entries)
        return assume(_items_contain(inner, value), frozenset({"the command line"}))
    if not isinstance(value, _CONSTANT):
        return unknown_of(container, value)
    for entry in container.entries:
        if isinstance(strip(entry.value), _CONSTANT) and strip(entry.value) == value:
            why = frozenset({str(guard) for guard in entry.guards})
            return assume(True, why)  # noqa: FBT003 - a value of the script
    told = all(isinstance(strip(entry.value), _CONSTANT) for entry in container.entries)
    return unknown_of(container) if container.open or not told else False


def negate(value: Value) -> Value:
    """Return ``not value``."""
    if isinstance(value, Choice):
        return choice([(guards, negate(option)) for guards, option in value.options])
    found = truth(value)
    if found.plain is None:
        return unknown_of(value)
    if found.certain:
        return not found.plain
    return Assumed(not found.plain, settings(value) or frozenset({"conditions"}))


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "FloorDiv": operator.floordiv,
    "Div": operator.truediv,
    "Mod": operator.mod,
    "BitOr": operator.or_,
    "BitAnd": operator.and_,
}


def binary(operation: str, left: Value, right: Value) -> Value:
    """Return ``left OP right``, the operation named as in ``ast``."""
    return lift(lambda a, b: _binary(operation, a, b), left, right)


def _binary(operation: str, left: Value, right: Value) -> Value:  # noqa: PLR0911 - one return per kind
    if isinstance(left, Items) or isinstance(right, Items):
        return _binary_items(operation, left, right)
    if isinstance(left, Table) and isinstance(right, Table) and operation == "BitOr":
        return Table({**left.entries, **right.entries}, left.open or right.open)
    if operation == "Div" and isinstance(left, PathValue):
        return _join_path(left, right)
    if operation == "Add" and (isinstance(left, str) or isinstance(right, str)):
        return joined(left, right)
    if operation == "Mod" and isinstance(left, str):
        return _percent(left, right)
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return _number(operation, left, right)
    return unknown_of(left, right)


def _binary_items(operation: str, left: Value, right: Value) -> Value:
    if operation == "Mod" and isinstance(left, str):
        return _percent(left, right)
    if operation not in {"Add", "BitOr"}:
        return Items(open=True, origins=union([origins(left), origins(right)]))
    result = Items(kind=left.kind if isinstance(left, Items) else "list")
    for side in (left, right):
        if isinstance(side, Items):
            result.entries += side.entries[: MAX_SIZE - len(result.entries)]
            result.open = result.open or side.open
            result.origins |= side.origins
        else:
            result.open = True
            result.origins |= origins(side)
    return result


def _join_path(left: PathValue, right: Value) -> Value:
    if isinstance(right, (str, PathValue)):
        text = render(right)
        return PathValue(text if text.startswith("/") else f"{left.text.rstrip('/')}/{text}")
    return Unknown(origins(right), f"{left.text}/{render(right)}")


def _percent(left: str, right: Value) -> Value:
    parts = right.plain_values() if isinstance(right, Items) else [right]
    told = [render(strip(part)) for part in parts]
    try:
        text = left % (tuple(told) if isinstance(right, Items) else told[0])
    except (TypeError, ValueError, KeyError):
        return Unknown(origins(right), left)
    closed = all(isinstance(strip(part), (str, int, float)) for part in parts)
    return text[:MAX_SIZE] if closed else Unknown(origins(right), text[:MAX_SIZE])


def _number(operation: str, left: float, right: float) -> Value:
    function = _ARITHMETIC.get(operation)
    if function is None or max(abs(left), abs(right)) > 1 << 40:
        return Unknown()
    try:
        return function(left, right)
    except (TypeError, ValueError, ArithmeticError):
        return Unknown()


def either(operation: str, values: list[Value]) -> Value:
    """Return ``a and b ...`` or ``a or b ...`` (``operation``: ``And``, ``Or``)."""
    stops = operation == "Or"
    why: frozenset[str] = frozenset()
    unsure: list[Value] = []
    for index, value in enumerate(values):
        found = truth(value)
        if found.plain is stops:
            result = value if found.certain and not why else assume(value, why | {"conditions"})
            return result if found.certain or not unsure else Assumed(strip(value), why | {"or"})
        if found.plain is None:
            unsure.append(value)
        if not found.certain:
            why |= settings(value) or frozenset({"conditions"})
        if index == len(values) - 1 and not unsure:
            return assume(value, why) if why else value
    return choice([((), option) for value in (*unsure, values[-1]) for _, option in options(value)])
