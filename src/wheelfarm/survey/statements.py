"""Statements of the Python reader: an ``ast`` statement is followed, its names change."""

import ast
from typing import TYPE_CHECKING, Any

from wheelfarm.survey import expressions, objects
from wheelfarm.survey.guards import guard_of
from wheelfarm.survey.logic import truth
from wheelfarm.survey.values import (
    Function,
    Items,
    Klass,
    Module,
    Scope,
    Unknown,
    Value,
    options,
    origins,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from wheelfarm.survey.engine import Engine, Frame

#: A loop over a known sequence is followed for at most this many elements.
MAX_LOOP = 400

#: How a block ended: by its end (empty), or by the statement named.
Flow = str


def _follow_expression(engine: "Engine", node: ast.Expr, frame: "Frame") -> Flow:
    value = engine.value(node.value, frame)
    return "raise" if value is objects.EXIT else ""


def _follow_assign(engine: "Engine", node: ast.Assign, frame: "Frame") -> Flow:
    value = engine.value(node.value, frame)
    if value is objects.EXIT:
        return "raise"
    for target in node.targets:
        engine.assign(target, value, frame)
    return ""


def _follow_annotated(engine: "Engine", node: ast.AnnAssign, frame: "Frame") -> Flow:
    if node.value is not None:
        engine.assign(node.target, engine.value(node.value, frame), frame)
    return ""


def _follow_augmented(engine: "Engine", node: ast.AugAssign, frame: "Frame") -> Flow:
    old = engine.value(node.target, frame)
    new = engine.value(node.value, frame)
    if isinstance(node.op, ast.Add) and _grown(engine, old, new):
        return ""
    engine.assign(node.target, expressions.combine(engine, node.op, old, new), frame)
    return ""


def _grown(engine: "Engine", old: Value, new: Value) -> bool:
    """Extend lists in place, as ``+=`` does; say whether all alternatives were lists."""
    if not all(isinstance(option, Items) for _, option in options(old)):
        return False
    for guards, option in options(old):
        with engine.under(*guards):
            objects.extend(engine, option, new)
    return True


def _follow_if(engine: "Engine", node: ast.If, frame: "Frame") -> Flow:
    return engine.branch(node.test, frame, node.body, node.orelse)


def _follow_for(engine: "Engine", node: ast.For, frame: "Frame") -> Flow:
    sequence = engine.value(node.iter, frame)
    mark = len(engine.guards)
    for guards, element in objects.elements(sequence, MAX_LOOP):
        with engine.under(*guards):
            engine.assign(node.target, element, frame)
            flow = engine.block(node.body, frame)
        del engine.guards[mark:]
        if flow == "break":
            return ""
        if flow in {"return", "raise"}:
            return flow
    flow = engine.block(node.orelse, frame)
    # A loop's `else` that raises says "not found"; a search that cannot be followed may have been.
    return "" if flow == "raise" else flow


def _follow_while(engine: "Engine", node: ast.While, frame: "Frame") -> Flow:
    mark = len(engine.guards)
    if truth(engine.value(node.test, frame)) == (False, True):
        return ""
    flow = engine.block(node.body, frame)
    del engine.guards[mark:]
    return flow if flow in {"return", "raise"} else ""


def _follow_try(engine: "Engine", node: ast.Try, frame: "Frame") -> Flow:
    """Follow the body as if nothing failed; the handlers only where the body surely raises."""
    flow = engine.block(node.body, frame)
    if flow == "raise" and node.handlers:
        flow = engine.block(node.handlers[0].body, frame)
    elif not flow:
        flow = engine.block(node.orelse, frame)
        for handler in node.handlers:
            if _makes_extensions(handler):
                _follow_handler(engine, handler, frame)
    last = engine.block(node.finalbody, frame)
    return last or flow


def _makes_extensions(handler: ast.ExceptHandler) -> bool:
    names = (getattr(each, "id", getattr(each, "attr", "")) for each in ast.walk(handler))
    return any(isinstance(name, str) and name.endswith("Extension") for name in names)


def _follow_handler(engine: "Engine", handler: ast.ExceptHandler, frame: "Frame") -> None:
    """Follow a handler that makes extensions, under the guard that what it guards failed."""
    text = "what stands in the try block fails"
    failed = guard_of(text, frame.file, handler.lineno, False)  # noqa: FBT003 - a branch
    worked = guard_of(text, frame.file, handler.lineno, True, False)  # noqa: FBT003 - a branch
    after = dict(frame.scope.names)
    with engine.under(failed):
        left = engine.block(handler.body, frame)
    if left:
        frame.scope.names = after
    else:
        frame.scope.names = engine.joined(worked, after, failed, frame.scope.names)


def _follow_with(engine: "Engine", node: ast.With, frame: "Frame") -> Flow:
    for item in node.items:
        value = engine.value(item.context_expr, frame)
        if item.optional_vars is not None:
            engine.assign(item.optional_vars, value, frame)
    return engine.block(node.body, frame)


def _follow_return(engine: "Engine", node: ast.Return, frame: "Frame") -> Flow:
    value = engine.value(node.value, frame)
    frame.returns.append((tuple(engine.guards[frame.base :]), value))
    return "raise" if value is objects.EXIT else "return"


def _follow_function(
    engine: "Engine", node: ast.FunctionDef | ast.AsyncFunctionDef, frame: "Frame"
) -> Flow:
    function = expressions.function_of(engine, node, frame)
    function.decorators = tuple(engine.value(each, frame) for each in node.decorator_list)
    engine.bind(frame, node.name, function)
    return ""


def _follow_class(engine: "Engine", node: ast.ClassDef, frame: "Frame") -> Flow:
    bases = tuple(engine.value(base, frame) for base in node.bases)
    scope = Scope(parent=frame.scope)
    engine.block(node.body, type(frame)(scope, frame.file, len(engine.guards)))
    klass = Klass(node.name, bases, scope, frame.file, node.lineno)
    for value in scope.names.values():
        if isinstance(value, Function):
            value.owner = klass
            # A method does not see the names of its class body.
            value.scope = frame.scope
    engine.bind(frame, node.name, klass)
    return ""


def _follow_import(engine: "Engine", node: ast.Import, frame: "Frame") -> Flow:
    for alias in node.names:
        if frame.file != engine.main and (alias.asname or "." not in alias.name):
            lazy = engine.lazy(alias.name, "", level=0, file=frame.file)
            if lazy is not None:
                engine.bind(frame, alias.asname or alias.name, lazy)
                continue
        module = engine.module_of(alias.name)
        if alias.asname is None and "." in alias.name:
            top = alias.name.split(".", 1)[0]
            if not isinstance(frame.scope.names.get(top), Module):
                engine.bind(frame, top, engine.module_of(top))
        else:
            engine.bind(frame, alias.asname or alias.name, module)
    return ""


def _follow_import_from(engine: "Engine", node: ast.ImportFrom, frame: "Frame") -> Flow:
    dotted = node.module or ""
    stars = any(alias.name == "*" for alias in node.names)
    if frame.file != engine.main and not stars:
        found = [
            (alias, engine.lazy(dotted, alias.name, level=node.level, file=frame.file))
            for alias in node.names
        ]
        if all(lazy is not None for _, lazy in found):
            for alias, lazy in found:
                engine.bind(frame, alias.asname or alias.name, lazy)
            return ""
    module = engine.module_of(dotted, level=node.level, file=frame.file)
    for alias in node.names:
        if alias.name == "*":
            if isinstance(module, Module):
                frame.scope.names |= module.scope.names
            continue
        value = objects.member(engine, module, alias.name, frame)
        engine.bind(frame, alias.asname or alias.name, value)
    return ""


def _follow_shared(_engine: "Engine", node: ast.Global | ast.Nonlocal, frame: "Frame") -> Flow:
    frame.shared |= frozenset(node.names)
    return ""


def _follow_match(engine: "Engine", node: ast.Match, frame: "Frame") -> Flow:
    subject = engine.value(node.subject, frame)
    for case in node.cases:
        text = f"{expressions.source_of(node.subject)} matches {ast.unparse(case.pattern)}"
        guard = guard_of(text, frame.file, case.pattern.lineno, None)
        for name in (part for part in ast.walk(case.pattern) if isinstance(part, ast.MatchAs)):
            if name.name:
                engine.bind(frame, name.name, Unknown(origins(subject)))
        with engine.under(guard):
            engine.block(case.body, frame)
    return ""


_FOLLOWERS: "dict[type[ast.stmt], Callable[[Engine, Any, Frame], Flow]]" = {
    ast.Expr: _follow_expression,
    ast.Assign: _follow_assign,
    ast.AnnAssign: _follow_annotated,
    ast.AugAssign: _follow_augmented,
    ast.If: _follow_if,
    ast.For: _follow_for,
    ast.While: _follow_while,
    ast.Try: _follow_try,
    ast.With: _follow_with,
    ast.Return: _follow_return,
    ast.FunctionDef: _follow_function,
    ast.AsyncFunctionDef: _follow_function,
    ast.ClassDef: _follow_class,
    ast.Import: _follow_import,
    ast.ImportFrom: _follow_import_from,
    ast.Global: _follow_shared,
    ast.Nonlocal: _follow_shared,
    ast.Match: _follow_match,
    ast.Raise: lambda _engine, _node, _frame: "raise",
    ast.Break: lambda _engine, _node, _frame: "break",
    ast.Continue: lambda _engine, _node, _frame: "continue",
}


def follower_of(statement: ast.stmt) -> "Callable[[Engine, Any, Frame], Flow] | None":
    """Return what follows a statement of this kind; None where it decides nothing."""
    return _FOLLOWERS.get(type(statement))
