"""Check on a real GPU: run a recipe's smoke test against the wheel, in a child process."""

import tempfile
from pathlib import Path

from wheelfarm.errors import CouldNotLookError
from wheelfarm.verify.import_check import DEVICE_ERRORS
from wheelfarm.verify.import_child import ImportRequest, describe, lay_out, mismatches, run_probe
from wheelfarm.verify.report import Check, Status
from wheelfarm.verify.subject import Subject


def check_gpu(subject: Subject, request: ImportRequest, script: Path | None) -> Check:
    """Run the smoke test with torch and the wheel importable; no GPU means "could not look".

    The script passes when it ends without an exception and with status 0.
    """
    try:
        return _looked(subject, request, script)
    except CouldNotLookError as error:
        return _answer("could-not-look", error.what)


def _looked(subject: Subject, request: ImportRequest, script: Path | None) -> Check:
    if script is None or not script.is_file():
        message = f"there is no smoke test {script or '(name one with --smoke-test)'}"
        raise CouldNotLookError(message)
    if request.environment is None:
        message = "no environment was given in which to run the smoke test"
        raise CouldNotLookError(message)
    environment = describe(request)
    mismatch = next(mismatches(subject, environment), "")
    if mismatch:
        message = f"the environment is not the wheel's: {mismatch}"
        raise CouldNotLookError(message)
    if not environment.driver:
        message = "there is no GPU driver on this machine"
        raise CouldNotLookError(message)
    with tempfile.TemporaryDirectory(prefix="wheelfarm-") as folder:
        site, answer = Path(folder) / "site", Path(folder) / "answer"
        lay_out(request.wheel, site, environment, subject)
        packages = "" if request.packages is None else str(request.packages)
        asked = {
            "site": str(site),
            "packages": packages,
            "torch": False,
            "targets": (),
            "ops": (),
            "script": str(script.resolve()),
            "answer": str(answer),
        }
        events = run_probe(request, asked, answer, stub=None)
    bad = next((event for event in events if event["event"] in {"error", "crash"}), None)
    if bad is None:
        return _answer("pass", f"{script.name} passes on this machine's GPU")
    problem = f"{bad['kind']}: {bad['message']}"
    status: Status = "could-not-look" if DEVICE_ERRORS.search(problem) else "fail"
    return _answer(status, f"{script.name}: {problem}")


def _answer(status: Status, summary: str) -> Check:
    return Check(id="gpu", status=status, summary=summary)
