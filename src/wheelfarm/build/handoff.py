"""The handoff: a shard's cache becomes one hashed archive, and a link job unites the archives.

An archive (``NAME.tar.zst``) holds results of the compiler cache and ``shard.json``: the units that
the shard compiled with what went into each. A record beside it (``NAME.json``) holds its hash. What
comes from a shard is believed only where its hash is the recorded one and every member has a place
in the cache's layout.
"""

import io
import json
import re
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

import zstandard

from wheelfarm import files
from wheelfarm.build.inputs import UnitInputs, inputs_document, read_inputs_document
from wheelfarm.errors import BadInputError
from wheelfarm.reading import Reader, parse_json, read_json

SCHEMA = "wheelfarm.shard/1"

ResultKind = Literal["ccache", "sccache", "objects"]
_UNITS = "shard.json"
_ARCHIVE_PREFIX = "cache/"
_MAX_UNITS_BYTES = 256 << 20

#: The places of results in each cache's folder; ccache's names end in R (objects) and M (manifests,
#: which say which object is asked) up to 4.7, and are plain hashes in 4.14.
_LAYOUT: Mapping[str, re.Pattern[str]] = {
    "ccache": re.compile(r"(?:[0-9a-f]/){1,8}(?:[0-9a-z]{16,64}[RMW]|[0-9a-f]{16,64})"),
    # Objects themselves, where no cache stands behind the compilers.
    "objects": re.compile(r"(?!.*(?:^|/)\.\.?(?:/|$))[^/\\:][^\\:]*\.(?:o|obj)"),
    "sccache": re.compile(r"[0-9a-f]{16}/[0-9a-f]/[0-9a-f]/[0-9a-f]{32,128}"),
}


class CorruptShardError(BadInputError):
    """A shard's archive is not what its record says, or holds what no cache writes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardProduct:
    """What a shard hands on: its archive with hash and bytes, the plan and compilers it is of."""

    archive: Path
    sha256: str
    bytes: int
    plan: str
    shard: int
    identity: str
    results: int

    @property
    def record(self) -> Path:
        """The record's path, beside the archive."""
        return record_of(self.archive)


@dataclass(frozen=True, kw_only=True, slots=True)
class UnionReport:
    """What a union did: results taken, those that were there alike, and those that differed."""

    taken: int
    alike: int
    differing: int
    units: Mapping[str, UnitInputs]


def record_of(archive: Path) -> Path:
    """Return the path of an archive's record."""
    return archive.with_name(archive.name.removesuffix(".tar.zst") + ".json")


def results_in(kind: ResultKind, folder: Path) -> Iterator[tuple[str, Path]]:
    """Return (place, file) of every result in a cache's folder, in order of place."""
    pattern = _LAYOUT[kind]
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder).as_posix()
        if pattern.fullmatch(place) and path.is_file() and not path.is_symlink():
            yield place, path


def pack_cache(
    kind: ResultKind,
    folder: Path,
    archive: Path,
    *,
    plan: str,
    shard: int,
    identity: str,
    units: Mapping[str, UnitInputs],
) -> ShardProduct:
    """Pack a job's cache into ``archive`` and write the record beside it.

    ``plan`` is the plan's digest, ``units`` what the shard compiled. Members are sorted, with no
    times and owners in them.
    """
    results = tuple(results_in(kind, folder))
    document = json.dumps(inputs_document(units), separators=(",", ":")).encode()
    with files.replacing(archive) as temporary, _writing(temporary) as tar:
        _add(tar, _UNITS, io.BytesIO(document), len(document))
        for place, path in results:
            with path.open("rb") as source:
                _add(tar, _ARCHIVE_PREFIX + place, source, path.stat().st_size)
    product = ShardProduct(
        archive=archive,
        sha256=files.sha256(archive),
        bytes=archive.stat().st_size,
        plan=plan,
        shard=shard,
        identity=identity,
        results=len(results),
    )
    _write_record(product, kind)
    return product


def read_product(archive: Path, *, plan: str, identity: str) -> ShardProduct:
    """Return a shard's product once its record, its plan, its compilers and its hash are right.

    Raises CorruptShardError where they are not, BadInputError where there is no record.
    """
    record = record_of(archive)
    reader = Reader(read_json(record), str(record))
    if reader.string("schema") != SCHEMA:
        reader.fault(f"expected {SCHEMA}", "schema")
    product = ShardProduct(
        archive=archive,
        sha256=reader.string("sha256"),
        bytes=reader.integer("bytes", least=0),
        plan=reader.string("plan"),
        shard=reader.integer("shard", least=1),
        identity=reader.string("identity"),
        results=reader.integer("results", least=0),
    )
    reader.string("cache")
    reader.done()
    reader.finish()
    for name, found, expected in (
        ("shard plan", product.plan, plan),
        ("compilers", product.identity, identity),
    ):
        if found != expected:
            message = f"{archive.name} was made with another {name.rstrip('s')}: {found[:12]}"
            raise CorruptShardError(message, hint=f"expected {expected[:12]}; run the shard again")
    if not archive.is_file():
        message = f"the record of shard {product.shard} is there, {archive.name} is not"
        raise CorruptShardError(message, hint="run the shard again")
    if files.sha256(archive) != product.sha256:
        message = f"{archive.name} has another hash than its record says"
        raise CorruptShardError(message, hint="copy it again, or run the shard again")
    return product


