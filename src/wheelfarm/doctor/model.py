"""What the doctor says: one diagnosis per compiled package, and what is odd of the environment."""

from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["ok", "broken", "warning", "unknown"]
#: What is wrong, as a word for tools.
Kind = Literal[
    "fine",
    "torch",
    "cuda",
    "abi",
    "gpu",
    "glibc",
    "library",
    "python",
    "mixed",
    "driver",
    "unreadable",
    "source-build",
    "toolkit",
    "other",
]

DOCTOR_SCHEMA = "wheelfarm.doctor/1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing that keeps a package from loading or running; ``evidence`` are the facts.

    ``command`` mends it; empty where no command does.
    """

    kind: Kind
    status: Status
    summary: str
    evidence: tuple[str, ...] = ()
    command: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON has it."""
        return {
            "kind": self.kind,
            "status": self.status,
            "summary": self.summary,
            "evidence": list(self.evidence),
            "command": self.command,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """A package (empty for the environment itself), its version, and what was found."""

    package: str
    version: str
    findings: tuple[Finding, ...]

    @property
    def status(self) -> Status:
        """The worst of its findings."""
        order: tuple[Status, ...] = ("broken", "unknown", "warning")
        found = {finding.status for finding in self.findings}
        return next((status for status in order if status in found), "ok")

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as JSON has it."""
        return {
            "package": self.package,
            "version": self.version,
            "status": self.status,
            "findings": [finding.to_dict() for finding in self.findings],
        }
