"""What a unit costs: times of earlier builds come in, an estimate for every unit goes out.

The times are kept per package and unit, with the number of architectures, in one JSON file here and
in the farm's store. A unit
that was never measured is estimated from its kind, size and architectures; the estimate is scaled
by how the package's measured units compare with theirs.
"""

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Protocol

from wheelfarm import files
from wheelfarm.build.calls import Call
from wheelfarm.build.census import Unit, unit_key
from wheelfarm.errors import BadInputError, WheelfarmError
from wheelfarm.reading import Reader, parse_json

logger = logging.getLogger(__name__)

SCHEMA = "wheelfarm.costs/1"

#: Seconds of a unit that includes torch's headers, on one core of the machine of
#: docs/benchmarks.md: without architectures, and for each of them.
_FIXED = {"cu": 77.0, "c++": 60.0, "c": 2.0}
_PER_ARCH = 43.0
#: Seconds for each KiB of source: what the headers cost outweighs it.
_PER_KIBIBYTE = 0.15
_FIXED_OTHER = 5.0
#: Measurements of one unit that are this near are one: a loaded machine's vary by more.
_ALIKE = 0.25
_ALIKE_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What one unit took: seconds and its processes' peak bytes, for ``archs`` of them.

    ``at`` is when (RFC 3339, UTC): of two measurements of one unit the newer one counts.
    """

    archs: int
    seconds: float
    peak: int
    at: str = ""


class Costs:
    """Measured units of one package, by key and number of architectures."""

    def __init__(self, measured: Mapping[str, Mapping[int, Measured]] | None = None) -> None:
        self._measured = {key: dict(values) for key, values in (measured or {}).items()}

    @property
    def measured(self) -> dict[str, dict[int, Measured]]:
        """What is measured, by unit key and number of architectures."""
        return {key: dict(values) for key, values in self._measured.items()}

    def estimate(self, unit: Unit) -> float:
        """Return the seconds that a unit is expected to take."""
        known = self._measured.get(unit.key, {})
        archs = len(unit.archs)
        if archs in known:
            return known[archs].seconds
        if known:
            nearest = min(known.values(), key=lambda value: (abs(value.archs - archs), value.archs))
            return nearest.seconds * modelled(unit) / modelled(unit, archs=nearest.archs)
        return modelled(unit)

    def estimates(self, units: Iterable[Unit]) -> dict[str, float]:
        """Return the seconds of each unit by key; the unmeasured ones in scale with the others."""
        known = tuple(units)
        ratios = [
            self.estimate(unit) / modelled(unit) for unit in known if unit.key in self._measured
        ]
        scale = median(ratios) if ratios else 1.0
        return {
            unit.key: self.estimate(unit) * (1.0 if unit.key in self._measured else scale)
            for unit in known
        }

    def peak(self) -> int | None:
        """Return the peak bytes of the largest unit, None where nothing is measured."""
        peaks = [value.peak for values in self._measured.values() for value in values.values()]
        return max(peaks, default=0) or None

    def merged(self, other: "Costs") -> "Costs":
        """Return both; where both have a unit's, the newer ones (the order does not matter)."""
        merged = self.measured
        for key, values in other.measured.items():
            known = merged.setdefault(key, {})
            for archs, value in values.items():
                known[archs] = max(known.get(archs, value), value, key=_rank)
        return Costs(merged)

    def news_over(self, known: "Costs") -> "Costs":
        """Return what ``known`` lacks, or has so differently that a partition would notice."""
        before = known.measured
        news: dict[str, dict[int, Measured]] = {}
        for key, values in self._measured.items():
            for archs, value in values.items():
                old = before.get(key, {}).get(archs)
                if old is None or not _alike(value, old):
                    news.setdefault(key, {})[archs] = value
        return Costs(news)

    def with_calls(
        self, calls: Iterable[Call], keys: Iterable[str] = (), *, at: str = ""
    ) -> "Costs":
        """Return the costs with what a build measured: its compiles that no cache answered.

        Where a build compiles one source into one object several times, with other options each
        time (two extensions may share it), the unit's seconds are those of all of them.
        """
        merged = {key: dict(values) for key, values in self._measured.items()}
        known = frozenset(keys)
        times: dict[tuple[str, int], dict[tuple[str, ...], Call]] = {}
        for call in calls:
            if call.action == "compile" and call.status == 0 and call.cache in _COMPILED:
                place = (unit_key(call, known), len(call.archs))
                times.setdefault(place, {})[call.argv] = call
        for (key, archs), compiles in times.items():
            merged.setdefault(key, {})[archs] = Measured(
                archs=archs,
                seconds=sum(call.seconds for call in compiles.values()),
                peak=max(call.peak for call in compiles.values()),
                at=at,
            )
        return Costs(merged)

    def to_bytes(self) -> bytes:
        """Return the costs as their file has them."""
        units = {
            key: [
                {
                    "archs": value.archs,
                    "seconds": round(value.seconds, 3),
                    "peak": value.peak,
                    "at": value.at,
                }
                for _, value in sorted(values.items())
            ]
            for key, values in sorted(self._measured.items())
        }
        return (json.dumps({"schema": SCHEMA, "units": units}, indent=1) + "\n").encode()

    def write(self, path: Path) -> None:
        """Write the costs to their file."""
        files.write_bytes(path, self.to_bytes())

    @classmethod
    def read(cls, path: Path) -> "Costs":
        """Read the costs of a package; no file is no costs. BadInputError where it is none."""
        return cls.of_bytes(path.read_bytes(), str(path)) if path.exists() else cls()

    @classmethod
    def of_bytes(cls, data: bytes, context: str) -> "Costs":
        """Read what ``to_bytes`` wrote; BadInputError where it is something else."""
        reader = Reader(parse_json(data, context), context)
        if reader.string("schema") != SCHEMA:
            reader.fault(f"expected {SCHEMA}", "schema")
        units = reader.table("units")
        measured: dict[str, dict[int, Measured]] = {}
        for key in units or ():
            for entry in units.tables(key) if units is not None else ():
                value = Measured(
                    archs=entry.integer("archs", least=0),
                    seconds=_seconds(entry),
                    peak=entry.integer("peak", least=0),
                    at=entry.string("at", ""),
                )
                measured.setdefault(key, {})[value.archs] = value
        reader.finish(hint="remove it: costs are measured anew")
        return cls(measured)


