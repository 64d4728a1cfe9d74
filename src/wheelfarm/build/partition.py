"""Which shard compiles which unit: units and their costs come in, a shard plan goes out.

The plan is a file: all shards and the link job read the same one.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

from wheelfarm import files
from wheelfarm.build.balance import lower_bound, share_out
from wheelfarm.build.census import Unit
from wheelfarm.errors import BadInputError
from wheelfarm.reading import Reader, read_json

SCHEMA = "wheelfarm.shard-plan/1"

ShardFilter = Literal["seat", "source", "extension"]
_FILTERS: tuple[ShardFilter, ...] = ("seat", "source", "extension")


class TooManyShardsError(BadInputError):
    """There are more shards than units to share out."""

    def __init__(self, shards: int, units: int) -> None:
        self.units = units
        super().__init__(
            f"{shards} shards were asked for, and the build has {units} units to share out",
            hint=f"set sharding to {units} at most",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """A unit's shard (from 1; 0 for a unit that every job compiles) and its cost in seconds."""

    shard: int
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardPlan:
    """The parts of one build.

    ``filter`` says who parts the build: the ``seat``, by ``units``, the package's own ``source``
    filter, or the ``extension`` of torch's that it declares; only the first has units. ``build`` is
    the hash of what all its jobs have in common: sources, architectures, options. ``cache`` is the
    cache's name and version, ``identity`` the hash of the compilers: a job with others would
    compile what nobody can use, and is refused.
    """

    cell: str
    build: str
    shards: int
    cache: str
    identity: str
    units: Mapping[str, Share]
    filter: ShardFilter = "seat"

    @property
    def assignment(self) -> dict[str, int]:
        """Unit key -> shard, as the seat takes it."""
        return {key: share.shard for key, share in self.units.items()}

    @property
    def loads(self) -> tuple[float, ...]:
        """The seconds of each shard, in order."""
        loads = [0.0] * self.shards
        for share in self.units.values():
            if share.shard:
                loads[share.shard - 1] += share.seconds
        return tuple(loads)

    @property
    def makespan(self) -> float:
        """The seconds of the slowest shard."""
        return max(self.loads)

    @property
    def lower_bound(self) -> float:
        """The seconds that no partition of these units can undercut."""
        return lower_bound([s.seconds for s in self.units.values() if s.shard], self.shards)

    @property
    def digest(self) -> str:
        """The hash of the plan, by which a shard's product names the plan it was made for."""
        return sha256(self.to_text().encode()).hexdigest()

    def to_text(self) -> str:
        """Return the plan as its file's text."""
        document = {
            "schema": SCHEMA,
            "cell": self.cell,
            "build": self.build,
            "shards": self.shards,
            "cache": self.cache,
            "identity": self.identity,
            "filter": self.filter,
            "units": {
                key: {"shard": share.shard, "seconds": round(share.seconds, 3)}
                for key, share in sorted(self.units.items())
            },
        }
        return json.dumps(document, indent=1) + "\n"

    def write(self, path: Path) -> None:
        """Write the plan's file."""
        files.write_text(path, self.to_text())

    @classmethod
    def read(cls, path: Path) -> "ShardPlan":
        """Read a plan's file; FaultsError with every fault where it is none."""
        return cls.of_document(read_json(path), str(path))

    @classmethod
    def of_document(cls, document: object, context: str) -> "ShardPlan":
        """Read a parsed plan."""
        reader = Reader(document, context)
        if reader.string("schema") != SCHEMA:
            reader.fault(f"expected {SCHEMA}", "schema")
        shards = reader.integer("shards", least=1)
        word = reader.choice("filter", _FILTERS)
        filtered: ShardFilter = next((known for known in _FILTERS if known == word), "seat")
        plan = cls(
            cell=reader.string("cell"),
            build=reader.string("build"),
            shards=shards,
            cache=reader.string("cache"),
            identity=reader.string("identity"),
            units=_shares(reader, shards),
            filter=filtered,
        )
        reader.done()
        reader.finish()
        return plan

    def require_identity(self, identity: str) -> None:
        """Raise BadInputError where this machine's compilers are not those of the plan."""
        if identity != self.identity:
            message = (
                f"the shard plan of {self.cell} was made with the compilers {self.identity[:12]}, "
                f"this machine has {identity[:12]}"
            )
            raise BadInputError(
                message,
                cause="another nvcc, ptxas, cicc or host compiler, or another wheelfarm",
                hint="run all shards and the link job with the same toolkit and host compiler",
            )


def assign(
    units: Sequence[Unit],
    costs: Mapping[str, float],
    shards: int,
    *,
    cell: str,
    build: str,
    cache: str,
    identity: str,
) -> ShardPlan:
    """Share out ``units`` with their ``costs`` (seconds by key); the same input, the same plan.

    Raises TooManyShardsError where a shard would have nothing to do.
    """
    divisible = [unit for unit in units if not unit.executable]
    if not 1 <= shards <= len(divisible):
        raise TooManyShardsError(shards, len(divisible))
    ordered = sorted(divisible, key=lambda unit: unit.key)
    chosen = share_out([costs[unit.key] for unit in ordered], shards)
    shares = {unit.key: Share(shard=0, seconds=costs[unit.key]) for unit in units}
    for unit, shard in zip(ordered, chosen, strict=True):
        shares[unit.key] = Share(shard=shard + 1, seconds=costs[unit.key])
    return ShardPlan(
        cell=cell, build=build, shards=shards, cache=cache, identity=identity, units=shares
    )


def hashed_makespan(costs: Mapping[str, float], shards: int) -> float:
    """Return the makespan of a partition by the hash of the path, for comparison."""
    loads = [0.0] * shards
    for key, seconds in costs.items():
        loads[zlib.crc32(key.encode()) % shards] += seconds
    return max(loads)


def _shares(reader: Reader, shards: int) -> dict[str, Share]:
    table = reader.table("units")
    shares: dict[str, Share] = {}
    for key in table or ():
        entry = table.table(key) if table is not None else None
        if entry is None:
            reader.fault("expected a table", "units", key)
            continue
        shard = entry.integer("shard", least=0)
        seconds = entry.raw("seconds")
        if shard > shards:
            entry.fault(f"there are {shards} shards", "shard")
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            entry.fault("expected a number of seconds", "seconds")
            seconds = 0.0
        entry.done()
        shares[key] = Share(shard=shard, seconds=float(seconds))
    return shares
