"""``wheelfarm unyank WHEEL...``: take a yank back."""

import argparse

from wheelfarm.cli.output import clean, print_json
from wheelfarm.cli.store_option import add_store_option, existing_store_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("wheels", nargs="+", metavar="WHEEL", help="a wheel's file name")
    add_store_option(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Take the yank of every wheel that is named back."""
    from wheelfarm.store.publish import unyank

    records = unyank(existing_store_of(arguments), arguments.wheels)
    if arguments.json:
        print_json("wheelfarm.unyank/1", {"wheels": [{"wheel": r.filename} for r in records]})
    else:
        for record in records:
            print(f"good again  {clean(record.filename)}")
        print("build the index again to show it")
    return 0