class SharedCosts(Protocol):
    """Where machines share costs, by package; each method may raise WheelfarmError."""

    def read(self, package: str) -> Costs:
        """Return what all machines measured of a package."""

    def add(self, package: str, costs: Costs) -> None:
        """Add what was measured here to it."""


class CostBook:
    """The costs of one package: a file of this machine, and what machines share.

    Costs only balance a partition: where the shared ones cannot be had, that is said, and the
    machine's own serve.
    """

    def __init__(self, path: Path, package: str, shared: SharedCosts | None) -> None:
        self.path = path
        self.package = package
        self.shared = shared

    def read(self) -> Costs:
        """Return what is known, and keep it in the file; BadInputError where that is none."""
        if self.shared is None:
            return Costs.read(self.path)
        try:
            found = self.shared.read(self.package)
        except WheelfarmError as error:
            logger.warning("the shared costs of %s could not be read: %s", self.package, error)
            return Costs.read(self.path)
        with files.locked(self.path.with_suffix(".lock")):
            known = Costs.read(self.path)
            merged = known.merged(found)
            if merged.measured != known.measured:
                merged.write(self.path)
        return merged

    def peak(self) -> int | None:
        """Return the peak bytes of the largest unit; others are asked where nothing is known here.

        Every job wants it, and a store counts its requests.
        """
        return Costs.read(self.path).peak() or self.read().peak()

    def add(self, calls: Iterable[Call], keys: Iterable[str] = ()) -> None:
        """Add what a build measured; jobs may do so at the same time."""
        now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        new = Costs().with_calls(calls, keys, at=now)
        if not new.measured:
            return
        with files.locked(self.path.with_suffix(".lock")):
            Costs.read(self.path).merged(new).write(self.path)
        if self.shared is None:
            return
        try:
            self.shared.add(self.package, new)
        except WheelfarmError as error:
            logger.warning("the costs of %s could not be shared: %s", self.package, error)


def _alike(one: Measured, other: Measured) -> bool:
    gap = abs(one.seconds - other.seconds)
    return gap <= max(_ALIKE * other.seconds, _ALIKE_SECONDS) and one.peak <= (
        (1 + _ALIKE) * other.peak
    )


def _rank(value: Measured) -> tuple[str, float, int]:
    # Of two at one time either would do; the numbers decide, so that all machines agree.
    return value.at, value.seconds, value.peak


#: What the cache says of a call in which the compiler itself ran.
_COMPILED = frozenset(("miss", "bypass", "none"))


def modelled(unit: Unit, *, archs: int | None = None) -> float:
    """Return the seconds that a unit of this kind, size and number of architectures takes."""
    count = len(unit.archs) if archs is None else archs
    fixed = _FIXED.get(unit.kind, _FIXED_OTHER)
    per_arch = _PER_ARCH if unit.kind == "cu" else 0.0
    return unit.compiles * (fixed + count * per_arch + unit.size / 1024 * _PER_KIBIBYTE)


def _seconds(reader: Reader) -> float:
    value = reader.raw("seconds")
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        message = f"{reader.where('seconds')}: expected a number of seconds"
        raise BadInputError(message)
    return float(value)
