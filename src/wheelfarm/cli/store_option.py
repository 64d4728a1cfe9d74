"""The ``--store`` option and its default, shared by the verbs that touch a store."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wheelfarm.model.wheel_name import WheelName
    from wheelfarm.recipes.model import Farm
    from wheelfarm.store.evidence import Declared
    from wheelfarm.store.protocol import Store
    from wheelfarm.upstream.model import UpstreamFacts


def add_store_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--store`` and ``--farm``."""
    parser.add_argument(
        "--store",
        metavar="STORE",
        help="a folder, s3://..., gs://..., az://... or github://owner/repo",
    )
    parser.add_argument(
        "--farm", type=Path, default=Path(), metavar="DIR", help="the farm's folder (default: .)"
    )


def store_of(arguments: argparse.Namespace) -> "Store":
    """Return the store that the arguments name, else the farm's own."""
    from wheelfarm.store.location import open_store

    if arguments.store is not None:
        return open_store(arguments.store)
    farm = optional_farm(arguments.farm)
    name = "store" if farm is None else farm.policy.store
    return open_store(name if "://" in name else str(arguments.farm / name))


def existing_store_of(arguments: argparse.Namespace) -> "Store":
    """Return the store that the arguments name, for verbs that do not make one.

    Raises StoreError for a folder that was never made: in a misspelt one nothing is ever wrong.
    """
    from wheelfarm.store.directory import DirectoryStore
    from wheelfarm.store.protocol import StoreError

    store = store_of(arguments)
    if isinstance(store, DirectoryStore) and not store.root.is_dir():
        message = f"there is no store {store.location}"
        raise StoreError(message, hint="publish a wheel first, or name the store with --store")
    return store


def optional_farm(folder: Path) -> "Farm | None":
    """Return the farm in a folder, None where there is none."""
    from wheelfarm.recipes.load import POLICY_FILE, load_farm

    return load_farm(folder) if (folder / POLICY_FILE).is_file() else None


def upstream_of(arguments: argparse.Namespace) -> "UpstreamFacts":
    """Return what PyTorch published: the farm's own facts, else wheelfarm's."""
    from wheelfarm.cli.farm_option import facts_of
    from wheelfarm.upstream.facts import committed_facts

    farm = optional_farm(arguments.farm)
    return committed_facts() if farm is None else facts_of(farm)


def declared_of(farm: "Farm | None", name: "WheelName") -> "Declared":
    """Return what the farm's recipe says of a wheel where its binary cannot tell."""
    from wheelfarm.model.cell import cell_name
    from wheelfarm.store.evidence import Declared

    recipe = None if farm is None else farm.recipes.get(cell_name(name.package))
    if recipe is None:
        return Declared()
    return Declared(
        torch_axis=recipe.torch_axis,
        from_torch=recipe.from_torch,
        runtime_jit=recipe.runtime_jit,
    )
