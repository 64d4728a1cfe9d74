"""``wheelfarm status``: how far a plan's run is."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelfarm.cli.farm_option import add_farm_option
from wheelfarm.cli.output import clean, print_json, print_table
from wheelfarm.wording import counted

if TYPE_CHECKING:
    from wheelfarm.engines.job_result import JobResult
    from wheelfarm.engines.plan_file import PlanFile
    from wheelfarm.engines.record import RunRecord


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    add_farm_option(parser)
    parser.add_argument(
        "plan", type=Path, nargs="?", metavar="PLAN", help="a plan's file (default: the last run's)"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print the state of the run; 0 whatever it is."""
    from wheelfarm.build.workspace import Workspace
    from wheelfarm.engines.plan_file import read_plan
    from wheelfarm.engines.record import RunRecord, latest_record

    workspace = Workspace.of(arguments.farm)
    if arguments.plan is not None:
        plan = read_plan(arguments.plan)
        record = RunRecord.of(workspace, plan)
    else:
        record = latest_record(workspace)
        plan = record.plan()
    results = record.results()
    document = _document(record, plan, results)
    if arguments.json:
        print_json("wheelfarm.status/1", document)
    else:
        _print(document)
    return 0


def _document(
    record: "RunRecord", plan: "PlanFile", results: "dict[str, JobResult]"
) -> dict[str, Any]:
    from wheelfarm.engines.job_result import UNFINISHED
    from wheelfarm.engines.record import measured_costs, summary

    running = record.running()
    left = [
        job for job in plan.jobs if job.id not in results or results[job.id].status in UNFINISHED
    ]
    ended = "done" if not left else "stopped"
    costs = measured_costs(results.values())
    return {
        "record": str(record.folder),
        "plan": str(plan.path),
        "state": "running" if running else ended if results else "not started",
        "jobs": len(plan.jobs),
        **summary(results),
        "left": len(left),
        "left_minutes": round(sum(job.cost_minutes for job in left), 2),
        "costs": {
            name: {"fixed": round(cost.fixed, 3), "per_arch": round(cost.per_arch, 3)}
            for name, cost in costs.items()
        },
        "results": [result.to_dict() for result in results.values()],
    }


def _print(document: dict[str, Any]) -> None:
    counts = ", ".join(f"{number} {name}" for name, number in document["outcomes"].items())
    print(f"{document['state']}: {counts or 'no results'}; {counted(document['left'], 'job')} left")
    rows = [
        (
            result["status"],
            result["job"],
            f"{result['seconds']:.1f} s",
            f"{result['peak'] / 1e9:.1f} GB",
            ", ".join(f"{number} {name}" for name, number in result["cache"].items()),
            result["error"].partition("\n")[0],
        )
        for result in document["results"]
    ]
    if rows:
        print_table(("status", "job", "time", "peak", "cache", "why"), rows)
    print(f"record: {clean(document['record'])}")
