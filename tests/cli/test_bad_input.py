"""Bad input to a build ends in a clear error and the exit code of its class; nothing is lost."""

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from wheelfarm.build.workspace import require_plain_path

POLICY = """\
platforms: [linux_x86_64]
python_min: "3.10"
supported_cudas: ["13.0"]
min_pytorch: "2.14"
floor: native
arch_policy: {"13.0": "8.0+PTX"}
"""
RECIPE = """\
name: demo
version: "1.0"
source: {path: ../../demo-1.0.tar.gz}
links_torch: true
"""
PYTHON = f"cp{sys.version_info.major}{sys.version_info.minor}"
CELL = f"demo-1.0-cu130-torch2.14-{PYTHON}-linux_x86_64"


def wheelfarm(*words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "wheelfarm", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
        timeout=120,
    )


def write_sdist(farm: Path, text: str) -> None:
    with tarfile.open(farm / "demo-1.0.tar.gz", "w:gz") as archive:
        info = tarfile.TarInfo("demo-1.0/setup.py")
        info.size = len(text)
        archive.addfile(info, io.BytesIO(text.encode()))


@pytest.fixture
def farm(tmp_path: Path) -> Path:
    folder = tmp_path / "farm"
    (folder / "recipes" / "demo").mkdir(parents=True)
    (folder / "farm.yml").write_text(POLICY, encoding="utf-8")
    (folder / "recipes/demo/recipe.yml").write_text(RECIPE, encoding="utf-8")
    write_sdist(folder, "raise SystemExit('never built')\n")
    done = wheelfarm("lock", "--farm", str(folder))
    assert done.returncode == 0, done.stderr
    return folder


def build(farm: Path, cell: str = CELL, **variables: str) -> "subprocess.CompletedProcess[str]":
    return wheelfarm("build", cell, "--farm", str(farm), **variables)


def refused(done: "subprocess.CompletedProcess[str]", code: int, *words: str) -> None:
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr
    assert "  next:  " in done.stderr


def test_an_unknown_package(farm: Path) -> None:
    refused(build(farm, CELL.replace("demo", "demi")), 4, "no recipe of demi", "did you mean demo")


def test_a_cell_outside_the_grid(farm: Path) -> None:
    done = build(farm, CELL.replace("torch2.14", "torch2.13"))
    refused(done, 4, "has no cell", "min_pytorch is 2.14", CELL)


def test_what_is_no_cell(farm: Path) -> None:
    refused(build(farm, "demo-cp311"), 4, "is no cell identifier")


def test_another_hash_than_the_locks(farm: Path) -> None:
    write_sdist(farm, "import os\n")
    done = build(farm)
    assert done.returncode == 4, done.stderr
    assert "expected" in done.stderr
    assert "sha256" in done.stderr


def test_a_patch_that_does_not_apply(farm: Path) -> None:
    patches = farm / "recipes/demo/patches"
    patches.mkdir()
    (patches / "01.patch").write_text(
        "--- a/setup.py\n+++ b/setup.py\n@@ -1 +1 @@\n-other\n+new\n", encoding="utf-8"
    )
    recipe = farm / "recipes/demo/recipe.yml"
    recipe.write_text(f"{RECIPE}patches: [patches/*.patch]\n", encoding="utf-8")
    refused(build(farm), 4, "01.patch does not apply", "make it anew")


