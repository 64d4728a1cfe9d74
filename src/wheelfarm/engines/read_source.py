"""What a lock records of a source besides its hash: the version it says, and the survey's verdict.

The source is fetched into a folder that goes away; nothing of it is run but the recipe's own,
trusted patch script.
"""

import tempfile
from pathlib import Path

from packaging.version import Version

from wheelfarm.engines.source_tree import fetch_tree, patch_tree
from wheelfarm.recipes.lock import FarmLock, LockedFolder, LockEntry
from wheelfarm.recipes.model import Recipe
from wheelfarm.recipes.patch_digest import patch_digest
from wheelfarm.recipes.source_version import read_source_version
from wheelfarm.survey import SurveyResult, survey_tree
from wheelfarm.values import replace


def read_source(recipe: Recipe, entry: LockEntry, old: LockEntry | None) -> LockEntry:
    """Return a lock's entry with the version and the survey of its source.

    What the old entry says of the same bytes and patches is kept. Raises PatchError where a patch
    does not apply.
    """
    patches = patch_digest(recipe)
    if _same(entry, old, patches) and old is not None:
        return replace(
            entry,
            version=entry.version or old.version,
            survey=old.survey,
            evidence=old.evidence,
            patches=patches,
            says=old.says,
        )
    with tempfile.TemporaryDirectory(prefix="wheelfarm-lock-") as name:
        folder = Path(name)
        lock = FarmLock(entries={recipe.package: entry})
        tree = fetch_tree(lock.source_of(recipe), folder)
        version = entry.version or read_source_version(tree, recipe.build_subdir)
        patch_tree(recipe, tree, log=folder / "patches.log")
        stated = read_source_version(tree, recipe.build_subdir)
        version = version or stated
        result = survey_tree(tree, subdir=recipe.build_subdir)
    return replace(
        entry,
        version=version,
        survey=result.torch_axis,
        evidence=first_evidence(result),
        patches=patches,
        says=None if version is None or stated is None or _agree(version, stated) else stated,
    )


def _agree(one: Version, other: Version) -> bool:
    """Return whether two versions are one, local parts apart: the farm writes its own."""
    return one.public == other.public


def first_evidence(result: SurveyResult) -> str:
    """Return the place that decides a verdict, in one line; "" where there is none."""
    deciding = [item for item in result.evidence if item.shows == result.torch_axis]
    return " ".join(str((deciding or [*result.evidence])[0]).split()) if result.evidence else ""


def _same(entry: LockEntry, old: LockEntry | None, patches: str) -> bool:
    # A folder is the author's own: nothing tells whether it is as it was.
    return (
        old is not None
        and not isinstance(entry.source, LockedFolder)
        and entry.version == (old.version if entry.version else None)
        and bool(old.survey)
        and old.patches == patches
        and old.spec == entry.spec
        and old.source == entry.source
    )
