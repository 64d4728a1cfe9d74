"""A source tree as the survey sees it: bounded reads of text files under one root, nothing else."""

import os
from pathlib import Path, PurePosixPath

#: The largest build file that is read (bytes); real ones are far below.
MAX_TEXT = 4 << 20
#: How many files a walk of the tree visits at most.
MAX_FILES = 50_000


class Tree:
    """Files under ``root``, addressed by relative POSIX paths; links out of the root are absent."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self._texts: dict[str, str | None] = {}
        self._files: tuple[str, ...] | None = None

    def text(self, relative: str) -> str | None:
        """Return a file's text (bytes that are no UTF-8 are replaced), None where there is none."""
        key = normal(relative)
        if key not in self._texts:
            self._texts[key] = self._read(key)
        return self._texts[key]

    def is_file(self, relative: str) -> bool:
        """Return whether a regular file stands there."""
        path = self._inside(relative)
        return path is not None and path.is_file()

    def is_dir(self, relative: str) -> bool:
        """Return whether a folder stands there."""
        path = self._inside(relative)
        return path is not None and path.is_dir()

    def names(self, relative: str) -> tuple[str, ...]:
        """Return the sorted names in a folder; empty where it is none."""
        path = self._inside(relative)
        if path is None or not path.is_dir():
            return ()
        try:
            return tuple(sorted(entry.name for entry in path.iterdir()))
        except OSError:
            return ()

    def walk(self, relative: str = "") -> tuple[str, ...]:
        """Return all files below a folder, as sorted relative paths; ``.git`` is left out."""
        start = self._inside(relative)
        if start is None or not start.is_dir():
            return ()
        found: list[str] = []
        for folder, folders, names in os.walk(start):
            folders[:] = sorted(name for name in folders if name != ".git")
            base = Path(folder).relative_to(self.root)
            found += [(base / name).as_posix() for name in sorted(names)]
            if len(found) > MAX_FILES:
                break
        return tuple(found[:MAX_FILES])

    def files(self) -> tuple[str, ...]:
        """Return all files of the tree, walked once."""
        if self._files is None:
            self._files = self.walk()
        return self._files

    def empty_submodules(self) -> tuple[str, ...]:
        """Return the paths of git submodules that are named here and whose files are absent."""
        text = self.text(".gitmodules") or ""
        paths = [
            line.partition("=")[2].strip()
            for line in text.splitlines()
            if line.split("=")[0].strip() == "path"
        ]
        return tuple(path for path in paths if path and not self.names(path))

    def _inside(self, relative: str) -> Path | None:
        key = normal(relative)
        if key.startswith("..") or "\0" in key:
            return None
        try:
            path = Path(os.path.realpath(self.root / key))
        except (OSError, ValueError):
            return None
        return path if path == self.root or self.root in path.parents else None

    def _read(self, key: str) -> str | None:
        path = self._inside(key)
        try:
            if path is None or not path.is_file() or path.stat().st_size > MAX_TEXT:
                return None
            return path.read_bytes().decode("utf-8", errors="replace")
        except (OSError, ValueError):
            return None


def normal(relative: str) -> str:
    """Return a relative path without ``.`` and ``..``; the root itself is the empty string."""
    path = PurePosixPath(os.path.normpath(relative.replace("\\", "/").lstrip("/") or "."))
    return "" if str(path) == "." else str(path)
