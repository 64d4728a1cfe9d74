"""Follows a CMake project's commands and keeps its targets and what each links; runs nothing."""

import posixpath
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from wheelfarm.survey.cmake_lexer import Argument, Statement, statements
from wheelfarm.survey.cmake_values import Condition, Known, Variables
from wheelfarm.survey.guards import Guard, Guards, contradictory, guard_of, merged
from wheelfarm.survey.logic import holds_plainly
from wheelfarm.survey.tree import Tree, normal
from wheelfarm.survey.values import HOLE

#: One project is followed for at most this many commands.
MAX_COMMANDS = 200_000
_MAX_DEPTH = 40
_MAX_LOOP = 300

#: Where the tree's root lies in paths that CMake files see.
ROOT = "/tree"


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where something was said, and under which guards."""

    file: str
    line: int
    guards: Guards


@dataclass(slots=True)
class Target:
    """One target: its kind, where it was made, what it links and its compiler flags."""

    name: str
    kind: str
    place: Place
    links: list[tuple[str, Place]] = field(default_factory=list)
    flags: list[tuple[str, Place]] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)


class _TooLongError(Exception):
    """The project has too many commands to follow."""


@dataclass(slots=True)
class _Scope:
    variables: Variables
    folder: str
    parent: "_Scope | None" = None
    excluded: bool = False

    def folders(self) -> set[str]:
        """Return the folders of this scope and those around it."""
        around = self.parent.folders() if self.parent is not None else set()
        return {self.folder} | around


class Project(Known):
    """One CMake project as far as it was followed."""

    def __init__(self, tree: Tree, folder: str, defines: Iterable[tuple[str, Guards]]) -> None:
        super().__init__()
        self.tree = tree
        self.top = folder
        self.made: dict[str, list[Target]] = {}
        self.installed: list[tuple[str, Place]] = []
        self.found: dict[str, Place] = {}
        self.flags: list[tuple[str, Place]] = []
        self.links: list[tuple[str, Place]] = []
        self.empty: list[tuple[str, Place]] = []
        self.absent: list[tuple[str, Place]] = []
        self.functions: dict[str, tuple[str, list[str], list[Statement]]] = {}
        self.guards: list[Guard] = []
        self.too_long = False
        self._count = 0
        self._depth = 0
        self.variables = Variables()
        for word, guards in sorted(defines, key=lambda each: bool(each[1])):
            name, _, value = word.removeprefix("-D").partition("=")
            self.variables.set(name.split(":")[0], value, guards)
        self.scope = _Scope(self.variables, folder)
        for name in ("CMAKE_SOURCE_DIR", "PROJECT_SOURCE_DIR"):
            self.variables.set(name, self.path(folder), ())
        self.variables.set("CMAKE_BINARY_DIR", "/build", ())
        self.variables.set("PROJECT_BINARY_DIR", "/build", ())

    def read(self) -> "Project":
        """Follow the project's CMakeLists.txt."""
        try:
            self._folder(self.top)
        except (_TooLongError, RecursionError):
            self.too_long = True
        return self

    def path(self, relative: str) -> str:
        """Return a relative path as CMake sees it."""
        return f"{ROOT}/{relative}" if relative else ROOT

    def relative(self, text: str) -> str | None:
        """Return a path relative to the tree's root; None where it lies outside or has holes."""
        if HOLE in text:
            return None
        full = posixpath.normpath(posixpath.join(self.path(self.scope.folder), text))
        if full == ROOT:
            return ""
        return full[len(ROOT) + 1 :] if full.startswith(f"{ROOT}/") else None

    def exists(self, path: str) -> bool | None:
        """Return whether a file or folder of the tree exists; None where it lies outside."""
        relative = self.relative(path)
        if relative is None:
            return None
        return self.tree.is_file(relative) or self.tree.is_dir(relative)

    def now(self) -> Guards:
        """Return the guards in force."""
        return merged((), self.guards)

    def place(self, statement: Statement, more: Guards = ()) -> Place:
        """Return where a command stands, with the guards in force and ``more``."""
        guards = merged(self.now(), more)
        return Place(file=statement.file, line=statement.line, guards=guards)

    def words(self, arguments: Sequence[Argument]) -> list[tuple[str, Guards]]:
        """Return arguments expanded and split at ``;``, each word under its guards."""
        found: list[tuple[str, Guards]] = []
        for argument in arguments:
            for each in self.scope.variables.expand(argument):
                if contradictory(merged(self.now(), each.guards)):
                    continue
                parts = (
                    [each.text]
                    if argument.quoted and ";" not in each.text
                    else each.text.split(";")
                )
                found += [(part, each.guards) for part in parts if part or argument.quoted]
        return found

    def plain_words(self, arguments: Sequence[Argument]) -> list[str]:
        """Return arguments as words, those of a plain build."""
        return [
            text for text, guards in self.words(arguments) if holds_plainly(guards) is not False
        ]

    def follow(self, body: list[Statement]) -> str:
        """Follow commands; return ``return`` or ``break`` where the body was left early."""
        index = 0
        while index < len(body):
            self._count += 1
            if self._count > MAX_COMMANDS:
                raise _TooLongError
            statement = body[index]
            if statement.name in _BLOCKS:
                end = _end_of(body, index, statement.name)
                left = _BLOCKS[statement.name](self, body[index:end])
                index = end + 1
                if left:
                    return left
                continue
            if statement.name in {"return", "break", "continue"}:
                return "return" if statement.name == "return" else "break"
            self._command(statement)
            index += 1
        return ""

    def _command(self, statement: Statement) -> None:
        from wheelfarm.survey.cmake_commands import COMMANDS  # noqa: PLC0415 - mutual
        from wheelfarm.survey.cmake_targets import library_like  # noqa: PLC0415 - mutual

        defined = self.functions.get(statement.name)
        if defined is not None:
            self._call(statement, *defined)
            return
        follow = COMMANDS.get(statement.name) or library_like(statement.name)
        if follow is not None:
            follow(self, statement)

    def file(self, relative: str) -> str:
        """Follow one file of the tree in the current scope; absent files are noted."""
        text = self.tree.text(relative)
        if text is None:
            return ""
        if self._depth > _MAX_DEPTH:
            raise _TooLongError
        self._depth += 1
        mark = len(self.guards)
        try:
            return self.follow(statements(text, normal(relative)))
        finally:
            del self.guards[mark:]
            self._depth -= 1

    def _folder(self, folder: str) -> None:
        variables = self.scope.variables
        variables.set("CMAKE_CURRENT_SOURCE_DIR", self.path(folder), ())
        variables.set("CMAKE_CURRENT_LIST_DIR", self.path(folder), ())
        variables.set("CMAKE_CURRENT_BINARY_DIR", f"/build/{folder}", ())
        self.file(f"{folder}/CMakeLists.txt" if folder else "CMakeLists.txt")

    def subdirectory(self, statement: Statement) -> None:
        """Follow ``add_subdirectory``."""
        words = self.plain_words(statement.arguments)
        first = self.plain_words(statement.arguments[:1])
        relative = self.relative(first[0]) if first else None
        if relative is None or not self.tree.is_file(f"{relative}/CMakeLists.txt".lstrip("/")):
            shown = relative or (statement.arguments[0].text if statement.arguments else "")
            self.absent.append((shown, self.place(statement)))
            return
        if relative in self.scope.folders():
            return
        outer = self.scope
        self.scope = _Scope(
            outer.variables.copy(), relative, outer,
            excluded=outer.excluded or "EXCLUDE_FROM_ALL" in words,
        )  # fmt: skip
        try:
            self._folder(relative)
        finally:
            self.scope = outer

    def _call(
        self, statement: Statement, kind: str, parameters: list[str], body: list[Statement]
    ) -> None:
        if self._depth > _MAX_DEPTH:
            raise _TooLongError
        words = [text for text, _ in self.words(statement.arguments)]
        outer = self.scope
        variables = outer.variables.copy() if kind == "function" else outer.variables
        for name, word in zip(parameters, words, strict=False):
            variables.set(name, word, ())
        variables.set("ARGN", ";".join(words[len(parameters) :]), ())
        variables.set("ARGV", ";".join(words), ())
        variables.set("ARGC", str(len(words)), ())
        for index, word in enumerate(words[:30]):
            variables.set(f"ARGV{index}", word, ())
        if kind == "function":
            self.scope = _Scope(variables, outer.folder, outer, outer.excluded)
        self._depth += 1
        mark = len(self.guards)
        try:
            self.follow(body)
        finally:
            self.scope = outer
            self._depth -= 1
            del self.guards[mark:]

    def target(self, name: str, kind: str, place: Place) -> Target:
        """Make a target, and return it."""
        made = Target(name, "excluded" if self.scope.excluded else kind, place)
        self.made.setdefault(name, []).append(made)
        self.targets.add(name)
        return made

    def find(self, name: str) -> list[Target]:
        """Return the targets of a name; a new nameless one where none was seen being made."""
        if name not in self.made:
            nowhere = Place(file="", line=0, guards=())
            self.made[name] = [Target(name, "unseen", nowhere)]
        return self.made[name]


