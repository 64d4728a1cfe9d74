"""``wheelfarm lock``: record the hash or commit of each recipe's source."""

import argparse

from wheelfarm.cli.farm_option import add_farm_option, chosen_recipes, farm_of
from wheelfarm.cli.output import print_json, print_table


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    add_farm_option(parser)
    parser.add_argument("package", nargs="*", help="packages to lock (default: all)")
    parser.add_argument(
        "--update", action="store_true", help="take a source that changed under its name"
    )
    parser.add_argument(
        "--no-survey",
        action="store_true",
        help="do not fetch the sources to read their version and torch axis",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Lock the packages and print what each source is."""
    from wheelfarm.engines.read_source import read_source
    from wheelfarm.http import Client
    from wheelfarm.recipes.lock import load_lock
    from wheelfarm.recipes.lock_file import check_unchanged, save_lock
    from wheelfarm.recipes.pypi import index_url
    from wheelfarm.recipes.resolve_source import resolve_source

    farm = farm_of(arguments)
    recipes = chosen_recipes(farm, arguments.package)
    old = load_lock(farm)
    client, index = Client(), index_url()
    found = {
        recipe.package: resolve_source(recipe, client=client, index=index) for recipe in recipes
    }
    if not arguments.update:
        check_unchanged(old, found, found)
    if not arguments.no_survey:
        found = {
            recipe.package: read_source(
                recipe, found[recipe.package], old.entries.get(recipe.package)
            )
            for recipe in recipes
        }
    save_lock(farm, old.with_entries(found))
    rows = []
    for name, entry in found.items():
        before = old.entries.get(name)
        state = "new" if before is None else "unchanged" if before == entry else "changed"
        rows.append((name, entry.spec, entry.source.identity, state))
    if arguments.json:
        keys = ("package", "source", "identity", "state")
        document = [dict(zip(keys, row, strict=True)) for row in rows]
        print_json("wheelfarm.lock/1", {"lock": str(farm.lock_path), "packages": document})
    else:
        print_table(("package", "source", "is", "state"), rows)
    return 0
