"""A folder of pages that changes as one: staged, noted in a journal, then moved into place.

A run that is killed while it stages leaves the folder as it was. One that is killed while it moves
leaves a journal, and the next run finishes the moves first. Pages that move are whole, old or new;
files that pages link to come before them, and removals come last.
"""

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from wheelfarm import files
from wheelfarm.errors import BadInputError
from wheelfarm.reading import read_json


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
            yield

    def link_folder(self, name: str, source: Path) -> None:
        """Make ``name`` under the root a symbolic link to a folder elsewhere."""
        link = self.root / name
        self.root.mkdir(parents=True, exist_ok=True)
        target = os.path.relpath(source.absolute(), self.root)
        if link.is_symlink() and link.readlink() == Path(target):
            return
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
            files.copy(source, target)

    def change(
        self, writes: Mapping[str, bytes], removals: Iterable[str], remember: Mapping[str, bytes]
    ) -> None:
        """Write pages, remove others, and write what the state remembers, all or nothing."""
        if not writes and not remember and not removals:
            return
        files.remove(self._stage)
        self._stage.mkdir(parents=True)
        targets = {f"root/{path}": data for path, data in writes.items()}
        targets |= {f"state/{path}": data for path, data in remember.items()}
        moves: dict[str, str] = {}
        for folder in sorted({path.rpartition("/")[0] for path in targets}):
            # Before the journal: where this fails, nothing was begun.
            _folder(self._target(folder))
        with files.disk_full_named(self.root):
            last, written = b"", ""
            for number, (path, data) in enumerate(targets.items()):
                moves[path] = str(number)
                staged = f"{self._stage}/{number}"
                if data is last:
                    # One page under two names is one file: a link is ten times cheaper.
                    os.link(written, staged)
                    continue
                _write(staged, data)
                last, written = data, staged
        files.write_text(self._journal, json.dumps({"moves": moves, "removals": sorted(removals)}))
        self._recover()

    def _recover(self) -> None:
        if not self._journal.exists():
            files.remove(self._stage)
            return
        journal = read_json(self._journal)
        made: set[str] = set()
        for path, number in journal["moves"].items():
            self._move(path, number, made)
        for path in journal["removals"]:
            target = self.root / path
            target.unlink(missing_ok=True)
            self._tidy(target.parent)
        self._journal.unlink()
        files.remove(self._stage)

    def _move(self, path: str, number: str, made: set[str]) -> None:
        target = str(self._target(path))
        folder = target.rpartition("/")[0]
        if folder not in made:
            _folder(Path(folder))
            made.add(folder)
        # A page that a killed run had moved already is not in the stage any more.
        with contextlib.suppress(FileNotFoundError):
            os.replace(f"{self._stage}/{number}", target)  # noqa: PTH105 - thousands of pages

    def _target(self, path: str) -> Path:
        area, _, rest = path.partition("/")
        return (self.root if area == "root" else self.state) / rest

    def _tidy(self, folder: Path) -> None:
        while folder != self.root and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
            folder = folder.parent


def _write(path: str, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
    finally:
        os.close(handle)


def _folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        message = f"{path} is a file where the site needs a folder"
        raise BadInputError(message, hint="give the site a folder of its own") from error
