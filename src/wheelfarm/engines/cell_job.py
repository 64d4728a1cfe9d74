"""One cell's job: build the wheel, pass it through the gate, put it out with its report.

Every engine runs this same function; a wheel whose report does not let it pass stays where it was
built, and only its report tells of it.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wheelfarm import files
from wheelfarm.build.pipeline import StepListener, build_cell
from wheelfarm.build.request import BuildRequest, BuiltWheel
from wheelfarm.build.steps import Inputs, stable_key
from wheelfarm.build.workspace import Workspace
from wheelfarm.identity import code_identity
from wheelfarm.reading import read_json
from wheelfarm.values import replace
from wheelfarm.verify.gate import verify_wheel
from wheelfarm.verify.report import GATE_VERSION, Report, report_path
from wheelfarm.verify.subject import Expected


@dataclass(frozen=True, kw_only=True, slots=True)
class CellResult:
    """What a cell's job gave: the built wheel, the gate's report, and where both lie.

    ``wheel`` is in the wheelhouse where the gate let it pass, else where it was built.
    """

    built: BuiltWheel
    report: Report
    wheel: Path
    report_path: Path


def run_cell(
    request: BuildRequest,
    expected: Expected,
    workspace: Workspace,
    *,
    wheelhouse: Path,
    build: Callable[[], BuiltWheel] | None = None,
    listen: StepListener | None = None,
) -> CellResult:
    """Build and judge one cell; the caller decides what a refusal means.

    ``build`` makes the wheel where that is not one job's work (a link job's, for one). Raises as
    ``build_cell`` and ``verify_wheel`` do.
    """
    built = build_cell(request, workspace, listen=listen) if build is None else build()
    report = judge(built, completed(expected, built), workspace)
    passed = report.verdict == "pass"
    folder = wheelhouse if passed else workspace.cell(request.cell.identifier)
    path = report_path(folder / built.wheel.name)
    wheel = built.wheel
    if passed:
        wheel = wheelhouse / built.wheel.name
        files.copy(built.wheel, wheel)
    files.write_text(path, json.dumps(report.to_dict(), indent=1) + "\n")
    return CellResult(built=built, report=report, wheel=wheel, report_path=path)


def judge(built: BuiltWheel, expected: Expected, workspace: Workspace) -> Report:
    """Return the gate's report; one that let these very bytes pass is kept and not made again.

    Only a passing report is kept: what failed, or could not be looked at, is looked at anew.
    """
    identifier = built.cell.identifier
    inputs: Inputs = {
        "gate": GATE_VERSION,
        "code": code_identity("verify", "facts", "model"),
        "wheel": files.sha256(built.wheel),
        "name": built.wheel.name,
        "expected": repr(expected),
        "environment": built.steps["environment"].key,
    }
    key = stable_key("verify", inputs)
    kept = workspace.cell(identifier) / "verify" / f"{key}.json"
    if kept.is_file():
        return Report.from_dict(read_json(kept), str(kept))
    report = verify_wheel(
        built.wheel,
        cell=identifier,
        expected=expected,
        environment=built.environment.python,
        driver_stub=built.driver_stub,
        packages=built.packages,
    )
    if report.verdict == "pass":
        files.write_text(kept, json.dumps(report.to_dict(), indent=1) + "\n")
    return report


def completed(expected: Expected, built: BuiltWheel) -> Expected:
    """Return the expectations with what only the build knows: requirements and torch's release."""
    return replace(
        expected, requires_dist=built.requires_dist, torch_release=built.cell.torch_release
    )
