"""Hold a machine's caches under a disk budget: folders and a budget come in, what goes is removed.

What killed processes left half-written goes first, whatever the budget; then everything else in
the order of its last use. What is being made is left alone, as its maker holds a lock; a result
that vanishes under a build is only made again.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wheelfarm import files
from wheelfarm.errors import BadInputError

Kind = Literal[
    "leftover", "compiler result", "environment", "download", "floor", "JIT result", "facts", "page"
]

#: What a cache's root holds: nothing is removed where there is anything else.
_AREAS = frozenset({
    "compilers", "containers", "costs", "digests", "downloads", "driver", "environments", "facts",
    "floors", "jit", "pages", "view",
})  # fmt: skip
#: Touched by every build in an environment.
_USED = ".wheelfarm-used"


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """One thing that may be removed: its bytes, and when it was last used (seconds since 1970)."""

    kind: Kind
    path: Path
    bytes: int
    used: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Collected:
    """Bytes before and after, what was removed, and what was in use."""

    before: int
    after: int
    removed: tuple[Kept, ...]
    in_use: tuple[Path, ...]


def mark_used(environment: Path) -> None:
    """Note that an environment is used now; one that is read-only is nobody's to remove."""
    with contextlib.suppress(OSError):
        (environment / _USED).touch()


def inventory(cache: Path) -> tuple[Kept, ...]:
    """Return all that a cache's root keeps, the longest unused first."""
    return tuple(sorted(_kept(cache), key=lambda item: (item.used, str(item.path))))


def collect(cache: Path, budget: int, *, remove: bool = True) -> Collected:
    """Remove what was unused for longest until the rest takes at most ``budget`` bytes.

    With ``remove`` false nothing is removed; the answer is what would be. Raises BadInputError for
    a folder that somebody else uses too: its ``downloads`` may be a user's.
    """
    _refuse_others(cache)
    removed = [_left(path, remove=remove) for path in _dead(cache)]
    left = {item.path for item in removed}
    items = [item for item in inventory(cache) if item.path not in left]
    total = sum(item.bytes for item in items)
    before = total + sum(item.bytes for item in removed)
    in_use: list[Path] = []
    for item in items:
        if total <= budget:
            break
        if remove and not _remove(item):
            in_use.append(item.path)
            continue
        total -= item.bytes
        removed.append(item)
    return Collected(before=before, after=total, removed=tuple(removed), in_use=tuple(in_use))


def _refuse_others(cache: Path) -> None:
    entries = sorted(cache.iterdir()) if cache.is_dir() else []
    others = [
        entry.name
        for entry in entries
        if entry.name not in _AREAS and not entry.name.startswith(".") and entry.suffix != ".lock"
    ]
    if others:
        shown = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")  # noqa: PLR2004
        message = f"{cache} holds more than wheelfarm's caches ({shown}); nothing is removed"
        hint = "give the caches a folder of their own (WHEELFARM_CACHE), or take these out of it"
        raise BadInputError(message, hint=hint)


def _dead(cache: Path) -> Iterator[Path]:
    """Yield what killed processes left; the insides of environments are their installers'."""
    yield from files.dead(cache)
    for area in sorted(cache.iterdir()) if cache.is_dir() else ():
        if area.is_dir():
            yield from files.dead(area, deep=area.name != "environments")


def _left(path: Path, *, remove: bool) -> Kept:
    left = _folder("leftover", path) if path.is_dir() else _file("leftover", path)
    if remove:
        files.remove(path)
        # A download's address and validator lie beside what has come of it.
        files.remove(path.with_name(f"{path.name}.json"))
    return left


def _kept(cache: Path) -> Iterator[Kept]:
    for path in _files(cache / "compilers"):
        # ccache's own marks are no results, and a few bytes.
        if path.name not in {"CACHEDIR.TAG", "doctor.json", "doctor.lock"}:
            yield _file("compiler result", path)
    for path in _files(cache / "downloads"):
        yield _file("download", path)
    for path in _files(cache / "facts"):
        yield _file("facts", path)
    for path in _files(cache / "pages"):
        yield _file("page", path)
    for folder in _folders(cache / "environments"):
        yield _folder("environment", folder)
    for folder in _folders(cache / "floors"):
        yield _folder("floor", folder)
    for name in _folders(cache / "jit" / "v1"):
        for folder in _folders(name):
            yield _folder("JIT result", folder)


def _files(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (path for path in sorted(folder.rglob("*")) if path.is_file())


def _folders(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (path for path in sorted(folder.iterdir()) if path.is_dir())


def _file(kind: Kind, path: Path) -> Kept:
    status = path.stat()
    return Kept(kind=kind, path=path, bytes=status.st_size, used=status.st_mtime)


def _folder(kind: Kind, folder: Path) -> Kept:
    """Return a folder as one thing; what marks its use is touched by whoever uses it."""
    size = 0
    for base, _, names in os.walk(folder):
        for name in names:
            size += (Path(base) / name).lstat().st_size
    marks = (folder / _USED, folder / "record.json", folder / "manifest.json")
    mark = next((mark for mark in marks if mark.exists()), folder)
    return Kept(kind=kind, path=folder, bytes=size, used=mark.stat().st_mtime)


def _remove(item: Kept) -> bool:
    """Remove a thing unless somebody makes it now; return whether it is gone."""
    how: Callable[[Path], bool] = {
        "environment": _remove_locked_beside,
        "floor": _remove_locked_beside,
        "JIT result": _remove_locked_inside,
        "download": _remove_download,
    }.get(item.kind, _remove_file)
    return how(item.path)


def _remove_file(path: Path) -> bool:
    path.unlink(missing_ok=True)
    return True


def _remove_download(path: Path) -> bool:
    """Remove a download, or what has come of one that nobody goes on with now."""
    if path.suffix != ".part":
        return _remove_file(path)
    with files.claimed(path) as free:
        return free and _remove_file(path)


def _remove_locked_beside(folder: Path) -> bool:
    with files.try_locked(folder.with_name(f"{folder.name}.lock")) as free:
        if free:
            files.remove(folder)
        return free


def _remove_locked_inside(folder: Path) -> bool:
    """Empty a folder up to its lock, for which another process may wait."""
    with files.try_locked(folder / "lock") as free:
        if free:
            for path in folder.iterdir():
                if path.name != "lock":
                    files.remove(path)
        return free
