"""From a farm and a cell's identifier to what is built and what is expected of it."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from wheelfarm.build.request import BuildRequest
from wheelfarm.engines.source_tree import buildable
from wheelfarm.errors import BadInputError
from wheelfarm.facts.manylinux import require_tag
from wheelfarm.grid.build import make_grid
from wheelfarm.grid.model import GridCell, PackageGrid
from wheelfarm.model.cell import CellId
from wheelfarm.recipes.lock import FarmLock, load_lock
from wheelfarm.recipes.model import Farm, Recipe
from wheelfarm.upstream.facts import committed_facts, load_facts
from wheelfarm.upstream.model import UpstreamFacts
from wheelfarm.verify.report import Knob
from wheelfarm.verify.subject import Expected

_NEAREST = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class FarmCell:
    """A cell of a farm: its recipe, its place in the grid, its build and the gate's demands."""

    recipe: Recipe
    grid_cell: GridCell
    request: BuildRequest
    expected: Expected


def farm_facts(farm: Farm) -> UpstreamFacts:
    """Return the upstream facts that a farm plans with: its own file's, or the committed ones."""
    if farm.policy.upstream:
        return load_facts(farm.root / farm.policy.upstream)
    return committed_facts()


def farm_grid(farm: Farm, lock: FarmLock, recipes: tuple[Recipe, ...]) -> tuple[PackageGrid, ...]:
    """Return the grid of some of a farm's recipes."""
    known = ((recipe.package, lock.version_of(recipe)) for recipe in recipes)
    versions = {package: version for package, version in known if version is not None}
    return make_grid(recipes, farm.policy, farm_facts(farm), versions)


def find_farm_cell(farm: Farm, identifier: CellId) -> FarmCell:
    """Return one cell of a farm, ready to build.

    Raises BadInputError for an unknown package, a cell outside the grid (with the reason why it is
    not there), or a source that is not locked.
    """
    recipe = farm.recipes.get(identifier.package)
    if recipe is None:
        near = difflib.get_close_matches(identifier.package, farm.recipes, n=1)
        message = f"the farm has no recipe of {identifier.package}"
        raise BadInputError(
            message,
            hint=f"did you mean {near[0]}?" if near else f"`wheelfarm init {identifier.package}`",
        )
    lock = load_lock(farm)
    (grid,) = farm_grid(farm, lock, (recipe,))
    for cell in grid.cells:
        if cell.identifier == identifier:
            return farm_cell(farm, lock, recipe, cell)
    message = f"the farm's grid has no cell {identifier}"
    cause, hint = _why_not(grid, identifier), _nearest(grid, identifier)
    raise BadInputError(message, cause=cause, hint=hint)


class CellFinder:
    """Finds many cells of one farm: the lock and each package's grid are made once."""

    def __init__(self, farm: Farm) -> None:
        self.farm = farm
        self._lock = load_lock(farm)
        self._cells: dict[str, dict[CellId, GridCell]] = {}

    def find(self, identifier: CellId) -> FarmCell:
        """Return a cell; raises as ``find_farm_cell``."""
        recipe = self.farm.recipes.get(identifier.package)
        cell = None if recipe is None else self._of_package(recipe).get(identifier)
        if recipe is None or cell is None:
            return find_farm_cell(self.farm, identifier)
        return farm_cell(self.farm, self._lock, recipe, cell)

    def _of_package(self, recipe: Recipe) -> dict[CellId, GridCell]:
        if recipe.package not in self._cells:
            (grid,) = farm_grid(self.farm, self._lock, (recipe,))
            self._cells[recipe.package] = {cell.identifier: cell for cell in grid.cells}
        return self._cells[recipe.package]


def farm_cell(farm: Farm, lock: FarmLock, recipe: Recipe, cell: GridCell) -> FarmCell:
    """Return what a grid's cell is built from and what is expected of its wheel."""
    return FarmCell(
        recipe=recipe,
        grid_cell=cell,
        request=_request(farm, lock, recipe, cell),
        expected=expected_of(farm, recipe, cell),
    )


def _request(farm: Farm, lock: FarmLock, recipe: Recipe, cell: GridCell) -> BuildRequest:
    defaults = farm.policy.defaults
    floor = recipe.floor or farm.policy.floor
    if floor is not None:
        require_tag(floor)
    return BuildRequest(
        cell=cell.cell,
        python=cell.python,
        source=buildable(lock.source_of(recipe)),
        archs=cell.archs,
        torch_axis=cell.torch_axis,
        from_torch=recipe.from_torch,
        build_subdir=recipe.build_subdir,
        patches=recipe.patches,
        patch_script=recipe.patch_script,
        pre_build_script=recipe.pre_build_script,
        extra_deps=recipe.extra_deps,
        cuda_components=recipe.extra_cuda_components,
        environment={**target_environment(cell), **recipe.env},
        pure=recipe.pure,
        max_jobs=recipe.max_jobs or defaults.max_jobs,
        nvcc_threads=recipe.nvcc_threads or defaults.nvcc_threads,
        nvcc_flags=recipe.nvcc_flags,
        objects_behind_seat=recipe.objects_behind_seat,
        requirements=recipe.requirements or defaults.requirements,
        requires_dist=own_requirements(farm, lock, recipe, cell.identifier),
        floor=floor,
        libstdcxx=recipe.libstdcxx,
        torch_pinned=cell.torch_pinned,
        siblings=frozenset(name.replace("_", "-") for name in farm.recipes),
    )


