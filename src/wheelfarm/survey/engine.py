"""The Python reader: follows a build script's statements over abstract values and runs nothing.

Where a test cannot be told, or hangs on a setting, both branches are followed, each under a guard.
"""

import ast
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from wheelfarm.survey import expressions, objects
from wheelfarm.survey.logic import truth
from wheelfarm.survey.paths import Paths
from wheelfarm.survey.tree import Tree
from wheelfarm.survey.values import (
    Built,
    External,
    Function,
    Guard,
    Guards,
    Items,
    Klass,
    Lazy,
    Module,
    Scope,
    Unknown,
    Value,
    choice,
    merged,
    options,
    origins,
    settings,
)

if TYPE_CHECKING:
    from collections.abc import Callable

#: One reading follows at most this many statements and expressions.
MAX_STEPS = 600_000
#: At most this many modules of the tree are followed.
MAX_MODULES = 150
#: Calls nest at most this deep.
MAX_DEPTH = 40
#: A loop over a known sequence is followed for at most this many elements.
MAX_LOOP = 400

#: How a block ended: by its end, or by the statement named.
Flow = str


class ExhaustedError(Exception):
    """The script is too long to follow."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SetupCall:
    """One call of a ``setup`` function, with its keywords."""

    function: str
    keywords: dict[str, Value]
    file: str
    line: int
    guards: Guards


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """One program that the script would start: the call's name, its argument, and the folder."""

    function: str
    argv: Value
    cwd: Value
    file: str
    line: int
    guards: Guards


@dataclass(slots=True)
class Frame:
    """One running module, function or class body."""

    scope: Scope
    file: str
    base: int = 0
    returns: list[tuple[Guards, Value]] = field(default_factory=list)
    function: Function | None = None
    shared: frozenset[str] = frozenset()


