"""Which points of the grid a package may have: each accepted, or refused with the first reason."""

from collections.abc import Iterator
from dataclasses import dataclass

from packaging.version import Version

from wheelfarm.grid.archs import check_archs, recipe_archs
from wheelfarm.grid.model import GridDecision, Point, Refusal
from wheelfarm.grid.rows import Row
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.arch import ArchList
from wheelfarm.model.platform import Platform
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor
from wheelfarm.recipes.model import BuildMatrix, Combination, FarmPolicy, Recipe
from wheelfarm.upstream.model import UpstreamFacts

_MATRIX = "left out by build_matrix"


@dataclass(frozen=True, slots=True)
class Accepted:
    """A point that a wheel can be built for, its row and its architectures."""

    point: Point
    row: Row
    archs: ArchList


@dataclass(frozen=True, kw_only=True, slots=True)
class PointRules:
    """The rules of one package: small functions that return a reason, or nothing."""

    recipe: Recipe
    policy: FarmPolicy
    facts: UpstreamFacts

    matrix: BuildMatrix
    """The recipe's build matrix; an empty one narrows nothing."""

    def combination(self, row: Row) -> Combination | None:
        """Return the build matrix's row for a row of the grid."""
        for entry in self.matrix.combinations:
            if entry.cuda == row.cuda and entry.torch == row.minor:
                return entry
        return None

    def row_refusal(self, row: Row) -> Refusal | None:
        """Return why a whole row is refused."""
        floors = (("recipe", self.recipe.min_pytorch), ("farm", self.policy.min_pytorch))
        for whose, floor in floors:
            if floor is not None and row.minor < floor:
                return Refusal("below min_pytorch", f"the {whose}'s min_pytorch is {floor}")
        if self.matrix.combinations and self.combination(row) is None:
            return Refusal(
                _MATRIX, f"the recipe's build_matrix has no CUDA {row.cuda} with torch {row.minor}"
            )
        floor = self.recipe.from_torch
        if floor is not None and row.minor < floor:
            reason = f"the package needs the stable ABI of torch {floor}"
            return Refusal("below the stable ABI's first torch", reason)
        return None

    def platform_refusal(self, platform: Platform) -> Refusal | None:
        """Return why a platform is refused."""
        if self.matrix.platforms and platform not in self.matrix.platforms:
            return Refusal(_MATRIX, f"the recipe's build_matrix leaves out {platform}")
        return None

    def python_refusal(self, python: PythonTag, entry: Combination | None) -> Refusal | None:
        """Return why a Python is refused in a row."""
        if python.version is not None and python.version < self.policy.python_min:
            reason = f"the farm's python_min is {self.policy.python_min}"
            return Refusal("below python_min", reason)
        if python.free_threaded and not self.policy.free_threaded:
            return Refusal("free-threaded", "the farm builds no free-threaded Pythons")
        for listed in (self.matrix.python_versions, () if entry is None else entry.pythons):
            if listed and python not in listed:
                reason = f"the recipe's build_matrix leaves out Python {python.dotted}"
                return Refusal(_MATRIX, reason)
        floor = self.recipe.from_python
        if floor is not None and python.version is not None and python.version < floor:
            return Refusal("below the abi3 floor", f"the package's abi3 floor is Python {floor}")
        return None

    def archs(self, row: Row, platform: Platform) -> tuple[ArchList | None, Refusal | None]:
        """Return the architectures of a row on a platform, or why it has none that can be built."""
        common = row.policy_archs.get(platform)
        if common is None:
            reason = f"the farm builds no CUDA {row.cuda} on {platform} (no architectures)"
            return None, Refusal("no architectures in the policy", reason)
        axis = self.recipe.torch_axis
        own = recipe_archs(self.recipe, row.cuda, row.minor, platform)
        if own is None:
            own, why = common.archs, common.why_not_free if axis == "free" else common.why_not
        else:
            why = check_archs(own, self.facts, row.cuda, row.minor, axis)
        return own, Refusal("architectures", why) if why else None


def points_of(
    rules: PointRules, rows: tuple[Row, ...]
) -> "tuple[list[Accepted], list[GridDecision]]":
    """Return a package's accepted points, and the decisions of all refused ones."""
    accepted: list[Accepted] = []
    refused: list[GridDecision] = []
    for row in rows:
        entry = rules.combination(row)
        named = None if entry is None else entry.release
        chosen = row if named is None else row.with_release(named)
        refusal = rules.row_refusal(row)
        if chosen is None:
            reason = f"PyTorch published no torch {named} for {row.accelerator}"
            refusal = refusal or Refusal("not published", reason)
            chosen = row
        for found in _row_points(rules, chosen, entry, refusal):
            if isinstance(found, Accepted):
                accepted.append(found)
            else:
                refused.append(found)
    refused += _unknown_rows(rules, rows)
    return accepted, refused


def _row_points(
    rules: PointRules, row: Row, entry: Combination | None, of_row: Refusal | None
) -> "Iterator[Accepted | GridDecision]":
    of_pythons = [rules.python_refusal(python, entry) for python in row.pythons]
    for platform in rules.policy.platforms:
        of_platform = of_row or rules.platform_refusal(platform)
        archs, of_archs = (None, None) if of_platform else rules.archs(row, platform)
        for offer, of_python in zip(row.offers[platform], of_pythons, strict=True):
            # A phantom is said before an architecture: nothing that a maintainer edits helps.
            refusal = of_platform or of_python or offer.phantom or of_archs
            if refusal is not None:
                yield GridDecision(offer.point, "refused", refusal.reason, refusal.rule)
            elif archs is not None:
                yield Accepted(offer.point, row, archs)


def _unknown_rows(rules: PointRules, rows: tuple[Row, ...]) -> list[GridDecision]:
    """Return decisions of the build matrix's rows that the grid does not have at all."""
    known = {(row.cuda, row.minor) for row in rows}
    found = []
    for entry in rules.matrix.combinations:
        if (entry.cuda, entry.torch) in known:
            continue
        if entry.cuda not in rules.policy.supported_cudas:
            refusal = Refusal("CUDA line", f"the farm does not build CUDA {entry.cuda}")
        else:
            reason = f"PyTorch published no torch {entry.torch} for CUDA {entry.cuda}"
            refusal = Refusal("not published", reason)
        found += [
            GridDecision(point, "refused", refusal.reason, refusal.rule)
            for point in _named_points(rules, entry)
        ]
    return found


def _named_points(rules: PointRules, entry: Combination) -> Iterator[Point]:
    torch = entry.release or Version(str(entry.torch))
    lowest = PythonTag("exact", Minor(rules.policy.python_min.major, rules.policy.python_min.minor))
    pythons = entry.pythons or rules.matrix.python_versions or (lowest,)
    for platform in rules.matrix.platforms or rules.policy.platforms:
        for python in pythons:
            yield Point(Accelerator.cuda(entry.cuda), torch, python, platform)
