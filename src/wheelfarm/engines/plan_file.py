"""A plan's file, as ``wheelfarm plan --json`` writes it, comes in; its jobs go out."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from wheelfarm.errors import BadInputError
from wheelfarm.model.cell import CellId, JobId
from wheelfarm.plan.model import JobKind
from wheelfarm.reading import Reader, describe, read_json

SCHEMA = "wheelfarm.plan/1"
#: JSON's 1e999 is read as infinity; no job takes a billion minutes.
_MOST_MINUTES = 1e9


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedJob:
    """One job of a plan's file. ``build`` is the wheel's build tag, 0 for none."""

    id: str
    cell: str
    package: str
    kind: JobKind
    shard: int
    shards: int
    cost_minutes: float
    build: int = 0
    batch: int = 0

    @property
    def cell_id(self) -> CellId:
        """The cell, read."""
        return CellId.parse(self.cell)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanFile:
    """A plan's jobs in their order, the hash of the recipes it was made from, and its own."""

    path: Path
    recipes: str
    digest: str
    jobs: tuple[PlannedJob, ...]

    def only(self, names: tuple[str, ...]) -> tuple[PlannedJob, ...]:
        """Return the jobs that the names (of jobs or cells) mean, all of them for no name.

        Raises BadInputError for a name that the plan does not have.
        """
        if not names:
            return self.jobs
        wanted = set(names)
        chosen = tuple(job for job in self.jobs if job.id in wanted or job.cell in wanted)
        missing = wanted - {job.id for job in chosen} - {job.cell for job in chosen}
        if missing:
            name = min(missing)
            JobId.parse(name)
            message = f"the plan {self.path} has no {name}"
            raise BadInputError(message, hint="its jobs are listed by `wheelfarm status PLAN`")
        return chosen


def read_plan(path: Path) -> PlanFile:
    """Read a plan's file; raises FaultsError with every fault of it."""
    try:
        data = read_json(path)
    except BadInputError as error:
        hint = error.hint or "write one with `wheelfarm plan --json`"
        raise BadInputError(error.what, cause=error.cause, hint=hint) from error
    reader = Reader(data, str(path))
    schema = reader.string("schema")
    if schema != SCHEMA:
        message = f"{path} is no plan: its schema is {schema!r}"
        raise BadInputError(message, hint="write one with `wheelfarm plan --json`")
    recipes = reader.string("recipes", "")
    jobs = [_read_job(table) for table in reader.tables("jobs")]
    reader.finish()
    seen: set[str] = set()
    for job in jobs:
        if job.id in seen:
            message = f"{path} lists the job {job.id} twice"
            raise BadInputError(message)
        seen.add(job.id)
    digest = hashlib.sha256(recipes.encode())
    for job in jobs:
        digest.update(f"\n{job.id} {job.build}".encode())
    return PlanFile(path=path, recipes=recipes, digest=digest.hexdigest(), jobs=tuple(jobs))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _read_job(table: Reader) -> PlannedJob:
    name = table.string("id")
    cell = table.string("cell")
    kind = table.choice("kind", ("whole", "shard", "link"), "whole")
    shard, shards = table.integer("shard", 0, least=0), table.integer("shards", 1, least=1)
    suffix = {"whole": "", "link": "-link"}.get(kind, f"-shard{shard}of{shards}")
    if name != cell + suffix:
        table.fault(f"{name!r} is not the {kind} job of {cell!r}", "id")
    cost = table.raw("cost_minutes")
    if cost is not None and not (_is_number(cost) and 0 <= cost < _MOST_MINUTES):
        table.fault(f"expected minutes, found {describe(cost)}", "cost_minutes")
        cost = None
    return PlannedJob(
        id=name,
        cell=cell,
        package=table.string("package"),
        kind="shard" if kind == "shard" else "link" if kind == "link" else "whole",
        shard=shard,
        shards=shards,
        cost_minutes=0.0 if cost is None else float(cost),
        build=table.integer("build", 0, least=0),
        batch=table.integer("batch", 0, least=0),
    )
