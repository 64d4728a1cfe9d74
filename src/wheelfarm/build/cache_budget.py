"""Hold a machine's caches under a disk budget: folders and a budget come in, what goes is removed.

Compiler results, environments and downloads are removed in the order of their last use. What a
running build uses is left alone: environments are locked by the step that makes them, and a result
that vanishes under a build is only compiled again.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wheelfarm import files

Kind = Literal["compiler result", "environment", "download"]

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

    With ``remove`` false nothing is removed; the answer is what would be.
    """
    items = inventory(cache)
    before = total = sum(item.bytes for item in items)
    removed: list[Kept] = []
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


def _kept(cache: Path) -> Iterator[Kept]:
    for path in _files(cache / "compilers"):
        # ccache's own marks are no results, and a few bytes.
        if path.name not in {"CACHEDIR.TAG", "doctor.json", "doctor.lock"}:
            yield _file("compiler result", path)
    for path in _files(cache / "downloads"):
        yield _file("download", path)
    environments = cache / "environments"
    if environments.is_dir():
        for folder in sorted(environments.iterdir()):
            if folder.is_dir():
                yield _environment(folder)


def _files(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (path for path in sorted(folder.rglob("*")) if path.is_file())


def _file(kind: Kind, path: Path) -> Kept:
    status = path.stat()
    return Kept(kind=kind, path=path, bytes=status.st_size, used=status.st_mtime)


def _environment(folder: Path) -> Kept:
    size = 0
    for base, _, names in os.walk(folder):
        for name in names:
            size += (Path(base) / name).lstat().st_size
    mark = folder / _USED
    used = (mark if mark.exists() else folder).stat().st_mtime
    return Kept(kind="environment", path=folder, bytes=size, used=used)


def _remove(item: Kept) -> bool:
    if item.kind != "environment":
        item.path.unlink(missing_ok=True)
        return True
    with files.try_locked(item.path.with_name(f"{item.path.name}.lock")) as free:
        if free:
            files.remove(item.path)
        return free
