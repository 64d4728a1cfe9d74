"""The values of this room: what the store has, jobs, batches, the plan."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from wheelfarm.grid.model import GridCell, GridDecision, PackageGrid
from wheelfarm.model.axis import TorchAxis
from wheelfarm.model.cell import CellId, JobId
from wheelfarm.model.wheel_name import WheelName

JobKind = Literal["whole", "shard", "link"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredWheel:
    """A wheel that the store has: its name, and its torch axis where somebody proved it.

    One that is not ``usable`` (yanked, removed) serves nobody, but its name is taken.
    """

    name: WheelName
    torch_axis: TorchAxis | None = None
    usable: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """The minutes of one cell: what every build of the package takes, and what each arch adds."""

    fixed: float
    per_arch: float = 0.0

    def minutes(self, archs: int) -> float:
        """Return the minutes of a whole build for so many architectures."""
        return self.fixed + self.per_arch * archs


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One job of the plan. ``build`` is the wheel's build tag, 0 for none."""

    id: JobId
    name: str
    """The job's identifier as text."""
    cell_name: str
    """The cell's identifier as text."""
    kind: JobKind
    cost_minutes: float


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedCell:
    """One wheel to build: its cell, its jobs in the order in which they can run, what it costs."""

    cell: GridCell
    jobs: tuple[Job, ...]
    cost_minutes: float
    priority: int = 0
    build: int = 0
    """The wheel's build tag (0: none); a rebuilt wheel has the next one."""
    reason: str = ""
    """Why a wheel that exists is built again."""


@dataclass(frozen=True, slots=True)
class Existing:
    """A cell that needs no build, and a wheel of the store that is the cause."""

    cell: CellId
    wheel: WheelName


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A cell that is not planned this time: the rule in a few words, and the reason."""

    cell: CellId
    rule: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What is to be built, in order and in batches, and what is not, with reasons.

    ``batches`` hold the cells; a cell is never split over two.
    """

    batches: tuple[tuple[PlannedCell, ...], ...] = ()
    existing: tuple[Existing, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    grids: tuple[PackageGrid, ...] = ()

    @property
    def cells(self) -> tuple[PlannedCell, ...]:
        """The planned cells, in order."""
        return tuple(cell for batch in self.batches for cell in batch)

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The planned jobs, in order."""
        return tuple(job for cell in self.cells for job in cell.jobs)

    @property
    def refused(self) -> Iterable[tuple[PackageGrid, GridDecision]]:
        """The refused points of every package's grid."""
        for grid in self.grids:
            for decision in grid.refused:
                yield grid, decision

    def totals(self) -> Mapping[str, int]:
        """Return how many cells or points there are for each outcome and rule."""
        counts: Counter[str] = Counter()
        counts["planned"] = sum(len(batch) for batch in self.batches)
        counts["exists already"] = len(self.existing)
        for item in self.left_out:
            counts[item.rule] += 1
        for grid in self.grids:
            for decision in grid.decisions:
                if decision.outcome == "served":
                    counts["served by another cell's wheel"] += 1
                elif decision.outcome == "refused":
                    counts[f"refused: {decision.rule}"] += 1
        return counts


@dataclass(frozen=True, kw_only=True, slots=True)
class Filters:
    """What a plan is narrowed to; an empty part narrows nothing. Values are as the user wrote."""

    packages: tuple[str, ...] = ()
    cudas: tuple[str, ...] = ()
    torches: tuple[str, ...] = ()
    pythons: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    only: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanRequest:
    """How to plan."""

    filters: Filters = field(default_factory=Filters)
    rebuild_reason: str = ""
    """Not empty: wheels that exist are built again, with the next build tag."""
    budget_minutes: float | None = None
    costs: Mapping[str, Cost] = field(default_factory=dict)
    """Measured costs by package, in place of the recipes' estimates."""
