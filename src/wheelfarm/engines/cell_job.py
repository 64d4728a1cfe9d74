"""One cell's job: build the wheel, pass it through the gate, keep the report beside it.

Every engine runs this same function; a wheel whose report does not let it pass goes nowhere.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from wheelfarm import files
from wheelfarm.build.pipeline import StepListener, build_cell
from wheelfarm.build.request import BuildRequest, BuiltWheel
from wheelfarm.build.workspace import Workspace
from wheelfarm.verify.gate import verify_wheel
from wheelfarm.verify.report import Report
from wheelfarm.verify.subject import Expected


@dataclass(frozen=True, kw_only=True, slots=True)
class CellResult:
    """What a cell's job gave: the built wheel, the gate's report, and where that lies."""

    built: BuiltWheel
    report: Report
    report_path: Path


def run_cell(
    request: BuildRequest,
    expected: Expected,
    workspace: Workspace,
    *,
    listen: StepListener | None = None,
) -> CellResult:
    """Build and judge one cell; the caller decides what a refusal means.

    Raises as ``build_cell`` and ``verify_wheel`` do.
    """
    built = build_cell(request, workspace, listen=listen)
    report = verify_wheel(
        built.wheel,
        cell=request.cell.identifier,
        expected=completed(expected, built),
        environment=built.environment.python,
        driver_stub=built.driver_stub,
        packages=built.packages,
    )
    path = workspace.cell(request.cell.identifier) / "report.json"
    files.write_text(path, json.dumps(report.to_dict(), indent=1) + "\n")
    return CellResult(built=built, report=report, report_path=path)


def completed(expected: Expected, built: BuiltWheel) -> Expected:
    """Return the expectations with what only the build knows: requirements and torch's release."""
    return replace(
        expected, requires_dist=built.requires_dist, torch_release=built.cell.torch_release
    )
