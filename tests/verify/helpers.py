"""Short ways to judge a wheel in tests."""

from pathlib import Path

from wheelfarm.model.arch import ArchList
from wheelfarm.model.cell import CellId
from wheelfarm.model.versions import Minor
from wheelfarm.verify.gate import verify_wheel
from wheelfarm.verify.report import Check, Report
from wheelfarm.verify.subject import Expected

CELL = CellId.parse("demo-1.0-cu130-torch2.14-cp311-linux_x86_64")
NAME = "demo-1.0+cu130torch2.14-cp311-cp311-linux_x86_64.whl"
MODULE = "demo/_C.cpython-311-x86_64-linux-gnu.so"


def judge(wheel: Path, identifier: str, expected: Expected | None = None) -> Check:
    """Return one check of a wheel, with the demo's cell where something is expected."""
    report = report_of(wheel, expected)
    check = report.check(identifier)
    assert check is not None, f"{identifier} was not run"
    return check


def report_of(wheel: Path, expected: Expected | None = None) -> Report:
    """Return the report of a wheel, with the demo's cell where something is expected."""
    return verify_wheel(wheel, cell=CELL if expected is not None else None, expected=expected)


def whole(check: Check) -> str:
    """Return everything that a check says."""
    return "\n".join((check.summary, *check.evidence))


def archs(text: str) -> ArchList:
    """Return an arch list."""
    return ArchList.parse(text)


def minor(text: str) -> Minor:
    """Return a version of two numbers."""
    return Minor.parse(text)
