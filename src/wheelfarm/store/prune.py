"""Which wheels are superseded: proposed as decisions, taken out only on request."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from packaging.version import Version

from wheelfarm.model.decision import Decision
from wheelfarm.model.versions import is_release
from wheelfarm.store.model import Record, Records
from wheelfarm.store.protocol import Store, key_of, metadata_key, update


def superseded(records: Iterable[Record], *, keep: int = 1) -> tuple[Decision[Record], ...]:
    """Decide of each wheel whether it stays; a rejected one carries what supersedes it.

    Wheels of one cell (accelerator, torch, Python, platform) are compared, in PEP 440 order. The
    newest ``keep`` finals stay; a pre-release stays only while it is newer than every final, and
    is one of the newest ``keep`` such. Of one version the highest build stays. A yanked wheel
    supersedes nothing.
    """
    cells: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for record in records:
        if not record.removed:
            cells[_cell(record)].append(record)
    decisions = [each for cell in cells.values() for each in _decide(cell, keep)]
    return tuple(sorted(decisions, key=lambda each: each.candidate.filename))


def _decide(cell: list[Record], keep: int) -> Iterable[Decision[Record]]:
    builds: dict[Version, Record] = {}
    finals: list[Record] = []
    previews: list[Record] = []
    for record in sorted(cell, key=_order, reverse=True):
        public = _public(record)
        rivals = finals if is_release(public) else [*finals, *previews]
        newer = [rival for rival in rivals if _public(rival) > public]
        reason = ""
        if public in builds:
            reason = f"build superseded by {builds[public].filename}"
        elif len(newer) >= keep or (newer and not is_release(public) and newer[0] in finals):
            reason = f"superseded by {newer[0].filename}"
        if record.entry.yanked is None:
            builds.setdefault(public, record)
            if not reason:
                (finals if is_release(public) else previews).append(record)
        yield Decision(record, reason)


def remove(store: Store, package: str, filenames: frozenset[str]) -> Records:
    """Take wheels out of the store: first from the catalogue, then the files themselves.

    The records stay as removed, so that no name comes back with other bytes. Reports stay.
    """

    def change(records: dict[str, Record]) -> dict[str, Record]:
        return {
            name: record.as_removed() if name in filenames and not record.removed else record
            for name, record in records.items()
        }

    records = update(store, package, change)
    for name in sorted(filenames & records.keys()):
        key = key_of(records[name])
        store.delete(metadata_key(key))
        store.delete(key)
    return records


def _cell(record: Record) -> tuple[Any, ...]:
    name = record.entry.name
    label = name.label
    return (
        str(label.accelerator),
        str(label.torch),
        name.pythons,
        name.abis,
        str(name.platform or name.platforms),
    )


def _public(record: Record) -> Version:
    return Version(record.entry.name.version.public)


def _order(record: Record) -> tuple[Any, ...]:
    # Good wheels first, so that a yanked one meets what supersedes it; finals before previews.
    public = _public(record)
    yanked = record.entry.yanked is not None
    return (not yanked, is_release(public), public, record.entry.name.build_number)