def _end_of(body: list[Statement], start: int, name: str) -> int:
    closing = f"end{name}"
    depth = 0
    for index in range(start, len(body)):
        if body[index].name == name:
            depth += 1
        elif body[index].name == closing:
            depth -= 1
            if depth == 0:
                return index
    return len(body)


def _if(project: Project, block: list[Statement]) -> str:
    arms: list[tuple[Statement, list[Statement]]] = [(block[0], [])]
    depth = 0
    for statement in block[1:]:
        if statement.name == "if":
            depth += 1
        elif statement.name == "endif":
            depth -= 1
        if depth == 0 and statement.name in {"elseif", "else"}:
            arms.append((statement, []))
        else:
            arms[-1][1].append(statement)
    return _arms(project, arms)


def _arms(project: Project, arms: list[tuple[Statement, list[Statement]]]) -> str:
    mark = len(project.guards)
    lefts: list[str] = []
    keep: list[Guard] = []
    for opening, body in arms:
        if opening.name == "else":
            lefts.append(project.follow(body))
            break
        found = Condition(project.scope.variables, opening.arguments, project).truth()
        if found.certain:
            if found.plain:
                lefts.append(project.follow(body))
                break
            continue
        text = " ".join(argument.text for argument in opening.arguments)
        yes = guard_of(text, opening.file, opening.line, found.plain)
        inner = len(project.guards)
        project.guards.append(yes)
        left = project.follow(body)
        del project.guards[inner:]
        opposite = None if found.plain is None else not found.plain
        no = guard_of(text, opening.file, opening.line, opposite, False)  # noqa: FBT003 - a branch
        project.guards.append(no)
        if left in {"return", "break"}:
            keep.append(no)
    else:
        lefts.append("")
    del project.guards[mark:]
    project.guards += keep
    # Only an arm that is surely taken leaves the block; the others leave a guard behind.
    certain = len(arms) and len(lefts) == 1 and not keep and _first_certain(project, arms)
    return lefts[0] if certain else ""


