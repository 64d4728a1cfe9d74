"""Into the store, and what may change afterwards: publish, yank, unyank.

Publishing is: wheel, metadata and report up, each read back and compared, and only then the
catalogue. So a publish that was cut short leaves files that nothing lists, and a second run
finishes it.
"""

import hashlib
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

from wheelfarm import files
from wheelfarm.errors import BadInputError
from wheelfarm.facts.model import WheelFacts
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.store.evidence import Declared, entry_of
from wheelfarm.store.model import Record
from wheelfarm.store.protocol import (
    RefusedError,
    Store,
    metadata_key,
    report_key,
    update,
    wheel_key,
)
from wheelfarm.values import replace

Clock = Callable[[], datetime]

#: A METADATA file larger than this (bytes) is no METADATA file.
MAX_METADATA = 16 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """What the gate said of a wheel: its facts, the verdict, and the report's own bytes."""

    facts: WheelFacts
    passed: bool
    report: bytes
    declared: Declared = field(default_factory=Declared)
    failures: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """What became of one wheel."""

    record: Record
    outcome: Literal["published", "unchanged", "restored"]


def utc_now() -> datetime:
    """Return the time of now, in UTC."""
    return datetime.now(timezone.utc)


def publish(store: Store, wheel: Path, proof: Proof, *, clock: Clock = utc_now) -> Published:
    """Put a wheel that the gate let pass into the store; the same bytes again are no change.

    Raises RefusedError for a wheel without a passing report of these very bytes, and where its
    name already stands for other bytes; BadInputError where the file is no wheel.
    """
    name = WheelName.parse(wheel.name)
    digest = _admitted(wheel, proof)
    known = store.catalogue(name.package).records
    _refuse_collision(name, digest, known.values())
    found = known.get(wheel.name)
    if found is not None and not found.removed:
        return Published(record=found, outcome="unchanged")
    record = _upload(store, wheel, proof, clock)
    outcome: list[Literal["published", "unchanged", "restored"]] = []

    def add(records: dict[str, Record]) -> dict[str, Record] | None:
        outcome.clear()
        _refuse_collision(name, digest, records.values())
        now = records.get(wheel.name)
        if now is not None and not now.removed:
            outcome.append("unchanged")
            return None
        outcome.append("published" if now is None else "restored")
        revision = 1 if now is None else now.revision + 1
        return {**records, wheel.name: replace(record, revision=revision)}

    records = update(store, name.package, add)
    return Published(record=records[wheel.name], outcome=outcome[0])


def yank(store: Store, filenames: Iterable[str], reason: str) -> tuple[Record, ...]:
    """Yank wheels (PEP 592): full pins still find them, nothing else does."""
    if not reason.strip():
        message = "a yank needs a reason"
        raise BadInputError(message, hint="say --reason 'what is wrong with it'")
    return _each(store, filenames, lambda record: record.yanked(reason))


def unyank(store: Store, filenames: Iterable[str]) -> tuple[Record, ...]:
    """Take a yank back."""
    return _each(store, filenames, lambda record: record.yanked(None))


def metadata_of(wheel: Path) -> bytes:
    """Return the bytes of a wheel's METADATA file, as they stand in it."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [
                name
                for name in archive.namelist()
                if name.count("/") == 1 and name.endswith(".dist-info/METADATA")
            ]
            if len(names) != 1:
                message = f"{wheel.name} has {len(names)} METADATA files, expected one"
                raise BadInputError(message)
            if archive.getinfo(names[0]).file_size > MAX_METADATA:
                message = f"the METADATA of {wheel.name} is larger than {MAX_METADATA} bytes"
                raise BadInputError(message)
            return archive.read(names[0])
    except FileNotFoundError as error:
        message = f"{wheel} does not exist"
        raise BadInputError(message) from error
    except files.broken_archive() as error:
        message = f"{wheel.name} is no readable wheel: {error}"
        raise BadInputError(message) from error


def _admitted(wheel: Path, proof: Proof) -> str:
    if not wheel.is_file():
        message = f"{wheel} does not exist"
        raise BadInputError(message)
    digest = files.sha256(wheel)
    if proof.facts.sha256 != digest:
        message = f"the report is not about {wheel.name}"
        cause = f"it describes sha256 {proof.facts.sha256}, the wheel has {digest}"
        raise RefusedError(message, cause=cause, hint="run wheelfarm verify on this very file")
    if not proof.passed:
        message = f"{wheel.name} did not pass the gate; nothing was published"
        raise RefusedError(message, cause="; ".join(proof.failures))
    return digest


def _refuse_collision(name: WheelName, digest: str, records: Iterable[Record]) -> None:
    """Refuse other bytes under one name, however the name is spelled."""
    for record in records:
        other = record.entry.name
        if _identity(other) != _identity(name):
            continue
        if record.sha256 == digest and other == name:
            continue
        state = "was removed from" if record.removed else "is in"
        message = f"{other} {state} the store with other bytes or another spelling"
        raise RefusedError(
            message,
            cause=f"its sha256 is {record.sha256}, the new file's is {digest}",
            hint="a file never changes under its name: give a build tag, or another version",
        )


def _identity(name: WheelName) -> tuple[object, ...]:
    tags = (frozenset(name.pythons), frozenset(name.abis), frozenset(name.platforms))
    return name.package, name.version, name.build_number, tags


def _upload(store: Store, wheel: Path, proof: Proof, clock: Clock) -> Record:
    name, digest = WheelName.parse(wheel.name), proof.facts.sha256
    metadata = metadata_of(wheel)
    key = wheel_key(name.package, digest, wheel.name)
    url = store.put(key, wheel, digest)
    metadata_sha256 = _put_bytes(store, metadata_key(key), metadata)
    report_sha256 = hashlib.sha256(proof.report).hexdigest()
    _put_bytes(store, report_key(name.package, report_sha256), proof.report)
    entry = entry_of(
        proof.facts, proof.declared, name=name, url=url, metadata_sha256=metadata_sha256
    )
    uploaded = clock().astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Record(entry=entry, report=report_sha256, uploaded=uploaded, warnings=proof.warnings)


def _put_bytes(store: Store, key: str, data: bytes) -> str:
    digest = hashlib.sha256(data).hexdigest()
    with tempfile.TemporaryDirectory(prefix="wheelfarm-") as folder:
        source = Path(folder) / "blob"
        source.write_bytes(data)
        store.put(key, source, digest)
    return digest


def _each(
    store: Store, filenames: Iterable[str], change: Callable[[Record], Record]
) -> tuple[Record, ...]:
    packages = {filename: WheelName.parse(filename).package for filename in filenames}
    # All of them or none: a misspelt name is found before the first change.
    known = {package: store.catalogue(package).records for package in set(packages.values())}
    for filename, package in packages.items():
        _standing(store, known[package], filename)
    changed: list[Record] = []
    for filename, package in packages.items():

        def apply(records: dict[str, Record], filename: str = filename) -> dict[str, Record]:
            return {**records, filename: change(_standing(store, records, filename))}

        changed.append(update(store, package, apply)[filename])
    return tuple(changed)


def _standing(store: Store, records: Mapping[str, Record], filename: str) -> Record:
    record = records.get(filename)
    if record is None or record.removed:
        message = f"{filename} is not in {store.location}"
        raise BadInputError(message)
    return record
