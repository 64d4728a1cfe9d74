"""A pasted error line, explained: what it says, what is behind it, and what mends it."""

import contextlib
import re
from pathlib import Path

from wheelfarm.doctor.environment import Environment
from wheelfarm.doctor.installed import owner_of
from wheelfarm.doctor.known_builds import PATTERNS
from wheelfarm.doctor.known_lines import NAMELESS
from wheelfarm.doctor.model import Finding
from wheelfarm.errors import BadInputError
from wheelfarm.model.project_name import normalized
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.values import replace

_WHEEL = re.compile(r"([\w.+-]+\.whl)")
_NAMED = re.compile(
    r"(?:Failed to build|Failed building wheel for|No matching distribution found for"
    r"|satisfies the requirement|only found wheels for|Because only|Because(?! only))"
    r"\s+['\"`]?([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)"
)
_MODULE = re.compile(r"([^\s'\":]+\.(?:so|pyd)(?:\.\d+)*)(?=[\s'\":,)]|$)")


def explain(text: str, environment: Environment | None = None) -> list[Finding]:
    """Return what a pasted text says; empty where no line of it is known.

    With ``environment`` the answer is held against what is installed there. A line that a tool or
    a terminal broke into several is still one.
    """
    found: list[Finding] = []
    text = f"{text}\n{' '.join(text.split())}"
    for entry in PATTERNS:
        for match in entry.pattern.finditer(text):
            finding = entry.explain(match, environment)
            if finding not in found:
                found.append(finding)
    package = (
        package_of(text, environment) if any(NAMELESS in each.command for each in found) else ""
    )
    if not package:
        return found
    return [replace(each, command=each.command.replace(NAMELESS, package)) for each in found]


def package_of(text: str, environment: Environment | None) -> str:
    """Return the package that a pasted text is about, as far as it says so; else the empty text.

    A wheel's name says it, an installer's own word does, and so does the path of an installed file.
    """
    for match in _WHEEL.finditer(text):
        with contextlib.suppress(BadInputError):
            return WheelName.parse(match[1]).package
    if (built := _NAMED.search(text)) is not None:
        return normalized(built[1])
    for match in _MODULE.finditer(text) if environment is not None else ():
        owner = None if environment is None else owner_of(Path(match[1]), environment.interpreter)
        if owner is not None:
            return owner
    return ""
