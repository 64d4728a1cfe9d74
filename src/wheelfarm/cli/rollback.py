"""``wheelfarm rollback``: return the site to an earlier build; the store stays as it is."""

import argparse
from pathlib import Path

from wheelfarm.cli.output import print_json, print_table
from wheelfarm.cli.store_option import add_store_option, store_of, upstream_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("--out", type=Path, default=Path("site"), help="the site's folder")
    parser.add_argument("--to", type=int, metavar="NUMBER", help="a kept build (default: the last)")
    parser.add_argument("--list", action="store_true", help="print the kept builds and stop")
    add_store_option(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Go back, or print where one could go."""
    from wheelfarm.index.build import roll_back
    from wheelfarm.index.history import History
    from wheelfarm.index.shipped import ShippedTorch
    from wheelfarm.index.tree import SiteTree

    tree = SiteTree(arguments.out)
    if arguments.list:
        generations = History(tree).generations()
        if arguments.json:
            builds = [{"number": each.number, "time": each.time} for each in generations]
            print_json("wheelfarm.rollback-list/1", {"builds": builds})
        else:
            rows = [(str(each.number), each.time) for each in generations]
            print_table(("build", "time"), rows)
        return 0
    shipped = ShippedTorch.of(upstream_of(arguments))
    target = roll_back(store_of(arguments), tree, shipped, number=arguments.to)
    if arguments.json:
        print_json("wheelfarm.rollback/1", {"number": target.number, "time": target.time})
    else:
        print(f"{arguments.out} is as build {target.number} of {target.time} left it")
        print("the next index build shows the store's present state again: yank what is wrong")
    return 0
