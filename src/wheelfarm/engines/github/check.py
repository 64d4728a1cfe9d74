"""Rendered workflows in; what tools of the field find wrong with them out."""

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wheelfarm.run import run

#: Ours, and those of the ``ci`` extra: each is a program in a wheel, none needs a network.
CheckName = Literal["render", "zizmor", "actionlint", "schema"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkflowCheck:
    """One check: ``could-not-look`` where its tool is not installed."""

    id: CheckName
    status: Literal["pass", "fail", "could-not-look"]
    summary: str


def check_workflows(folder: Path, rendered: Mapping[str, str]) -> tuple[WorkflowCheck, ...]:
    """Check the workflows in a folder against a fresh rendering, and with every tool."""
    paths = [folder / name for name in rendered]
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        text = f"{folder} has no {', '.join(missing)}; `wheelfarm ci render` writes them"
        return (WorkflowCheck(id="render", status="fail", summary=text),)
    return (
        _same(folder, rendered),
        _tool("zizmor", ["zizmor", "--offline", "--no-progress", "--persona", "regular"], paths),
        _tool("actionlint", ["actionlint", "-no-color", "-shellcheck=", "-pyflakes="], paths),
        _tool(
            "schema",
            ["check-jsonschema", "--builtin-schema", "vendor.github-workflows"],
            paths,
        ),
    )


def _same(folder: Path, rendered: Mapping[str, str]) -> WorkflowCheck:
    changed = [
        name
        for name, text in rendered.items()
        if (folder / name).read_text(encoding="utf-8") != text
    ]
    if changed:
        text = f"{', '.join(changed)} is not what the farm renders; run `wheelfarm ci render`"
        return WorkflowCheck(id="render", status="fail", summary=text)
    return WorkflowCheck(id="render", status="pass", summary="a fresh rendering is identical")


def _tool(name: CheckName, command: list[str], paths: list[Path]) -> WorkflowCheck:
    # Beside this interpreter first: the extra that brings the tool was installed there.
    program = shutil.which(command[0], path=str(Path(sys.executable).parent)) or shutil.which(
        command[0]
    )
    if program is None:
        text = f"{command[0]} is not installed; pip install 'wheelfarm[ci]'"
        return WorkflowCheck(id=name, status="could-not-look", summary=text)
    done = run([program, *command[1:], *paths], check=False, timeout=120)
    if done.ok:
        return WorkflowCheck(id=name, status="pass", summary=f"{command[0]} found nothing")
    text = (done.stdout.strip() or done.stderr.strip())[-4000:]
    return WorkflowCheck(id=name, status="fail", summary=text)
