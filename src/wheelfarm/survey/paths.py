"""Paths of the Python reader: os.path, pathlib and glob over the tree, which lies at TREE."""

import fnmatch
import posixpath
import re

from wheelfarm.survey.logic import assume
from wheelfarm.survey.tree import Tree, normal
from wheelfarm.survey.values import Items, PathValue, Unknown, Value, origins, render

#: Where the tree's root seems to lie to the code that is read.
TREE = "/tree"
#: Where a farm's CUDA toolkit seems to lie.
CUDA = "/farm/cuda"

#: The origin of what only a git submodule holds whose files are not here.
ABSENT = frozenset({"absent"})

_TOOLKIT = frozenset({"a CUDA toolkit is installed"})


class Paths:
    """The file system that the code of one project folder sees."""

    def __init__(self, tree: Tree, project: str) -> None:
        self.tree = tree
        self.cwd = posixpath.join(TREE, project) if project else TREE
        self._empty = tree.empty_submodules()

    def relative(self, text: str) -> str | None:
        """Return a path relative to the tree's root, None where it lies outside."""
        full = posixpath.normpath(posixpath.join(self.cwd, text))
        if full == TREE:
            return ""
        return full[len(TREE) + 1 :] if full.startswith(f"{TREE}/") else None

    def absent(self, relative: str) -> bool:
        """Return whether a path lies in a git submodule whose files are not here."""
        return any(f"{relative}/".startswith(f"{path}/") for path in map(normal, self._empty))

    def exists(self, path: Value, kind: str) -> Value:
        """Return whether a file or folder exists (``kind``: exists, isfile, isdir)."""
        if not isinstance(path, (str, PathValue)):
            return Unknown(origins(path))
        text = render(path)
        if text.startswith(CUDA):
            return assume(True, _TOOLKIT)  # noqa: FBT003 - a value of the script
        relative = self.relative(text)
        if relative is None or self.absent(relative):
            return Unknown()
        file, folder = self.tree.is_file(relative), self.tree.is_dir(relative)
        return {"isfile": file, "is_file": file, "isdir": folder, "is_dir": folder}.get(
            kind, file or folder
        )

    def glob(self, pattern: Value, *, base: str = "") -> Items:
        """Return what a pattern matches, in order; open where the pattern cannot be followed."""
        if not isinstance(pattern, (str, PathValue)):
            return Items(open=True, origins=origins(pattern))
        text = posixpath.join(base, render(pattern))
        relative = self.relative(text)
        if relative is None:
            return Items(open=True)
        if self._touches_absent(relative):
            return Items(open=True, origins=ABSENT)
        match = _translate(relative)
        prefix = "" if text.startswith("/") else f"{self.relative('.')}/".lstrip("/")
        result = Items()
        for name in self.tree.files():
            if match.fullmatch(name):
                shown = f"{TREE}/{name}" if text.startswith("/") else _shorten(name, prefix)
                result.add(shown)
        return result

    def listing(self, path: Value) -> Items:
        """Return the names in a folder."""
        relative = self.relative(render(path)) if isinstance(path, (str, PathValue)) else None
        if relative is None:
            return Items(open=True)
        if self.absent(relative):
            return Items(open=True, origins=ABSENT)
        result = Items()
        for name in self.tree.names(relative):
            result.add(name)
        return result

    def walking(self, path: Value) -> Items:
        """Return the (folder, folders, files) rows of ``os.walk``."""
        relative = self.relative(render(path)) if isinstance(path, (str, PathValue)) else None
        if relative is None:
            return Items(open=True)
        if self._touches_absent(relative):
            return Items(open=True, origins=ABSENT)
        start = render(path)
        rows: dict[str, list[str]] = {}
        for name in self.tree.walk(relative):
            inner = name[len(relative) + 1 :] if relative else name
            folder = posixpath.dirname(inner)
            rows.setdefault(posixpath.join(start, folder) if folder else start, []).append(
                posixpath.basename(inner)
            )
        result = Items()
        for folder, names in sorted(rows.items()):
            files = Items()
            for name in names:
                files.add(name)
            row = Items(kind="tuple")
            for cell in (folder, Items(), files):
                row.add(cell)
            result.add(row)
        return result

    def text(self, path: Value) -> Value:
        """Return a file's text, Unknown where it cannot be told."""
        if isinstance(path, (str, PathValue)):
            relative = self.relative(render(path))
            if relative is not None:
                found = self.tree.text(relative)
                if found is not None:
                    return found
        return Unknown()

    def _touches_absent(self, relative: str) -> bool:
        fixed = re.split(r"[*?\[]", relative)[0]
        return any(
            f"{fixed}/".startswith(f"{path}/") or ("*" in relative and path.startswith(fixed))
            for path in map(normal, self._empty)
        )


def _translate(pattern: str) -> re.Pattern[str]:
    parts: list[str] = []
    for part in pattern.split("/"):
        if part == "**":
            parts.append("(?:.*/)?")
        else:
            inner = fnmatch.translate(part)
            body = re.sub(r"^\(\?s:(.*)\)(?:\\Z|\\z)$", r"\1", inner)
            parts.append(body.replace(".*", "[^/]*") + "/")
    text = "".join(parts)
    return re.compile(text[:-1] if text.endswith("/") else f"{text}.*")


def _shorten(name: str, prefix: str) -> str:
    return name[len(prefix) :] if name.startswith(prefix) else f"{TREE}/{name}"


def os_path(name: str, arguments: list[Value], paths: Paths) -> Value:  # noqa: PLR0911 - one return per kind
    """Return what ``os.path.NAME`` gives for constant arguments."""
    if not arguments or not all(isinstance(each, (str, PathValue)) for each in arguments):
        text = "/".join(render(each) for each in arguments) if name == "join" else ""
        made = frozenset().union(*(origins(each) for each in arguments)) if arguments else ()
        first = render(arguments[0]) if arguments else ""
        return Unknown(frozenset(made), text if name == "join" else first)
    told = [render(each) for each in arguments]
    match name:
        case "join":
            return posixpath.join(*told)
        case "dirname" | "basename" | "normpath" | "expanduser":
            return getattr(posixpath, name)(told[0]) if name != "expanduser" else told[0]
        case "abspath" | "realpath":
            return posixpath.normpath(posixpath.join(paths.cwd, told[0]))
        case "relpath":
            start = told[1] if len(told) > 1 else "."
            base = posixpath.join(paths.cwd, start)
            return posixpath.relpath(posixpath.join(paths.cwd, told[0]), base)
        case "split" | "splitext":
            result = Items(kind="tuple")
            for part in getattr(posixpath, name)(told[0]):
                result.add(part)
            return result
        case "isabs":
            return told[0].startswith("/")
        case "exists" | "isfile" | "isdir" | "lexists":
            return paths.exists(told[0], name)
        case _:
            return Unknown()
