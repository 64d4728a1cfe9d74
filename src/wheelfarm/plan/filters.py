"""A plan's filters: each is checked against what exists, so that a typo never plans nothing."""

import difflib
from collections.abc import Callable, Iterable

from wheelfarm.errors import BadInputError
from wheelfarm.grid.model import GridCell, GridDecision, PackageGrid
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.cell import CellId, JobId, cell_name
from wheelfarm.model.platform import Platform
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor
from wheelfarm.plan.model import Filters

_SHOWN = 20


def narrowed(grids: tuple[PackageGrid, ...], filters: Filters) -> tuple[GridCell, ...]:
    """Return the cells that pass every filter.

    Raises BadInputError, with the known values, for a filter that matches nothing, and where all
    filters together leave no cell.
    """
    cells = tuple(cell for grid in grids for cell in grid.cells)
    if filters.only:
        return tuple(_only(text, grids, cells) for text in dict.fromkeys(filters.only))
    rules: list[Callable[[GridCell], bool]] = []
    if filters.packages:
        names = _chosen(
            "package", filters.packages, [grid.recipe.package for grid in grids], cell_name
        )
        rules.append(lambda cell: cell.identifier.package in names)
    if filters.cudas:
        lines = {str(cell.identifier.accelerator) for cell in cells}
        chosen = _chosen("CUDA", filters.cudas, lines, _cuda)
        rules.append(lambda cell: str(cell.identifier.accelerator) in chosen)
    if filters.torches:
        minors = {str(point.minor) for cell in cells for point in cell.serves}
        torches = _chosen("torch", filters.torches, minors, str)
        rules.append(lambda cell: any(str(point.minor) in torches for point in cell.serves))
    if filters.pythons:
        tags = {str(point.python) for cell in cells for point in cell.serves}
        pythons = _chosen("Python", filters.pythons, tags, _python)
        rules.append(lambda cell: any(str(point.python) in pythons for point in cell.serves))
    if filters.platforms:
        known = {str(cell.identifier.platform) for cell in cells}
        platforms = _chosen("platform", filters.platforms, known, _platform)
        rules.append(lambda cell: str(cell.identifier.platform) in platforms)
    found = tuple(cell for cell in cells if all(rule(cell) for rule in rules))
    if rules and not found:
        message = "each filter matches something, but no cell matches all of them"
        raise BadInputError(message, hint="`wheelfarm grid PACKAGE --explain` shows every cell")
    return found


def _chosen(
    what: str, given: Iterable[str], known: Iterable[str], spelling: Callable[[str], str]
) -> frozenset[str]:
    values = sorted(set(known))
    found = set()
    for text in given:
        try:
            word = spelling(text)
        except BadInputError as error:
            raise _unknown(what, text, values) from error
        if word not in values:
            raise _unknown(what, text, values)
        found.add(word)
    return frozenset(found)


def _unknown(what: str, text: str, values: list[str]) -> BadInputError:
    shown = ", ".join(values[:_SHOWN]) + (", …" if len(values) > _SHOWN else "")
    near = difflib.get_close_matches(text, values, n=1)
    hint = f"did you mean {near[0]!r}?" if near else ""
    return BadInputError(f"no cell has the {what} {text!r}; there are {shown or 'none'}", hint=hint)


def _cuda(text: str) -> str:
    if text.startswith("cu"):
        return str(Accelerator.parse(text))
    return str(Accelerator.cuda(Minor.parse(text)))


def _python(text: str) -> str:
    return str(
        PythonTag.parse(text) if text.startswith(("cp", "py")) else PythonTag.of_version(text)
    )


def _platform(text: str) -> str:
    return str(Platform.parse(text))


def _only(text: str, grids: tuple[PackageGrid, ...], cells: tuple[GridCell, ...]) -> GridCell:
    """Return the cell that a cell's or job's identifier names."""
    identifier = JobId.parse(text).cell
    for cell in cells:
        if cell.identifier == identifier:
            return cell
    grid = next((item for item in grids if item.recipe.package == identifier.package), None)
    if grid is None:
        what, names = "package", [item.recipe.package for item in grids]
        raise _unknown(what, identifier.package, names)
    if grid.version != identifier.version:
        message = f"{text} is of version {identifier.version}; the farm builds {grid.version}"
        raise BadInputError(message)
    decision = _decision_of(identifier, grid)
    if decision is None:
        message = f"{text} is outside the grid"
        raise BadInputError(
            message, hint=f"`wheelfarm grid {identifier.package} --explain` shows every cell"
        )
    message = f"{text} is no cell of the grid: {decision.reason}"
    raise BadInputError(message)


def _decision_of(identifier: CellId, grid: PackageGrid) -> GridDecision | None:
    for decision in grid.decisions:
        point = decision.point
        if (
            point.accelerator == identifier.accelerator
            and point.minor == identifier.torch
            and point.platform == identifier.platform
            and point.python == identifier.python
        ):
            return decision
    return None
