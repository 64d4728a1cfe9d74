"""Reports for GitHub: a job summary in Markdown and workflow commands that annotate.

Everything foreign is escaped: a wheel's name or a symbol must not become markup or a command.
Source: GitHub's "Workflow commands for GitHub Actions".
"""

import html
from collections.abc import Iterable, Iterator

from wheelfarm.verify.report import Check, Report

_MARKS = {"pass": "✅", "warn": "⚠️", "fail": "❌", "could-not-look": "❔"}
_COMMANDS = {"fail": "error", "could-not-look": "error", "warn": "warning"}


def markdown(reports: Iterable[Report]) -> str:
    """Return the job summary of some reports."""
    lines: list[str] = []
    for report in reports:
        lines += [f"### {_MARKS[report.verdict]} {_code(report.wheel)}", ""]
        lines += [f"Cell {_code(report.cell)}", ""] if report.cell else []
        lines += ["| check | status | finding |", "|---|---|---|"]
        lines += [_row(check) for check in report.checks]
        lines += [
            f"| {name} | not asked | {as_cell(reason)} |" for name, reason in report.not_asked
        ]
        lines += ["", *(f"Exempt: {as_cell(_knob)}" for _knob in _knobs(report)), ""]
    return "\n".join(lines)


def _row(check: Check) -> str:
    return f"| {check.id} | {_MARKS[check.status]} {check.status} | {as_cell(check.summary)} |"


def _knobs(report: Report) -> Iterator[str]:
    return (f"{knob.field}: {knob.value} ({knob.reason})" for knob in report.knobs)


def as_cell(text: str) -> str:
    """Return foreign text as one table cell: no markup, no column, no line of its own."""
    clean = "".join(char if char.isprintable() else " " for char in text)
    escaped = html.escape(clean, quote=False)
    for char in "\\`*_[]|~":
        escaped = escaped.replace(char, f"\\{char}")
    return escaped


def _code(text: str) -> str:
    clean = "".join(char if char.isprintable() else " " for char in text)
    return f"<code>{html.escape(clean)}</code>"


def annotations(reports: Iterable[Report]) -> Iterator[str]:
    """Yield one workflow command for each check that did not pass."""
    for report in reports:
        for check in report.checks:
            command = _COMMANDS.get(check.status)
            if command is not None:
                title = _property(f"{report.wheel}: {check.id}")
                yield f"::{command} title={title}::{_data(check.summary)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
