"""What is wrong with recipes once the grid is known: architectures, rows, siblings."""

from collections.abc import Iterator, Mapping

from wheelfarm.errors import BadInputError
from wheelfarm.facts.manylinux import require_tag
from wheelfarm.grid.model import PackageGrid
from wheelfarm.model.versions import Minor
from wheelfarm.recipes.lint import Finding
from wheelfarm.recipes.load import siblings
from wheelfarm.recipes.model import FarmPolicy

#: Refusals that a maintainer did not mean: a cell is asked for and cannot be built.
_FAULTS = {
    "architectures": "architectures",
    "not published": "build-matrix",
    "CUDA line": "build-matrix",
}


def lint_grids(grids: tuple[PackageGrid, ...], policy: FarmPolicy) -> tuple[Finding, ...]:
    """Return what the grids show."""
    by_package = {grid.recipe.package: grid for grid in grids}
    findings = list(_floor("", policy.floor))
    for grid in grids:
        findings += _floor(grid.recipe.package, grid.recipe.floor)
        findings += _refusals(grid)
        findings += _platforms(grid, policy)
        findings += _siblings(grid, by_package)
        if not grid.cells:
            message = "no cell is left: nothing would ever be built"
            findings.append(Finding(package=grid.recipe.package, rule="empty", message=message))
    return tuple(findings)


def _floor(package: str, floor: Minor | None) -> Iterator[Finding]:
    """Find a floor of no known system: each build would be refused."""
    try:
        if floor is not None:
            require_tag(floor)
    except BadInputError as error:
        yield Finding(package=package, rule="floor", message=error.what)


def _refusals(grid: PackageGrid) -> Iterator[Finding]:
    seen: dict[tuple[str, str], str] = {}
    for item in grid.refused:
        if item.rule in _FAULTS:
            seen.setdefault((_FAULTS[item.rule], item.reason), str(item.point))
    for (rule, reason), where in seen.items():
        message = f"{reason} (first at {where})"
        yield Finding(package=grid.recipe.package, rule=rule, message=message)


def _platforms(grid: PackageGrid, policy: FarmPolicy) -> Iterator[Finding]:
    matrix = grid.recipe.build_matrix
    for platform in () if matrix is None else matrix.platforms:
        if platform not in policy.platforms:
            message = f"build_matrix names {platform}, which the farm does not build"
            yield Finding(package=grid.recipe.package, rule="build-matrix", message=message)


def _siblings(grid: PackageGrid, by_package: Mapping[str, PackageGrid]) -> Iterator[Finding]:
    """Find requirements on a sibling's wheel of the same local tag that is never built."""
    recipe = grid.recipe
    if not any("{LOCAL}" in text for text in recipe.requires_dist or ()):
        return
    for name in siblings(recipe):
        other = by_package.get(name)
        if other is None:
            continue
        built = {
            (cell.identifier.local_tag, cell.identifier.platform): cell for cell in other.cells
        }
        for cell in grid.cells:
            tag = cell.identifier.local_tag
            if (tag, cell.identifier.platform) not in built:
                message = (
                    f"requires {name} with the local tag {tag} on {cell.identifier.platform}, "
                    f"which {name} ({other.recipe.torch_axis}) is not built with"
                )
                yield Finding(package=recipe.package, rule="sibling", message=message)
                break
