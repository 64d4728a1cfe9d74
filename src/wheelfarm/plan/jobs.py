"""Cells in, jobs in batches out: shards and links, order, budget, and GitHub's limits."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wheelfarm.grid.model import GridCell
from wheelfarm.model.cell import CellId, JobId
from wheelfarm.model.platform import Platform
from wheelfarm.plan.model import Cost, Job, JobKind, LeftOut, PlannedCell
from wheelfarm.recipes.model import Defaults, Recipe

#: GitHub's limits of one matrix (docs.github.com, "Usage limits"): jobs, and bytes of an output.
MATRIX_JOBS = 256
MATRIX_BYTES = 1 << 20
#: The bytes of one entry of a matrix beside the cell's and the package's name, at most.
_ENTRY_BYTES = 192
#: Of the bytes a matrix may have, room for its frame and for what a workflow adds to each job.
_FRAME_BYTES = 1 << 12

#: A link job replays every unit from the cache: about a tenth of the whole build.
_LINK_SHARE = 0.1
_LEAST_MINUTES = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class PackageWay:
    """How a package's cells become jobs: cost, shards per platform, priority."""

    cost: Cost
    shards: Mapping[Platform, int]
    priority: int = 0

    @classmethod
    def of(cls, recipe: Recipe, defaults: Defaults, measured: Mapping[str, Cost]) -> "PackageWay":
        """Return a recipe's way."""
        return cls(
            cost=cost_of(recipe, defaults, measured),
            shards=recipe.shards_on,
            priority=recipe.priority,
        )


def planned_cell(
    cell: GridCell, way: PackageWay, *, build: int = 0, reason: str = ""
) -> PlannedCell:
    """Return a cell with its jobs: one whole build, or its shards and then its link."""
    identifier = cell.cell.identifier
    name = str(identifier)
    minutes = way.cost.minutes(len(cell.archs.entries))
    shards = way.shards[identifier.platform]
    jobs: tuple[Job, ...]
    if shards == 1:
        jobs = (_job(JobId(identifier), name, name, "whole", minutes),)
    else:
        jobs = (
            *_shards(identifier, name, shards, minutes),
            _job(JobId(identifier, link=True), f"{name}-link", name, "link", minutes * _LINK_SHARE),
        )
    return PlannedCell(
        cell=cell,
        jobs=jobs,
        cost_minutes=sum(item.cost_minutes for item in jobs),
        priority=way.priority,
        build=build,
        reason=reason,
    )


def _shards(cell: CellId, name: str, shards: int, minutes: float) -> list[Job]:
    share = _rounded(minutes / shards)
    return [
        Job(
            id=JobId(cell, shard, shards),
            name=f"{name}-shard{shard}of{shards}",
            cell_name=name,
            kind="shard",
            cost_minutes=share,
        )
        for shard in range(1, shards + 1)
    ]


def _job(ident: JobId, name: str, cell_name: str, kind: JobKind, minutes: float) -> Job:
    return Job(id=ident, name=name, cell_name=cell_name, kind=kind, cost_minutes=_rounded(minutes))


def _rounded(minutes: float) -> float:
    return round(max(minutes, _LEAST_MINUTES), 2)


def cost_of(recipe: Recipe, defaults: Defaults, measured: Mapping[str, Cost]) -> Cost:
    """Return a package's cost: measured, else estimated by the recipe, else the farm's default."""
    known = measured.get(recipe.package)
    if known is not None:
        return known
    return Cost(fixed=recipe.cost_minutes or defaults.cost_minutes)


def ordered(cells: Iterable[PlannedCell]) -> list[PlannedCell]:
    """Return cells in the order in which they are built.

    Higher priority first; then the newest torch and CUDA, which users ask for first; then by name.
    """
    return sorted(cells, key=_order)


def _order(cell: PlannedCell) -> tuple[int, int, int, int, int, str]:
    identifier = cell.cell.cell.identifier
    torch, accelerator = identifier.torch, identifier.accelerator
    return (
        -cell.priority,
        -torch.major,
        -torch.minor,
        -(accelerator.major or 0),
        -(accelerator.minor or 0),
        cell.jobs[0].cell_name,
    )


def within_budget(
    cells: Sequence[PlannedCell], minutes: float | None
) -> tuple[list[PlannedCell], list[LeftOut]]:
    """Return the cells that a budget of minutes holds, in order, and those left out.

    A cell that no longer fits does not keep a cheaper one behind it from being built.
    """
    if minutes is None:
        return list(cells), []
    kept: list[PlannedCell] = []
    left: list[LeftOut] = []
    rest = minutes
    for cell in cells:
        if cell.cost_minutes <= rest:
            rest -= cell.cost_minutes
            kept.append(cell)
        else:
            reason = f"over the budget of {minutes:g} minutes"
            left.append(LeftOut(cell.cell.identifier, "over the budget", reason))
    return kept, left


def batched(cells: Sequence[PlannedCell]) -> tuple[tuple[PlannedCell, ...], ...]:
    """Return the cells in batches whose matrices GitHub takes; a cell is never split."""
    batches: list[tuple[PlannedCell, ...]] = []
    current: list[PlannedCell] = []
    jobs = size = 0
    for cell in cells:
        more = len(cell.jobs)
        more_size = _entry_bytes(cell)
        if current and (
            jobs + more > MATRIX_JOBS or size + more_size > MATRIX_BYTES - _FRAME_BYTES
        ):
            batches.append(tuple(current))
            current, jobs, size = [], 0, 0
        current.append(cell)
        jobs += more
        size += more_size
    if current:
        batches.append(tuple(current))
    return tuple(batches)


def _entry_bytes(cell: PlannedCell) -> int:
    """Return a bound of the bytes that a cell's jobs take in a matrix."""
    names = len(cell.jobs[0].cell_name) + len(cell.cell.identifier.package)
    return (_ENTRY_BYTES + names) * len(cell.jobs)


def matrix_entry(cell: PlannedCell, job: Job) -> dict[str, Any]:
    """Return one job as a GitHub matrix lists it: all that a workflow chooses a runner by."""
    identifier = cell.cell.identifier
    entry: dict[str, Any] = {
        "id": job.name,
        "package": identifier.package,
        "kind": job.kind,
        "platform": str(identifier.platform),
        "cuda": str(identifier.accelerator.version),
        "python": cell.cell.python.dotted,
        "minutes": job.cost_minutes,
    }
    if cell.build:
        entry["build"] = cell.build
    return entry


def matrices(batch: Sequence[PlannedCell]) -> dict[str, Any]:
    """Return a batch's two matrices: the compiling jobs, and the link jobs that need them."""
    compiling = [
        matrix_entry(cell, job) for cell in batch for job in cell.jobs if job.kind != "link"
    ]
    linking = [matrix_entry(cell, job) for cell in batch for job in cell.jobs if job.kind == "link"]
    return {"compile": {"include": compiling}, "link": {"include": linking}}
