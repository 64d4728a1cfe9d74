"""``wheelfarm ci render|check|matrix``: workflows for GitHub, their check, and their matrices."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wheelfarm.cli.farm_option import add_farm_option, farm_of
from wheelfarm.cli.output import clean, print_json

if TYPE_CHECKING:
    from wheelfarm.engines.github.render import RenderOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the sub-verbs."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True, dest="action")
    for name, text in (
        ("render", "write the farm's workflows"),
        ("check", "check them with zizmor, actionlint and the schema, and against a rendering"),
    ):
        action = actions.add_parser(name, help=text, description=text)
        add_farm_option(action)
        action.add_argument(
            "--repository", type=Path, default=Path(), metavar="DIR", help="its root (default: .)"
        )
        action.add_argument("--requirement", help="what pipx installs (default: this wheelfarm)")
    matrix = actions.add_parser("matrix", help="write a plan's matrices to $GITHUB_OUTPUT")
    matrix.add_argument("plan", type=Path, metavar="PLAN", help="the plan's file")
    matrix.add_argument("--batch", type=int, metavar="N", help="this batch's matrices")


def execute(arguments: argparse.Namespace) -> int:
    """Run the sub-verb that was asked for."""
    if arguments.action == "matrix":
        return _matrix(arguments)
    return _render(arguments) if arguments.action == "render" else _check(arguments)


def _rendered(arguments: argparse.Namespace) -> tuple[Path, dict[str, str]]:
    from wheelfarm.engines.github.render import FOLDER, render

    return arguments.repository / FOLDER, render(farm_of(arguments), _options(arguments))


def _options(arguments: argparse.Namespace) -> "RenderOptions":
    from wheelfarm.engines.github.render import RenderOptions
    from wheelfarm.errors import UsageError

    farm, root = arguments.farm.resolve(), arguments.repository.resolve()
    if not farm.is_relative_to(root):
        message = f"the farm {farm} is not in the repository {root}"
        raise UsageError(message)
    place = farm.relative_to(root).as_posix()
    if arguments.requirement is None:
        return RenderOptions(farm=place)
    return RenderOptions(farm=place, requirement=arguments.requirement)


def _render(arguments: argparse.Namespace) -> int:
    from wheelfarm import files

    folder, texts = _rendered(arguments)
    for name, text in texts.items():
        files.write_text(folder / name, text)
    if arguments.json:
        print_json("wheelfarm.ci-render/1", {"files": [str(folder / name) for name in texts]})
    else:
        for name in texts:
            print(folder / name)
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from wheelfarm.engines.github.check import check_workflows

    folder, texts = _rendered(arguments)
    checks = check_workflows(folder, texts)
    if arguments.json:
        rows = [{"id": c.id, "status": c.status, "summary": c.summary} for c in checks]
        print_json("wheelfarm.ci-check/1", {"checks": rows})
    else:
        for check in checks:
            print(f"{check.status:<15} {check.id}")
            for line in check.summary.splitlines():
                print(f"  {clean(line)}")
    statuses = {check.status for check in checks}
    return 1 if "fail" in statuses else 2 if "could-not-look" in statuses else 0


def _matrix(arguments: argparse.Namespace) -> int:
    from wheelfarm.engines.github.matrix import batches, matrices
    from wheelfarm.engines.plan_file import read_plan

    plan = read_plan(arguments.plan)
    if arguments.batch is None:
        outputs = {"batches": batches(plan)}
    else:
        outputs = matrices(plan, arguments.batch)
    if arguments.json:
        print_json("wheelfarm.ci-matrix/1", outputs)
        return 0
    text = "".join(f"{name}={value}\n" for name, value in outputs.items())
    target = os.environ.get("GITHUB_OUTPUT")
    if target:
        with Path(target).open("a", encoding="utf-8") as stream:
            stream.write(text)
    else:
        sys.stdout.write(text)
    return 0