def _first_certain(project: Project, arms: list[tuple[Statement, list[Statement]]]) -> bool:
    return all(
        opening.name == "else"
        or Condition(project.scope.variables, opening.arguments, project).truth().certain
        for opening, _ in arms
    )


def _foreach(project: Project, block: list[Statement]) -> str:
    words = project.words(block[0].arguments)
    if not words:
        return ""
    name = words[0][0]
    values = [(text, guards) for text, guards in words[1:] if text not in {"IN", "ITEMS"}]
    if any(text == "LISTS" for text, _ in values):
        lists = [text for text, _ in values if text != "LISTS"]
        values = project.words([Argument(text=f"${{{each}}}") for each in lists])
    elif values and values[0][0] == "RANGE":
        values = [(HOLE, ())]
    mark = len(project.guards)
    for text, guards in values[:_MAX_LOOP]:
        project.scope.variables.set(name, text, ())
        project.guards += guards
        left = project.follow(block[1:])
        del project.guards[mark:]
        if left == "return":
            return left
    return ""


def _while(project: Project, block: list[Statement]) -> str:
    project.follow(block[1:])
    return ""


def _define(project: Project, block: list[Statement]) -> str:
    names = [argument.text for argument in block[0].arguments]
    if names:
        project.functions[names[0].lower()] = (block[0].name, names[1:], block[1:])
    return ""


def _plain_block(project: Project, block: list[Statement]) -> str:
    return project.follow(block[1:])


_BLOCKS: dict[str, Callable[[Project, list[Statement]], str]] = {
    "if": _if,
    "foreach": _foreach,
    "while": _while,
    "function": _define,
    "macro": _define,
    "block": _plain_block,
}
