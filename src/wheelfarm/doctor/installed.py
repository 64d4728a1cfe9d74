"""The compiled packages of an environment that have to do with torch or CUDA."""

import csv
import mmap
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from wheelfarm.facts.linkage import derive, with_uses
from wheelfarm.facts.model import BinaryFacts, Linkage
from wheelfarm.facts.wheel import read_binary
from wheelfarm.interpreter import Interpreter
from wheelfarm.model.project_name import normalized

_BINARY = re.compile(r".*\.(so|pyd)(\.\d+)*$")
#: A binary with none of these words in it has to do with neither torch nor CUDA.
_WORDS = (b"libtorch", b"libc10", b"libcudart", b"libcuda.so", b".nv_fatbin", b"libcublas")
#: Torch and what it brings are what the others are held against.
_FOUNDATION = re.compile(r"torch|triton|nvidia-.*|cuda-.*")
#: Larger binaries are read without their symbols being held against torch's (bytes).
_MOST = 4 << 30


@dataclass(frozen=True, kw_only=True)
class Installed:
    """One installed package with compiled code: its binaries by their path on disk."""

    name: str
    version: str
    binaries: dict[Path, BinaryFacts]
    linkage: Linkage

    @property
    def folders(self) -> frozenset[Path]:
        """The folders that hold its binaries."""
        return frozenset(path.parent for path in self.binaries)


def compiled_packages(interpreter: Interpreter) -> Iterator[Installed]:
    """Yield the compiled packages of an environment, by name; the first on the path wins."""
    seen: set[str] = set()
    for folder in interpreter.path:
        for info in sorted(folder.glob("*.dist-info")):
            name, _, version = info.name.removesuffix(".dist-info").partition("-")
            package = normalized(name)
            if package in seen or _FOUNDATION.fullmatch(package):
                continue
            seen.add(package)
            binaries = {
                path: facts
                for path in _binaries(info)
                if (facts := read_file(path, str(path.relative_to(folder)))) is not None
            }
            if binaries:
                used = with_uses(tuple(binaries.values()))
                yield Installed(
                    name=package,
                    version=version,
                    binaries=dict(zip(binaries, used, strict=True)),
                    linkage=derive(used),
                )


def _binaries(info: Path) -> Iterable[Path]:
    """Return the binaries that a package's RECORD lists and that are there."""
    rows = _record(info)
    paths = (info.parent / row for row in rows if _BINARY.fullmatch(row) and ".." not in row)
    return [path for path in paths if path.is_file()]


def _record(info: Path) -> list[str]:
    """Return the paths that a package's RECORD lists; none where it cannot be read."""
    try:
        text = (info / "RECORD").read_text(encoding="utf-8")
        return [row[0] for row in csv.reader(text.splitlines()) if row]
    except (OSError, ValueError, csv.Error):
        return []


def owner_of(path: Path, interpreter: Interpreter) -> str | None:
    """Return the package whose RECORD lists a file of an environment; None where none does."""
    for folder in interpreter.path:
        if not path.is_relative_to(folder):
            continue
        inside = path.relative_to(folder).as_posix()
        for info in sorted(folder.glob("*.dist-info")):
            if inside in _record(info):
                return normalized(info.name.partition("-")[0])
    return None


def read_file(path: Path, shown: str, *, every: bool = False) -> BinaryFacts | None:
    """Return a binary's facts; None where it has to do with neither torch nor CUDA."""
    try:
        with (
            path.open("rb") as stream,
            mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as view,
        ):
            if len(view) > _MOST:
                return _unreadable(shown, len(view), "it is too large to be read")
            if not every and all(view.find(word) < 0 for word in _WORDS):
                return None
            return read_binary(view, shown)
    except (OSError, ValueError) as error:
        return _unreadable(shown, 0, str(error))


def _unreadable(shown: str, size: int, why: str) -> BinaryFacts:
    return BinaryFacts(path=shown, kind="elf", machine="", size=size, problem=why)
