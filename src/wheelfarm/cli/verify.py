"""``wheelfarm verify WHEEL...``: read wheels, judge them, print a table or one document."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wheelfarm.cli.numbers import count
from wheelfarm.cli.output import clean, coloured, print_json, print_table
from wheelfarm.cli.progress import Display

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.progress import Progress, TaskID

    from wheelfarm.verify.batch import Task
    from wheelfarm.verify.report import Check, Report

_COLOURS = {"pass": "green", "warn": "yellow", "fail": "red", "could-not-look": "yellow"}
_EXIT = {"pass": 0, "fail": 1, "could-not-look": 2}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL", help="a wheel's file")
    parser.add_argument("--cell", help="the cell that the wheel must be of")
    parser.add_argument(
        "--farm", type=Path, metavar="DIR", help="hold each wheel against its recipe in this farm"
    )
    parser.add_argument("--python", type=Path, help="the Python into which it is imported")
    parser.add_argument(
        "--driver-stub", type=Path, metavar="DIR", help="the folder of a stub libcuda.so.1"
    )
    parser.add_argument("--strict", action="store_true", help="a warning counts as a failure")
    parser.add_argument("--facts", action="store_true", help="print what was read as well")
    parser.add_argument(
        "--report", action="store_true", help="write WHEEL.report.json beside each wheel"
    )
    parser.add_argument("--gpu", action="store_true", help="run a smoke test on this machine's GPU")
    parser.add_argument(
        "--smoke-test", type=Path, metavar="SCRIPT", help="the Python script that --gpu runs"
    )
    parser.add_argument(
        "--jobs", type=count, metavar="N", help="wheels at once (default: processors)"
    )
    parser.add_argument("--no-cache", action="store_true", help="read every wheel anew")


def execute(arguments: argparse.Namespace) -> int:
    """Verify every wheel and print the reports; the worst verdict decides the exit status."""
    from wheelfarm.verify.batch import verify_many

    _check_options(arguments)
    tasks = _tasks(arguments)
    with _Progress(len(tasks), quiet=bool(arguments.quiet)) as progress:
        reports = verify_many(tasks, workers=arguments.jobs, listen=progress.report)
    if arguments.report:
        _write_reports(tasks, reports)
    if arguments.json:
        wheels = [report.to_dict(facts=arguments.facts) for report in reports]
        print_json("wheelfarm.verify/1", {"wheels": wheels})
    else:
        for report in reports:
            print_report(report, facts=arguments.facts)
    _tell_github(reports, commands=not arguments.json)
    verdicts = {report.verdict for report in reports}
    return _EXIT["fail" if "fail" in verdicts else max(verdicts, key=_EXIT.__getitem__)]


def _check_options(arguments: argparse.Namespace) -> None:
    """Raise UsageError for an option that would not be looked at, BadInputError for no folder."""
    from wheelfarm.errors import BadInputError, UsageError

    if arguments.smoke_test is not None and not arguments.gpu:
        message = "--smoke-test goes with --gpu, which runs it"
        raise UsageError(message)
    if arguments.driver_stub is not None and arguments.python is None:
        message = "--driver-stub goes with --python, which imports the wheel"
        raise UsageError(message)
    if arguments.driver_stub is not None and not arguments.driver_stub.is_dir():
        message = f"{arguments.driver_stub} is no folder"
        raise BadInputError(message, hint="`wheelfarm toolkit home` makes one with a stub in it")


def _tasks(arguments: argparse.Namespace) -> "list[Task]":
    from wheelfarm.model.cell import CellId
    from wheelfarm.values import replace
    from wheelfarm.verify.batch import Task
    from wheelfarm.verify.facts_cache import facts_folder

    cell = None if arguments.cell is None else CellId.parse(arguments.cell)
    common = Task(
        wheel=Path(),
        cell=cell,
        environment=arguments.python,
        driver_stub=arguments.driver_stub,
        strict=arguments.strict,
        gpu=arguments.gpu,
        smoke_test=arguments.smoke_test,
        cache=None if arguments.no_cache else facts_folder(),
    )
    tasks = [replace(common, wheel=wheel) for wheel in arguments.wheels]
    return tasks if arguments.farm is None else _of_farm(arguments.farm, tasks)


def _of_farm(folder: Path, tasks: "list[Task]") -> "list[Task]":
    """Return the tasks with each wheel's cell and what its recipe and the policy expect of it."""
    from wheelfarm.engines.farm_cells import find_farm_cell
    from wheelfarm.recipes.load import load_farm
    from wheelfarm.values import replace
    from wheelfarm.verify.subject import cell_of

    farm = load_farm(folder)
    found = []
    for task in tasks:
        cell = task.cell or cell_of(task.wheel.name)
        there = find_farm_cell(farm, cell)
        smoke_test = task.smoke_test or there.recipe.verify.smoke_test
        found.append(replace(task, cell=cell, expected=there.expected, smoke_test=smoke_test))
    return found


def _write_reports(tasks: "Sequence[Task]", reports: "Sequence[Report]") -> None:
    from wheelfarm import files
    from wheelfarm.verify.report import report_path

    for task, report in zip(tasks, reports, strict=True):
        files.write_text(report_path(task.wheel), json.dumps(report.to_dict(), indent=1) + "\n")


def _tell_github(reports: "Sequence[Report]", *, commands: bool) -> None:
    """Add to the job's summary where GitHub runs us, and annotate (on stdout, as it asks)."""
    from wheelfarm.verify.summary import annotations, markdown

    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        with Path(summary).open("a", encoding="utf-8") as stream:
            stream.write(markdown(reports) + "\n")
    if commands and os.environ.get("GITHUB_ACTIONS") == "true":
        for line in annotations(reports):
            print(line)


def print_report(report: "Report", *, facts: bool = False) -> None:
    """Print a report as a table, with the evidence of what did not pass."""
    print(f"{clean(report.wheel)}  {coloured(report.verdict, _COLOURS[report.verdict])}")
    print_table(("check", "status", "finding"), (_row(check) for check in report.checks))
    for check in report.checks:
        if check.evidence and (facts or check.status != "pass"):
            print(f"{check.id}:")
            for line in check.evidence:
                print(f"  {clean(line)}")
    for knob in report.knobs:
        print(f"exempt: {clean(f'{knob.field}: {knob.value} ({knob.reason})')}")
    for name, reason in report.not_asked:
        print(f"not asked: {name}: {clean(reason)}")


def _row(check: "Check") -> tuple[str, str, str]:
    return check.id, check.status, check.summary


class _Progress(Display):
    """A bar on stderr while several wheels are read, where stderr is a terminal."""

    def __init__(self, count: int, *, quiet: bool) -> None:
        self._shown = count > 1 and not quiet and sys.stderr.isatty()
        self._count = count
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> "_Progress":  # noqa: PYI034 - typing.Self needs Python 3.11
        if self._shown:
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("verify", total=self._count)
            self._bar.start()
            self.live = self._bar
        return self

    def report(self, report: "Report") -> None:
        """Show that a wheel's report is there."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=1, description=clean(report.wheel)[:60])
