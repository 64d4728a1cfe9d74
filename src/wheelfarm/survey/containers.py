"""Methods of strings, lists, tables and paths, and the built-in functions over them."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from wheelfarm.survey import externals, objects
from wheelfarm.survey.guards import merged
from wheelfarm.survey.logic import MAX_SIZE, assume, joined, lift, truth, unknown_of
from wheelfarm.survey.values import (
    Assumed,
    Choice,
    Entry,
    Function,
    Instance,
    Items,
    Klass,
    Module,
    PathValue,
    Table,
    Unknown,
    Value,
    causes,
    choice,
    origins,
    render,
    strip,
    union,
)

if TYPE_CHECKING:
    from wheelfarm.survey.engine import Engine, Frame

#: String methods that are followed; all are pure and none grows its text beyond its inputs.
_PURE = frozenset({
    "split", "rsplit", "strip", "lstrip", "rstrip", "lower", "upper", "title", "startswith",
    "endswith", "splitlines", "find", "rfind", "count", "partition", "rpartition", "isdigit",
    "removeprefix", "removesuffix", "capitalize", "casefold", "isidentifier", "isalpha",
    "isnumeric", "swapcase", "index", "replace", "isalnum", "isspace", "isupper", "islower",
})  # fmt: skip


def method(
    engine: "Engine",
    receiver: Value,
    name: str,
    arguments: list[Value],
    keywords: dict[str, Value],
) -> Value:
    """Return what a method of a built-in value gives."""
    match receiver:
        case str():
            return _string(receiver, name, arguments, keywords)
        case Items():
            return _items(engine, receiver, name, arguments)
        case Table():
            return _table(receiver, name, arguments)
        case PathValue():
            return externals.path_method(
                engine, receiver, name, [strip(each) for each in arguments]
            )
        case _:
            return unknown_of(receiver, *arguments)


def _string(text: str, name: str, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    if name in {"read", "__str__", "decode", "encode", "expanduser", "close", "seek"}:
        # What `open` gives is the file's text, so that `.read()` is that text.
        return text
    if name in {"readlines", "split", "splitlines"} and not arguments:
        return _listed(
            text.splitlines(keepends=name == "readlines") if "lines" in name else text.split()
        )
    if name == "join":
        return _join(text, arguments[0] if arguments else Unknown())
    if name == "format":
        return _format(text, arguments, keywords)
    if name in _PURE:
        return lift(lambda *told: _pure(text, name, told), *arguments)
    return unknown_of(*arguments)


def _pure(text: str, name: str, arguments: tuple[Value, ...]) -> Value:
    told = [
        tuple(each.plain_values()) if isinstance(each, Items) and not each.open else each
        for each in arguments
    ]
    if name == "replace" and len(text) > MAX_SIZE:
        return Unknown(text=text[:MAX_SIZE])
    try:
        result = getattr(text, name)(*told)
    except (TypeError, ValueError):
        return unknown_of(*arguments)
    if isinstance(result, str):
        return result[:MAX_SIZE]
    return _listed(list(result)) if isinstance(result, (list, tuple)) else result


def _listed(values: list[str]) -> Items:
    return Items([Entry(value) for value in values[:MAX_SIZE]])


def _join(separator: str, value: Value) -> Value:
    if isinstance(value, Choice):
        return choice([(guards, _join(separator, each)) for guards, each in value.options])
    told = strip(value)
    if not isinstance(told, Items):
        return Unknown(origins(value))
    parts: list[Value] = []
    for entry in told.entries:
        parts += [separator, entry.value] if parts else [entry.value]
    result = joined(*parts) if parts else ""
    if told.open or any(entry.guards for entry in told.entries):
        return Unknown(origins(value), render(result))
    return assume(result, causes(value))


def _format(text: str, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    for index, each in enumerate(arguments):
        if isinstance(each, Choice):
            before, after = arguments[:index], arguments[index + 1 :]
            return choice(
                [(g, _format(text, [*before, one, *after], keywords)) for g, one in each.options]
            )
    every = [*arguments, *keywords.values()]
    told = [render(each) for each in arguments]
    named = {key: render(each) for key, each in keywords.items()}
    try:
        result = text.format(*told, **named)[:MAX_SIZE]
    except (IndexError, KeyError, ValueError, AttributeError, TypeError):
        return Unknown(union(origins(each) for each in every), text)
    if all(isinstance(strip(each), (str, int, float)) for each in every):
        return assume(result, union(causes(each) for each in every))
    return Unknown(union(origins(each) for each in every), result)


def _items(engine: "Engine", items: Items, name: str, arguments: list[Value]) -> Value:
    first = arguments[0] if arguments else None
    match name:
        case "append" | "add" if len(items.entries) < MAX_SIZE:
            items.add(first, engine.now())
        case "insert":
            added = Items(born=items.born)
            added.add(arguments[1] if len(arguments) > 1 else Unknown(), engine.now())
            items.entries[:0] = added.entries
        case "extend" | "update":
            objects.extend(engine, items, first)
        case "clear" if not engine.now():
            items.entries.clear()
        case "remove":
            _remove(engine, items, strip(first))
        case _:
            return _item_query(items, name)
    return None


def _item_query(items: Items, name: str) -> Value:
    if name == "copy":
        return copied(items)
    if name == "pop" and items.entries:
        return items.entries[-1].value
    return Unknown(origins(items))


def _remove(engine: "Engine", items: Items, value: Value) -> None:
    if not isinstance(value, str):
        return
    kept = [entry for entry in items.entries if strip(entry.value) != value]
    if not engine.now():
        items.entries[:] = kept


def _table(table: Table, name: str, arguments: list[Value]) -> Value:
    key = strip(arguments[0]) if arguments else None
    default = arguments[1] if len(arguments) > 1 else None
    if name in {"get", "pop", "setdefault"}:
        return _looked_up(table, key, default, keep=name == "setdefault")
    result: Value = Unknown()
    match name:
        case "update":
            objects.update(table, arguments[0] if arguments else Unknown())
            result = None
        case "keys":
            result = Items([Entry(each) for each in table.entries], open=table.open)
        case "values":
            result = Items(open=table.open)
            for each in table.entries.values():
                result.add(each)
        case "items":
            result = _pairs(table)
        case "copy":
            result = Table(dict(table.entries), table.open)
        case _:
            pass
    return result


def _looked_up(table: Table, key: Value, default: Value, *, keep: bool) -> Value:
    if not isinstance(key, (str, int)):
        return Unknown()
    if key in table.entries:
        return table.entries[key]
    if keep:
        table.entries[key] = default
    return Unknown() if table.open and not keep else default


def _pairs(table: Table) -> Items:
    result = Items(open=table.open)
    for key, value in table.entries.items():
        row = Items([Entry(key), Entry(value)], kind="tuple")
        result.entries.append(Entry(row))
    return result


def copied(value: Value) -> Value:
    """Return a sequence's or table's copy; other values as they are."""
    match value:
        case Choice():
            return choice([(guards, copied(each)) for guards, each in value.options])
        case Assumed():
            return assume(copied(value.value), value.causes)
        case Items():
            return Items(
                list(value.entries), open=value.open, kind=value.kind, origins=value.origins,
                born=value.born,
            )  # fmt: skip
        case Table():
            return Table(dict(value.entries), value.open, value.born)
        case _:
            return value


def builtin(
    engine: "Engine",
    name: str,
    arguments: list[Value],
    keywords: dict[str, Value],
    *,
    frame: "Frame",
) -> Value:
    """Return what a built-in function gives."""
    first = arguments[0] if arguments else None
    if name in {"map", "filter"}:
        return _mapped(engine, name, arguments, frame)
    if name in {"list", "tuple", "set", "sorted", "frozenset"}:
        return Items(born=engine.now())
    if name == "dict":
        result = Table(dict(keywords), born=engine.now())
        if arguments:
            objects.update(result, first)
        return result
    if name == "setattr":
        told = strip(arguments[1]) if len(arguments) == 3 else None  # noqa: PLR2004 - its arity
        if isinstance(told, str):
            objects.set_attribute(engine, first, told, arguments[2])
        return None
    follow = _BUILTINS.get(name)
    return unknown_of(*arguments) if follow is None else follow(name, arguments)


def _length(value: Value) -> Value:
    match value:
        case str():
            return len(value)
        case Items():
            guarded = value.open or any(entry.guards for entry in value.entries)
            if not guarded:
                return len(value.entries)
            found = truth(value)
            return (
                Assumed(int(found.plain), frozenset({"files"}))
                if found.plain is not None
                else Unknown()
            )
        case Table():
            return Unknown() if value.open else len(value.entries)
        case _:
            return Unknown(origins(value))


def _converted(name: str, value: Value) -> Value:
    return lift(lambda told: _convert(name, told), value)


def _convert(name: str, value: Value) -> Value:
    if name == "bool":
        found = truth(value)
        if found.plain is None:
            return unknown_of(value)
        return found.plain if found.certain else Assumed(found.plain, frozenset({"conditions"}))
    if name in {"str", "repr"}:
        known = isinstance(value, (str, int, float, PathValue))
        return render(value) if known else Unknown(origins(value), render(value))
    if not isinstance(value, (str, int, float)) or (isinstance(value, str) and len(value) > 40):  # noqa: PLR2004 - longer ones are no settings
        return unknown_of(value)
    try:
        return int(value) if name == "int" else float(value)
    except (ValueError, OverflowError):
        return Unknown()


def _any_all(name: str, value: Value) -> Value:
    told = strip(value)
    if not isinstance(told, Items) or told.open:
        return unknown_of(value)
    wanted = name == "any"
    for entry in told.entries:
        if truth(entry.value) == (wanted, True) and not entry.guards:
            return wanted
    if all(truth(entry.value) == (not wanted, True) for entry in told.entries):
        return not wanted
    return unknown_of(value)


def _has(value: Value, name: Value) -> Value:
    if not isinstance(name, str):
        return Unknown()
    match strip(value):
        case Module() | Klass() as holder:
            return name in holder.scope.names
        case Instance() as holder:
            return name in holder.attributes or Unknown()
        case _:
            return Unknown()


def _mapped(engine: "Engine", name: str, arguments: list[Value], frame: "Frame") -> Value:
    from wheelfarm.survey import calls  # noqa: PLC0415 - calls lean on containers in turn

    if len(arguments) != 2:  # noqa: PLR2004 - a function and one sequence
        return Items(open=True)
    function, source = arguments
    result = Items(open=objects.unbounded(source), born=engine.now())
    for guards, element in objects.elements(source, MAX_SIZE):
        value = element
        if isinstance(function, Function):
            with engine.under(*guards):
                outcome = calls.invoke(engine, function, [element], {}, frame)
            if name == "filter" and truth(outcome) == (False, True):
                continue
            value = element if name == "filter" else outcome
        elif name == "map":
            value = _converted("str", element)
        result.add(value, guards)
    return result


def _zipped(name: str, arguments: list[Value]) -> Value:
    rows = Items()
    columns = [objects.elements(each, MAX_SIZE) for each in arguments]
    if name == "enumerate":
        columns = [
            [((), index) for index, _ in enumerate(columns[0])] if columns else [],
            *columns[:1],
        ]
    rows.open = any(objects.unbounded(each) for each in arguments)
    for cells in zip(*columns, strict=False):
        row = Items([Entry(value) for _, value in cells], kind="tuple")
        guards = merged((), [guard for found, _ in cells for guard in found])
        rows.entries.append(Entry(row, guards))
    return rows


def _conversion(name: str, arguments: list[Value]) -> Value:
    empty: Value = "" if name in {"str", "repr"} else 0
    return _converted(name, arguments[0]) if arguments else empty


def _asks_for_name(_name: str, arguments: list[Value]) -> Value:
    return _has(arguments[0], strip(arguments[1])) if len(arguments) > 1 else Unknown()


_BUILTINS: dict[str, Callable[[str, list[Value]], Value]] = {
    "len": lambda _name, arguments: lift(_length, *arguments[:1]) if arguments else Unknown(),
    "str": _conversion,
    "repr": _conversion,
    "int": _conversion,
    "float": _conversion,
    "bool": _conversion,
    "any": lambda name, arguments: _any_all(name, arguments[0] if arguments else None),
    "all": lambda name, arguments: _any_all(name, arguments[0] if arguments else None),
    "hasattr": _asks_for_name,
    "dir": lambda _name, arguments: objects.names_of(strip(arguments[0] if arguments else None)),
    "zip": _zipped,
    "enumerate": _zipped,
    "print": lambda _name, _arguments: None,
}
