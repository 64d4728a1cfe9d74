"""A farm's folder in, its policy and recipes out; every fault of every file at once.

A farm is a folder with ``farm.yml`` (the policy), ``recipes/<package>/recipe.yml`` (one folder per
package, its patches beside the recipe) and ``farm.lock``.
"""

import os
import re
from pathlib import Path

from packaging.utils import canonicalize_name

from wheelfarm.errors import BadInputError, Fault, FaultsError
from wheelfarm.model.cell import cell_name
from wheelfarm.recipes.document import read_document, without_echoes
from wheelfarm.recipes.model import Defaults, Farm, FarmPolicy, Recipe
from wheelfarm.recipes.policy import read_policy
from wheelfarm.recipes.recipe import read_recipe
from wheelfarm.wording import counted

POLICY_FILE = "farm.yml"
RECIPES_FOLDER = "recipes"
RECIPE_FILE = "recipe.yml"
_YAML = ("*.yml", "*.yaml")

_SIBLING = re.compile(r"\{VER:([A-Za-z0-9._-]+)\}", re.ASCII)


def load_farm(folder: Path) -> Farm:
    """Read a farm.

    Raises BadInputError where there is none, FaultsError with all faults of all files.
    """
    path = folder / POLICY_FILE
    if not path.is_file():
        message = f"{folder} is no farm: there is no {POLICY_FILE}"
        hint = "make one with `wheelfarm init NAME`, or name the farm's folder with --farm"
        raise BadInputError(message, hint=hint)
    faults: list[Fault] = []
    policy = _load_policy(path, faults)
    recipes: dict[str, Recipe] = {}
    for file in recipe_files(folder):
        context = file.relative_to(folder).as_posix()
        recipe = _load_recipe(file, context, policy.defaults, faults)
        if recipe is not None:
            _add(recipes, recipe, context, faults)
    _check_siblings(recipes, folder, faults)
    faults += _misplaced(folder)
    if faults := without_echoes(faults):
        count = len(faults)
        title = f"the farm {folder} has {counted(count, 'fault')}"
        raise FaultsError(title, faults)
    return Farm(root=folder.resolve(), policy=policy, recipes=recipes)


def load_recipe(path: Path, defaults: Defaults | None = None) -> Recipe:
    """Read one recipe's file by itself.

    Raises BadInputError where it is absent, FaultsError with all its faults.
    """
    faults: list[Fault] = []
    recipe = _load_recipe(path, str(path), defaults or Defaults(), faults)
    faults = without_echoes(faults)
    if faults or recipe is None:
        count = len(faults)
        title = f"the recipe {path} has {counted(count, 'fault')}"
        raise FaultsError(title, faults)
    return recipe


def recipe_path(folder: Path, package: str) -> Path:
    """Return where a farm keeps a package's recipe."""
    return folder / RECIPES_FOLDER / cell_name(package) / RECIPE_FILE


def recipe_files(folder: Path) -> tuple[Path, ...]:
    """Return the paths of a farm's recipes, sorted; also one that is a link to nothing."""
    found = (path / RECIPE_FILE for path in (folder / RECIPES_FOLDER).glob("*"))
    return tuple(sorted(path for path in found if os.path.lexists(path)))


def _misplaced(folder: Path) -> list[Fault]:
    """Return what looks like a recipe and would not be read: no package is lost to a file's name.

    A folder without any YAML file is no recipe, and may hold what recipes share.
    """
    root = folder / RECIPES_FOLDER
    faults = []
    for path in sorted(
        path for kind in _YAML for path in (*root.glob(kind), *root.glob(f"*/{kind}"))
    ):
        if path.parent == root or not os.path.lexists(path.parent / RECIPE_FILE):
            where = path.relative_to(folder).as_posix()
            message = f"a recipe is {RECIPES_FOLDER}/<package>/{RECIPE_FILE}; this is not read"
            faults.append(Fault(where, message))
    return faults


def _load_policy(path: Path, faults: list[Fault]) -> FarmPolicy:
    return read_policy(read_document(path, path.name, faults).reader)


def _load_recipe(
    path: Path, context: str, defaults: Defaults, faults: list[Fault]
) -> Recipe | None:
    document = read_document(path, context, faults)
    return read_recipe(document.reader, path.parent, defaults)


def _add(recipes: dict[str, Recipe], recipe: Recipe, context: str, faults: list[Fault]) -> None:
    folder = recipe.folder.name
    if canonicalize_name(folder) != canonicalize_name(recipe.name):
        message = f"the recipe is of {recipe.name!r}, so its folder must be {recipe.package!r}"
        faults.append(Fault(f"{context}: name", message))
    if recipe.package in recipes:
        other = recipes[recipe.package].folder.name
        message = f"the package {recipe.package!r} has a recipe in the folder {other!r} too"
        faults.append(Fault(f"{context}: name", message))
        return
    recipes[recipe.package] = recipe


def siblings(recipe: Recipe) -> tuple[str, ...]:
    """Return the packages whose version a recipe's requirements name (``{VER:package}``)."""
    found = (name for text in recipe.requires_dist or () for name in _SIBLING.findall(text))
    return tuple(dict.fromkeys(cell_name(name) for name in found))


def _check_siblings(recipes: dict[str, Recipe], folder: Path, faults: list[Fault]) -> None:
    for recipe in recipes.values():
        context = (recipe.folder / RECIPE_FILE).relative_to(folder).as_posix()
        place = f"{context}: requires_dist"
        for name in siblings(recipe):
            sibling = recipes.get(name)
            if sibling is None and os.path.lexists(recipe_path(folder, name)):
                continue  # It is there, with faults of its own.
            if sibling is None:
                faults.append(Fault(place, f"{{VER:{name}}} names no recipe of this farm"))
            elif sibling.version is None:
                message = f"{{VER:{name}}} needs a version, and the recipe {name!r} states none"
                faults.append(Fault(place, message))
        if cycle := _cycle(recipe.package, recipes):
            faults.append(Fault(place, f"the packages need each other: {' -> '.join(cycle)}"))


def _cycle(start: str, recipes: dict[str, Recipe]) -> tuple[str, ...]:
    """Return the way from a package over its siblings back to itself; empty where there is none."""
    waiting: list[tuple[str, ...]] = [(start,)]
    seen: set[str] = set()
    while waiting:
        way = waiting.pop()
        recipe = recipes.get(way[-1])
        for name in () if recipe is None else siblings(recipe):
            if name == start:
                return (*way, name)
            if name not in seen:
                seen.add(name)
                waiting.append((*way, name))
    return ()
