"""A recipe and its source come in; whether the stated torch axis fits the tree goes out.

The tree is surveyed before and after the recipe's patches, so that a verdict which the patches
made is told from one of upstream's.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wheelfarm.build import source as build_source
from wheelfarm.build.patches import apply_patches, run_patch_script
from wheelfarm.errors import WheelfarmError
from wheelfarm.http import Client
from wheelfarm.model.axis import TorchAxis
from wheelfarm.recipes.axis_check import Fit, axis_fit
from wheelfarm.recipes.lock import FarmLock, LockedArchive, LockedCommit, LockedFolder, LockedSource
from wheelfarm.recipes.model import Recipe
from wheelfarm.recipes.resolve_source import resolve_source
from wheelfarm.survey import SurveyResult, survey_tree

Status = Fit | Literal["could not look"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """What a recipe states, what its source shows before and after the patches, and what follows.

    ``by_patches`` says that the patches changed the verdict. ``before`` and ``after`` are None
    where the source could not be had.
    """

    package: str
    stated: TorchAxis
    is_stated: bool
    before: SurveyResult | None
    after: SurveyResult | None
    status: Status
    sentence: str

    @property
    def by_patches(self) -> bool:
        """Whether the verdict is the patches' doing."""
        if self.before is None or self.after is None:
            return False
        return self.before.torch_axis != self.after.torch_axis


def compare_recipe(
    recipe: Recipe, lock: FarmLock, folder: Path, *, client: Client, index: str
) -> Comparison:
    """Return how a recipe's torch axis stands to its source, unpacked in ``folder``.

    The source is the locked one, or what the recipe names now where it is not locked. A source
    that cannot be had, or a patch that does not apply, is "could not look" with the reason.
    """
    log = folder / "survey.log"
    try:
        tree = build_source.fetch_source(
            _source(recipe, lock, client, index),
            folder / "source",
            downloads=folder / "downloads",
            log=log,
        )
        before = survey_tree(tree, subdir=recipe.build_subdir)
        apply_patches(tree, recipe.patches, log=log)
        if recipe.patch_script is not None:
            run_patch_script(tree, recipe.patch_script, log=log)
        after = survey_tree(tree, subdir=recipe.build_subdir)
    except WheelfarmError as error:
        return _compared(recipe, None, None, "could not look", error.what.splitlines()[0])
    status, sentence = judge(recipe.torch_axis, after)
    if before.torch_axis != after.torch_axis:
        sentence += (
            f"; without the recipe's patches the tree is {before.torch_axis}:"
            " the verdict is the patches' doing"
        )
    return _compared(recipe, before, after, status, sentence)


def _compared(
    recipe: Recipe,
    before: SurveyResult | None,
    after: SurveyResult | None,
    status: Status,
    sentence: str,
) -> Comparison:
    return Comparison(
        package=recipe.package,
        stated=recipe.torch_axis,
        is_stated=recipe.torch_axis_stated,
        before=before,
        after=after,
        status=status,
        sentence=sentence,
    )


def judge(stated: TorchAxis, found: SurveyResult) -> tuple[Status, str]:
    """Return how a stated axis stands to a survey, and one sentence about it."""
    fit = axis_fit(stated, found.recipe_axis)
    if fit == "undecided":
        what = f"the source is {found.torch_axis}"
        if found.condition:
            what += f" (if {found.condition})"
        return fit, what
    if fit == "agrees":
        return fit, f"the source is {found.torch_axis}"
    if fit == "wasteful":
        return fit, f"the source is {found.torch_axis}: fewer wheels would do"
    return fit, f"the source is {found.torch_axis}, the recipe says {stated}"


def _source(
    recipe: Recipe, lock: FarmLock, client: Client, index: str
) -> build_source.LockedSource:
    entry = lock.entries.get(recipe.package)
    locked: LockedSource
    if entry is not None and entry.spec == str(recipe.source):
        locked = lock.source_of(recipe)
    else:
        fresh = resolve_source(recipe, client=client, index=index)
        locked = FarmLock(entries={recipe.package: fresh}).source_of(recipe)
    match locked:
        case LockedArchive(url=url, file_name=file_name, sha256=sha256):
            return build_source.ArchiveSource(url=url, file_name=file_name, sha256=sha256)
        case LockedCommit(url=url, commit=commit, submodules=submodules):
            return build_source.GitSource(url=url, commit=commit, submodules=submodules)
        case LockedFolder(path=path):
            return build_source.FolderSource(folder=Path(path))
