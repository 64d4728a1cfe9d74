"""``wheelfarm yank WHEEL... --reason TEXT``: keep wheels for full pins alone (PEP 592)."""

import argparse

from wheelfarm.cli.output import clean, print_json
from wheelfarm.cli.store_option import add_store_option, existing_store_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("wheels", nargs="+", metavar="WHEEL", help="a wheel's file name")
    parser.add_argument("--reason", required=True, help="what is wrong; installers show it")
    add_store_option(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Yank every wheel that is named."""
    from wheelfarm.store.publish import yank

    records = yank(existing_store_of(arguments), arguments.wheels, arguments.reason)
    if arguments.json:
        print_json(
            "wheelfarm.yank/1",
            {"wheels": [{"wheel": r.filename, "yanked": r.entry.yanked} for r in records]},
        )
    else:
        for record in records:
            print(f"yanked  {clean(record.filename)}")
        print("build the index again to show it")
    return 0
