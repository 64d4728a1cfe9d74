"""What a unit costs: times of earlier builds come in, an estimate for every unit goes out.

The times are kept per package and unit, with the number of architectures, in one JSON file. A unit
that was never measured is estimated from its kind, size and architectures; the estimate is scaled
by how the package's measured units compare with theirs.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from wheelfarm import files
from wheelfarm.build.calls import Call
from wheelfarm.build.census import Unit, unit_key
from wheelfarm.errors import BadInputError
from wheelfarm.reading import Reader, read_json

SCHEMA = "wheelfarm.costs/1"

#: Seconds of a unit that includes torch's headers, on one core of the machine of
#: docs/benchmarks.md: without architectures, and for each of them.
_FIXED = {"cu": 77.0, "c++": 60.0, "c": 2.0}
_PER_ARCH = 43.0
#: Seconds for each KiB of source: what the headers cost outweighs it.
_PER_KIBIBYTE = 0.15
_FIXED_OTHER = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What one unit took: seconds and its processes' peak bytes, for ``archs`` of them."""

    archs: int
    seconds: float
    peak: int


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

    def with_calls(self, calls: Iterable[Call], keys: Iterable[str] = ()) -> "Costs":
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
            )
        return Costs(merged)

    @classmethod
    def add(cls, path: Path, calls: Iterable[Call], keys: Iterable[str] = ()) -> None:
        """Add what a build measured to a package's file; jobs may do so at the same time."""
        with files.locked(path.with_suffix(".lock")):
            cls.read(path).with_calls(calls, keys).write(path)

    def write(self, path: Path) -> None:
        """Write the costs to their file."""
        units = {
            key: [
                {"archs": value.archs, "seconds": round(value.seconds, 3), "peak": value.peak}
                for _, value in sorted(values.items())
            ]
            for key, values in sorted(self._measured.items())
        }
        files.write_text(path, json.dumps({"schema": SCHEMA, "units": units}, indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> "Costs":
        """Read the costs of a package; no file is no costs. BadInputError where it is none."""
        if not path.exists():
            return cls()
        reader = Reader(read_json(path), str(path))
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
                )
                measured.setdefault(key, {})[value.archs] = value
        reader.finish(hint="remove the file: costs are measured anew")
        return cls(measured)


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
