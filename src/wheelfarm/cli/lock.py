"""``wheelfarm lock``: record the hash or commit of each recipe's source."""

import argparse

from wheelfarm.cli.farm_option import add_farm_option, chosen_recipes, stocked_farm_of
from wheelfarm.cli.output import print_json, print_table


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    add_farm_option(parser)
    parser.add_argument(
        "package", nargs="*", metavar="PACKAGE", help="packages to lock (default: all)"
    )
    parser.add_argument(
        "--update", action="store_true", help="take a source that changed under its name"
    )
    parser.add_argument(
        "--no-survey",
        action="store_true",
        help="do not fetch the sources to read their version and torch axis",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Lock the packages and print what each source is; what is wrong comes at the end."""
    from wheelfarm.engines.lock_sources import lock_sources
    from wheelfarm.http import Client
    from wheelfarm.recipes.lock import load_lock
    from wheelfarm.recipes.lock_file import save_lock
    from wheelfarm.recipes.pypi import index_url

    farm = stocked_farm_of(arguments)
    recipes = chosen_recipes(farm, arguments.package)
    old = load_lock(farm)
    outcome = lock_sources(
        recipes,
        old,
        client=Client(),
        index=index_url(),
        update=arguments.update,
        survey=not arguments.no_survey,
    )
    found = outcome.entries
    if found:
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
    outcome.require_all()
    return 0
