"""``wheelfarm diff A B``: what differs between two wheels, member by member and fact by fact."""

import argparse
from pathlib import Path

from wheelfarm.cli.output import clean, print_json, print_table

_SHOWN = 200


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("first", type=Path, metavar="A", help="a wheel")
    parser.add_argument("second", type=Path, metavar="B", help="the wheel to compare it with")


def execute(arguments: argparse.Namespace) -> int:
    """Compare two wheels; 0 where their binaries are the same bytes, 1 where they differ."""
    from wheelfarm.errors import BadInputError
    from wheelfarm.facts.wheel import read_wheel
    from wheelfarm.verify.difference import compare
    from wheelfarm.wording import counted

    first, second = read_wheel(arguments.first), read_wheel(arguments.second)
    for path, facts in ((arguments.first, first), (arguments.second, second)):
        if not facts.members:
            message = (
                f"{path} cannot be compared: {facts.problems[0] if facts.problems else 'empty'}"
            )
            raise BadInputError(message, hint="name two wheels")
    comparison = compare(first, second)
    if arguments.json:
        document = {
            "first": first.file_name,
            "second": second.file_name,
            "identical": comparison.identical,
            "same_binaries": comparison.same_binaries,
            "differences": [
                {
                    "place": entry.place,
                    "what": entry.what,
                    "first": entry.first,
                    "second": entry.second,
                }
                for entry in comparison.differences
            ],
        }
        print_json("wheelfarm.diff/1", document)
    else:
        rows = [
            (entry.place, entry.what, entry.first, entry.second)
            for entry in comparison.differences[:_SHOWN]
        ]
        if rows:
            print_table(("where", "what", clean(first.file_name), clean(second.file_name)), rows)
        if len(comparison.differences) > _SHOWN:
            print(f"… and {len(comparison.differences) - _SHOWN} more (--json has all)")
        count = len(first.binaries)
        same = "the same bytes" if comparison.same_binaries else "different bytes"
        print(f"{counted(count, 'binary', 'binaries')}: {same}" if count else "no binaries")
    return 0 if comparison.same_binaries else 1
