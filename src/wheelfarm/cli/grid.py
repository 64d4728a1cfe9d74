"""``wheelfarm grid [PACKAGE...]``: which cells exist, and why every other one does not."""

import argparse
from collections import Counter
from typing import TYPE_CHECKING, Any

from wheelfarm.cli.farm_option import add_farm_option, chosen_recipes, stocked_farm_of
from wheelfarm.cli.output import clean, print_json, print_table

if TYPE_CHECKING:
    from wheelfarm.grid.model import GridDecision, PackageGrid


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    add_farm_option(parser)
    parser.add_argument(
        "package", nargs="*", metavar="PACKAGE", help="packages to show (default: all)"
    )
    parser.add_argument(
        "--explain", action="store_true", help="show every candidate and its decision"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print the grid of the packages."""
    from wheelfarm.cli.farm_option import grids_of

    farm = stocked_farm_of(arguments)
    grids = grids_of(farm, chosen_recipes(farm, arguments.package))
    if arguments.json:
        document = [_package(grid, explain=arguments.explain) for grid in grids]
        print_json("wheelfarm.grid/1", {"packages": document})
    elif arguments.explain or arguments.package:
        for grid in grids:
            _print_package(grid, explain=arguments.explain)
    else:
        header = ("package", "version", "torch", "python", "cells", "refused points")
        print_table(header, [_summary(grid) for grid in grids])
    return 0


def _summary(grid: "PackageGrid") -> tuple[str, ...]:
    recipe = grid.recipe
    version = "?" if grid.version is None else str(grid.version)
    counts = (str(len(grid.cells)), str(len(grid.refused)))
    return (recipe.package, version, recipe.torch_axis, recipe.python_axis, *counts)


def _print_package(grid: "PackageGrid", *, explain: bool) -> None:
    rows = [
        (str(cell.identifier), str(cell.cell.torch_release), str(cell.archs), str(len(cell.serves)))
        for cell in grid.cells
    ]
    print_table(("cell", "built against torch", "architectures", "serves"), rows)
    for coverage in dict.fromkeys(cell.coverage for cell in grid.cells if not cell.archs.ptx):
        print(f"note: {coverage}")
    if explain:
        print()
        lines = [(str(item.point), item.outcome, _why(item)) for item in grid.decisions]
        print_table(("candidate", "decision", "why"), lines)
        return
    print()
    for reason, count in Counter(item.rule for item in grid.refused).most_common():
        print(f"{count:5}  refused: {clean(reason)}")


def _why(item: "GridDecision") -> str:
    return item.reason or "its own wheel"


def _package(grid: "PackageGrid", *, explain: bool) -> dict[str, Any]:
    recipe = grid.recipe
    document: dict[str, Any] = {
        "package": recipe.package,
        "version": None if grid.version is None else str(grid.version),
        "torch_axis": recipe.torch_axis,
        "python_axis": recipe.python_axis,
        "cells": [
            {
                "id": str(cell.identifier),
                "torch": str(cell.cell.torch_release),
                "torch_pinned": cell.torch_pinned,
                "python": cell.python.dotted,
                "archs": str(cell.archs),
                "coverage": cell.coverage,
                "target_torch": None if cell.target is None else str(cell.target),
                "serves": len(cell.serves),
            }
            for cell in grid.cells
        ],
        "totals": dict(Counter(item.outcome for item in grid.decisions)),
    }
    if explain:
        document["decisions"] = [
            {
                "candidate": str(item.point),
                "outcome": item.outcome,
                "reason": item.reason,
                "cell": None if item.cell is None else str(item.cell),
            }
            for item in grid.decisions
        ]
    return document
