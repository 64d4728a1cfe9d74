"""The report: what the gate found of one wheel, as values and as a versioned JSON document."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from wheelfarm.facts.document import facts_from_dict, facts_to_dict
from wheelfarm.facts.model import WheelFacts
from wheelfarm.reading import Reader

SCHEMA = "wheelfarm.report/1"
#: Raised whenever a check is added or judges otherwise, so that old reports can be told apart.
GATE_VERSION = 4

Status = Literal["pass", "warn", "fail", "could-not-look"]
STATUSES: tuple[Status, ...] = get_args(Status)
Verdict = Literal["pass", "fail", "could-not-look"]


def report_path(wheel: Path) -> Path:
    """Return where a wheel's report lies beside the wheel."""
    return wheel.with_name(f"{wheel.name}.report.json")


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One check's answer: a stable id, its status, one sentence, and what it rests on."""

    id: str
    status: Status
    summary: str
    evidence: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the check as JSON has it."""
        return {
            "id": self.id,
            "status": self.status,
            "summary": self.summary,
            "evidence": list(self.evidence),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Knob:
    """One exemption that a recipe asks of the gate: the field, its value, and the reason for it."""

    field: str
    value: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What the gate found of one wheel. ``cell`` is empty where the wheel was read as a stranger's.

    ``not_asked`` maps the checks that were not run to the reason; they have no say in the verdict.
    """

    wheel: str
    sha256: str
    cell: str
    checks: tuple[Check, ...]
    facts: WheelFacts
    knobs: tuple[Knob, ...] = ()
    not_asked: tuple[tuple[str, str], ...] = ()
    gate_version: int = GATE_VERSION

    @property
    def verdict(self) -> Verdict:
        """The whole answer: a failure weighs most, then what could not be looked at."""
        statuses = {check.status for check in self.checks}
        if "fail" in statuses:
            return "fail"
        return "could-not-look" if "could-not-look" in statuses else "pass"

    def with_status(self, status: Status) -> tuple[Check, ...]:
        """Return the checks that have a status."""
        return tuple(check for check in self.checks if check.status == status)

    def check(self, identifier: str) -> Check | None:
        """Return the check of an id, None where it was not run."""
        return next((check for check in self.checks if check.id == identifier), None)

    def to_dict(self, *, facts: bool = True) -> dict[str, Any]:
        """Return the report's document; without ``facts`` the part that a person reads."""
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "gate_version": self.gate_version,
            "wheel": self.wheel,
            "sha256": self.sha256,
            "cell": self.cell,
            "verdict": self.verdict,
            "checks": [check.to_dict() for check in self.checks],
            "knobs": [
                {"field": knob.field, "value": knob.value, "reason": knob.reason}
                for knob in self.knobs
            ],
            "not_asked": dict(self.not_asked),
        }
        if facts:
            document["facts"] = facts_to_dict(self.facts)
        return document

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], context: str = "report") -> "Report":
        """Read a report's document back (with its facts); FaultsError names what is wrong."""
        reader = Reader(data, context)
        if reader.string("schema") != SCHEMA:
            reader.fault(f"expected the schema {SCHEMA}", "schema")
        facts = reader.raw("facts")
        if not isinstance(facts, Mapping):
            reader.fault("the report has no facts", "facts")
        report_facts = reader.attempt(
            lambda: facts_from_dict(facts if isinstance(facts, Mapping) else {}, context), "facts"
        )
        knobs = tuple(
            Knob(
                field=knob.string("field"), value=knob.string("value"), reason=knob.string("reason")
            )
            for knob in reader.tables("knobs")
        )
        report = {
            "wheel": reader.string("wheel"),
            "sha256": reader.string("sha256"),
            "cell": reader.string("cell", ""),
        }
        checks = tuple(map(_check, reader.tables("checks")))
        version = reader.integer("gate_version")
        not_asked = tuple(reader.string_map("not_asked").items())
        reader.finish()
        if report_facts is None:  # pragma: no cover - finish has raised
            raise AssertionError
        return cls(
            **report,
            checks=checks,
            facts=report_facts,
            knobs=knobs,
            not_asked=not_asked,
            gate_version=version,
        )


def _check(reader: Reader) -> Check:
    word = reader.choice("status", STATUSES)
    return Check(
        id=reader.string("id"),
        status=next((status for status in STATUSES if status == word), "could-not-look"),
        summary=reader.string("summary"),
        evidence=reader.strings("evidence"),
    )
