"""``wheelfarm lint``: what is wrong with a farm though it can be read."""

import argparse

from wheelfarm.cli.farm_option import add_farm_option, chosen_recipes, farm_of, grids_of
from wheelfarm.cli.output import print_json, print_table
from wheelfarm.wording import counted


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    add_farm_option(parser)
    parser.add_argument(
        "package", nargs="*", metavar="PACKAGE", help="packages to check (default: all)"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print the findings; 4 where there is a fault among them."""
    from wheelfarm.errors import BadInputError
    from wheelfarm.grid.lint import lint_grids
    from wheelfarm.recipes.lint import lint_recipes
    from wheelfarm.recipes.lock import load_lock

    farm = farm_of(arguments)
    chosen = chosen_recipes(farm, arguments.package)
    grids = grids_of(farm, tuple(farm.recipes.values()))
    names = {"", *(recipe.package for recipe in chosen)}
    findings = [
        item
        for item in (*lint_recipes(farm, load_lock(farm)), *lint_grids(grids, farm.policy))
        if item.package in names
    ]
    faults = sum(item.level == "fault" for item in findings)
    if arguments.json:
        keys = ("package", "rule", "level", "message")
        rows = [{key: getattr(item, key) for key in keys} for item in findings]
        print_json("wheelfarm.lint/1", {"faults": faults, "findings": rows})
    else:
        if findings:
            table = [
                (item.level, item.package or "farm.yml", item.rule, item.message)
                for item in findings
            ]
            print_table(("level", "package", "rule", "finding"), table)
            print()
        print(
            f"{counted(len(chosen), 'recipe')}: {counted(faults, 'fault')}, "
            f"{counted(len(findings) - faults, 'warning')}"
        )
    return BadInputError.exit_code if faults else 0
