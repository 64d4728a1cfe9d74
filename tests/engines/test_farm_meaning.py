"""What a plan was made from: how a farm's files are written counts for nothing."""

import json
import shutil
from pathlib import Path

import pytest

from wheelfarm.engines.farm_meaning import recipe_digest
from wheelfarm.recipes.load import load_farm


def _edited(root: Path, name: str, old: str, new: str) -> str:
    """Return the hash of what a farm means once a text of one of its files is another."""
    path = root / name
    before = path.read_text() if path.exists() else ""
    assert not old or old in before
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(before.replace(old, new, 1) if old else before + new)
    try:
        return recipe_digest(load_farm(root))
    finally:
        if before:
            path.write_text(before)
        else:
            path.unlink()


PATCHED = """
name: patched
source: {pypi: patched==1.0}
links_torch: true
patches: [patches/*.patch]
env: {FIRST: "1", SECOND: "2"}
"""


@pytest.fixture
def patched_farm(tmp_path: Path) -> Path:
    root = tmp_path / "patched"
    (root / "recipes/patched/patches").mkdir(parents=True)
    (root / "recipes/patched/recipe.yml").write_text(PATCHED)
    (root / "recipes/patched/patches/a.patch").write_text("--- a\n")
    policy = "platforms: [linux]\npython_min: '3.11'\nsupported_cudas: ['13.0']\n"
    (root / "farm.yml").write_text(policy + "arch_policy: {'13.0': '8.0'}\n")
    entry = {
        "source": "pypi patched==1.0", "version": "1.0", "file": "patched-1.0.tar.gz",
        "url": "https://one.test/patched-1.0.tar.gz", "sha256": "0" * 64,
        "survey": "linked", "evidence": "setup.py:1", "patches": "0" * 16,
    }  # fmt: skip
    document = {"schema": "wheelfarm.farm-lock/1", "packages": {"patched": entry}}
    (root / "farm.lock").write_text(json.dumps(document))
    return root


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("farm.yml", "", "# a remark\n"),
        ("farm.yml", "'3.11'", '"3.11"'),
        ("farm.yml", "", "free_threaded: false\n"),
        ("recipes/patched/recipe.yml", "links_torch: true", "torch_axis: linked"),
        ("recipes/patched/recipe.yml", '{FIRST: "1", SECOND: "2"}', '{SECOND: "2", FIRST: "1"}'),
        ("recipes/patched/recipe.yml", "", "\n\n# the end\n"),
        ("recipes/patched/README.md", "", "what was patched, and why\n"),
        ("recipes/shared/notes.txt", "", "nothing runs that could read this\n"),
        ("farm.lock", "https://one.test", "https://other.test"),
        ("farm.lock", "setup.py:1", "setup.py:2"),
        ("farm.lock", '"packages"', '\n   "packages"'),
    ],
)
def test_what_means_the_same_makes_no_other_plan(
    patched_farm: Path, name: str, old: str, new: str
) -> None:
    before = recipe_digest(load_farm(patched_farm))
    assert _edited(patched_farm, name, old, new) == before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("farm.yml", "'8.0'", "'9.0'"),
        ("farm.yml", "", "floor: native\n"),
        ("farm.yml", "", "defaults: {max_jobs: 2}\n"),
        ("recipes/patched/recipe.yml", "links_torch: true", ""),
        ("recipes/patched/recipe.yml", '"2"', '"3"'),
        ("recipes/patched/recipe.yml", "", "sharding: 2\n"),
        ("recipes/patched/recipe.yml", "", "verify: {skip_arch: why}\n"),
        ("recipes/patched/patches/a.patch", "", "+++ a\n"),
        ("recipes/patched/patches/b.patch", "", "--- b\n"),
        ("farm.lock", "0" * 64, "1" * 64),
        ("farm.lock", '"version": "1.0"', '"version": "1.1"'),
    ],
)
def test_what_means_something_else_makes_another_plan(
    patched_farm: Path, name: str, old: str, new: str
) -> None:
    before = recipe_digest(load_farm(patched_farm))
    assert _edited(patched_farm, name, old, new) != before


@pytest.mark.parametrize("name", ["recipes/patched/data.txt", "recipes/shared/data.txt"])
def test_what_a_script_may_read_counts(patched_farm: Path, name: str) -> None:
    recipe = patched_farm / "recipes/patched/recipe.yml"
    recipe.write_text(PATCHED + "pre_build_script: cp ../data.txt .\n")
    before = recipe_digest(load_farm(patched_farm))
    assert _edited(patched_farm, name, "", "data\n") != before


def test_a_farm_means_the_same_in_every_folder(patched_farm: Path, tmp_path: Path) -> None:
    before = recipe_digest(load_farm(patched_farm))
    (tmp_path / "deep/er").mkdir(parents=True)
    shutil.copytree(patched_farm, tmp_path / "deep/er/farm")
    (tmp_path / "link").symlink_to(patched_farm)
    assert recipe_digest(load_farm(tmp_path / "deep/er/farm")) == before
    assert recipe_digest(load_farm(tmp_path / "link")) == before