def unite(kind: ResultKind, products: Iterable[ShardProduct], folder: Path) -> UnionReport:
    """Add the shards' results to a cache's folder.

    One unit in two caches differs in bytes: its object is the same but for a temporary file's name,
    so one result is kept. Of two manifests (they only grow) the longer one is kept. Each archive
    is read whole and checked before the first of its results is moved to its place. Raises
    CorruptShardError.
    """
    counts = {"taken": 0, "alike": 0, "differing": 0}
    units: dict[str, UnitInputs] = {}
    for product in products:
        staged = folder.with_name(f"{folder.name}.shard{product.shard}")
        files.remove(staged)
        staged.mkdir(parents=True)
        try:
            units.update(_unpack(kind, product, staged))
            for place, path in results_in(kind, staged):
                counts[_settle(path, folder / place)] += 1
        finally:
            files.remove(staged)
    return UnionReport(**counts, units=units)


def _settle(path: Path, target: Path) -> str:
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        path.replace(target)
        return "taken"
    if path.read_bytes() == target.read_bytes():
        return "alike"
    if _is_manifest(path) and path.stat().st_size > target.stat().st_size:
        path.replace(target)
    return "differing"


def _is_manifest(path: Path) -> bool:
    """Return whether an entry of ccache's is a manifest: the header's fourth byte (4.0 to 4.14)."""
    with path.open("rb") as stream:
        header = stream.read(4)
    return header[:2] == b"\xcc\xac" and header[3:] == b"\1"


def _unpack(kind: ResultKind, product: ShardProduct, folder: Path) -> dict[str, UnitInputs]:
    units: dict[str, UnitInputs] | None = None
    context = product.archive.name
    count = 0
    with _reading(product.archive) as tar:
        for member in tar:
            stream = tar.extractfile(member) if member.isreg() else None
            if stream is None:
                message = f"{context} holds {member.name!r}, which is no regular file"
                raise CorruptShardError(message)
            if member.name == _UNITS and units is None:
                if member.size > _MAX_UNITS_BYTES:
                    message = f"{context} holds a unit list of {member.size} bytes"
                    raise CorruptShardError(message)
                document = parse_json(stream.read(), f"{context}:{_UNITS}")
                units = read_inputs_document(document, f"{context}:{_UNITS}")
                continue
            place = member.name.removeprefix(_ARCHIVE_PREFIX)
            if place == member.name or _LAYOUT[kind].fullmatch(place) is None:
                message = f"{context} holds {member.name!r}, which is no place of {kind}'s layout"
                raise CorruptShardError(message)
            count += 1
            target = folder / place
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as out:
                shutil.copyfileobj(stream, out)
    if units is None or count != product.results:
        message = f"{context} holds {count} results, its record says {product.results}"
        raise CorruptShardError(message)
    return units


@contextmanager
def _writing(archive: Path) -> Iterator[tarfile.TarFile]:
    compressor = zstandard.ZstdCompressor(level=3, threads=-1)
    with (
        archive.open("wb") as raw,
        compressor.stream_writer(raw) as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        yield tar


@contextmanager
def _reading(archive: Path) -> Iterator[tarfile.TarFile]:
    try:
        with archive.open("rb") as raw:
            stream = zstandard.ZstdDecompressor().stream_reader(raw)
            with tarfile.open(fileobj=stream, mode="r|") as tar:
                yield tar
    except (tarfile.TarError, zstandard.ZstdError, EOFError) as error:
        message = f"{archive.name} is no readable archive: {error}"
        raise CorruptShardError(message) from error


def _add(tar: tarfile.TarFile, name: str, stream: IO[bytes], size: int) -> None:
    member = tarfile.TarInfo(name)
    member.size = size
    member.mode = 0o644
    tar.addfile(member, stream)


def _write_record(product: ShardProduct, kind: ResultKind) -> None:
    document = {
        "schema": SCHEMA,
        "cache": kind,
        "plan": product.plan,
        "shard": product.shard,
        "identity": product.identity,
        "results": product.results,
        "bytes": product.bytes,
        "sha256": product.sha256,
    }
    files.write_text(product.record, json.dumps(document, indent=1) + "\n")
