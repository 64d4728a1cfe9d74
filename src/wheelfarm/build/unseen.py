"""Objects that no call of the seat made: a build's folder and its calls in, their names out.

A compiler that runs behind the seat's back makes a handoff useless without a word: every job of the
build compiles its units again.
"""

import mmap
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path

from wheelfarm.build.calls import Call
from wheelfarm.build.guards import GuardError
from wheelfarm.build.seat_probe import is_of_probe

#: What GCC and clang (nvcc's host pass is one of them) leave in an object's ``.comment`` section.
_COMPILERS = (b"GCC: (", b"clang version ")
_OUTPUT = ("-o", "--output-file")


class BehindSeatError(GuardError):
    """A compiler made objects without the seat being asked."""

    def __init__(self, names: Iterable[str]) -> None:
        known = tuple(names)
        super().__init__(
            f"{len(known)} objects were compiled behind the seat",
            known,
            cause="the build runs a compiler by a path of its own: each job would compile them",
            hint="have it use CC, CXX, CUDACXX and CUDA_HOME, set shard_filter: source, or name "
            "them, with the reason, under objects_behind_seat in the recipe",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Unseen:
    """Objects that no call made: a compiler's, and others' (an assembler's, or data)."""

    compiled: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise BehindSeatError where a compiler made some."""
        if self.compiled:
            raise BehindSeatError(self.compiled)


def unseen_objects(
    build: Path,
    calls: Iterable[Call],
    root: Path,
    *,
    shipped: frozenset[Path] = frozenset(),
    allowed: Mapping[str, str] | None = None,
) -> Unseen:
    """Return the objects under ``build`` that no call of the seat made, relative to ``root``.

    ``shipped`` were there before the build; ``allowed`` are patterns of paths in ``build``, each
    with the reason why its objects may come from elsewhere. A copy of an object that the seat knows
    is no other object.
    """
    base = root.resolve()
    outputs = set(_outputs(calls, base))
    # An object that was moved keeps its name.
    names = {output.rpartition("/")[2] for output in outputs}
    known: defaultdict[int, list[Path]] = defaultdict(list)
    unknown: list[Path] = []
    for path in sorted(build.rglob("*.o")):
        if not path.is_file():
            continue
        if is_of_probe(_relative(path, base)):
            # CMake keeps what nvcc itself made while it was tried.
            continue
        if path in shipped or path.name in names or _relative(path, base) in outputs:
            known[path.stat().st_size].append(path)
        elif not any(fnmatch(path.relative_to(build).as_posix(), each) for each in allowed or ()):
            unknown.append(path)
    found: dict[bool, list[str]] = {True: [], False: []}
    for path in unknown:
        same = known[path.stat().st_size]
        if not any(path.read_bytes() == other.read_bytes() for other in same):
            found[_is_compiled(path)].append(_relative(path, base))
    return Unseen(compiled=tuple(found[True]), others=tuple(found[False]))


def _outputs(calls: Iterable[Call], root: Path) -> Iterator[str]:
    """Return what the calls wrote, relative to ``root``: units, and what passed the seat by."""
    for call in calls:
        if call.is_unit:
            yield call.output
            continue
        words = call.argv
        named = [after for word, after in pairwise(words) if word in _OUTPUT]
        named += [word.partition("=")[2] for word in words if word.startswith("--output-file=")]
        if not named and "-c" in words:
            # Such as an assembler's call: its output has the source's name.
            named = [f"{Path(word).stem}.o" for word in words if not word.startswith("-")]
        for name in named:
            yield _relative(Path(call.cwd, name), root)


def _relative(path: Path, root: Path) -> str:
    return os.path.relpath(path.resolve(), root)


def _is_compiled(path: Path) -> bool:
    if path.stat().st_size == 0:
        return False
    with (
        path.open("rb") as stream,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        return any(data.find(mark) >= 0 for mark in _COMPILERS)
