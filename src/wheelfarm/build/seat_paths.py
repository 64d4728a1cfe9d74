"""Stable spellings of paths: a call's own paths in, paths that are alike on every machine out.

Part of the seat (see ``seat_arguments``). A folder of the build's environment is reached through a
symbolic link of a fixed name inside the build root, everything inside the root is spelt relative
to the working directory, and a temporary folder with a random name gets a link without the random
part. So a cache's keys hold neither a machine's folders nor a Python's version.
"""

from __future__ import annotations

import os
import zlib

#: Characters of the random part that ``tempfile`` puts into a folder's name.
_RANDOM = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_")
_RANDOM_LENGTH = 8


class Paths:
    """The spelling rules of one build.

    ``root`` is the build root, ``links`` the folder (inside it) that holds the symbolic links,
    ``folders`` pairs of (folder, name of its link), longest folder first, ``temporary`` the folders
    in which random names appear. ``undo`` maps each spelling that was given out to the caller's.
    """

    __slots__ = ("folders", "links", "root", "temporary", "undo")

    def __init__(
        self, root: str, links: str, folders: list[tuple[str, str]], temporary: list[str]
    ) -> None:
        self.root = root
        self.links = links
        self.folders = folders
        self.temporary = temporary
        self.undo: dict[str, str] = {}

    def stable(self, path: str, here: str) -> str:
        """Return the stable spelling of ``path`` for a program whose working directory is ``here``.

        Paths outside the root and the known folders (such as ``/usr/include``) stay as they are.
        """
        absolute = os.path.normpath(os.path.join(here, path))
        target = self._linked(absolute, here)
        if target is None and os.path.isabs(path):
            real = os.path.realpath(absolute)
            target = self._linked(real, here)
            if target is None and _inside(real, self.root):
                target = real
        if target is None:
            return path
        spelt = os.path.relpath(target, here)
        self.undo[spelt] = path
        return spelt

    def stable_source(self, path: str, here: str) -> str:
        """Return the stable spelling of a source, whose folder is where quoted includes begin."""
        spelt = self.stable(path, here)
        if os.path.dirname(spelt):
            self.undo.setdefault(os.path.dirname(spelt), os.path.dirname(path))
        return spelt

    def original(self, path: str) -> str:
        """Return the caller's spelling of a path that a compiler wrote into a depfile."""
        path = os.path.normpath(path)
        head = path
        while head:
            known = self.undo.get(head)
            if known is not None:
                return known + path[len(head) :]
            parent = os.path.dirname(head)
            if parent == head:
                break
            head = parent
        return self._unlinked(path)

    def unit(self, path: str, here: str) -> str:
        """Return the name by which every machine knows a file of the build."""
        real = os.path.realpath(os.path.join(here, path))
        for folder, name in self.folders:
            if _inside(real, folder):
                return name + real[len(folder) :]
        for folder in self.temporary:
            elsewhere = _inside(real, self.root) and not _inside(folder, self.root)
            if _inside(real, folder) and not elsewhere:
                head, _, rest = real[len(folder) + 1 :].partition("/")
                return f"tmp/{_without_random(head)}/{rest}"
        return os.path.relpath(real, self.root) if _inside(real, self.root) else real

    def _linked(self, absolute: str, here: str) -> str | None:
        if _inside(absolute, self.links):
            return absolute
        for folder, name in self.folders:
            if _inside(absolute, folder):
                return f"{self.links}/{name}{absolute[len(folder) :]}"
        for folder in self.temporary:
            elsewhere = _inside(absolute, self.root) and not _inside(folder, self.root)
            if _inside(absolute, folder) and absolute != folder and not elsewhere:
                head, _, rest = absolute[len(folder) + 1 :].partition("/")
                name = _without_random(head)
                random = f"{folder}/{head}"
                if name == head or _inside(here, random):
                    return None
                return os.path.join(self._link(name, random), rest) if rest else None
        return None

    def _link(self, name: str, folder: str) -> str:
        """Make (or find) the link ``name`` to a folder with a random name, and return its path.

        Two folders of one build that differ in nothing but the random part get numbered links.
        """
        number = 1
        while True:
            link = f"{self.links}/random-{name}" + (f"-{number}" if number > 1 else "")
            try:
                os.symlink(folder, link)
            except FileExistsError:
                if os.readlink(link) != folder:
                    number += 1
                    continue
            return link

    def _unlinked(self, path: str) -> str:
        marker = f"{os.path.basename(os.path.dirname(self.links))}/{os.path.basename(self.links)}/"
        _, found, rest = path.partition(marker)
        if not found:
            return path
        name, _, tail = rest.partition("/")
        try:
            return os.path.join(os.readlink(f"{self.links}/{name}"), tail)
        except OSError:
            return path


def shard_of(unit: str, shards: int) -> int:
    """Return the shard (from 1) of a unit that no plan knows: a hash of its name."""
    return zlib.crc32(os.fsencode(unit)) % shards + 1


def plain_name(unit: str) -> str:
    """Return a unit's name without the characters that nvcc or a shell behind it would read."""
    return "".join(
        character if character.isalnum() or character in "/._+-" else f"_{ord(character):x}_"
        for character in unit
    )


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _without_random(name: str) -> str:
    """Return a folder's name without the random part that ``tempfile`` or mktemp added."""
    tail = name[-_RANDOM_LENGTH:]
    if len(tail) == _RANDOM_LENGTH and all(character in _RANDOM for character in tail):
        return name[:-_RANDOM_LENGTH].rstrip("-_.") or "tmp"
    cut = max(name.rfind("-"), name.rfind("."))
    return name[:cut] if cut > 0 else name
