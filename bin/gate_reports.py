"""Print docs/gate-reports.md: what the gate finds in some wheels, as Markdown.

Usage: python bin/gate_reports.py WHEEL... > docs/gate-reports.md

The wheels are read as strangers' (no cell, no recipe, no import). Fetch them with
``pip download --no-deps``; the page names each by its file name and hash, so that anybody can.
"""

import sys
from pathlib import Path

from wheelfarm.facts.model import WheelFacts
from wheelfarm.verify.arch_checks import coverage
from wheelfarm.verify.batch import Task, verify_many
from wheelfarm.verify.report import Report
from wheelfarm.verify.summary import as_cell
from wheelfarm.wording import counted

HEAD = """# What the gate finds in published wheels

Written by `python bin/gate_reports.py WHEEL...`. Every wheel is read as a stranger's: no cell, no
recipe, no import. A failure here is a statement about the file, judged by the rules of
[verify](verify.md); it need not hurt the package's own users, who may install by other rules.
"""
WORDS = {"none": "none", "stable_abi": "stable ABI", "linked": "full library"}


def derived(facts: WheelFacts) -> str:
    """Return the derived facts of a wheel in one sentence."""
    linkage = facts.linkage
    torch = WORDS[linkage.torch]
    if linkage.stable_torch is not None:
        torch += f" (from torch {linkage.stable_torch})"
    parts = [
        f"torch: {torch}",
        f"CUDA: {linkage.cuda_major or 'none or several'}",
        f"newest PTX of CUDA: {linkage.toolkit or 'none'}",
        f"glibc: {linkage.glibc or 'none'}",
        f"Python ABI: {linkage.python}",
        f"needs a driver: {'yes' if linkage.needs_driver else 'no'}",
    ]
    return "; ".join(parts)


def modules(facts: WheelFacts) -> list[str]:
    """Return the different sets of architectures of the wheel's CUDA modules, with counts."""
    counts: dict[tuple[str, str], int] = {}
    for binary in facts.binaries:
        if binary.device_code:
            kind = "loose device file" if binary.kind == "device" else "CUDA module"
            key = (kind, coverage(binary))
            counts[key] = counts.get(key, 0) + 1
    rows = [(counted(count, kind), held) for (kind, held), count in sorted(counts.items())]
    return [f"- {count}: `{held}`" for count, held in rows[:8]]


def page(report: Report) -> str:
    """Return one wheel's part of the page."""
    facts = report.facts
    size = sum(member.size for member in facts.members)
    count = counted(len(facts.binaries), "binary", "binaries")
    lines = [
        f"## {facts.file_name}",
        "",
        f"`sha256:{facts.sha256}`, {facts.size:,} bytes, {size:,} unpacked, {count}.",
        f"Verdict: **{report.verdict}**.",
        "",
        derived(facts) + ".",
        "",
        *modules(facts),
        "",
        "| check | status | finding |",
        "|---|---|---|",
    ]
    passed = [check.id for check in report.checks if check.status == "pass"]
    lines += [
        f"| {check.id} | {check.status} | {as_cell(check.summary)} |"
        for check in report.checks
        if check.status != "pass"
    ]
    lines.append(f"| {', '.join(passed)} | pass | |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the page of the wheels that were named."""
    tasks = [Task(wheel=Path(word)) for word in sys.argv[1:]]
    reports = verify_many(tasks, workers=1)
    print("\n".join([HEAD, *(page(report) for report in reports)]).rstrip())


if __name__ == "__main__":
    main()
