"""Migration: the reference sample, and a farm of single files with every odd key."""

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from wheelfarm.cli import main
from wheelfarm.errors import BadInputError, FaultsError
from wheelfarm.model.platform import LINUX_X86_64
from wheelfarm.recipes.load import load_farm
from wheelfarm.recipes.migrate.values import reasons_of, variables_of
from wheelfarm.recipes.model import GitSource
from wheelfarm.upstream.facts import load_facts

POLICY = {
    "supported_cudas": ["12.8", "13.0"],
    "python_min": "3.10",
    "platforms": ["linux"],
    "defaults": {"max_jobs": 2, "free_disk_space": True},
    "combinations": [],
    "colour": "blue",
}
ARCHS = {"arch_policy": {"12.8": "8.0;9.0", "13.0": "8.0;9.0"}, "arch_exceptions": {}, "odd": 1}


def write_old(folder: Path, packages: dict[str, str], **policy: Any) -> Path:
    defaults = folder / "defaults"
    defaults.mkdir(parents=True)
    own = {**POLICY, **policy}
    (defaults / "python_cuda_torch_os_policy.yml").write_text(json.dumps(own))
    (defaults / "arch_policy.yml").write_text(json.dumps(ARCHS))
    for name, text in packages.items():
        path = folder / "packages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return folder


