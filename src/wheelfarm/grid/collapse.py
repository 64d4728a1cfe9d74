"""Axis collapse: accepted points in, the fewest cells that serve them all out.

A group of points that one wheel can serve becomes one cell. Which points share a wheel follows
from the package's stated axes alone, never from how narrow its build matrix is.
"""

from collections.abc import Hashable, Iterable

from packaging.version import Version

from wheelfarm.grid.model import GridCell, GridDecision
from wheelfarm.grid.points import Accepted
from wheelfarm.model.cell import Cell, CellId
from wheelfarm.model.python import PythonTag
from wheelfarm.recipes.model import Recipe
from wheelfarm.upstream.cxx_abi import cxx_abi


def collapse(
    recipe: Recipe, version: Version, accepted: list[Accepted]
) -> tuple[list[GridCell], list[GridDecision]]:
    """Return the cells that serve all accepted points, and the decision of each point."""
    package = recipe.package
    cells: list[GridCell] = []
    decisions: list[GridDecision] = []
    for members in _groups(recipe, accepted):
        chosen = _canonical(recipe, members)
        cell = _cell(recipe, package, version, chosen, members)
        cells.append(cell)
        identifier = cell.identifier
        for item in members:
            if item is chosen:
                decisions.append(GridDecision(item.point, "built", cell=identifier))
            else:
                reason = f"served by {identifier}"
                decisions.append(GridDecision(item.point, "served", reason, "served", identifier))
    return cells, decisions


def _groups(recipe: Recipe, accepted: list[Accepted]) -> Iterable[list[Accepted]]:
    if recipe.torch_axis == "linked" and recipe.python_axis == "exact":
        # Every point has a wheel of its own; a farm has tens of thousands of these.
        return ([item] for item in accepted)
    groups: dict[Hashable, list[Accepted]] = {}
    for item in accepted:
        groups.setdefault(_group(recipe, item), []).append(item)
    return groups.values()


def _group(recipe: Recipe, item: Accepted) -> Hashable:
    """Return what the points that share a wheel have in common."""
    point = item.point
    return (
        point.accelerator,
        point.platform,
        _torch_part(recipe, item),
        _python_part(recipe, point.python),
    )


def _torch_part(recipe: Recipe, item: Accepted) -> Hashable:
    match recipe.torch_axis:
        case "linked":
            return item.row.minor
        case "abi_flag":
            return cxx_abi(item.point.accelerator, item.row.minor, item.point.platform)
        case "stable_abi" | "free":
            return None


def _python_part(recipe: Recipe, python: PythonTag) -> Hashable:
    if recipe.python_axis == "none":
        return None
    if recipe.python_axis == "abi3" and not python.free_threaded:
        return None
    # A free-threaded Python loads no abi3 wheel (PEP 703), so it has a wheel of its own.
    return python


def _canonical(recipe: Recipe, members: list[Accepted]) -> Accepted:
    """Return the point that the group's wheel is built at.

    The newest torch, except for the stable ABI, which only carries forward: there the oldest. The
    lowest Python, for the same reason.
    """
    if len(members) == 1:
        return members[0]
    torches = [item.point.torch for item in members]
    torch = min(torches) if recipe.torch_axis == "stable_abi" else max(torches)
    of_torch = [item for item in members if item.point.torch == torch]
    return min(of_torch, key=lambda item: item.point.python)


def _cell(
    recipe: Recipe, package: str, version: Version, chosen: Accepted, members: list[Accepted]
) -> GridCell:
    point = chosen.point
    identifier = CellId(
        package,
        version,
        point.accelerator,
        chosen.row.minor,
        _python_tag(recipe, point.python),
        point.platform,
    )
    return GridCell(
        cell=Cell(identifier, point.torch),
        torch_axis=recipe.torch_axis,
        archs=chosen.archs,
        python=point.python,
        serves=tuple(item.point for item in members),
        torch_pinned=chosen.row.pinned,
        target=chosen.row.minor if recipe.torch_axis == "stable_abi" else None,
        cxx_abi=cxx_abi(point.accelerator, chosen.row.minor, point.platform),
    )


def _python_tag(recipe: Recipe, python: PythonTag) -> PythonTag:
    if recipe.python_axis == "none":
        return PythonTag("none")
    if recipe.python_axis == "abi3" and not python.free_threaded:
        return PythonTag("abi3", recipe.from_python)
    return python