class Engine:
    """Follows one project's scripts; what matters to the survey is collected on the way."""

    def __init__(self, tree: Tree, project: str) -> None:
        self.tree = tree
        self.project = project
        self.paths: Paths = Paths(tree, project)
        self.search = [project]
        self.modules: dict[str, Module] = {}
        self.guards: list[Guard] = []
        self.setups: list[SetupCall] = []
        self.commands: list[Command] = []
        self.built: list[Built] = []
        self.loads: list[tuple[str, int, str]] = []
        self.environment: dict[str, Value] = {}
        self.faults: list[tuple[str, int, str]] = []
        self.main = ""
        self.active: dict[int, int] = {}
        self._steps = 0
        self._depth = 0

    def read_script(self, file: str, text: str | None = None) -> Module | None:
        """Follow a script as ``__main__``; None where it is absent or no Python."""
        self.main = file
        return self.load(file, name="__main__", text=text)

    def load(self, file: str, *, name: str, text: str | None = None) -> Module | None:
        """Return the module of a file, followed once; None where it is absent or no Python."""
        if file in self.modules:
            return self.modules[file]
        source = self.tree.text(file) if text is None else text
        if source is None:
            return None
        if len(self.modules) >= MAX_MODULES:
            return None
        body = self.parse(source, file)
        if body is None:
            return None
        module = Module(file, Scope())
        self.modules[file] = module
        path = f"/tree/{file}"
        module.scope.names |= {"__name__": name, "__file__": path}
        with self.deeper():
            self.block(body, Frame(module.scope, file, len(self.guards)))
        return module

    def parse(self, source: str, file: str) -> list[ast.stmt] | None:
        """Return a file's statements; None, with the fault noted, where it is no Python."""
        try:
            return ast.parse(source).body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None) or 0
            self.faults.append((file, line, f"is no Python that can be read: {error}"))
            return None

    def step(self) -> None:
        """Count one step; ExhaustedError when there were too many."""
        self._steps += 1
        if self._steps > MAX_STEPS:
            message = "the script is too long to follow"
            raise ExhaustedError(message)

    @property
    def too_deep(self) -> bool:
        """Whether calls nest so deep that no further one is followed."""
        return self._depth >= MAX_DEPTH

    @contextlib.contextmanager
    def deeper(self) -> Iterator[None]:
        """Count one level of calls; guards that a return left behind end here."""
        if self._depth >= MAX_DEPTH:
            message = "the script's calls nest too deep to follow"
            raise ExhaustedError(message)
        self._depth += 1
        mark = len(self.guards)
        try:
            yield
        finally:
            del self.guards[mark:]
            self._depth -= 1

    @contextlib.contextmanager
    def under(self, *guards: Guard) -> Iterator[None]:
        """Follow what stands inside under more guards."""
        mark = len(self.guards)
        self.guards += guards
        try:
            yield
        finally:
            del self.guards[mark:]

    def now(self) -> Guards:
        """Return the guards in force."""
        return merged((), self.guards)

    def note_setup(
        self,
        function: str,
        arguments: list[Value],
        keywords: dict[str, Value],
        line: int,
        frame: Frame,
    ) -> None:
        """Keep one call of a setup function."""
        if arguments:
            keywords = {**keywords, "**": Unknown()}
        self.setups.append(
            SetupCall(
                function=function, keywords=keywords, file=frame.file, line=line, guards=self.now()
            )
        )

    def note_command(self, function: str, argv: Value, cwd: Value, line: int, frame: Frame) -> None:
        """Keep one program that the script would start."""
        self.commands.append(
            Command(
                function=function, argv=argv, cwd=cwd, file=frame.file, line=line,
                guards=self.now(),
            )
        )  # fmt: skip

    def value(self, node: ast.expr | None, frame: Frame) -> Value:
        """Return the value of an expression."""
        self.step()
        return None if node is None else expressions.evaluate(self, node, frame)

    def block(self, body: list[ast.stmt], frame: Frame) -> Flow:
        """Follow statements until one leaves the block; say how it was left."""
        for statement in body:
            self.step()
            follow = _STATEMENTS.get(type(statement))
            flow = "" if follow is None else follow(self, statement, frame)
            if flow:
                return flow
        return ""

    def branch(
        self, test: ast.expr, frame: Frame, then: list[ast.stmt], other: list[ast.stmt]
    ) -> Flow:
        """Follow an ``if``: one branch where the test is certain, both otherwise."""
        value = self.value(test, frame)
        found = truth(value)
        if found.certain:
            return self.block(then if found.plain else other, frame)
        yes, no = self.guards_of(test, frame, value)
        return self.fork(frame, (yes, then), (no, other))

    def guards_of(self, test: ast.expr, frame: Frame, value: Value) -> tuple[Guard, Guard]:
        """Return the guards of both branches of ``test``, whose value is ``value``."""
        plain = truth(value).plain
        yes = Guard(
            text=expressions.source_of(test),
            file=frame.file,
            line=test.lineno,
            plain=plain,
            settings=tuple(sorted(settings(value))),
        )
        opposite = None if plain is None else not plain
        return yes, replace(yes, plain=opposite, taken=False)

    def fork(
        self,
        frame: Frame,
        first: tuple[Guard, list[ast.stmt]],
        second: tuple[Guard, list[ast.stmt]],
    ) -> Flow:
        """Follow two branches from the same names, and join what they leave."""
        before = dict(frame.scope.names)
        ends: list[tuple[Guard, Flow, dict[str, Value]]] = []
        for guard, body in (first, second):
            frame.scope.names = dict(before)
            with self.under(guard):
                flow = self.block(body, frame)
            ends.append((guard, flow, frame.scope.names))
        (yes, flow, left), (no, other_flow, right) = ends
        if flow and other_flow:
            frame.scope.names = left
            return flow if flow == other_flow else "return"
        if flow or other_flow:
            stays, names = (no, right) if flow else (yes, left)
            frame.scope.names = names
            if (flow or other_flow) != "raise":
                # What follows runs only where the branch that left was not taken. A branch that
                # raises builds nothing, and so decides nothing of what a build ships.
                self.guards.append(stays)
            return ""
        frame.scope.names = _joined(yes, left, no, right)
        return ""

    def bind(self, frame: Frame, name: str, value: Value) -> None:
        """Give a name a value, in the scope where the statement's function sees it."""
        if name in frame.shared and frame.scope.parent is not None:
            home = frame.scope.parent.find(name) or frame.scope.parent
            old = home.names.get(name)
            extra = self.now()[frame.base :]
            guarded = old is not None and bool(extra)
            home.names[name] = choice([(extra, value), ((), old)]) if guarded else value
            return
        frame.scope.names[name] = value

    def assign(self, target: ast.expr, value: Value, frame: Frame) -> None:
        """Follow one assignment."""
        match target:
            case ast.Name():
                self.bind(frame, target.id, value)
            case ast.Attribute():
                objects.set_attribute(self, self.value(target.value, frame), target.attr, value)
            case ast.Subscript():
                holder = self.value(target.value, frame)
                objects.set_item(self, holder, self.value(target.slice, frame), value)
            case ast.Starred():
                self.assign(target.value, value, frame)
            case ast.Tuple() | ast.List():
                for part, element in zip(
                    target.elts, objects.unpacked(value, len(target.elts)), strict=False
                ):
                    self.assign(part, element, frame)
            case _:
                pass

    def module_of(self, dotted: str, *, level: int = 0, file: str = "") -> Module | External | None:
        """Return a module by name: the tree's, else a foreign one; None where a local is absent."""
        relative = dotted.replace(".", "/")
        if level:
            base = PurePosixPath(file).parent
            for _ in range(level - 1):
                base = base.parent
            return self.local(str(base / relative) if relative else str(base), dotted)
        if dotted.split(".", 1)[0] not in _FOREIGN:
            for place in self.search:
                found = self.local(f"{place}/{relative}".lstrip("/"), dotted)
                if found is not None:
                    return found
        return External(dotted, module=True)

    def resolved(self, value: Value, frame: Frame) -> Value:
        """Return what a lazy import stands for; other values as they are."""
        if not isinstance(value, Lazy):
            return value
        module = self.local(value.path, value.dotted)
        if not value.name:
            return module if module is not None else Unknown()
        return objects.member(self, module, value.name, frame)

    def lazy(self, dotted: str, name: str, *, level: int, file: str) -> Lazy | None:
        """Return a lazy import of a module of the tree; None where it is no such module."""
        relative = dotted.replace(".", "/")
        if level:
            base = PurePosixPath(file).parent
            for _ in range(level - 1):
                base = base.parent
            places = [str(base / relative) if relative else str(base)]
        elif dotted.split(".", 1)[0] in _FOREIGN:
            return None
        else:
            places = [f"{place}/{relative}".lstrip("/") for place in self.search]
        for path in places:
            if any(self.tree.is_file(each) for each in (f"{path}.py", f"{path}/__init__.py")):
                return Lazy(path, dotted, name)
        return None

    def local(self, path: str, dotted: str) -> Module | None:
        """Return the module of the tree at a path without suffix."""
        for candidate in (f"{path}.py", f"{path}/__init__.py"):
            if self.tree.is_file(candidate):
                return self.load(candidate, name=dotted)
        return None