def migrate(old: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    capsys.readouterr()
    assert main(["migrate", str(old), "--out", str(out), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "wheelfarm.migrate/1"
    notes: list[dict[str, str]] = document["notes"]
    return notes


def said(notes: list[dict[str, str]], kind: str) -> set[tuple[str, str]]:
    return {(Path(note["file"]).name, note["key"]) for note in notes if note["kind"] == kind}


def test_the_sample_comes_over_whole(
    tmp_path: Path, shared_reference: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "farm"
    notes = migrate(shared_reference / "farm-sample", out, capsys)
    farm = load_farm(out)
    assert len(farm.recipes) == 11
    assert farm.recipes["flex_gemm"].folder.name == "flex_gemm"
    assert farm.recipes["llama_cpp_python"].torch_axis == "free"
    assert farm.recipes["llama_cpp_python"].env == {"CMAKE_ARGS": "-DGGML_CUDA=on"}
    assert farm.recipes["cumesh"].extra_cuda_components == ("curand", "cufft", "nvtx")
    assert farm.recipes["flash_attn"].shards_on[LINUX_X86_64] == 20
    assert farm.recipes["o_voxel"].requires_dist is not None
    assert "flex_gemm=={VER:flex_gemm}+{LOCAL}" in farm.recipes["o_voxel"].requires_dist
    assert str(farm.recipes["natten"].version) == "0.21.6"
    assert farm.recipes["torch_scatter"].version is None
    source = farm.recipes["torch_scatter"].source
    assert isinstance(source, GitSource)
    assert source.is_commit
    reason = "upstream supports less than the farm's policy."
    assert farm.recipes["natten"].reasons == dict.fromkeys(
        ("arch_list_by_cuda", "min_pytorch"), reason
    )
    assert len(load_facts(out / "upstream.json").releases) == 40
    assert said(notes, "left out") == {
        ("python_cuda_torch_os_policy.yml", "defaults.free_disk_space"),
        ("python_cuda_torch_os_policy.yml", "combinations"),
    }
    assert said(notes, "to do") == set()
    for package in ("cumm", "flash_attn"):
        assert (out / "recipes" / package / "patches" / f"{package}.py").is_file()
        assert (out / "recipes" / package / "README.md").is_file()


def test_the_migrated_sample_plans(
    tmp_path: Path, shared_reference: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "farm"
    migrate(shared_reference / "farm-sample", out, capsys)
    assert main(["plan", "--farm", str(out), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    cells: dict[str, set[str]] = {}
    for job in document["jobs"]:
        cells.setdefault(job["package"], set()).add(job["cell"])
    # cu124 is not built on aarch64 (6 of its 27 cells), so a line has 364 of 370 points.
    assert {name: len(found) for name, found in cells.items()} == {
        "cumesh": 364, "cumm": 90, "flash_attn": 364, "flex_gemm": 364, "llama_cpp_python": 90,
        "natten": 358, "o_voxel": 364, "sageattn3": 157, "torch_scatter": 364, "torchao": 173,
        "vllm": 10,
    }  # fmt: skip
    sage = [job for job in document["jobs"] if job["package"] == "sageattn3"]
    named = {(job["cell"].split("-")[2], job["torch"]) for job in sage}
    # The recipe names 2.9.0, where a row of the grid would pin 2.9.1.
    assert ("cu129", "2.9.0") in named
    windows = "sageattn3-1.0.0-cu129-torch2.9-cp310-windows_amd64"
    assert windows in cells["sageattn3"]
    assert len(document["refused"]) == sum(
        count for name, count in document["totals"].items() if name.startswith("refused")
    )


ODD = """\
name: odd
links_torch: false
source_repo: owner/odd
source_tag: v1.0
version: 1.10
min_pytorch: 2.10
extra_deps: numpy  scipy
extra_cuda_components: cublas_dev cuda_nvtx cudnn
patch_script: packages/patches/odd.py
pre_build_script: |
  # only variables
  echo "A=1" >> $GITHUB_ENV
  make configure
cuda_installer: network
free_disk_space: false
platforms: [linux]
sharding: 4
sharding_platforms: linux
colour: red
"""


def test_nothing_is_dropped_silently(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = write_old(tmp_path / "old", {"odd.yml": ODD, "patches/odd.py": "print()\n"})
    notes = migrate(old, tmp_path / "new", capsys)
    recipe = load_farm(tmp_path / "new").recipes["odd"]
    assert str(recipe.version) == "1.10"
    assert str(recipe.min_pytorch) == "2.10"
    assert recipe.extra_deps == ("numpy", "scipy")
    assert recipe.extra_cuda_components == ("cublas", "nvtx")
    assert "make configure" in recipe.pre_build_script
    assert recipe.patch_script is not None
    assert recipe.patch_script.read_text() == "print()\n"
    assert said(notes, "left out") == {
        ("odd.yml", "cuda_installer"),
        ("odd.yml", "free_disk_space"),
        ("odd.yml", "platforms"),
        ("odd.yml", "colour"),
        ("python_cuda_torch_os_policy.yml", "combinations"),
        ("python_cuda_torch_os_policy.yml", "defaults.free_disk_space"),
        ("python_cuda_torch_os_policy.yml", "colour"),
        ("arch_policy.yml", "odd"),
    }
    changed = {note["key"]: note["text"] for note in notes if note["kind"] == "changed"}
    assert changed["min_pytorch"] == (
        "2.10 was unquoted, so YAML read the number 2.1; now quoted: check"
    )
    to_do = {note["key"]: note["text"] for note in notes if note["kind"] == "to do"}
    assert to_do == {
        "extra_cuda_components": "cudnn is no part of the CUDA toolkit's wheels that is known",
        "min_pytorch": "the override has no written reason; give it in `reasons`",
    }


def hand_made(torch: str) -> str:
    return f"""\
        name: hand
        links_torch: {{links}}
        source_repo: owner/hand
        source_tag: v1.0
        build_matrix:
          combinations:
          - {{{{cuda: "12.8", pytorch: "{torch}"}}}}
          - {{{{cuda: "13.0", pytorch: "{torch}"}}}}
    """


MATRIX = {
    "combos": [
        {"cuda": cuda, "torch": torch, "python": python, "platform": "linux_x86_64"}
        for cuda in ("cu128", "cu130")
        for torch in ("2.9.0", "2.10.0")
        for python in ("3.10", "3.11")
    ]
}


@pytest.mark.parametrize(("links", "kept"), [("false", False), ("true", True)])
def test_rows_made_by_hand_go_where_the_axis_plans_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], links: str, *, kept: bool
) -> None:
    text = hand_made("2.10.0").format(links=links)
    old = write_old(tmp_path / "old", {"hand.yml": text})
    (old / "defaults" / "scraped_torch_matrix.json").write_text(json.dumps(MATRIX))
    notes = migrate(old, tmp_path / "new", capsys)
    recipe = load_farm(tmp_path / "new").recipes["hand"]
    assert (recipe.build_matrix is not None) is kept
    texts = [note["text"] for note in notes if note["key"] == "build_matrix"]
    assert any(text.startswith("the hand-made rows may go") for text in texts) is not kept
    assert main(["plan", "--farm", str(tmp_path / "new"), "--json"]) == 0
    jobs = json.loads(capsys.readouterr().out)["jobs"]
    assert sorted(job["cell"] for job in jobs) == [
        f"hand-1.0-cu{line}-torch2.10-cp{python}-linux_x86_64"
        for line in (128, 130)
        for python in (310, 311)
    ]


def test_a_floating_tag_is_said_and_the_new_farm_does_not_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "name: a\nlinks_torch: true\nsource_repo: o/a\nsource_tag: main\nversion: '1'\n"
    old = write_old(tmp_path / "old", {"a/package.yml": text})
    with pytest.raises(FaultsError, match="'main' is a floating ref"):
        main(["migrate", str(old), "--out", str(tmp_path / "new")])
    assert "source_tag" in capsys.readouterr().out
    assert (tmp_path / "new" / "recipes" / "a" / "recipe.yml").is_file()


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = write_old(tmp_path / "old", {"odd.yml": ODD, "patches/odd.py": ""})
    migrate(old, tmp_path / "new", capsys)
    with pytest.raises(BadInputError, match="is not empty"):
        main(["migrate", str(old), "--out", str(tmp_path / "new")])


@pytest.mark.parametrize(
    ("packages", "message"),
    [({}, "has neither packages"), ({"a.yml": "a: ["}, "this is no valid YAML")],
)
def test_what_is_no_farm_is_refused(tmp_path: Path, packages: dict[str, str], message: str) -> None:
    old = write_old(tmp_path / "old", packages)
    with pytest.raises(BadInputError, match=message):
        main(["migrate", str(old), "--out", str(tmp_path / "new")])
    assert not (tmp_path / "new").exists()


def test_a_scraped_matrix_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    old = write_old(tmp_path / "old", {"odd.yml": ODD, "patches/odd.py": ""})
    path = old / "defaults" / "scraped_torch_matrix.json"
    for text in ('{"combos": []}', '{"combos": [{"cuda": "cu128"', '{"combos": [{"cuda": "x"}]}'):
        path.write_text(text)
        with pytest.raises(BadInputError, match="scraped_torch_matrix"):
            main(["migrate", str(old), "--out", str(tmp_path / "new")])


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('echo "A=1 2" >> $GITHUB_ENV\n\necho B=3 >> "$GITHUB_ENV"\n', {"A": "1 2", "B": "3"}),
        ("echo 'A=x' >> ${GITHUB_ENV}", {"A": "x"}),
        ('echo "A=$HOME" >> $GITHUB_ENV', None),
        ('echo "A=1" > $GITHUB_ENV', None),
        ("echo A=1; make >> $GITHUB_ENV", None),
        ("make", None),
    ],
)
def test_scripts_that_only_set_variables(script: str, expected: dict[str, str] | None) -> None:
    assert variables_of(script) == expected


def test_reasons_stand_under_overrides() -> None:
    text = "# x\nwords\n## Overrides\na.yml, `b.yml`: too slow\nall of it\n# y\nc.yml: no\n"
    assert reasons_of(text) == {"a.yml": "too slow", "b.yml": "too slow", "": "all of it"}


def test_a_folder_of_packages_alone_gets_a_policy_to_decide_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "old"
    (old / "packages").mkdir(parents=True)
    (old / "packages" / "a.yml").write_text(
        "name: a\nlinks_torch: true\nsource_repo: o/a\nsource_tag: v1.0\n"
    )
    notes = migrate(old, tmp_path / "new", capsys)
    assert said(notes, "to do") == {("python_cuda_torch_os_policy.yml", "supported_cudas")}
    assert load_farm(tmp_path / "new").policy.supported_cudas


def test_rows_that_hold_wheels_back_are_left_to_decide(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        hand_made("2.10.0")
        .format(links="false")
        .replace('pytorch: "2.10.0"}', 'pytorch: "2.10.0", python_versions: ["3.10"]}', 1)
    )
    old = write_old(tmp_path / "old", {"hand.yml": text})
    (old / "defaults" / "scraped_torch_matrix.json").write_text(json.dumps(MATRIX))
    notes = migrate(old, tmp_path / "new", capsys)
    assert ("hand", "build_matrix") in said(notes, "to do")
    assert load_farm(tmp_path / "new").recipes["hand"].build_matrix is not None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "it has no name"),
        ("''", "it has no name"),
        ("{outside}", "is no valid package name"),
        ("../../outside", "is no valid package name"),
        ("a b", "is no valid package name"),
        ("x" * 300, "is no valid package name"),
        ("Six", "a second package is named six"),
    ],
)
def test_a_package_without_a_name_of_its_own_is_told_and_written_nowhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, why: str
) -> None:
    outside = tmp_path / "outside"
    old = write_old(
        tmp_path / "old",
        {
            "a/package.yml": "{name: six, version: '1.16', source: {pypi: six==1.16}}",
            "b/package.yml": f"name: {name.format(outside=outside)}\nversion: '1.0'\n",
        },
    )
    notes = migrate(old, tmp_path / "new", capsys)
    *_, note = (note for note in notes if note["key"] == "name")
    assert (note["file"], note["kind"]) == ("packages/b/package.yml", "to do")
    assert why in note["text"]
    assert "written nowhere" in note["text"]
    assert [path.name for path in (tmp_path / "new/recipes").iterdir()] == ["six"]
    assert not outside.exists()


def test_of_two_files_of_one_name_both_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = write_old(
        tmp_path / "old", {"a/package.yml": "{name: six, source_repo: a/b, source_tag: v1}"}
    )
    for folder in ("patches", "tools"):
        path = old / "packages/a" / folder / "fix.py"
        path.parent.mkdir()
        path.write_text(folder)
    migrate(old, tmp_path / "new", capsys)
    found = (tmp_path / "new/recipes/six").rglob("fix.py")
    assert {path.read_text() for path in found} == {"patches", "tools"}


def test_a_folder_that_is_not_there_is_no_empty_farm(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="nowhere is no folder"):
        main(["migrate", str(tmp_path / "nowhere"), "--out", str(tmp_path / "new")])
