"""A store and its index, held against the farm that declares them: findings come out."""

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wheelfarm import files
from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.grid.model import GridCell, PackageGrid
from wheelfarm.index.model import read_part
from wheelfarm.plan.existing import StoreView
from wheelfarm.plan.model import StoredWheel
from wheelfarm.reading import Reader, parse_json, read_json
from wheelfarm.store.model import Record
from wheelfarm.store.protocol import BlobMissingError, Store, key_of, report_key
from wheelfarm.verify.report import GATE_VERSION
from wheelfarm.wording import counted

FindingId = Literal["gap", "undeclared", "name", "archs", "report", "gate", "hash", "index"]
Severity = Literal["fail", "warn", "could-not-look"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One fault: which rule, how bad, the wheel or cell it is of, and a sentence."""

    id: FindingId
    severity: Severity
    subject: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditOptions:
    """``hashes`` reads every wheel whole; ``site`` is the folder of the index, None for none."""

    hashes: bool = False
    site: Path | None = None


def audit(store: Store, grids: Iterable[PackageGrid], options: AuditOptions) -> tuple[Finding, ...]:
    """Return every finding, in the order of packages.

    Raises CouldNotLookError where the store cannot be read: an unread store has no gaps.
    """
    known = tuple(grids)
    findings: list[Finding] = []
    present = set(store.heads())
    for grid in known:
        package = grid.recipe.package.replace("_", "-")
        present.discard(package)
        records = store.catalogue(package).records
        findings += _package(store, grid, records, options)
    findings += [
        Finding(
            id="undeclared",
            severity="warn",
            subject=package,
            text="the store has wheels of it, the farm no recipe",
        )
        for package in sorted(present)
    ]
    return tuple(findings)


def _package(
    store: Store, grid: PackageGrid, records: Mapping[str, Record], options: AuditOptions
) -> Iterator[Finding]:
    usable = [r for r in records.values() if not r.removed and r.entry.yanked is None]
    view = StoreView(
        StoredWheel(name=record.entry.name, torch_axis=record.entry.torch_axis) for record in usable
    )
    serving = {}
    for cell in grid.cells:
        names = view.serving(cell)
        serving.update(dict.fromkeys(names, cell))
        if not names:
            text = "declared, and no usable wheel serves it"
            yield Finding(id="gap", severity="fail", subject=str(cell.identifier), text=text)
    for record in usable:
        yield from _record(store, record, serving.get(record.entry.name), options)
    if options.site is not None:
        yield from _index(options.site, grid, usable)


def _record(
    store: Store, record: Record, cell: GridCell | None, options: AuditOptions
) -> Iterator[Finding]:
    name = record.filename
    if cell is None:
        text = "no cell of the farm is served by it: an older version, or a retired line"
        yield Finding(id="undeclared", severity="warn", subject=name, text=text)
    else:
        local = record.entry.name.version.local
        if local != cell.identifier.local_tag.replace("_", "."):
            text = f"its local tag is {local}, the cell's {cell.identifier.local_tag}"
            yield Finding(id="name", severity="warn", subject=name, text=text)
        yield from _archs(record, cell)
    yield from _proof(store, record)
    if options.hashes:
        yield from _bytes(store, record)


def _archs(record: Record, cell: GridCell) -> Iterator[Finding]:
    for module in record.entry.modules or ():
        lacking = [str(arch) for arch in cell.archs.archs if arch not in module.sass]
        lacking += [f"{arch}+PTX" for arch in cell.archs.ptx if arch not in module.ptx]
        if lacking:
            text = f"{module.path} lacks {', '.join(lacking)} of the policy's {cell.archs}"
            yield Finding(id="archs", severity="fail", subject=record.filename, text=text)


def _proof(store: Store, record: Record) -> Iterator[Finding]:
    """Look at the report that let a wheel in: is it there, of these bytes, of today's gate."""
    package = record.entry.name.package
    name = record.filename
    try:
        data = _blob(store, report_key(package, record.report))
    except BlobMissingError as error:
        yield Finding(id="report", severity="fail", subject=name, text=error.what)
        return
    if hashlib.sha256(data).hexdigest() != record.report:
        yield Finding(
            id="hash", severity="fail", subject=name, text="its report is not the one of then"
        )
        return
    try:
        reader = Reader(parse_json(data, f"the report of {name}"), f"the report of {name}")
        version = reader.integer("gate_version", 0)
        about = reader.string("sha256")
        reader.finish()
    except BadInputError as error:
        yield Finding(id="report", severity="fail", subject=name, text=error.what)
        return
    if about != record.sha256:
        text = "its report is about other bytes"
        yield Finding(id="report", severity="fail", subject=name, text=text)
    if version < GATE_VERSION:
        text = f"its report is of gate {version}, today's is {GATE_VERSION}: verify it again"
        yield Finding(id="gate", severity="warn", subject=name, text=text)


def _bytes(store: Store, record: Record) -> Iterator[Finding]:
    name = record.filename
    try:
        path = store.local(key_of(record))
        found = files.sha256(path) if path is not None else _fetched(store, record)
    except BlobMissingError as error:
        yield Finding(id="hash", severity="fail", subject=name, text=error.what)
        return
    except CouldNotLookError as error:
        yield Finding(id="hash", severity="could-not-look", subject=name, text=error.what)
        return
    if found != record.sha256:
        text = f"its sha256 is {found[:16]}…, the catalogue says {record.sha256[:16]}…"
        yield Finding(id="hash", severity="fail", subject=name, text=text)


def _index(site: Path, grid: PackageGrid, records: Iterable[Record]) -> Iterator[Finding]:
    package = grid.recipe.package.replace("_", "-")
    path = site / "manifest" / "packages" / f"{package}.json"
    wanted = {record.filename: record.sha256 for record in records}
    if not path.is_file():
        if wanted:
            text = f"the index has no page of it; the store has {counted(len(wanted), 'wheel')}"
            yield Finding(id="index", severity="fail", subject=package, text=text)
        return
    listed = {
        str(entry.name): entry.sha256
        for entry in read_part(read_json(path), str(path))
        if entry.yanked is None
    }
    for name in sorted(wanted.keys() - listed.keys()):
        yield Finding(id="index", severity="fail", subject=name, text="the index does not list it")
    for name in sorted(listed.keys() - wanted.keys()):
        text = "the index lists it, the store has no usable wheel of that name"
        yield Finding(id="index", severity="fail", subject=name, text=text)
    for name in sorted(wanted.keys() & listed.keys()):
        if listed[name] != wanted[name]:
            text = "the index gives it another hash than the store"
            yield Finding(id="index", severity="fail", subject=name, text=text)


def _blob(store: Store, key: str) -> bytes:
    path = store.local(key)
    if path is not None:
        return path.read_bytes()
    with tempfile.TemporaryDirectory(prefix="wheelfarm-") as folder:
        target = Path(folder) / "blob"
        store.fetch(key, target)
        return target.read_bytes()


def _fetched(store: Store, record: Record) -> str:
    with tempfile.TemporaryDirectory(prefix="wheelfarm-") as folder:
        target = Path(folder) / "wheel"
        store.fetch(key_of(record), target)
        return files.sha256(target)
