"""Lint: what a farm's files say wrongly though they can be read."""

import json
from pathlib import Path

import pytest

from tests.recipes.farms import POLICY, recipe, write_farm
from wheelfarm.cli import main
from wheelfarm.recipes.load import load_farm
from wheelfarm.recipes.lock import FarmLock, LockedArchive, LockEntry, load_lock
from wheelfarm.recipes.lock_file import save_lock
from wheelfarm.recipes.patch_digest import patch_digest
from wheelfarm.values import replace


def locked(folder: Path, verdicts: dict[str, str]) -> None:
    """Lock every recipe, with the survey's verdict as it is given."""
    farm = load_farm(folder)
    entries = {
        name: LockEntry(
            spec=str(recipe.source),
            source=LockedArchive(url="https://a.example/x", file_name="x", sha256="0" * 64),
            version=recipe.version,
            survey=verdicts.get(name, recipe.torch_axis),
            evidence="setup.py:1: it says so",
            patches=patch_digest(recipe),
        )
        for name, recipe in farm.recipes.items()
    }
    save_lock(farm, FarmLock(entries=entries))


def findings(
    folder: Path, capsys: pytest.CaptureFixture[str], *packages: str
) -> list[tuple[str, str, str, str]]:
    status = main(["lint", "--farm", str(folder), "--json", *packages])
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "wheelfarm.lint/1"
    assert status == (4 if document["faults"] else 0)
    keys = ("package", "rule", "level", "message")
    return [tuple(item[key] for key in keys) for item in document["findings"]]


def test_a_sound_farm_has_no_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_farm(tmp_path, {"a": recipe("a", "links_torch: true")})
    locked(folder, {})
    assert findings(folder, capsys) == []


@pytest.mark.parametrize(
    ("line", "verdict", "expected"),
    [
        ("", "linked", ("axis-stated", "fault")),
        ("links_torch: true", "", ("axis-surveyed", "fault")),
        ("links_torch: false", "linked", ("axis-agrees", "fault")),
        ("links_torch: true", "free", ("axis-agrees", "warning")),
        ("links_torch: true", "unknown", ("axis-agrees", "warning")),
        ("links_torch: false", "optional", ("axis-agrees", "warning")),
        ("links_torch: false", "mixed", ("axis-agrees", "warning")),
        ('links_torch: true\nmin_pytorch: "2.10"', "linked", ("reason", "fault")),
        ('links_torch: true\narch_list: "7.0"\nreasons: {arch_list: x}', "linked",
         ("architectures", "fault")),
        (('links_torch: true\nbuild_matrix: {combinations: [{cuda: "12.1", pytorch: "2.4"}]}\n'
         "reasons: {build_matrix: x}"), "linked", ("build-matrix", "fault")),
        ('links_torch: true\nenv: {PATH: "/opt/bin"}', "linked", ("env", "fault")),
        ('links_torch: true\nenv: {TORCH_CUDA_ARCH_LIST: "9.0"}', "linked", ("env", "fault")),
        ('links_torch: true\nmin_pytorch: "9.0"\nreasons: {min_pytorch: x}', "linked",
         ("empty", "fault")),
    ],
)  # fmt: skip
def test_each_rule_has_a_recipe_that_breaks_it(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    line: str,
    verdict: str,
    expected: tuple[str, str],
) -> None:
    folder = write_farm(tmp_path, {"a": recipe("a", line)})
    locked(folder, {"a": verdict})
    found = {(rule, level) for _, rule, level, _ in findings(folder, capsys)}
    assert expected in found


@pytest.mark.parametrize(
    ("line", "policy", "overrides"),
    [
        ("libstdcxx: shared", "", False),
        ("libstdcxx: static", "", True),
        ('floor: "2.28"', "", False),
        ('floor: "2.17"', "", True),
        ('floor: "2.28"', "floor: native\n", True),
        ("requirements: pinned", "", False),
        ("requirements: blank", "", True),
        ("requirements: blank", "defaults: {requirements: blank}\n", False),
        ('min_pytorch: "2.10"', 'min_pytorch: "2.10"\n', False),
        ('min_pytorch: "2.10"', "", True),
    ],
)
def test_only_what_departs_from_the_policy_needs_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, policy: str, overrides: bool
) -> None:
    text = recipe("a", "links_torch: true", line)
    folder = write_farm(tmp_path, {"a": text}, POLICY + policy)
    locked(folder, {})
    assert any(rule == "reason" for _, rule, *_ in findings(folder, capsys)) == overrides
    # A reason is welcome all the same.
    (folder / "recipes/a/recipe.yml").write_text(
        f"{text}reasons: {{{line.partition(':')[0]}: why}}\n"
    )
    assert not any(rule == "reason" for _, rule, *_ in findings(folder, capsys))


def test_a_mixed_tree_is_rightly_linked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_farm(tmp_path, {"a": recipe("a", "links_torch: true")})
    locked(folder, {"a": "mixed"})
    assert findings(folder, capsys) == []


def test_unlocked_and_versionless_sources(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        f"name: b\nlinks_torch: true\nsource: {{git: 'https://a.example/b', commit: {'b' * 40}}}\n"
    )
    folder = write_farm(tmp_path, {"a": recipe("a", "links_torch: true"), "b": text})
    locked(folder, {})
    farm = load_farm(folder)
    entries = dict(load_lock(farm).entries)
    save_lock(farm, FarmLock(entries={"b": entries["b"]}))
    found = {(package, rule) for package, rule, _, _ in findings(folder, capsys)}
    assert found == {("a", "axis-surveyed"), ("a", "locked"), ("b", "version")}
    assert {package for package, *_ in findings(folder, capsys, "b")} == {"b"}


def test_a_survey_of_other_patches_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_farm(tmp_path, {"a": recipe("a", "links_torch: true", "patches: [x.patch]")
                                   .replace("\npatches", "\n#patches")})  # fmt: skip
    locked(folder, {})
    (folder / "recipes/a/x.patch").write_text("")
    write_farm(tmp_path, {"a": recipe("a", "links_torch: true", "patches: [x.patch]")})
    ((package, rule, level, message),) = findings(folder, capsys)
    assert (package, rule, level) == ("a", "axis-surveyed", "fault")
    assert "the patches changed since the survey" in message


def test_a_sibling_that_is_never_built_with_the_local_tag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipes = {
        "spconv": recipe(
            "spconv", "links_torch: true", 'requires_dist: ["cumm=={VER:cumm}+{LOCAL}"]'
        ),
        "cumm": recipe("cumm", "links_torch: false"),
    }
    folder = write_farm(tmp_path, recipes)
    locked(folder, {})
    ((package, rule, level, message),) = findings(folder, capsys)
    assert (package, rule, level) == ("spconv", "sibling", "fault")
    assert "requires cumm with the local tag cu124torch2.4 on linux_x86_64" in message
    assert "cumm (free) is not built with" in message


def test_aarch64_without_any_line_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = POLICY.partition("arch_policy_aarch64")[0]
    folder = write_farm(tmp_path, {"a": recipe("a", "links_torch: true")}, policy)
    locked(folder, {})
    assert [item[:3] for item in findings(folder, capsys)] == [("", "aarch64", "warning")]


def test_unknown_packages_are_named(tmp_path: Path) -> None:
    folder = write_farm(tmp_path, {"flash_attn": recipe("flash-attn")})
    with pytest.raises(Exception, match="the farm has no package 'flash_atn'"):
        main(["lint", "--farm", str(folder), "flash_atn"])
    assert replace(load_farm(folder).recipes["flash_attn"], name="x").package == "x"
