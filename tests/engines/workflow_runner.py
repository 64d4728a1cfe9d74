"""Runs rendered workflows as GitHub would, one job after the other, each in a folder of its own.

It honours needs, if, matrix, env, outputs, artifacts, caches and called workflows. A key or an
action that it does not know fails the test; a container is recorded, not started.
"""

import fnmatch
import itertools
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.engines.expressions import filled

WORKFLOW_KEYS = {"name", "on", "permissions", "concurrency", "env", "jobs"}
JOB_KEYS = {
    "name", "needs", "if", "runs-on", "container", "timeout-minutes", "permissions", "outputs",
    "strategy", "env", "steps", "uses", "with", "defaults",
}  # fmt: skip
STEP_KEYS = {"id", "name", "if", "run", "uses", "with", "env"}
STRATEGY_KEYS = {"fail-fast", "max-parallel", "matrix"}


def known(found: Mapping[str, Any], allowed: set[str], where: str) -> None:
    unknown = set(found) - allowed
    assert not unknown, f"{where}: the runner does not know {sorted(unknown)}"


@dataclass
class Ran:
    """One instance of a job: its name, result, outputs and what it ran."""

    name: str
    result: str = "success"
    outputs: dict[str, str] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)
    text: str = ""
    workspace: str = ""


@dataclass
class Runner:
    """A repository, and a folder for workspaces, artifacts and caches; ``path`` comes first."""

    repository: Path
    folder: Path
    path: Path
    secrets: dict[str, str] = field(default_factory=dict)
    attempt: int = 1
    ran: list[Ran] = field(default_factory=list)
    containers: set[str] = field(default_factory=set)
    runners: set[str] = field(default_factory=set)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def workspace(self, name: str) -> Path:
        """Return the folder in which the last job of a name ran."""
        return self.folder / next(ran.workspace for ran in reversed(self.ran) if ran.name == name)

    def run(self, workflow: str, inputs: Mapping[str, Any] | None = None) -> dict[str, Ran]:
        """Run a workflow; return each of its jobs as one."""
        text = (self.repository / ".github/workflows" / workflow).read_text(encoding="utf-8")
        # YAML 1.1 reads the key `on` as true.
        document = {("on" if key is True else key): v for key, v in yaml.safe_load(text).items()}
        known(document, WORKFLOW_KEYS, workflow)
        needs: dict[str, Ran] = {}
        waiting = dict(document["jobs"])
        while waiting:
            name = next(n for n, job in waiting.items() if set(job.get("needs", ())) <= set(needs))
            job = waiting.pop(name)
            known(job, JOB_KEYS, f"{workflow}: {name}")
            base = {
                "github": {"run_id": "1", "run_attempt": str(self.attempt), "token": "token"},
                "inputs": dict(inputs or {}),
                "secrets": self.secrets,
                "needs": {
                    n: {"outputs": needs[n].outputs, "result": needs[n].result}
                    for n in job.get("needs", ())
                },
            }
            needs[name] = self._job(name, job, base, document.get("env", {}))
        return needs

    def _job(
        self, name: str, job: dict[str, Any], base: dict[str, Any], env: Mapping[str, str]
    ) -> Ran:
        good = all(need["result"] == "success" for need in base["needs"].values())
        status = {"success": good, "always": True, "cancelled": False, "failure": not good}
        if not self._wanted(job, base, status, good=good):
            return Ran(name, result="skipped")
        strategy = job.get("strategy", {})
        known(strategy, STRATEGY_KEYS, f"{name}: strategy")
        together = Ran(name)
        for values in _instances(filled(strategy.get("matrix", {}), base, status)):
            contexts = {**base, "matrix": values}
            if "uses" in job:
                workflow = job["uses"].rpartition("/")[2]
                inner = self.run(workflow, filled(job.get("with", {}), contexts, status))
                results = {ran.result for ran in inner.values()}
                result = "failure" if "failure" in results else "success"
            else:
                one = self._steps(name, job, contexts, env)
                together.outputs |= one.outputs
                result = one.result
            if result == "failure":
                together.result = result
        return together

    @staticmethod
    def _wanted(
        item: Mapping[str, Any],
        contexts: Mapping[str, Any],
        status: Mapping[str, bool],
        *,
        good: bool,
    ) -> bool:
        condition = str(item.get("if", ""))
        # A condition without a status function has success() before it.
        if not any(f"{word}()" in condition for word in ("always", "cancelled", "failure")):
            return good and (not condition or bool(filled(condition, contexts, status)))
        return bool(filled(condition, contexts, status))

    def _steps(
        self, name: str, job: dict[str, Any], contexts: dict[str, Any], env: Mapping[str, str]
    ) -> Ran:
        ran = Ran(str(filled(job.get("name", name), contexts, {})))
        self.ran.append(ran)
        self.runners.add(filled(job["runs-on"], contexts, {}))
        assert job.get("defaults", {}) in ({}, {"run": {"shell": "bash"}})
        if "container" in job:
            self.containers.add(filled(job["container"]["image"], contexts, {}))
        workspace = self.folder / f"job{next(self._numbers)}"
        workspace.mkdir(parents=True)
        ran.workspace = workspace.name
        variables = {**env, **filled(job.get("env", {}), contexts, {})}
        steps: dict[str, Any] = {}
        for step in job["steps"]:
            known(step, STEP_KEYS, f"{name}: a step")
            good = ran.result == "success"
            status = {"success": good, "always": True, "cancelled": False, "failure": not good}
            inner = {**contexts, "steps": steps}
            if not self._wanted(step, inner, status, good=good):
                continue
            outputs: dict[str, str] | None
            if "run" in step:
                own = {**variables, **filled(step.get("env", {}), inner, status)}
                outputs = self._command(step["run"], workspace, own, ran)
            else:
                with_ = filled(step.get("with", {}), inner, status)
                outputs = self._action(step["uses"].partition("@")[0], with_, workspace)
            if outputs is None:
                ran.result = "failure"
            elif "id" in step:
                steps[step["id"]] = {"outputs": outputs}
        final = {**contexts, "steps": steps}
        ran.outputs = filled(job.get("outputs", {}), final, {})
        return ran

    def _command(
        self, command: str, workspace: Path, variables: Mapping[str, Any], ran: Ran
    ) -> dict[str, str] | None:
        assert "\n" not in command.strip(), f"more than one line: {command!r}"
        ran.commands.append(command)
        output = workspace.with_name(f"{workspace.name}.output")
        output.touch()
        done = subprocess.run(
            ["bash", "-e", "-c", command],
            cwd=workspace,
            env={
                **os.environ,
                **{key: str(value) for key, value in variables.items()},
                "PATH": f"{self.path}{os.pathsep}{os.environ['PATH']}",
                "GITHUB_OUTPUT": str(output),
                "GITHUB_ACTIONS": "true",
            },
            check=False,
            text=True,
            capture_output=True,
        )
        ran.text += f"$ {command}\n{done.stdout}{done.stderr}"
        if done.returncode:
            return None
        lines = output.read_text(encoding="utf-8").splitlines()
        output.write_text("")
        return dict(line.split("=", 1) for line in lines)

    def _action(self, name: str, given: dict[str, Any], workspace: Path) -> dict[str, str]:
        actions = {
            "actions/checkout": self._checkout,
            "actions/upload-artifact": self._upload,
            "actions/download-artifact": self._download,
            "actions/cache/restore": self._restore,
            "actions/cache/save": self._save,
        }
        assert name in actions, f"the runner does not know the action {name}"
        actions[name](given, workspace)
        return {}

    def _checkout(self, given: dict[str, Any], workspace: Path) -> None:
        known(given, {"persist-credentials"}, "checkout")
        ignored = shutil.ignore_patterns(".git", ".wheelfarm")
        shutil.copytree(
            self.repository, workspace, ignore=ignored, dirs_exist_ok=True, symlinks=True
        )

    def _upload(self, given: dict[str, Any], workspace: Path) -> None:
        known(given, {"name", "path", "if-no-files-found"}, "upload-artifact")
        source, target = workspace / given["path"], self.folder / "artifacts" / given["name"]
        assert source.exists(), f"no file to upload: {source}"
        assert not target.exists(), f"the artifact {given['name']} exists"
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            target.mkdir(parents=True)
            shutil.copy(source, target)

    def _download(self, given: dict[str, Any], workspace: Path) -> None:
        known(given, {"name", "pattern", "path", "merge-multiple"}, "download-artifact")
        pattern = given.get("name") or given["pattern"]
        assert "name" in given or given["merge-multiple"] is True
        target = workspace / given.get("path", ".")
        artifacts = self.folder / "artifacts"
        found = [path for path in artifacts.iterdir() if fnmatch.fnmatch(path.name, pattern)]
        assert found or "pattern" in given, f"no artifact {pattern}"
        for path in found:
            shutil.copytree(path, target, dirs_exist_ok=True)

    def _restore(self, given: dict[str, Any], workspace: Path) -> None:
        known(given, {"path", "key", "restore-keys"}, "cache/restore")
        caches = self.folder / "caches"
        caches.mkdir(exist_ok=True)
        prefix = given["restore-keys"]
        kept = sorted(path for path in caches.iterdir() if path.name.startswith(prefix))
        if kept:
            shutil.copytree(kept[-1], workspace / given["path"], dirs_exist_ok=True)

    def _save(self, given: dict[str, Any], workspace: Path) -> None:
        known(given, {"path", "key"}, "cache/save")
        source, target = workspace / given["path"], self.folder / "caches" / given["key"]
        # As the action does, an absent path and a key that exists are only warned of.
        if source.is_dir() and not target.exists():
            shutil.copytree(source, target)


def _instances(matrix: Any) -> list[dict[str, Any]]:
    if not matrix:
        return [{}]
    if "include" in matrix:
        assert set(matrix) == {"include"}
        assert 0 < len(matrix["include"]) <= 256
        return list(matrix["include"])
    names = list(matrix)
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*matrix.values())]
