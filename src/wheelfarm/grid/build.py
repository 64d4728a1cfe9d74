"""Recipes, policy and upstream facts in; every package's cells and decisions out. Pure."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Literal

from packaging.version import Version

from wheelfarm.grid.collapse import collapse
from wheelfarm.grid.model import UNKNOWN_VERSION, PackageGrid
from wheelfarm.grid.points import PointRules, points_of
from wheelfarm.grid.rows import Row, rows_of
from wheelfarm.recipes.model import BuildMatrix, FarmPolicy, Recipe
from wheelfarm.upstream.model import UpstreamFacts
from wheelfarm.values import replace


def make_grid(
    recipes: Iterable[Recipe],
    policy: FarmPolicy,
    facts: UpstreamFacts,
    versions: Mapping[str, Version] | None = None,
) -> tuple[PackageGrid, ...]:
    """Return the grid of every package.

    ``versions`` are versions, by package, that only a source tells; a recipe's own comes first.
    """
    rows = rows_of(policy, facts)
    known = versions or {}
    return tuple(
        package_grid(recipe, policy, facts, rows, recipe.version or known.get(recipe.package))
        for recipe in recipes
    )


def package_grid(
    recipe: Recipe,
    policy: FarmPolicy,
    facts: UpstreamFacts,
    rows: tuple[Row, ...],
    version: Version | None,
) -> PackageGrid:
    """Return one package's cells, and a decision of every point that the farm could have."""
    matrix = recipe.build_matrix or BuildMatrix()
    rules = PointRules(recipe=recipe, policy=policy, facts=facts, matrix=matrix)
    accepted, refused = points_of(rules, rows)
    cells, decisions = collapse(recipe, version or UNKNOWN_VERSION, accepted)
    return PackageGrid(
        recipe=recipe,
        version=version,
        cells=tuple(cells),
        decisions=(*decisions, *refused),
    )


def rows_against_axis(
    recipe: Recipe, policy: FarmPolicy, facts: UpstreamFacts, rows: tuple[Row, ...]
) -> Literal["same", "more", "differ"]:
    """Return what becomes of the wheels where a build matrix loses its hand-made rows.

    ``same``: nothing changes, as the stated axis says what the rows said for want of a field;
    ``more``: none is lost and others come; ``differ``: some are lost, or the package is linked and
    its rows mean what they say. Wheels are the same where CUDA line, Python and platform are.
    """
    matrix = recipe.build_matrix
    if matrix is None or not matrix.combinations or recipe.torch_axis == "linked":
        return "differ"
    without = replace(recipe, build_matrix=replace(matrix, combinations=()))
    version = Version("0")
    narrow = _wheels(package_grid(recipe, policy, facts, rows, version))
    wide = _wheels(package_grid(without, policy, facts, rows, version))
    if narrow == wide:
        return "same"
    return "more" if narrow < wide else "differ"


def _wheels(grid: PackageGrid) -> set[Hashable]:
    return {
        (cell.identifier.accelerator, cell.identifier.python, cell.identifier.platform)
        for cell in grid.cells
    }
