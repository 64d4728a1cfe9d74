"""A wheel's facts: one pass over the file, every part read by its own reader, nothing judged."""

import hashlib
import threading
from pathlib import Path

from wheelfarm.errors import BadInputError
from wheelfarm.facts import elf, pe
from wheelfarm.facts.archive import read_archive
from wheelfarm.facts.buffers import Buffer
from wheelfarm.facts.fatbin import MAGIC as FATBIN_MAGIC
from wheelfarm.facts.fatbin import FatbinError, read_fatbins
from wheelfarm.facts.linkage import derive, with_uses
from wheelfarm.facts.metadata import read_dist_info
from wheelfarm.facts.model import BinaryFacts, Problem, WheelFacts
from wheelfarm.facts.torch_symbols import opened_torch
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.values import replace

_CHUNK = 1 << 20


def read_binary(data: Buffer, path: str) -> BinaryFacts:
    """Return the facts of one ELF, PE or loose device binary; ``problem`` where it is none."""
    if data[:4] == elf.MAGIC:
        return _opening(elf.read_elf(data, path), data)
    if data[:2] == pe.MAGIC:
        return _opening(pe.read_pe(data, path), data)
    if data[:4] == FATBIN_MAGIC:
        return _loose_fatbin(data, path)
    head = bytes(data[:4]).hex(" ") or "nothing"
    problem = f"named like a binary, but it starts with {head}"
    return BinaryFacts(path=path, kind="elf", machine="", size=len(data), problem=problem)


def read_binary_file(path: Path) -> BinaryFacts:
    """Return the facts of one binary on disk; BadInputError where it cannot be opened."""
    try:
        data = path.read_bytes()
    except OSError as error:
        message = f"{path} could not be read: {error.strerror}"
        raise BadInputError(message) from error
    return with_uses([read_binary(data, str(path))])[0]


def _opening(facts: BinaryFacts, data: Buffer) -> BinaryFacts:
    opens = opened_torch(facts, data)
    return replace(facts, opens=opens) if opens else facts


def _loose_fatbin(data: Buffer, path: str) -> BinaryFacts:
    try:
        code, problem = tuple(dict.fromkeys(read_fatbins(data, 0, len(data)))), ""
    except FatbinError as error:
        code, problem = (), str(error)
    return BinaryFacts(
        path=path, kind="device", machine="cuda", size=len(data), device_code=code, problem=problem
    )


def read_wheel(path: Path) -> WheelFacts:
    """Read everything that a wheel says of itself.

    Whatever is wrong with the file is in the facts' ``problems`` and in its binaries' ``problem``;
    only a file that does not exist raises BadInputError, and one that cannot be read OSError.
    """
    if not path.is_file():
        message = f"{path} is not a file" if path.exists() else f"{path} does not exist"
        raise BadInputError(message)
    hashing = _Hashing(path)
    hashing.start()
    binaries: list[BinaryFacts] = []
    contents = read_archive(path, lambda name, data: binaries.append(read_binary(data, name)))
    info = read_dist_info(contents.texts)
    problems = [*contents.problems, *info.problems]
    try:
        name = WheelName.parse(path.name)
    except BadInputError as error:
        name = None
        problems.insert(0, Problem(kind="name", message=error.what))
    complete = with_uses(sorted(binaries, key=lambda binary: binary.path))
    hashing.join()
    if hashing.error is not None:
        raise hashing.error
    return WheelFacts(
        file_name=path.name,
        sha256=hashing.digest,
        size=path.stat().st_size,
        name=name,
        members=tuple(contents.members),
        metadata=info.metadata,
        version=info.version,
        project=info.project,
        requires_python=info.requires_python,
        requires_dist=info.requires_dist,
        tags=info.tags,
        binaries=complete,
        linkage=derive(complete),
        dist_info=info.folder,
        record=info.record,
        root_is_purelib=info.root_is_purelib,
        entry_points=info.entry_points,
        inner=tuple(sorted(contents.inner, key=lambda each: each.path)),
        problems=tuple(problems),
    )


class _Hashing(threading.Thread):
    """The wheel's own hash, taken while its members are unpacked: both leave the interpreter."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self._path = path
        self.digest = ""
        self.error: OSError | None = None

    def run(self) -> None:
        digest = hashlib.sha256()
        try:
            with self._path.open("rb") as stream:
                while chunk := stream.read(_CHUNK):
                    digest.update(chunk)
        except OSError as error:
            self.error = error
        self.digest = digest.hexdigest()
