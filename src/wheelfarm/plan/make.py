"""The grid and the store's wheels in, the plan out. Pure: no clock, disk, network or process."""

from collections.abc import Iterable

from wheelfarm.grid.model import PackageGrid
from wheelfarm.plan.existing import StoreView
from wheelfarm.plan.filters import narrowed
from wheelfarm.plan.jobs import PackageWay, batched, ordered, planned_cell, within_budget
from wheelfarm.plan.model import Existing, LeftOut, Plan, PlannedCell, PlanRequest, StoredWheel
from wheelfarm.recipes.model import Defaults

#: With wheels of the package in the store, nobody could say which of its cells exist.
NO_VERSION = "the package's version is not known, so the store's wheels cannot be told apart"


def make_plan(
    grids: tuple[PackageGrid, ...],
    wheels: Iterable[StoredWheel],
    defaults: Defaults,
    request: PlanRequest,
) -> Plan:
    """Return the plan of a grid, given every wheel that the store has.

    With a ``rebuild_reason`` the cells that exist are planned too, with the next build tag. Raises
    BadInputError for a filter that matches nothing. A store that could not be read never
    comes here: an empty one means "nothing was built yet".
    """
    view = StoreView(wheels)
    planned: list[PlannedCell] = []
    existing: list[Existing] = []
    left_out: list[LeftOut] = []
    ways = {
        grid.recipe.package: PackageWay.of(grid.recipe, defaults, request.costs) for grid in grids
    }
    cells, grids = narrowed(grids, request.filters)
    unknown = {grid.recipe.package for grid in grids if grid.version is None}
    for cell in cells:
        package = cell.identifier.package
        if not view.has(package):
            planned.append(planned_cell(cell, ways[package]))
            continue
        if package in unknown:
            left_out.append(LeftOut(cell.identifier, "version not known", NO_VERSION))
            continue
        serving = view.serving(cell)
        if serving and not request.rebuild_reason:
            existing.append(Existing(cell.identifier, serving[0]))
            continue
        reason = request.rebuild_reason if serving else ""
        build = view.next_build(cell)
        planned.append(planned_cell(cell, ways[package], build=build, reason=reason))
    kept, over = within_budget(ordered(planned), request.budget_minutes)
    return Plan(
        batches=batched(kept), existing=tuple(existing), left_out=(*left_out, *over), grids=grids
    )
