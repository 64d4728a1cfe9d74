"""What a store remembers of a wheel: the record, and the catalogue of one package's records."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from wheelfarm.errors import BadInputError
from wheelfarm.index.model import WheelEntry
from wheelfarm.reading import Reader, parse_json
from wheelfarm.values import replace

CATALOGUE_SCHEMA = "wheelfarm.catalogue/1"
"""The schema of ``catalogue/<package>.json``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One wheel in the store.

    ``entry.url`` is the wheel's key in the store, or the absolute address under which the store
    publishes it. ``report`` is the SHA-256 of the report that let the wheel in, ``uploaded`` the
    time (RFC 3339, UTC). A change of a record raises ``revision``; where two hosts wrote at once,
    the higher one counts. ``removed`` records stay, so that a name is never used for other bytes.
    """

    entry: WheelEntry
    report: str
    uploaded: str
    warnings: tuple[str, ...] = ()
    revision: int = 1
    removed: bool = False

    @property
    def filename(self) -> str:
        """The wheel's file name, by which a record is known."""
        return str(self.entry.name)

    @property
    def sha256(self) -> str:
        """The wheel's SHA-256; a record always has one."""
        return self.entry.sha256 or ""

    def yanked(self, reason: str | None) -> "Record":
        """Return the record yanked for ``reason`` (PEP 592), or with None not yanked any more."""
        return replace(self, entry=replace(self.entry, yanked=reason), revision=self.revision + 1)

    def as_removed(self) -> "Record":
        """Return the record of a wheel that was taken out."""
        return replace(self, removed=True, revision=self.revision + 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as the catalogue writes it."""
        return {
            **self.entry.to_dict(),
            "report": self.report,
            "uploaded": self.uploaded,
            "warnings": list(self.warnings),
            "revision": self.revision,
            "removed": self.removed,
        }

    @classmethod
    def read(cls, reader: Reader) -> "Record | None":
        """Read a record; faults go to the reader."""
        entry = WheelEntry.read(reader)
        record_fields = {
            "report": reader.string("report"),
            "uploaded": reader.string("uploaded"),
        }
        if entry is None:
            return None
        if entry.sha256 is None:
            reader.fault("a stored wheel needs a hash", "sha256")
        return cls(
            entry=entry,
            **record_fields,
            warnings=reader.strings("warnings"),
            revision=reader.integer("revision", 1, least=1),
            removed=reader.boolean("removed", default=False),
        )


Records = Mapping[str, Record]
"""A package's records by file name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Catalogue:
    """A package's catalogue: its bytes and the token that names this very state ("" for none).

    ``shown`` is what the store's list of catalogues says of the state, where that is not the token.
    """

    package: str
    data: bytes = b""
    token: str = ""
    shown: str = ""

    @property
    def head(self) -> str:
        """The state as ``heads`` of the store tells it."""
        return self.shown or self.token

    @property
    def records(self) -> dict[str, Record]:
        """The records by file name, read strictly; FaultsError lists what is wrong."""
        return parse_catalogue(self.data, f"catalogue of {self.package}") if self.data else {}

    def documents(self) -> list[dict[str, Any]]:
        """Return the records as they are written, for readers that check what they use."""
        if not self.data:
            return []
        document = parse_json(self.data, f"catalogue of {self.package}")
        wheels = document.get("wheels") if isinstance(document, dict) else None
        if not isinstance(wheels, list) or document.get("schema") != CATALOGUE_SCHEMA:
            parse_catalogue(self.data, f"catalogue of {self.package}")
            message = f"the catalogue of {self.package} is none"
            raise BadInputError(message)
        return wheels


def catalogue_bytes(package: str, records: Records) -> bytes:
    """Return the catalogue's document: the same records always give the same bytes."""
    wheels = [records[name].to_dict() for name in sorted(records)]
    lines = ",\n".join(json.dumps(wheel, sort_keys=True) for wheel in wheels)
    head = json.dumps({"schema": CATALOGUE_SCHEMA, "package": package})[:-1]
    return f'{head}, "wheels": [\n{lines}\n]}}\n'.encode()


def parse_catalogue(data: bytes, context: str) -> dict[str, Record]:
    """Read a catalogue's document; FaultsError lists what is wrong with it."""
    document = parse_json(data, context)
    reader = Reader(document, context)
    if (schema := reader.string("schema")) != CATALOGUE_SCHEMA:
        message = f"{context} has schema {schema!r}, expected {CATALOGUE_SCHEMA!r}"
        raise BadInputError(message, hint="use a newer wheelfarm")
    records: dict[str, Record] = {}
    for table in reader.tables("wheels"):
        record = Record.read(table)
        if record is None:
            continue
        if record.filename in records:
            table.fault(f"{record.filename} is listed twice", "filename")
        records[record.filename] = record
    reader.finish()
    return records


def merge(states: Iterable[Records]) -> dict[str, Record]:
    """Return the union of several states of one catalogue; for each file the newest revision."""
    merged: dict[str, Record] = {}
    for records in states:
        for name, record in records.items():
            known = merged.get(name)
            if known is None or _rank(record) > _rank(known):
                merged[name] = record
    return merged


def _rank(record: Record) -> tuple[int, str]:
    # Of two records with one revision either would do; the text decides, so that all hosts agree.
    return record.revision, json.dumps(record.to_dict(), sort_keys=True)
