"""A report of the gate as the proof without which no wheel enters the store."""

from pathlib import Path

from wheelfarm.errors import BadInputError
from wheelfarm.reading import parse_json
from wheelfarm.store.evidence import Declared
from wheelfarm.store.publish import Proof
from wheelfarm.verify.report import Report


def read_proof(path: Path, declared: Declared | None = None) -> Proof:
    """Read a report file; BadInputError where it is absent or no report."""
    try:
        data = path.read_bytes()
    except OSError as error:
        message = f"there is no report {path}"
        hint = "run wheelfarm verify --report, or name the file with --report"
        raise BadInputError(message, hint=hint) from error
    return proof_of(Report.from_dict(_table(data, path), str(path)), data, declared)


def proof_of(report: Report, data: bytes, declared: Declared | None = None) -> Proof:
    """Return the proof that a report gives, with the report's own bytes.

    A report without a single check proves nothing; one that is about another file than its facts
    is refused by ``publish``, as the hash of the facts is compared with the wheel.
    """
    failures = [f"{check.id}: {check.summary}" for check in report.with_status("fail")]
    failures += [
        f"{check.id} could not look: {check.summary}"
        for check in report.with_status("could-not-look")
    ]
    if not report.checks:
        failures.append("the report has no checks")
    if report.sha256 != report.facts.sha256:
        failures.append("the report and its facts are about different files")
    return Proof(
        facts=report.facts,
        passed=report.verdict == "pass" and not failures,
        report=data,
        declared=declared or Declared(),
        failures=tuple(failures),
        warnings=tuple(f"{check.id}: {check.summary}" for check in report.with_status("warn")),
    )


def _table(data: bytes, path: Path) -> dict[str, object]:
    document = parse_json(data, str(path))
    if not isinstance(document, dict):
        message = f"{path} is no report"
        raise BadInputError(message)
    return document
