"""A folder of pages that changes as one: staged, noted in a journal, then moved into place.

A run that is killed while it stages leaves the folder as it was. One that is killed while it moves
leaves a journal, and the next run finishes the moves first. Pages that move are whole, old or new;
files that pages link to come before them, and removals come last.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from wheelfarm import files
from wheelfarm.errors import BadInputError
from wheelfarm.reading import read_json

#: What a site has at its root, channels apart; a folder with such a name may be somebody's own.
_OWN = frozenset(
    {"archs", "assets", "coverage", "files", "index.html"}
    | {"manifest", "packages", "reports", "simple", "torch"}
)


class Stage:
    """Where files of one process wait to move: each gets a name, ``<part>/<number>``.

    ``limit`` is the folder that an error about a full disk names.
    """

    def __init__(self, folder: Path, part: str, limit: Path) -> None:
        self._part = part
        self._start = f"{folder}/{part}/"
        self._limit = limit
        self._count = 0
        self._last, self._name = b"", ""

    def write(self, data: bytes) -> str:
        """Write a file and return its name; raises DiskFullError."""
        name = f"{self._part}/{self._count}"
        path = f"{self._start}{self._count}"
        self._count += 1
        if data is self._last:
            # One page under two names is one file: a link is ten times cheaper.
            os.link(f"{self._start}{self._name.rpartition('/')[2]}", path)
            return name
        with files.disk_full_named(self._limit):
            _write(path, data)
        self._last, self._name = data, name
        return name


class SiteTree:
    """The folder ``root`` and, beside it, ``.<name>.state`` with what a build remembers."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.state = self.root.parent / f".{self.root.name}.state"
        self._stage = self.state / "next"
        self._journal = self.state / "journal.json"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock; a change that was cut short is finished first."""
        self.state.mkdir(parents=True, exist_ok=True)
        with files.locked(self.state / "lock"):
            self._recover()
            try:
                yield
            finally:
                if not self._journal.exists():
                    files.remove(self._stage)

    def stage(self, part: str) -> Stage:
        """Return a new part of the stage; it goes with the lock if nothing moves it before."""
        folder = self._stage / part
        folder.mkdir(parents=True)
        return Stage(self._stage, part, self.root)

    def staged(self, name: str) -> bytes:
        """Return the bytes of a staged file."""
        return (self._stage / name).read_bytes()

    def check_place(self, store: Path | None) -> None:
        """Raise BadInputError where there can be no folder, or where it would lie in a store's.

        ``store`` is the folder of a store on this machine.
        """
        root = self.root.resolve()
        if root == root.parent:
            message = f"{root} is the whole file system"
            raise BadInputError(message, hint="give the site a folder of its own")
        if file := next((each for each in (root, *root.parents) if each.is_file()), None):
            message = f"{file} is a file where the site needs a folder"
            raise BadInputError(message, hint="give the site a folder of its own")
        if store is not None:
            inside = store.resolve()
            if root.is_relative_to(inside) or inside.is_relative_to(root):
                message = f"the site {self.root} and the store {store} would lie in each other"
                raise BadInputError(message, hint="give the site a folder of its own")

    def check_content(self, store: Path | None) -> None:
        """Raise BadInputError for a folder that is no site, and has what a site would replace.

        What a first build left that was cut short is a site's: links to the store, copies of its
        files, empty folders.
        """
        known = (self.state / "state.json", self.root / "manifest" / "index.json")
        if not self.root.exists() or any(path.exists() for path in known):
            return
        for path in sorted(self.root.iterdir()):
            name = path.name
            if name not in _OWN:
                self._check_other(path)
                continue
            source = None if store is None else store / name
            if source is not None and path.is_symlink() and path.resolve() == source.resolve():
                continue
            if path.is_symlink() or not path.is_dir() or _only_here(path, source) is not None:
                message = f"{self.root} is no site, and holds {name!r}, which a site would replace"
                raise BadInputError(message, hint="give the site a folder of its own")

    def _check_other(self, path: Path) -> None:
        """Raise BadInputError where a folder's other content shows that it is not a site's.

        A static host's own files (``CNAME``, ``.nojekyll``) and an empty channel are no such sign.
        """
        folder = path.is_dir() and not path.is_symlink() and not path.name.startswith(".")
        if path.name == "farm.yml" or (folder and _only_here(path, None) is not None):
            message = f"{self.root} is no site, and holds {path.name!r}, which is none of a site's"
            raise BadInputError(message, hint="give the site a folder of its own")

    def link_folder(self, name: str, source: Path) -> None:
        """Make ``name`` under the root a symbolic link to a folder elsewhere.

        A folder that stands there goes only if the other one has all of its files; else
        BadInputError.
        """
        link = self.root / name
        self.root.mkdir(parents=True, exist_ok=True)
        target = os.path.relpath(source.absolute(), self.root)
        if link.is_symlink() and link.readlink() == Path(target):
            return
        if not link.is_symlink() and (path := _only_here(link, source)) is not None:
            message = f"{path} is in the way, and not in the store"
            raise BadInputError(message, hint="move it away, or build with --files copy")
        files.remove(link)
        link.symlink_to(target, target_is_directory=True)

    def place(self, path: str, source: Path) -> None:
        """Make a file that never changes stand at ``path``: as a hard link, else as a copy."""
        target = self.root / path
        top = self.root / path.partition("/")[0]
        if top.is_symlink():
            top.unlink()
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            target.hardlink_to(source)
        except FileExistsError:
            if not target.samefile(source):
                files.copy(source, target)
        except OSError:
            files.remove_dead(target)
            files.copy(source, target)

    def change(
        self, writes: Mapping[str, str], removals: Iterable[str], remember: Mapping[str, str]
    ) -> None:
        """Move staged files to pages and into the state, and remove pages, all or nothing."""
        if not writes and not remember and not removals:
            return
        moves = {f"root/{path}": name for path, name in writes.items()}
        moves |= {f"state/{path}": name for path, name in remember.items()}
        made: set[str] = set()
        # Before the journal: where this fails, nothing was begun.
        for path in moves:
            _folder(self._target(path).rpartition("/")[0], made)
        files.write_text(self._journal, json.dumps({"moves": moves, "removals": sorted(removals)}))
        self._finish(_move)

    def _recover(self) -> None:
        """Finish what a killed run had begun to move; forget what it had only staged."""
        if not self._journal.exists():
            files.remove(self._stage)
            return
        made: set[str] = set()

        def move(name: str, target: str) -> None:
            _folder(target.rpartition("/")[0], made)
            # A page that the killed run had moved already is not in the stage any more.
            with contextlib.suppress(FileNotFoundError):
                _move(name, target)

        self._finish(move)

    def _finish(self, move: Callable[[str, str], None]) -> None:
        journal = read_json(self._journal)
        for path, name in journal["moves"].items():
            move(f"{self._stage}/{name}", self._target(path))
        for path in journal["removals"]:
            target = self.root / path
            target.unlink(missing_ok=True)
            self._tidy(target.parent)
        self._journal.unlink()
        files.remove(self._stage)

    def _target(self, path: str) -> str:
        area, _, rest = path.partition("/")
        return f"{self.root if area == 'root' else self.state}/{rest}"

    def _tidy(self, folder: Path) -> None:
        while folder != self.root and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
            folder = folder.parent


def _only_here(folder: Path, other: Path | None) -> Path | None:
    """Return a file under ``folder`` that ``other`` has not, None where it has all of them.

    What a killed copy left is nobody's file.
    """
    for path in (folder, *folder.rglob("*")):
        there = None if other is None else other / path.relative_to(folder)
        if files.is_unfinished(path):
            continue
        if path.is_file() and (there is None or not there.is_file()):
            return path
    return None


def _write(path: str, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
    finally:
        os.close(handle)


def _move(name: str, target: str) -> None:
    os.replace(name, target)  # noqa: PTH105 - thousands of pages


def _folder(path: str, made: set[str]) -> None:
    """Make a folder and those above it, unless it is among those ``made`` before."""
    if path in made:
        return
    if not os.path.isdir(path):  # noqa: PTH112 - thousands of folders
        _folder(os.path.dirname(path), made)  # noqa: PTH120
        try:
            os.mkdir(path)  # noqa: PTH102
        except (FileExistsError, NotADirectoryError) as error:
            message = f"{path} is a file where the site needs a folder"
            raise BadInputError(message, hint="give the site a folder of its own") from error
    made.add(path)
