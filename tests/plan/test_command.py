"""The verbs grid and plan: stores that can and cannot be read, outputs, exit classes."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.recipes.farms import recipe, write_farm
from wheelfarm.build.workspace import Workspace
from wheelfarm.cli import main
from wheelfarm.engines.job_result import JobResult
from wheelfarm.engines.plan_file import read_plan
from wheelfarm.engines.record import RunRecord
from wheelfarm.errors import BadInputError, CouldNotLookError, UsageError
from wheelfarm.index.model import WheelEntry
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.store.directory import DirectoryStore
from wheelfarm.store.model import Record

POLICY = """\
platforms: [linux_x86_64]
python_min: "3.10"
supported_cudas: ["13.0"]
min_pytorch: "2.14"
arch_policy: {"13.0": "8.0+PTX"}
"""
CELL = "demo-1.0-cu130-torch2.14-cp311-linux_x86_64"


@pytest.fixture
def farm(tmp_path: Path) -> Path:
    recipes = {
        "demo": recipe("demo", "links_torch: true"),
        "split": recipe("split", "links_torch: true", "sharding: 3"),
    }
    return write_farm(tmp_path / "farm", recipes, POLICY)


def document_of(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def kept(name: str, *, axis: str = "linked", **changes: Any) -> Record:
    entry = WheelEntry(
        name=WheelName.parse(name),
        url=f"files/demo/{'0' * 64}/{name}",
        sha256="0" * 64,
        torch_axis="free" if axis == "free" else "linked",
        yanked=changes.get("yanked"),
    )
    return Record(
        entry=entry,
        report="0" * 64,
        uploaded="2026-01-01T00:00:00Z",
        removed=changes.get("removed", False),
    )


def store_with(folder: Path, *records: Record) -> Path:
    store = DirectoryStore(folder)
    store.replace("demo", {item.filename: item for item in records}, "")
    return folder


def test_a_fresh_farm_plans_everything(farm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = document_of(capsys, "plan", "--farm", str(farm))
    assert document["schema"] == "wheelfarm.plan/1"
    assert document["store"].endswith("store (not made yet)")
    assert (document["cells"], document["job_count"], document["batch_count"]) == (10, 25, 1)
    job = next(item for item in document["jobs"] if item["id"] == CELL)
    wanted = {"id", "package", "cell", "kind", "shard", "shards", "cost_minutes"}
    assert wanted <= set(job)
    assert (job["kind"], job["shard"], job["shards"], job["torch"]) == ("whole", 0, 1, "2.14.1")
    kinds = [item["kind"] for item in document["jobs"] if item["package"] == "split"]
    assert kinds == ["shard", "shard", "shard", "link"] * 5
    assert {item["reason"] for item in document["refused"]} == {
        "the farm's min_pytorch is 2.14",
        "the farm builds no free-threaded Pythons",
    }


def test_what_the_store_has_is_skipped(farm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [
        f"demo-1.0+cu130torch2.14-{tag}-{tag}-manylinux_2_28_x86_64.whl"
        for tag in ("cp310", "cp311", "cp312", "cp313")
    ]
    store_with(
        farm / "store",
        kept(names[0]),
        kept(names[1], yanked="it crashes"),
        kept(names[2], removed=True),
    )
    document = document_of(capsys, "plan", "--farm", str(farm), "--package", "demo")
    planned = {job["id"].split("-")[4]: job["build"] for job in document["jobs"]}
    # The names of yanked and removed wheels are taken, so what replaces them has a build tag.
    assert planned == {"cp311": 1, "cp312": 1, "cp313": 0, "cp314": 0}
    cell = CELL.replace("cp311", "cp310")
    assert document["existing"] == [{"cell": cell, "wheel": names[0]}]


def test_a_list_of_names_may_stand_for_the_store(
    farm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    have = tmp_path / "have.txt"
    have.write_text("demo-1.0+cu130torch2.14-cp311-cp311-manylinux_2_28_x86_64.whl\n\n")
    document = document_of(capsys, "plan", "--farm", str(farm), "--have", str(have), "--only", CELL)
    assert document["jobs"] == []


@pytest.mark.parametrize("words", [["--store", "nowhere"], ["--store", "s3://bucket"]])
def test_a_store_that_cannot_be_read_plans_nothing(
    farm: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises((CouldNotLookError, BadInputError)):
        main(["plan", "--farm", str(farm), *words])
    assert capsys.readouterr().out == ""


def test_the_policys_own_store_must_be_there(tmp_path: Path) -> None:
    recipes = {"demo": recipe("demo", "links_torch: true")}
    farm = write_farm(tmp_path / "farm", recipes, POLICY + "store: kept/wheels\n")
    with pytest.raises(CouldNotLookError, match="there is no such folder"):
        main(["plan", "--farm", str(farm)])


def test_a_damaged_catalogue_plans_nothing(farm: Path) -> None:
    store_with(farm / "store")
    (farm / "store" / "catalogue" / "demo.json").write_text('{"schema": "wheelfarm.cat')
    with pytest.raises(BadInputError, match="catalogue of demo"):
        main(["plan", "--farm", str(farm)])


def test_a_rebuild_needs_a_reason(farm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "demo-1.0+cu130torch2.14-cp311-cp311-manylinux_2_28_x86_64.whl"
    store_with(farm / "store", kept(name))
    for words in (["--rebuild"], ["--reason", "x"], ["--rebuild", "--reason", " "]):
        with pytest.raises(UsageError, match="--rebuild and --reason"):
            main(["plan", "--farm", str(farm), *words])
    words = ["plan", "--farm", str(farm), "--only", CELL, "--rebuild", "--reason", "new gcc"]
    (job,) = document_of(capsys, *words)["jobs"]
    assert (job["build"], job["reason"]) == (1, "new gcc")


def test_github_matrices(farm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--farm", str(farm), "--github-matrix"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert next(iter(document.items())) == ("schema", "wheelfarm.plan-matrices/1")
    (batch,) = document["batches"]
    assert len(batch["compile"]["include"]) == 20
    assert len(batch["link"]["include"]) == 5
    assert batch["link"]["include"][0]["kind"] == "link"
    assert batch["compile"]["include"][0]["python"] == "3.10"


def test_the_table_shows_totals_by_reason(farm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--farm", str(farm), "--budget-minutes", "50"]) == 0
    text = capsys.readouterr().out
    assert "2 cells, 2 jobs in 1 batch, 40 minutes" in text
    for line in ("      2  planned", "      8  over the budget", "refused: below min_pytorch"):
        assert line in text
    assert main(["plan", "--farm", str(farm), "--only", CELL, "--explain"]) == 0
    assert f"{CELL}  planned" in capsys.readouterr().out


def test_the_grid_explains_every_candidate(farm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grid", "demo", "--explain", "--farm", str(farm)]) == 0
    text = capsys.readouterr().out
    assert f"{CELL}  2.14.1               8.0+PTX        1" in text
    assert "cu130-torch2.13.0-cp315-linux_x86_64   refused   the farm's min_pytorch is 2.14" in text
    document = document_of(capsys, "grid", "--explain", "--farm", str(farm))
    (demo, _) = document["packages"]
    assert len(demo["decisions"]) == sum(demo["totals"].values())
    assert demo["cells"][0]["id"] == CELL.replace("cp311", "cp310")


def test_a_folder_that_is_no_store_is_not_an_empty_store(farm: Path, tmp_path: Path) -> None:
    # The farm's own folder in place of its store: nothing would exist, all would be built.
    with pytest.raises(CouldNotLookError, match="is no store: it has no folder 'catalogue'"):
        main(["plan", "--farm", str(farm), "--store", str(farm)])
    # What a first publish leaves when it is cut short is a store, in which nothing is published.
    cut = tmp_path / "cut"
    (cut / "files" / "demo").mkdir(parents=True)
    assert main(["plan", "--farm", str(farm), "--store", str(cut)]) == 0


def test_what_earlier_runs_took_is_the_cost(
    farm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "--farm", str(farm), "--json"]) == 0
    path = tmp_path / "plan.json"
    path.write_text(capsys.readouterr().out)
    plan = read_plan(path)
    result = JobResult(
        job=CELL,
        cell=CELL,
        package="demo",
        kind="whole",
        status="done",
        archs=1,
        seconds=180.0,
        steps={"compile": 170.0},
    )
    with RunRecord.of(Workspace.of(farm), plan).writing(plan, "local") as record:
        record.add(result)
    jobs = document_of(capsys, "plan", "--farm", str(farm))["jobs"]
    assert {job["cost_minutes"] for job in jobs if job["package"] == "demo"} == {3.0}
    assert {job["cost_minutes"] for job in jobs if job["kind"] == "shard"} == {6.67}


def test_a_store_of_ones_own_that_is_not_there_says_how_to_begin(farm: Path) -> None:
    (farm / "farm.yml").write_text(POLICY + "store: wheels\n", encoding="utf-8")
    with pytest.raises(CouldNotLookError, match="there is no such folder") as caught:
        main(["plan", "--farm", str(farm)])
    assert f"mkdir -p {farm / 'wheels'}" in caught.value.hint
    (farm / "wheels").write_text("", encoding="utf-8")
    with pytest.raises(CouldNotLookError, match="it is no folder"):
        main(["plan", "--farm", str(farm)])
    (farm / "wheels").unlink()
    (farm / "wheels").mkdir()
    assert main(["plan", "--farm", str(farm)]) == 0


def test_a_list_of_wheels_is_refused_with_its_line(farm: Path, tmp_path: Path) -> None:
    have = tmp_path / "have"
    have.write_text("demo-1.0-py3-none-any.whl\n\nplatforms: [linux]\n", encoding="utf-8")
    with pytest.raises(BadInputError, match="have, line 3: 'platforms") as caught:
        main(["plan", "--farm", str(farm), "--have", str(have)])
    assert caught.value.hint


@pytest.mark.parametrize("text", ["", "$ wheelfarm plan\n", '{"schema": "wheelfarm.error/1"}'])
def test_what_is_no_plan_says_where_plans_come_from(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInputError) as caught:
        read_plan(path)
    assert "wheelfarm plan --json" in caught.value.hint


@pytest.mark.parametrize("verb", ["plan", "grid", "lock", "audit"])
def test_a_farm_without_recipes_is_no_farm_with_nothing_to_do(tmp_path: Path, verb: str) -> None:
    folder = write_farm(tmp_path / "farm", {}, POLICY)
    (folder / "store").mkdir(exist_ok=True)
    with pytest.raises(BadInputError, match="has no recipe") as caught:
        main([verb, "--farm", str(folder)])
    assert "wheelfarm init" in caught.value.hint


def test_a_package_without_a_cell_is_told(farm: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = recipe("never", "links_torch: true", 'min_pytorch: "9.0"')
    (farm / "recipes" / "never").mkdir()
    (farm / "recipes" / "never" / "recipe.yml").write_text(text, encoding="utf-8")
    with caplog.at_level("WARNING"):
        assert main(["plan", "--farm", str(farm), "--json"]) == 0
    assert "never has no cell" in caplog.text
    assert "demo" not in caplog.text
    caplog.clear()
    assert main(["plan", "--farm", str(farm), "--package", "demo"]) == 0
    assert caplog.text == ""
