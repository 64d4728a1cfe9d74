"""A plan's filters: each is checked against what exists, so that a typo never plans nothing."""

import difflib
import re
from collections.abc import Callable, Iterable

from wheelfarm.errors import BadInputError
from wheelfarm.grid.model import GridCell, GridDecision, PackageGrid, Point
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.cell import CellId, JobId, cell_name
from wheelfarm.model.platform import Platform
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor
from wheelfarm.plan.model import Filters
from wheelfarm.values import replace

#: One filter on points: what it is called, the words given, a point's word, a word's spelling.
_Dimension = tuple[str, tuple[str, ...], Callable[[Point], str], Callable[[str], str]]

_SHOWN = 20


def narrowed(
    grids: tuple[PackageGrid, ...], filters: Filters
) -> tuple[tuple[GridCell, ...], tuple[PackageGrid, ...]]:
    """Return the cells that pass every filter, and the grids with the decisions that do.

    A cell passes where one of the points that it serves does. Raises BadInputError, with the known
    values, for a filter that matches nothing, and where all together leave no cell.
    """
    if filters.packages:
        known = [grid.recipe.package for grid in grids]
        names = _chosen("package", filters.packages, known, cell_name)
        grids = tuple(grid for grid in grids if grid.recipe.package in names)
    if filters.only:
        cells = tuple(_only(text, grids) for text in dict.fromkeys(filters.only))
        return cells, tuple(_without_others(grid, cells) for grid in grids)
    rules = _point_rules(grids, filters)
    if not rules:
        return tuple(cell for grid in grids for cell in grid.cells), grids

    def passes(point: Point) -> bool:
        return all(rule(point) for rule in rules)

    found = tuple(cell for grid in grids for cell in grid.cells if any(map(passes, cell.serves)))
    if not found:
        message = "each filter matches something, but no cell matches all of them"
        raise BadInputError(message, hint="`wheelfarm grid PACKAGE --explain` shows every cell")
    return found, tuple(
        replace(grid, decisions=tuple(item for item in grid.decisions if passes(item.point)))
        for grid in grids
    )


def _point_rules(grids: tuple[PackageGrid, ...], filters: Filters) -> list[Callable[[Point], bool]]:
    dimensions: tuple[_Dimension, ...] = (
        ("CUDA", filters.cudas, lambda point: str(point.accelerator), _cuda),
        ("torch", filters.torches, lambda point: str(point.minor), str),
        ("Python", filters.pythons, lambda point: str(point.python), _python),
        ("platform", filters.platforms, lambda point: str(point.platform), _platform),
    )
    rules: list[Callable[[Point], bool]] = []
    for what, given, word_of, spelling in dimensions:
        if given:
            known = {
                word_of(point) for grid in grids for cell in grid.cells for point in cell.serves
            }
            chosen = _chosen(what, given, known, spelling)
            rules.append(_rule(chosen, word_of))
    return rules


def _rule(chosen: frozenset[str], word_of: Callable[[Point], str]) -> Callable[[Point], bool]:
    return lambda point: word_of(point) in chosen


def _chosen(
    what: str, given: Iterable[str], known: Iterable[str], spelling: Callable[[str], str]
) -> frozenset[str]:
    values = sorted(set(known), key=_natural)
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


def _natural(text: str) -> list[tuple[int, str]]:
    """Return a key that sorts 2.9 before 2.10."""
    parts = re.split(r"(\d+)", text)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


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
    known = PythonTag.parse if text.startswith("cp") else PythonTag.of_version
    return str(known(text))


def _platform(text: str) -> str:
    return str(Platform.parse(text))


def _without_others(grid: PackageGrid, cells: tuple[GridCell, ...]) -> PackageGrid:
    chosen = {cell.identifier for cell in cells}
    return replace(grid, decisions=tuple(item for item in grid.decisions if item.cell in chosen))


def _only(text: str, grids: tuple[PackageGrid, ...]) -> GridCell:
    """Return the cell that a cell's or job's identifier names."""
    identifier = JobId.parse(text).cell
    grid = next((item for item in grids if item.recipe.package == identifier.package), None)
    if grid is None:
        what, names = "package", [item.recipe.package for item in grids]
        raise _unknown(what, identifier.package, names)
    for cell in grid.cells:
        if cell.identifier == identifier:
            return cell
    if grid.version != identifier.version:
        message = f"{text} is of version {identifier.version}; the farm builds {grid.version}"
        raise BadInputError(message)
    decision = _decision_of(identifier, grid)
    hint = f"`wheelfarm grid {identifier.package} --explain` shows every cell"
    if decision is None:
        message = f"{text} is outside the grid"
        raise BadInputError(message, hint=hint)
    message = f"{text} is no cell of the grid: {decision.reason}"
    raise BadInputError(message, hint=hint)


def _decision_of(identifier: CellId, grid: PackageGrid) -> GridDecision | None:
    for decision in grid.decisions:
        point = decision.point
        if point.is_built_as(identifier) and point.python == identifier.python:
            return decision
    return None
