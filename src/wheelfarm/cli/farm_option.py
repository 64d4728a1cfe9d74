"""The ``--farm DIR`` option that the farm's verbs share."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wheelfarm.grid.model import PackageGrid
    from wheelfarm.recipes.model import Farm, Recipe
    from wheelfarm.upstream.model import UpstreamFacts


def add_farm_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--farm``, by default the current folder."""
    parser.add_argument(
        "--farm", type=Path, default=Path(), metavar="DIR", help="the farm's folder (default: .)"
    )


def farm_of(arguments: argparse.Namespace) -> "Farm":
    """Return the farm that the arguments name."""
    from wheelfarm.recipes.load import load_farm

    return load_farm(arguments.farm)


def stocked_farm_of(arguments: argparse.Namespace) -> "Farm":
    """Return the farm that the arguments name; BadInputError where it has no recipe at all.

    A folder whose recipes are lost, or lie elsewhere, must not read as a farm with nothing to do.
    """
    from wheelfarm.errors import BadInputError

    farm = farm_of(arguments)
    if not farm.recipes:
        message = f"the farm {arguments.farm} has no recipe"
        raise BadInputError(
            message,
            cause="recipes are read from recipes/<package>/recipe.yml",
            hint="make one with `wheelfarm init NAME`, or name another folder with --farm",
        )
    return farm


def chosen_recipes(farm: "Farm", names: list[str]) -> "tuple[Recipe, ...]":
    """Return the recipes of some packages, of all where none is named.

    Raises BadInputError, with the known names, for one that the farm does not have.
    """
    import difflib

    from wheelfarm.errors import BadInputError
    from wheelfarm.model.cell import cell_name

    if not names:
        return tuple(farm.recipes.values())
    chosen: dict[str, Recipe] = {}
    for name in names:
        recipe = farm.recipes.get(cell_name(name))
        if recipe is None:
            near = difflib.get_close_matches(cell_name(name), farm.recipes, n=1)
            known = ", ".join(farm.recipes)
            message = f"the farm has no package {name!r}; it has {known}"
            raise BadInputError(message, hint=f"did you mean {near[0]!r}?" if near else "")
        chosen[recipe.package] = recipe
    return tuple(chosen.values())


def facts_of(farm: "Farm") -> "UpstreamFacts":
    """Return the upstream facts that a farm plans with: its own file's, else wheelfarm's."""
    from wheelfarm.upstream.facts import committed_facts, load_facts

    if farm.policy.upstream:
        return load_facts(farm.root / farm.policy.upstream)
    return committed_facts()


def grids_of(farm: "Farm", recipes: "tuple[Recipe, ...]") -> "tuple[PackageGrid, ...]":
    """Return the grid of some of a farm's recipes; versions come from the lock where need be."""
    from wheelfarm.grid.build import make_grid
    from wheelfarm.recipes.lock import load_lock

    versions = {}
    if any(recipe.version is None for recipe in recipes):
        lock = load_lock(farm)
        found = {recipe.package: lock.version_of(recipe) for recipe in recipes}
        versions = {name: version for name, version in found.items() if version is not None}
    return make_grid(recipes, farm.policy, facts_of(farm), versions)