#: Modules that a tree's folder of the same name never stands for.
_FOREIGN = frozenset({"torch", "setuptools", "distutils", "os", "sys", "subprocess", "wheel"})


def _joined(
    yes: Guard, left: dict[str, Value], no: Guard, right: dict[str, Value]
) -> dict[str, Value]:
    names: dict[str, Value] = {}
    for name in {**left, **right}:
        if name in left and name in right:
            one, two = left[name], right[name]
            names[name] = one if one is two else choice([((yes,), one), ((no,), two)])
        else:
            # Where the other branch leaves the name unset, its use would be an error.
            names[name] = left.get(name, right.get(name))
    return names


def _follow_expression(engine: Engine, node: ast.Expr, frame: Frame) -> Flow:
    value = engine.value(node.value, frame)
    return "raise" if value is objects.EXIT else ""


def _follow_assign(engine: Engine, node: ast.Assign, frame: Frame) -> Flow:
    value = engine.value(node.value, frame)
    for target in node.targets:
        engine.assign(target, value, frame)
    return ""


def _follow_annotated(engine: Engine, node: ast.AnnAssign, frame: Frame) -> Flow:
    if node.value is not None:
        engine.assign(node.target, engine.value(node.value, frame), frame)
    return ""


def _follow_augmented(engine: Engine, node: ast.AugAssign, frame: Frame) -> Flow:
    old = engine.value(node.target, frame)
    new = engine.value(node.value, frame)
    if isinstance(node.op, ast.Add) and _grown(engine, old, new):
        return ""
    engine.assign(node.target, expressions.combine(engine, node.op, old, new), frame)
    return ""


