"""A CMake file's text comes in, its commands with arguments and lines go out; nothing is judged.

The grammar is that of cmake-language(7). Text that is no CMake gives the commands before the fault.
"""

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n]+)
    |(?P<block>\#\[(?P<fence>=*)\[.*?(?:\](?P=fence)\]|\Z))
    |(?P<comment>\#[^\n]*)
    |(?P<bracket>\[(?P<equals>=*)\[(?P<inner>.*?)(?:\](?P=equals)\]|\Z))
    |(?P<quoted>"(?:[^"\\]|\\.)*(?:"|\Z))
    |(?P<open>\()
    |(?P<close>\))
    |(?P<plain>(?:\\.|\$\([^)]*\)|[^\s()\#"\\]|"(?:[^"\\]|\\.)*")+)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Argument:
    """One argument as written; ``literal`` ones (bracketed) have no variable references."""

    text: str
    quoted: bool = False
    literal: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """One command call: its name in lower case, its arguments, and where it stands."""

    name: str
    arguments: tuple[Argument, ...]
    file: str
    line: int


def statements(text: str, file: str) -> list[Statement]:
    """Return a file's commands in order."""
    found: list[Statement] = []
    name, line, depth = "", 0, 0
    arguments: list[Argument] = []
    current = 1
    for match in _TOKEN.finditer(text):
        kind = _kind(match)
        if kind == "open":
            depth += 1
            if depth > 1:
                arguments.append(Argument(text="("))
        elif kind == "close" and depth:
            depth -= 1
            if depth:
                arguments.append(Argument(text=")"))
            else:
                # Parentheses without a name before them are no command.
                if name:
                    given = tuple(arguments)
                    found.append(
                        Statement(name=name.lower(), arguments=given, file=file, line=line)
                    )
                arguments, name = [], ""
        elif depth and kind in {"plain", "quoted", "bracket"}:
            arguments.append(_argument(match, kind))
        elif kind == "plain":
            name, line = match.group(), current
        current += match.group().count("\n")
    return found


def _kind(match: "re.Match[str]") -> str:
    names = ("blank", "block", "comment", "bracket", "quoted", "open", "close", "plain")
    return next((name for name in names if match.group(name) is not None), "other")


def _argument(match: "re.Match[str]", kind: str) -> Argument:
    if kind == "bracket":
        return Argument(text=match.group("inner"), quoted=True, literal=True)
    text = match.group()
    if kind == "quoted":
        body = text[1:].removesuffix('"')
        return Argument(text=_unescaped(body), quoted=True)
    return Argument(text=_unescaped(text))


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL) if "\\" in text else text
