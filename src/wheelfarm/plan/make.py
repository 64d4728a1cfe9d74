"""The grid and the store's wheels in, the plan out. Pure: no clock, disk, network or process."""

from collections.abc import Iterable

from wheelfarm.grid.model import PackageGrid
from wheelfarm.plan.existing import StoreView
from wheelfarm.plan.filters import narrowed
from wheelfarm.plan.jobs import batched, cost_of, ordered, planned_cell, within_budget
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
    recipes = {grid.recipe.package: grid.recipe for grid in grids}
    view = StoreView(wheels)
    planned: list[PlannedCell] = []
    existing: list[Existing] = []
    left_out: list[LeftOut] = []
    cells, grids = narrowed(grids, request.filters)
    unknown = {grid.recipe.package for grid in grids if grid.version is None}
    for cell in cells:
        if cell.identifier.package in unknown and view.has(cell.identifier.package):
            left_out.append(LeftOut(cell.identifier, "version not known", NO_VERSION))
            continue
        serving = view.serving(cell)
        if serving and not request.rebuild_reason:
            existing.append(Existing(cell.identifier, serving[0]))
            continue
        recipe = recipes[cell.identifier.package]
        planned.append(
            planned_cell(
                cell,
                recipe,
                cost_of(recipe, defaults, request.costs),
                build=view.next_build(cell),
                reason=request.rebuild_reason if serving else "",
            )
        )
    kept, over = within_budget(ordered(planned), request.budget_minutes)
    return Plan(
        batches=batched(kept), existing=tuple(existing), left_out=(*left_out, *over), grids=grids
    )
