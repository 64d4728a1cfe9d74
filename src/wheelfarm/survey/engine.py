"""The Python reader: follows a build script's statements over abstract values and runs nothing.

Where a test cannot be told, or hangs on a setting, both branches are followed, each under a guard.
"""

import ast
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from wheelfarm.survey import expressions, objects, statements
from wheelfarm.survey.guards import Guard, Guards, guard_of, merged
from wheelfarm.survey.logic import truth
from wheelfarm.survey.paths import Paths
from wheelfarm.survey.statements import Flow
from wheelfarm.survey.tree import Tree
from wheelfarm.survey.values import (
    Built,
    External,
    Function,
    Lazy,
    Module,
    Scope,
    Unknown,
    Value,
    choice,
    settings,
)

#: One reading follows at most this many statements and expressions.
MAX_STEPS = 600_000
#: At most this many modules of the tree are followed.
MAX_MODULES = 150
#: Calls nest at most this deep.
MAX_DEPTH = 40


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """One call: its evaluated arguments, its line, and the frame that makes it."""

    arguments: list[Value]
    keywords: dict[str, Value]
    line: int
    frame: Frame


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

    def site(
        self, *, arguments: list[Value], keywords: dict[str, Value], line: int, frame: Frame
    ) -> Site:
        """Return one call as a value."""
        return Site(arguments=arguments, keywords=keywords, line=line, frame=frame)

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
            follow = statements.follower_of(statement)
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
        text = expressions.source_of(test)
        told = tuple(sorted(settings(value)))
        opposite = None if plain is None else not plain
        yes = guard_of(text, frame.file, test.lineno, plain, True, told)  # noqa: FBT003 - a branch
        no = guard_of(text, frame.file, test.lineno, opposite, False, told)  # noqa: FBT003 - a branch
        return yes, no

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
        frame.scope.names = self.joined(yes, left, no, right)
        return ""

    @staticmethod
    def joined(
        yes: Guard, left: dict[str, Value], no: Guard, right: dict[str, Value]
    ) -> dict[str, Value]:
        """Return the names after two branches; those that differ hold both values."""
        names: dict[str, Value] = {}
        for name in {**left, **right}:
            if name in left and name in right:
                one, two = left[name], right[name]
                names[name] = one if one is two else choice([((yes,), one), ((no,), two)])
            else:
                # Where the other branch leaves the name unset, its use would be an error.
                names[name] = left.get(name, right.get(name))
        return names

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
