"""Which build system a plain ``pip wheel`` of a folder runs, read from its pyproject.toml."""

import re
from dataclasses import dataclass, field
from typing import Any

from wheelfarm.errors import BadInputError
from wheelfarm.reading import parse_toml
from wheelfarm.survey.tree import Tree, normal

#: PEP 517: what a folder without a ``build-backend`` is built with.
LEGACY = "setuptools.build_meta:__legacy__"


@dataclass(frozen=True, kw_only=True, slots=True)
class Pyproject:
    """What a pyproject.toml says of the build.

    ``backend`` is the module of ``build-backend``; ``in_tree`` the file (relative to the tree)
    that holds it, where ``backend-path`` names a folder of the tree. ``fault`` says why the file
    cannot be read.
    """

    file: str
    present: bool = False
    backend: str = LEGACY
    in_tree: str = ""
    fault: str = ""
    tool: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def line(self, word: str) -> int:
        """Return the first line on which a word stands, 0 where it stands on none."""
        return self.lines.get(word, 0)

    def table(self, *keys: str) -> dict[str, Any]:
        """Return a table under ``[tool]``, empty where it is absent or no table."""
        current: Any = self.tool
        for key in keys:
            current = current.get(key) if isinstance(current, dict) else None
        return current if isinstance(current, dict) else {}


def read_pyproject(tree: Tree, project: str) -> Pyproject:
    """Return what the folder's pyproject.toml says; an absent one is a legacy build."""
    file = f"{project}/pyproject.toml".lstrip("/")
    text = tree.text(file)
    if text is None:
        return Pyproject(file=file)
    try:
        document = parse_toml(text, file)
    except BadInputError as error:
        return Pyproject(file=file, present=True, fault=error.what)
    build = document.get("build-system")
    build = build if isinstance(build, dict) else {}
    backend = build.get("build-backend")
    paths = build.get("backend-path")
    name = backend if isinstance(backend, str) else LEGACY
    tool = document.get("tool")
    return Pyproject(
        file=file,
        present=True,
        backend=name,
        in_tree=_in_tree(tree, project, name, paths if isinstance(paths, list) else []),
        tool=tool if isinstance(tool, dict) else {},
        lines=_lines(text),
    )


def _in_tree(tree: Tree, project: str, backend: str, paths: list[Any]) -> str:
    module = backend.partition(":")[0].replace(".", "/")
    for path in paths:
        for tail in (f"{module}.py", f"{module}/__init__.py"):
            file = normal(f"{project}/{path}/{tail}")
            if tree.is_file(file):
                return file
    return ""


def _lines(text: str) -> dict[str, int]:
    lines: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        for word in re.findall(r"[\w.-]+", line):
            lines.setdefault(word, number)
    return lines
