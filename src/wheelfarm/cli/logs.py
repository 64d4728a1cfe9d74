"""``wheelfarm logs CELL``: what a cell's or a job's run wrote."""

import argparse
from pathlib import Path
from typing import Any

from wheelfarm.cli.farm_option import add_farm_option
from wheelfarm.cli.numbers import count
from wheelfarm.cli.output import clean, print_json


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    add_farm_option(parser)
    parser.add_argument("cell", metavar="CELL", help="a cell, or one of its jobs")
    parser.add_argument("--step", metavar="NAME", help="this step's log alone, such as compile")
    parser.add_argument("--tail", type=count, metavar="N", help="the last N lines of each log")


def execute(arguments: argparse.Namespace) -> int:
    """Print the logs; those of the job first, then of its steps."""
    from wheelfarm.build.workspace import Workspace
    from wheelfarm.errors import BadInputError
    from wheelfarm.model.cell import JobId

    job = JobId.parse(arguments.cell)
    workspace = Workspace.of(arguments.farm)
    found: dict[str, Path] = {}
    for path in sorted((workspace.root / "runs").glob("*/logs/*.log"), key=_age):
        name = path.name.removesuffix(".log")
        if path.stat().st_size and (name == str(job) or name.startswith(f"{job}-")):
            found[name] = path
    steps = workspace.cell(job.cell) / "logs"
    for path in sorted(steps.glob("*.log"), key=_age):
        found[path.name.removesuffix(".log")] = path
    if arguments.step is not None and found:
        if arguments.step not in found:
            message = f"there is no log of the step {arguments.step!r} of {arguments.cell}"
            raise BadInputError(message, hint=f"there are {', '.join(found)}")
        found = {arguments.step: found[arguments.step]}
    if not found:
        message = f"there is no log of {arguments.cell} below {workspace.root}"
        raise BadInputError(message, hint="`wheelfarm status` lists what was run")
    logs = {name: _text(path, arguments.tail) for name, path in found.items()}
    if arguments.json:
        document: dict[str, Any] = {
            "cell": str(job.cell),
            "logs": [
                {"name": name, "path": str(path), "text": logs[name]}
                for name, path in found.items()
            ],
        }
        print_json("wheelfarm.logs/1", document)
        return 0
    for name, path in found.items():
        print(f"=== {clean(name)}: {path}")
        for line in logs[name].splitlines():
            print(clean(line.replace("\t", "    ")))
    return 0


def _age(path: Path) -> float:
    return path.stat().st_mtime


def _text(path: Path, tail: int | None) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(lines if tail is None else lines[-tail:])