def target_environment(cell: GridCell) -> dict[str, str]:
    """Return the variables that hold a stable-ABI build to the torch minor it is valid from.

    The macro is torch's own (torch/headeronly/version.h): major, minor and patch in its top bytes.
    """
    if cell.target is None:
        return {}
    macro = f"TORCH_TARGET_VERSION=0x{cell.target.major:02x}{cell.target.minor:02x}000000000000"
    return {"CFLAGS": f"-D{macro}", "CXXFLAGS": f"-D{macro}", "NVCC_PREPEND_FLAGS": f"-D{macro}"}


def own_requirements(
    farm: Farm, lock: FarmLock, recipe: Recipe, cell: CellId
) -> tuple[str, ...] | None:
    """Return the recipe's own list with its placeholders filled; None where it has none.

    ``{VER:name}`` is a sibling recipe's version, ``{LOCAL}`` the cell's local tag.
    """
    if recipe.requires_dist is None:
        return None
    values = {f"{{VER:{name}}}": _version(lock, other) for name, other in farm.recipes.items()}
    values["{LOCAL}"] = cell.local_tag
    return tuple(_filled(text, values) for text in recipe.requires_dist)


def _filled(text: str, values: Mapping[str, str]) -> str:
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return text


def _version(lock: FarmLock, recipe: Recipe) -> str:
    version = lock.version_of(recipe)
    return "" if version is None else version.public


def expected_of(farm: Farm, recipe: Recipe, cell: GridCell) -> Expected:
    """Return what a recipe and the policy declare of a cell's wheel."""
    options = recipe.verify
    policy = recipe.requirements or farm.policy.defaults.requirements
    return Expected(
        torch_axis=cell.torch_axis,
        torch_axis_stated=recipe.torch_axis_stated,
        from_torch=recipe.from_torch,
        cxx_abi=cell.cxx_abi,
        archs=cell.archs,
        glibc=recipe.floor or farm.policy.floor,
        requirements=policy if recipe.requires_dist is None else "own",
        allowed_needed=options.allowed_needed,
        allowed_archives=options.allowed_archives,
        max_size=options.max_size_mb << 20 if options.max_size_mb else None,
        pure=recipe.pure,
        import_names=(options.import_name,) if options.import_name else (),
        extra_imports=options.extra_imports,
        no_direct_import=options.no_direct_import,
        expect_ops=options.expect_ops,
        needs_driver=options.needs_driver,
        forgive_device_errors=options.expect_device_error,
        skip_import=bool(options.skip_import),
        skip_arch=bool(options.skip_arch),
        knobs=_knobs(recipe),
    )


def _knobs(recipe: Recipe) -> tuple[Knob, ...]:
    options, reasons = recipe.verify, recipe.reasons
    # Each is (field, value, reason); the first two are their own reasons.
    stated = (
        ("skip_import", options.skip_import, options.skip_import),
        ("skip_arch", options.skip_arch, options.skip_arch),
        (
            "allowed_needed",
            ", ".join(options.allowed_needed),
            reasons.get("verify.allowed_needed", ""),
        ),
        (
            "allowed_archives",
            ", ".join(options.allowed_archives),
            reasons.get("verify.allowed_archives", ""),
        ),
        (
            "no_direct_import",
            ", ".join(options.no_direct_import),
            reasons.get("verify.no_direct_import", ""),
        ),
        (
            "forgive_device_errors",
            "true" if options.expect_device_error else "",
            reasons.get("verify.expect_device_error", ""),
        ),
    )
    return tuple(
        Knob(field=name, value=value, reason=reason) for name, value, reason in stated if value
    )


def _why_not(grid: PackageGrid, identifier: CellId) -> str:
    for decision in grid.decisions:
        point = decision.point
        served_python = identifier.python.serves(point.python)
        if decision.reason and served_python and point.is_built_as(identifier):
            served = f" (served by {decision.cell})" if decision.cell is not None else ""
            return f"{point}: {decision.reason}{served}"
    if grid.version is not None and grid.version != identifier.version:
        return f"the recipe's version is {grid.version}"
    return "no such combination is in the farm's policy or in what PyTorch published"


def _nearest(grid: PackageGrid, identifier: CellId) -> str:
    names = [str(cell.identifier) for cell in grid.cells]
    near = difflib.get_close_matches(str(identifier), names, n=_NEAREST, cutoff=0.3)
    if not near:
        return f"`wheelfarm grid {identifier.package} --explain` lists every decision"
    return f"near cells: {', '.join(near)}"
