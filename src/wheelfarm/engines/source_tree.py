"""A recipe's source as it is built: fetched, unpacked and patched in a folder of its own."""

from pathlib import Path

from wheelfarm.build.patches import apply_patches, run_patch_script
from wheelfarm.build.source import (
    ArchiveSource,
    FolderSource,
    GitSource,
    LockedSource,
    fetch_source,
)
from wheelfarm.recipes.lock import LockedArchive, LockedCommit, LockedFolder
from wheelfarm.recipes.lock import LockedSource as LockLine
from wheelfarm.recipes.model import Recipe


def buildable(source: LockLine) -> LockedSource:
    """Return a line of the lock as the build's source step takes it."""
    match source:
        case LockedArchive(url=url, file_name=name, sha256=digest):
            return ArchiveSource(url=url, file_name=name, sha256=digest)
        case LockedCommit(url=url, commit=commit, submodules=submodules):
            return GitSource(url=url, commit=commit, submodules=submodules)
        case LockedFolder(path=path):
            return FolderSource(folder=Path(path))


def fetch_tree(source: LockLine, folder: Path) -> Path:
    """Return the unpacked tree of a source, below ``folder`` (which must be empty)."""
    target = folder / "source"
    target.mkdir(parents=True)
    return fetch_source(
        buildable(source), target, downloads=folder / "downloads", log=folder / "source.log"
    )


def patch_tree(recipe: Recipe, tree: Path, *, log: Path) -> None:
    """Apply a recipe's patches to its tree, as the build does.

    Raises PatchError where one does not apply.
    """
    if recipe.patches:
        apply_patches(tree, recipe.patches, log=log)
    if recipe.patch_script is not None:
        run_patch_script(tree, recipe.patch_script, log=log)
