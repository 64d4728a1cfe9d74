"""The files of a farm that decide what is built: whether they still do, and a pack of them."""

import io
import tarfile
from pathlib import Path

from wheelfarm import files
from wheelfarm.build.costs import SharedCosts
from wheelfarm.build.workspace import Workspace
from wheelfarm.engines.farm_meaning import files_below, recipe_digest
from wheelfarm.errors import BadInputError
from wheelfarm.recipes.load import POLICY_FILE, RECIPES_FOLDER, load_farm
from wheelfarm.recipes.model import Farm, PathSource
from wheelfarm.store.costs import StoredCosts
from wheelfarm.store.location import open_store
from wheelfarm.values import replace


def require_recipes(farm: Farm, digest: str, what: str) -> None:
    """Raise BadInputError where a plan was made from other recipes than the farm has now."""
    if not digest:
        message = f"{what} does not say which recipes it was made from"
        raise BadInputError(message, hint="make it again with `wheelfarm plan --json`")
    found = recipe_digest(farm)
    if found != digest:
        message = f"{what} was made from other recipes than {farm.root} has"
        raise BadInputError(
            message,
            cause=f"the plan's hash is {digest[:12]}, the farm's {found[:12]}",
            hint="make the plan again, or check out the commit that it was made from",
        )


def shared_costs(farm: Farm) -> SharedCosts | None:
    """Return where a farm's machines share what units cost: its store, None where that is not made.

    A store is made by the first publish; a build alone makes none.
    """
    location = farm.policy.store
    if "://" not in location:
        folder = farm.root / location
        if not folder.is_dir():
            return None
        location = str(folder)
    return StoredCosts(lambda: open_store(location))


def farm_workspace(farm: Farm) -> Workspace:
    """Return the workspace of a farm's builds on this machine."""
    return replace(Workspace.of(farm.root), shared_costs=shared_costs(farm))


def pack_farm(farm: Farm, target: Path) -> None:
    """Write a farm's deciding files, and the source folders below the farm, as one archive."""
    members = dict(_deciding(farm))
    for recipe in farm.recipes.values():
        if isinstance(recipe.source, PathSource):
            members.update(_source_files(farm, recipe.source.path))
    with files.replacing(target) as temporary, tarfile.open(temporary, "w:gz") as tar:
        for name, path in sorted(members.items()):
            data = path.read_bytes()
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.mode = 0o755 if path.stat().st_mode & 0o111 else 0o644
            tar.addfile(info, io.BytesIO(data))


def unpack_farm(archive: Path, folder: Path, digest: str) -> Farm:
    """Unpack a farm into ``folder`` and return it.

    Raises BadInputError where it is not the farm of ``digest``.
    """
    if not (folder / POLICY_FILE).is_file():
        with files.replacing_folder(folder) as temporary:
            files.unpack(archive, temporary)
    farm = load_farm(folder)
    require_recipes(farm, digest, "the job")
    return farm


def _deciding(farm: Farm) -> list[tuple[str, Path]]:
    root = farm.root
    paths = [root / POLICY_FILE, farm.lock_path]
    if farm.policy.upstream:
        paths.append(root / farm.policy.upstream)
    paths += files_below(root / RECIPES_FOLDER)
    return [(path.relative_to(root).as_posix(), path) for path in paths if path.is_file()]


def _source_files(farm: Farm, source: Path) -> dict[str, Path]:
    found = [source] if source.is_file() else files_below(source)
    inside = (path for path in found if path.is_relative_to(farm.root))
    return {path.relative_to(farm.root).as_posix(): path for path in inside}
