"""Recipes, policy and upstream facts in; every package's cells and decisions out. Pure."""

from collections.abc import Iterable, Mapping

from packaging.version import Version

from wheelfarm.grid.collapse import collapse
from wheelfarm.grid.model import GridDecision, PackageGrid
from wheelfarm.grid.points import PointRules, points_of
from wheelfarm.grid.rows import Row, rows_of
from wheelfarm.recipes.model import BuildMatrix, FarmPolicy, Recipe
from wheelfarm.upstream.model import UpstreamFacts

NO_VERSION = (
    "the package's version is not known: state it in the recipe, or run `wheelfarm lock`, "
    "which reads it from the source"
)


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
    if version is None:
        refused += [GridDecision(item.point, "refused", NO_VERSION) for item in accepted]
        return PackageGrid(recipe=recipe, version=None, cells=(), decisions=tuple(refused))
    cells, decisions = collapse(recipe, version, accepted)
    return PackageGrid(
        recipe=recipe,
        version=version,
        cells=tuple(cells),
        decisions=(*decisions, *refused),
    )
