"""``wheelfarm plan``: the jobs that are missing, in batches; never a build."""

import argparse
import gc
import json
import logging
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from wheelfarm.cli.farm_option import add_farm_option, grids_of, stocked_farm_of
from wheelfarm.cli.output import clean, print_json_rows, print_table
from wheelfarm.values import replace
from wheelfarm.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wheelfarm.grid.model import PackageGrid
    from wheelfarm.plan.model import Cost, Plan, PlanRequest
    from wheelfarm.recipes.model import Farm

logger = logging.getLogger(__name__)


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    add_farm_option(parser)
    group = parser.add_argument_group("filters (each may be given several times)")
    group.add_argument(
        "--package", action="append", default=[], metavar="NAME", help="this package"
    )
    group.add_argument("--cuda", action="append", default=[], metavar="12.8", help="this CUDA line")
    group.add_argument(
        "--torch", action="append", default=[], metavar="2.9", help="this torch minor"
    )
    group.add_argument("--python", action="append", default=[], metavar="3.11", help="this Python")
    group.add_argument(
        "--platform", action="append", default=[], metavar="linux_x86_64", help="this platform"
    )
    group.add_argument("--only", action="append", default=[], metavar="CELL", help="this very cell")
    parser.add_argument(
        "--store", help="where the wheels are (default: the policy's store); it must be readable"
    )
    parser.add_argument(
        "--have", type=Path, metavar="FILE", help="a list of wheel file names in the store's place"
    )
    parser.add_argument(
        "--rebuild", action="store_true", help="plan cells that exist too, with the next build tag"
    )
    parser.add_argument(
        "--reason", type=str, default="", help="why wheels that exist are built again"
    )
    parser.add_argument(
        "--measured", type=Path, metavar="DIR",
        help="what other machines' runs took: files of `wheelfarm status --json`",
    )  # fmt: skip
    parser.add_argument("--budget-minutes", type=float, help="plan no more than this costs")
    parser.add_argument("--explain", action="store_true", help="show every candidate's decision")
    parser.add_argument(
        "--github-matrix", action="store_true", help="print the matrices of every batch as JSON"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print the plan."""
    from wheelfarm.cli.plan_store import stored_wheels
    from wheelfarm.plan.make import make_plan

    # Tens of thousands of small values live until the end: collecting them in between only costs.
    gc.disable()
    request = _request(arguments)
    farm = stocked_farm_of(arguments)
    request = replace(request, costs=_measured(farm, arguments.measured))
    wheels, source = stored_wheels(farm, arguments.store, arguments.have)
    grids = grids_of(farm, tuple(farm.recipes.values()))
    _tell_of_empty(grids, arguments.package)
    plan = make_plan(grids, wheels, farm.policy.defaults, request)
    if arguments.github_matrix:
        _print_matrices(plan)
    elif arguments.json:
        from wheelfarm.engines.farm_meaning import recipe_digest

        _print_json(plan, source, recipe_digest(farm), explain=arguments.explain)
    else:
        _print_tables(plan, source, explain=arguments.explain)
    return 0


def _tell_of_empty(grids: "Sequence[PackageGrid]", wanted: list[str]) -> None:
    """Warn of packages of which nothing would ever be planned."""
    from wheelfarm.model.cell import cell_name

    names = {cell_name(name) for name in wanted}
    for grid in grids:
        name = grid.recipe.package
        if not grid.cells and (not names or name in names):
            logger.warning(
                "%s has no cell: nothing of it is ever planned; `wheelfarm grid %s --explain` says "
                "why", name, name,
            )  # fmt: skip


def _measured(farm: "Farm", folder: Path | None) -> "Mapping[str, Cost]":
    """Return what earlier runs of this farm took, by package; nothing ran is no cost known."""
    # The engines' rooms are imported only where something ran: a plan must start at once.
    if folder is None and not (farm.root / ".wheelfarm" / "runs").is_dir():
        return {}
    from wheelfarm.build.workspace import Workspace
    from wheelfarm.engines.record import all_results, measured_costs, results_of_others

    results = list(all_results(Workspace.of(farm.root)))
    if folder is not None:
        results += results_of_others(folder)
    return measured_costs(results)


def _request(arguments: argparse.Namespace) -> "PlanRequest":
    from wheelfarm.errors import UsageError
    from wheelfarm.plan.model import Filters, PlanRequest

    if arguments.rebuild != bool(arguments.reason.strip()):
        message = "--rebuild and --reason TEXT go together"
        raise UsageError(message)
    if arguments.budget_minutes is not None and not arguments.budget_minutes > 0:
        message = "--budget-minutes must be positive"
        raise UsageError(message)
    return PlanRequest(
        filters=Filters(
            packages=tuple(arguments.package),
            cudas=tuple(arguments.cuda),
            torches=tuple(arguments.torch),
            pythons=tuple(arguments.python),
            platforms=tuple(arguments.platform),
            only=tuple(arguments.only),
        ),
        rebuild_reason=arguments.reason.strip(),
        budget_minutes=arguments.budget_minutes,
    )


def _print_json(plan: "Plan", source: str, recipes: str, *, explain: bool) -> None:
    from wheelfarm.plan import render

    rows = {
        "jobs": render.job_rows(plan),
        "existing": render.existing_rows(plan),
        "refused": render.refused_rows(plan),
    }
    if explain:
        rows["decisions"] = render.decision_rows(plan)
    head = {"store": source, "recipes": recipes, **render.summary(plan)}
    print_json_rows("wheelfarm.plan/1", head, rows)


def _print_matrices(plan: "Plan") -> None:
    from wheelfarm.plan.render import github_batches

    document = {"schema": "wheelfarm.plan-matrices/1", "batches": github_batches(plan)}
    json.dump(document, sys.stdout, separators=(",", ":"))
    sys.stdout.write("\n")


def _print_tables(plan: "Plan", source: str, *, explain: bool) -> None:
    from wheelfarm.plan import render

    counts: Counter[str] = Counter()
    cells: Counter[str] = Counter()
    minutes: Counter[str] = Counter()
    for cell in plan.cells:
        package = cell.cell.identifier.package
        cells[package] += 1
        counts[package] += len(cell.jobs)
        minutes[package] += cell.cost_minutes  # type: ignore[assignment] # a sum of minutes
    existing = Counter(item.cell.package for item in plan.existing)
    names = [grid.recipe.package for grid in plan.grids]
    rows = [
        (
            name,
            str(cells[name]),
            str(counts[name]),
            f"{minutes[name]:.0f}",
            str(existing[name]),
        )
        for name in names
        if cells[name] or existing[name]
    ]
    print_table(("package", "cells", "jobs", "minutes", "exist"), rows)
    short = render.summary(plan)
    print(
        f"\n{counted(short['cells'], 'cell')}, {counted(short['job_count'], 'job')} in "
        f"{counted(short['batch_count'], 'batch', 'batches')}, "
        f"{short['cost_minutes']:.0f} minutes; store: {clean(source)}\n"
    )
    for reason, count in Counter(plan.totals()).most_common():
        print(f"{count:7}  {clean(reason)}")
    if explain:
        print()
        lines = [(row["cell"], row["outcome"], row["reason"]) for row in render.decision_rows(plan)]
        print_table(("candidate", "decision", "why"), lines)
