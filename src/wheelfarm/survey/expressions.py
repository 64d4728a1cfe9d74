"""Expressions of the Python reader: an ``ast`` node and its names come in, a value goes out."""

import ast
import builtins
from typing import TYPE_CHECKING, Any

from wheelfarm.survey import calls, externals, objects
from wheelfarm.survey.guards import Guards, contradictory, merged
from wheelfarm.survey.logic import binary, compare, either, joined, negate, truth
from wheelfarm.survey.values import (
    External,
    Function,
    Items,
    Lazy,
    Scope,
    Table,
    Unknown,
    Value,
    choice,
    options,
    strip,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from wheelfarm.survey.engine import Engine, Frame

#: A condition is shown up to this many characters.
MAX_SHOWN = 160


def source_of(node: ast.AST) -> str:
    """Return an expression as source text on one line."""
    try:
        text = " ".join(ast.unparse(node).split())
    except (ValueError, RecursionError):
        return "a long expression"
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


def evaluate(engine: "Engine", node: ast.expr, frame: "Frame") -> Value:
    """Return the value of an expression; Unknown where its kind is not followed."""
    follow = _EXPRESSIONS.get(type(node))
    return Unknown() if follow is None else follow(engine, node, frame)


def combine(engine: "Engine", operation: ast.operator, left: Value, right: Value) -> Value:
    """Return ``left OP right``."""
    result = binary(type(operation).__name__, left, right)
    if isinstance(result, Items) and not result.born:
        result.born = engine.now()
    return result


def function_of(
    engine: "Engine", node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, frame: "Frame"
) -> Function:
    """Return a function's value, its defaults evaluated here."""
    positional = [*node.args.posonlyargs, *node.args.args]
    given = node.args.defaults
    defaults = {
        argument.arg: engine.value(default, frame)
        for argument, default in zip(positional[len(positional) - len(given) :], given, strict=True)
    }
    for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        if default is not None:
            defaults[argument.arg] = engine.value(default, frame)
    return Function(node, frame.scope, frame.file, defaults)


def _name(engine: "Engine", node: ast.Name, frame: "Frame") -> Value:
    home = frame.scope.find(node.id)
    if home is not None:
        value = home.names[node.id]
        if isinstance(value, Lazy):
            value = engine.resolved(value, frame)
            home.names[node.id] = value
        return value
    if hasattr(builtins, node.id):
        return External(f"builtins.{node.id}")
    return Unknown()


def _attribute(engine: "Engine", node: ast.Attribute, frame: "Frame") -> Value:
    return objects.member(engine, engine.value(node.value, frame), node.attr, frame)


def _call(engine: "Engine", node: ast.Call, frame: "Frame") -> Value:
    return calls.call(engine, node, frame)


def _sequence(engine: "Engine", node: ast.List | ast.Tuple | ast.Set, frame: "Frame") -> Value:
    result = Items(kind=type(node).__name__.lower(), born=engine.now())
    for element in node.elts:
        if isinstance(element, ast.Starred):
            objects.extend(engine, result, engine.value(element.value, frame), guarded=False)
        else:
            result.add(engine.value(element, frame))
    return result


def _table(engine: "Engine", node: ast.Dict, frame: "Frame") -> Value:
    result = Table(born=engine.now())
    for key, item in zip(node.keys, node.values, strict=True):
        value = engine.value(item, frame)
        if key is None:
            objects.update(result, value)
            continue
        told = strip(engine.value(key, frame))
        if isinstance(told, (str, int)):
            result.entries[told] = value
        else:
            result.open = True
    return result


def _formatted(engine: "Engine", node: ast.JoinedStr, frame: "Frame") -> Value:
    parts = [
        engine.value(part.value if isinstance(part, ast.FormattedValue) else part, frame)
        for part in node.values
    ]
    if not parts:
        return ""
    if not _few(parts):
        return joined(*parts)
    return choice([(guards, joined(*row)) for guards, row in _rows(parts)])


def _few(parts: list[Value]) -> bool:
    count = 1
    for part in parts:
        count *= len(options(part))
    return 1 < count <= 8  # noqa: PLR2004 - few enough to write out


def _rows(parts: list[Value]) -> list[tuple[Guards, list[Value]]]:
    rows: list[tuple[Guards, list[Value]]] = [((), [])]
    for part in parts:
        rows = [
            (merged(guards, more), [*row, option])
            for guards, row in rows
            for more, option in options(part)
        ]
    return [(guards, row) for guards, row in rows if not contradictory(guards)]


def _boolean(engine: "Engine", node: ast.BoolOp, frame: "Frame") -> Value:
    return either(type(node.op).__name__, [engine.value(each, frame) for each in node.values])


def _unary(engine: "Engine", node: ast.UnaryOp, frame: "Frame") -> Value:
    value = engine.value(node.operand, frame)
    if isinstance(node.op, ast.Not):
        return negate(value)
    told = strip(value)
    if isinstance(node.op, ast.USub) and isinstance(told, (int, float)):
        return -told
    return Unknown()


def _binary(engine: "Engine", node: ast.BinOp, frame: "Frame") -> Value:
    return combine(engine, node.op, engine.value(node.left, frame), engine.value(node.right, frame))


def _compare(engine: "Engine", node: ast.Compare, frame: "Frame") -> Value:
    left = engine.value(node.left, frame)
    outcomes = []
    for operation, other in zip(node.ops, node.comparators, strict=True):
        right = engine.value(other, frame)
        if isinstance(right, External) and right.name == "os.environ":
            # `NAME in os.environ` asks whether the setting is made.
            held = externals.environment(engine, left, None)
            outcomes.append(compare(_MEMBERSHIP.get(type(operation), "Eq"), held, None))
        else:
            outcomes.append(compare(type(operation).__name__, left, right))
        left = right
    return outcomes[0] if len(outcomes) == 1 else either("And", outcomes)


_MEMBERSHIP = {ast.In: "IsNot", ast.NotIn: "Is"}


def _conditional(engine: "Engine", node: ast.IfExp, frame: "Frame") -> Value:
    value = engine.value(node.test, frame)
    found = truth(value)
    if found.certain:
        return engine.value(node.body if found.plain else node.orelse, frame)
    yes, no = engine.guards_of(node.test, frame, value)
    with engine.under(yes):
        first = engine.value(node.body, frame)
    with engine.under(no):
        second = engine.value(node.orelse, frame)
    return choice([((yes,), first), ((no,), second)])


def _subscript(engine: "Engine", node: ast.Subscript, frame: "Frame") -> Value:
    holder = engine.value(node.value, frame)
    if isinstance(node.slice, ast.Slice):
        bounds = [strip(engine.value(each, frame)) for each in (node.slice.lower, node.slice.upper)]
        return objects.sliced(holder, bounds[0], bounds[1])
    return objects.item(engine, holder, engine.value(node.slice, frame))


def _lambda(engine: "Engine", node: ast.Lambda, frame: "Frame") -> Value:
    return function_of(engine, node, frame)


def _comprehension(
    engine: "Engine", node: ast.ListComp | ast.SetComp | ast.GeneratorExp, frame: "Frame"
) -> Value:
    result = Items(born=engine.now())
    mark = len(engine.now())

    def take(inner: "Frame") -> None:
        result.add(engine.value(node.elt, inner), engine.now()[mark:])

    _loop(engine, node.generators, frame, take, result)
    return result


def _table_comprehension(engine: "Engine", node: ast.DictComp, frame: "Frame") -> Value:
    result = Table()
    spill = Items()

    def take(inner: "Frame") -> None:
        key = strip(engine.value(node.key, inner))
        if isinstance(key, (str, int)):
            result.entries[key] = engine.value(node.value, inner)
        else:
            result.open = True

    _loop(engine, node.generators, frame, take, spill)
    result.open = result.open or spill.open
    return result


def _loop(
    engine: "Engine",
    generators: list[ast.comprehension],
    frame: "Frame",
    take: "Callable[[Frame], None]",
    result: Items,
) -> None:
    """Call ``take`` for each round of the loops, under the guards of elements and tests."""
    head, rest = generators[0], generators[1:]
    inner = type(frame)(Scope(parent=frame.scope), frame.file, frame.base)
    source = engine.value(head.iter, frame)
    if objects.unbounded(source):
        result.open = True
    for guards, element in objects.elements(source, 400):
        with engine.under(*guards):
            engine.assign(head.target, element, inner)
            if not _admitted(engine, head.ifs, inner):
                continue
            if rest:
                _loop(engine, rest, inner, take, result)
            else:
                take(inner)


def _admitted(engine: "Engine", tests: list[ast.expr], frame: "Frame") -> bool:
    for test in tests:
        value = engine.value(test, frame)
        found = truth(value)
        if found == (False, True):
            return False
        if not found.certain:
            engine.guards.append(engine.guards_of(test, frame, value)[0])
    return True


def _named(engine: "Engine", node: ast.NamedExpr, frame: "Frame") -> Value:
    value = engine.value(node.value, frame)
    engine.assign(node.target, value, frame)
    return value


_EXPRESSIONS: "dict[type[ast.expr], Callable[[Engine, Any, Frame], Value]]" = {
    ast.Constant: lambda _engine, node, _frame: node.value,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.List: _sequence,
    ast.Tuple: _sequence,
    ast.Set: _sequence,
    ast.Dict: _table,
    ast.JoinedStr: _formatted,
    ast.BoolOp: _boolean,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.Subscript: _subscript,
    ast.Lambda: _lambda,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _table_comprehension,
    ast.NamedExpr: _named,
}
