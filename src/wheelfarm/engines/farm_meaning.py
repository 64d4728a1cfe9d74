"""A farm comes in, the hash of what its files mean goes out; how they are written changes nothing.

Comments, the order of keys, quotes, a default that is spelled out: all of that may change without
making a plan stale. What a recipe's scripts may read counts byte for byte.
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.version import Version

from wheelfarm import files
from wheelfarm.model.arch import ArchList
from wheelfarm.model.platform import Platform
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor
from wheelfarm.reading import read_json
from wheelfarm.recipes.load import RECIPE_FILE, RECIPES_FOLDER
from wheelfarm.recipes.lock import FarmLock, LockedCommit, load_lock
from wheelfarm.recipes.model import Farm, PathSource, Recipe

#: What Python, editors and build tools leave beside sources; it decides nothing.
_IGNORED = frozenset((".git", "__pycache__", ".wheelfarm", "build", ".pytest_cache"))

#: Values whose text says all of them.
_WORDS = (ArchList, Minor, Platform, PythonTag, Version)


def recipe_digest(farm: Farm) -> str:
    """Return the hash of all that the farm's files mean: policy, recipes, patches, lock, facts.

    A plan carries it; jobs are refused where the files beside them mean something else.
    """
    meaning = {
        "policy": _plain(farm.policy, farm.root),
        "recipes": {name: _recipe(recipe) for name, recipe in farm.recipes.items()},
        "lock": _lock(farm, load_lock(farm)),
        "upstream": read_json(farm.root / farm.policy.upstream) if farm.policy.upstream else None,
        "shared": _hashes(farm.root / RECIPES_FOLDER, _shared_files(farm)),
    }
    text = json.dumps(meaning, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def files_below(folder: Path) -> list[Path]:
    """Return the files below a folder, sorted, without what tools leave there."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not _IGNORED & set(path.relative_to(folder).parts)
    )


def _recipe(recipe: Recipe) -> dict[str, Any]:
    beside: list[Path] = list(recipe.patches)
    if _runs_scripts(recipe):
        own = recipe.folder / RECIPE_FILE
        beside = [path for path in files_below(recipe.folder) if path != own]
    return {"says": _plain(recipe, recipe.folder), "files": _hashes(recipe.folder, beside)}


def _runs_scripts(recipe: Recipe) -> bool:
    """Return whether a recipe runs something that may read whatever lies beside it."""
    if isinstance(recipe.source, PathSource) or recipe.pre_build_script:
        return True
    return recipe.patch_script is not None or recipe.verify.smoke_test is not None


def _shared_files(farm: Farm) -> list[Path]:
    """Return what lies in folders of no recipe, where a recipe's script may read it."""
    if not any(_runs_scripts(recipe) for recipe in farm.recipes.values()):
        return []
    folder = farm.root / RECIPES_FOLDER
    own = {recipe.folder.name for recipe in farm.recipes.values()}
    return [path for path in files_below(folder) if path.relative_to(folder).parts[0] not in own]


def _hashes(base: Path, paths: list[Path]) -> dict[str, str]:
    return {_place(path, base): files.sha256(path) for path in paths}


def _lock(farm: Farm, lock: FarmLock) -> dict[str, Any]:
    """Return what the lock fixes of the farm's packages: not where it was found, nor why."""
    return {
        name: [
            entry.spec,
            entry.source.identity,
            isinstance(entry.source, LockedCommit) and entry.source.submodules,
            None if entry.version is None else str(entry.version),
        ]
        for name, entry in lock.entries.items()
        if name in farm.recipes
    }


def _plain(value: Any, base: Path) -> Any:
    """Return a value as JSON has it; what a default says already is left out."""
    plain: Any = value
    if isinstance(value, PathSource):
        plain = {"PathSource": value.written}
    elif isinstance(value, _WORDS):
        plain = str(value)
    elif isinstance(value, Path):
        plain = _place(value, base)
    elif isinstance(value, Mapping):
        plain = {_key(key): _plain(item, base) for key, item in value.items()}
    elif isinstance(value, tuple):
        plain = [_plain(item, base) for item in value]
    elif dataclasses.is_dataclass(value):
        plain = {type(value).__name__: dict(_fields(value, base))}
    return plain


def _key(key: Any) -> str:
    return "/".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _fields(value: Any, base: Path) -> Iterator[tuple[str, Any]]:
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if item != default:
            yield field.name, _plain(item, base)


def _place(path: Path, base: Path) -> str:
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else str(path)