def test_no_compiler(farm: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    refused(build(farm, PATH=str(tmp_path / "bin")), 2, "g++ is not on PATH", "apt-get install g++")


def test_a_source_that_is_not_locked(farm: Path) -> None:
    (farm / "farm.lock").unlink()
    refused(build(farm), 4, "not in farm.lock", "wheelfarm lock demo")


def test_a_wheel_without_a_report_is_not_published(farm: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "demo-1.0+cu130torch2.14-cp311-cp311-linux_x86_64.whl"
    wheel.write_bytes(b"PK")
    done = wheelfarm("publish", str(wheel), "--farm", str(farm))
    assert done.returncode == 4, done.stderr
    assert "there is no report" in done.stderr
    assert not list(farm.rglob("store/**/*.whl"))


@pytest.mark.parametrize("count", ["0", "-2"])
def test_no_number_of_shards_is_a_usage_error(farm: Path, count: str) -> None:
    done = wheelfarm("build", CELL, "--farm", str(farm), "--shards", count)
    assert done.returncode == 64
    assert "is no number of shards" in done.stderr


@pytest.mark.parametrize(
    ("floor", "words"),
    [
        ("9.9", "9.9 is no version of glibc"),
        ("2.82", "no system with glibc 2.82 is known"),
        ("2.x", "expected a version of two numbers"),
    ],
)
def test_a_floor_of_no_system(farm: Path, floor: str, words: str) -> None:
    done = wheelfarm("build", CELL, "--farm", str(farm), "--floor", floor)
    assert done.returncode == 4
    assert words in done.stderr
    policy = farm / "farm.yml"
    policy.write_text(POLICY.replace("floor: native", f'floor: "{floor}"'))
    done = build(farm)
    assert done.returncode == 4
    assert words in done.stderr
    done = wheelfarm("lint", "--farm", str(farm))
    assert done.returncode == 4
    assert words in done.stdout + done.stderr
    assert not (farm / ".wheelfarm/cells").exists()


@pytest.mark.parametrize("option", ["--out", "--exchange"])
def test_a_file_where_the_result_should_go(farm: Path, option: str) -> None:
    file = farm / "a-file"
    file.write_text("mine")
    for place in (file, file / "below"):
        done = wheelfarm("build", CELL, "--farm", str(farm), option, str(place))
        refused(done, 4, f"{file} is a file where the ", " needs a folder")
    assert not (farm / ".wheelfarm/cells").exists()
    assert file.read_text() == "mine"


@pytest.mark.parametrize("option", ["--wheelhouse", "--exchange"])
def test_a_file_where_a_runs_results_should_go(farm: Path, option: str) -> None:
    plan, file = farm / "plan.json", farm / "a-file"
    plan.write_text(wheelfarm("plan", "--farm", str(farm), "--json").stdout)
    file.write_text("mine")
    done = wheelfarm("run", str(plan), "--farm", str(farm), option, str(file))
    refused(done, 4, f"{file} is a file where the ", " needs a folder")
    assert not (farm / ".wheelfarm").exists()


def test_what_is_neither_a_folder_nor_a_cell(farm: Path) -> None:
    refused(build(farm, "nosuchfolder"), 4, "is neither a folder that is there nor a cell")


def test_a_step_without_a_log_names_those_with_one(farm: Path) -> None:
    logs = farm / ".wheelfarm/cells" / CELL / "logs"
    logs.mkdir(parents=True)
    (logs / "compile.log").write_text("$ nvcc\n")
    done = wheelfarm("logs", CELL, "--farm", str(farm), "--step", "compiling")
    refused(done, 4, "no log of the step 'compiling'", "there are compile")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--store", "nowhere"), 2, "there is no store nowhere"),
        (("--site", "nowhere"), 4, "nowhere is no site"),
    ],
)
def test_an_audit_of_what_is_not_there(
    farm: Path, words: tuple[str, str], code: int, said: str
) -> None:
    refused(wheelfarm("audit", "--farm", str(farm), *words), code, said)
    assert wheelfarm("audit", "--farm", str(farm)).returncode == 1, "its own store may be to come"


@pytest.mark.parametrize("name", ["my farm", "farm:1", "it's", "a$b", "tab\tfarm"])
def test_a_path_that_compilers_cannot_take(farm: Path, name: str) -> None:
    moved = farm.rename(farm.with_name(name))
    done = build(moved)
    refused(done, 4, "nothing can be built below", "its path has")
    assert not (moved / ".wheelfarm" / "cells").exists()


def test_a_cache_that_compilers_cannot_take(farm: Path, tmp_path: Path) -> None:
    done = build(farm, WHEELFARM_CACHE=str(tmp_path / "my cache"))
    refused(done, 4, "my cache", "set WHEELFARM_CACHE")


def test_other_letters_are_plain(tmp_path: Path) -> None:
    for name in ("farm-1.0_x+y", "bäume", "農場", "é" * 40):
        require_plain_path(tmp_path / name, "")