def _grown(engine: Engine, old: Value, new: Value) -> bool:
    """Extend lists in place, as ``+=`` does; say whether all alternatives were lists."""
    if not all(isinstance(option, Items) for _, option in options(old)):
        return False
    for guards, option in options(old):
        with engine.under(*guards):
            objects.extend(engine, option, new)
    return True


def _follow_if(engine: Engine, node: ast.If, frame: Frame) -> Flow:
    return engine.branch(node.test, frame, node.body, node.orelse)


def _follow_for(engine: Engine, node: ast.For, frame: Frame) -> Flow:
    sequence = engine.value(node.iter, frame)
    mark = len(engine.guards)
    for guards, element in objects.elements(sequence, MAX_LOOP):
        with engine.under(*guards):
            engine.assign(node.target, element, frame)
            flow = engine.block(node.body, frame)
        del engine.guards[mark:]
        if flow == "break":
            break
        if flow in {"return", "raise"}:
            return flow
    return engine.block(node.orelse, frame)


def _follow_while(engine: Engine, node: ast.While, frame: Frame) -> Flow:
    mark = len(engine.guards)
    if truth(engine.value(node.test, frame)) == (False, True):
        return ""
    flow = engine.block(node.body, frame)
    del engine.guards[mark:]
    return flow if flow in {"return", "raise"} else ""


def _follow_try(engine: Engine, node: ast.Try, frame: Frame) -> Flow:
    """Follow the body as if nothing failed; the handlers only where the body surely raises."""
    flow = engine.block(node.body, frame)
    if flow == "raise" and node.handlers:
        flow = engine.block(node.handlers[0].body, frame)
    elif not flow:
        flow = engine.block(node.orelse, frame)
    last = engine.block(node.finalbody, frame)
    return last or flow


def _follow_with(engine: Engine, node: ast.With, frame: Frame) -> Flow:
    for item in node.items:
        value = engine.value(item.context_expr, frame)
        if item.optional_vars is not None:
            engine.assign(item.optional_vars, value, frame)
    return engine.block(node.body, frame)


def _follow_return(engine: Engine, node: ast.Return, frame: Frame) -> Flow:
    value = engine.value(node.value, frame)
    frame.returns.append((tuple(engine.guards[frame.base :]), value))
    return "raise" if value is objects.EXIT else "return"


def _follow_function(
    engine: Engine, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame
) -> Flow:
    function = expressions.function_of(engine, node, frame)
    function.decorators = tuple(engine.value(each, frame) for each in node.decorator_list)
    engine.bind(frame, node.name, function)
    return ""


def _follow_class(engine: Engine, node: ast.ClassDef, frame: Frame) -> Flow:
    bases = tuple(engine.value(base, frame) for base in node.bases)
    scope = Scope(parent=frame.scope)
    engine.block(node.body, Frame(scope, frame.file, len(engine.guards)))
    klass = Klass(node.name, bases, scope, frame.file, node.lineno)
    for value in scope.names.values():
        if isinstance(value, Function):
            value.owner = klass
            # A method does not see the names of its class body.
            value.scope = frame.scope
    engine.bind(frame, node.name, klass)
    return ""


def _follow_import(engine: Engine, node: ast.Import, frame: Frame) -> Flow:
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


def _follow_import_from(engine: Engine, node: ast.ImportFrom, frame: Frame) -> Flow:
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


def _follow_shared(_engine: Engine, node: ast.Global | ast.Nonlocal, frame: Frame) -> Flow:
    frame.shared |= frozenset(node.names)
    return ""


def _follow_match(engine: Engine, node: ast.Match, frame: Frame) -> Flow:
    subject = engine.value(node.subject, frame)
    for case in node.cases:
        guard = Guard(
            text=f"{expressions.source_of(node.subject)} matches {ast.unparse(case.pattern)}",
            file=frame.file,
            line=case.pattern.lineno,
            plain=None,
        )
        for name in (part for part in ast.walk(case.pattern) if isinstance(part, ast.MatchAs)):
            if name.name:
                engine.bind(frame, name.name, Unknown(origins(subject)))
        with engine.under(guard):
            engine.block(case.body, frame)
    return ""


_STATEMENTS: "dict[type[ast.stmt], Callable[[Engine, Any, Frame], Flow]]" = {
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
