"""``wheelfarm verify WHEEL...``: read wheels, judge them, print a table or one document."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from wheelfarm.cli.output import clean, coloured, print_json, print_table

if TYPE_CHECKING:
    from wheelfarm.verify.report import Check, Report

_COLOURS = {"pass": "green", "warn": "yellow", "fail": "red", "could-not-look": "yellow"}
_EXIT = {"pass": 0, "fail": 1, "could-not-look": 2}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL")
    parser.add_argument("--cell", help="the cell that the wheel must be of")
    parser.add_argument("--python", type=Path, help="the Python into which it is imported")
    parser.add_argument("--driver-stub", type=Path, help="the folder of a stub libcuda.so.1")
    parser.add_argument("--strict", action="store_true", help="a warning counts as a failure")
    parser.add_argument("--facts", action="store_true", help="print what was read as well")


def execute(arguments: argparse.Namespace) -> int:
    """Verify every wheel and print the reports; the worst verdict decides the exit status."""
    from wheelfarm.model.cell import CellId
    from wheelfarm.verify.gate import verify_wheel

    cell = None if arguments.cell is None else CellId.parse(arguments.cell)
    reports = [
        verify_wheel(
            path,
            cell=cell,
            environment=arguments.python,
            driver_stub=arguments.driver_stub,
            strict=arguments.strict,
        )
        for path in arguments.wheels
    ]
    if arguments.json:
        wheels = [report.to_dict(facts=arguments.facts) for report in reports]
        print_json("wheelfarm.verify/1", {"wheels": wheels})
    else:
        for report in reports:
            print_report(report)
    verdicts = {report.verdict for report in reports}
    return _EXIT["fail" if "fail" in verdicts else max(verdicts, key=_EXIT.__getitem__)]


def print_report(report: "Report") -> None:
    """Print a report as a table, with the evidence of what did not pass."""
    print(f"{clean(report.wheel)}  {coloured(report.verdict, _COLOURS[report.verdict])}")
    print_table(("check", "status", "finding"), (_row(check) for check in report.checks))
    for check in report.checks:
        if check.status != "pass" and check.evidence:
            print(f"{check.id}:")
            for line in check.evidence:
                print(f"  {clean(line)}")
    for knob in report.knobs:
        print(f"exempt: {clean(f'{knob.field}: {knob.value} ({knob.reason})')}")
    for name, reason in report.not_asked:
        print(f"not asked: {name}: {clean(reason)}")


def _row(check: "Check") -> tuple[str, str, str]:
    return check.id, check.status, check.summary
