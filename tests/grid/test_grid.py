"""The grid: rows, phantoms, refusals, named patches, axis collapse, on the reference matrix."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from tests.grid.grids import (
    facts_of,
    grid_of,
    make_policy,
    make_recipe,
    matrix_facts,
    names_of,
    reason_of,
    release,
)
from wheelfarm.grid.build import rows_against_axis
from wheelfarm.grid.rows import rows_of
from wheelfarm.model.arch import ArchList
from wheelfarm.model.platform import LINUX_X86_64, WINDOWS_AMD64
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor
from wheelfarm.recipes.model import BuildMatrix, Combination
from wheelfarm.upstream.facts import committed_facts
from wheelfarm.upstream.model import UpstreamFacts


@pytest.fixture(scope="module")
def facts(request: pytest.FixtureRequest) -> UpstreamFacts:
    return matrix_facts(request.getfixturevalue("shared_reference"))


def per_line(grid: Any) -> dict[str, int]:
    return Counter(str(cell.identifier.accelerator) for cell in grid.cells)


def test_collapse_plans_the_distinct_triples_of_a_line(facts: UpstreamFacts) -> None:
    linked = per_line(grid_of(make_recipe(), make_policy(), facts))
    free = per_line(grid_of(make_recipe(torch_axis="free"), make_policy(), facts))
    assert (free["cu126"], linked["cu126"]) == (17, 105)
    assert (free["cu129"], linked["cu129"]) == (16, 64)
    assert (free["cu124"], linked["cu124"]) == (11, 27)


def test_a_torch_free_cell_is_built_against_the_newest_torch_that_ships_it(
    facts: UpstreamFacts,
) -> None:
    names = names_of(grid_of(make_recipe(torch_axis="free"), make_policy("12.9"), facts))
    assert "demo-1.0-cu129-torch2.13-cp310-linux_x86_64" in names
    # PyTorch gave up Windows on this line after 2.8 (2.9.0 alone is no row's release).
    assert "demo-1.0-cu129-torch2.8-cp310-windows_amd64" in names
    assert not any("cp314-windows" in name for name in names)


def test_pythons_and_phantoms_come_from_the_pinned_patch(facts: UpstreamFacts) -> None:
    grid = grid_of(make_recipe(), make_policy("12.9"), facts)
    assert reason_of(grid, "cu129-torch2.9.1-cp310-windows_amd64") == (
        "phantom: PyTorch published a cu129 cp310 wheel for windows_amd64 of torch 2.9.0, not of "
        "2.9.1, which this row pins"
    )
    assert reason_of(grid, "cu129-torch2.10.0-cp310-windows_amd64") == (
        "phantom: PyTorch published no cu129 cp310 wheel for windows_amd64 of torch 2.10.0"
    )
    assert not any(str(item.point).startswith("cu129-torch2.9.0") for item in grid.decisions)


def test_a_named_patch_is_built_and_pinned(facts: UpstreamFacts) -> None:
    row = Combination(cuda=Minor(12, 9), torch=Minor(2, 9), release=Version("2.9.0"))
    matrix = BuildMatrix(combinations=(row,), platforms=(WINDOWS_AMD64,))
    grid = grid_of(make_recipe(build_matrix=matrix), make_policy("12.9"), facts)
    assert len(grid.cells) == 5
    assert {str(cell.cell.torch_release) for cell in grid.cells} == {"2.9.0"}
    assert all(cell.torch_pinned for cell in grid.cells)
    assert names_of(grid)[0] == "demo-1.0-cu129-torch2.9-cp310-windows_amd64"


def test_a_row_without_x86_wheels_is_no_row() -> None:
    facts = facts_of(
        release("cu130", "2.9.0", {"linux_x86_64": ["3.11"], "linux_aarch64": ["3.11"]}),
        release("cu130", "2.9.1", {"linux_aarch64": ["3.11", "3.12"]}),
        release("cu130", "2.10.0", {"linux_aarch64": ["3.11"]}),
        release("cu130", "2.11.0rc1", {"linux_x86_64": ["3.11"]}),
    )
    grid = grid_of(make_recipe(), make_policy("13.0"), facts)
    assert names_of(grid) == [
        "demo-1.0-cu130-torch2.9-cp311-linux_x86_64",
        "demo-1.0-cu130-torch2.9-cp311-linux_aarch64",
    ]
    assert "torch 2.9.1, not of 2.9.0" in reason_of(grid, "cu130-torch2.9.0-cp312-linux_aarch64")


@pytest.mark.parametrize(
    ("recipe", "policy", "point", "reason"),
    [
        ({"min_pytorch": Minor(2, 10)}, {}, "cu130-torch2.9.1-cp310-linux_x86_64",
         "the recipe's min_pytorch is 2.10"),
        ({}, {"min_pytorch": Minor(2, 10)}, "cu130-torch2.9.1-cp310-linux_x86_64",
         "the farm's min_pytorch is 2.10"),
        ({}, {"python_min": Minor(3, 11)}, "cu130-torch2.9.1-cp310-linux_x86_64",
         "the farm's python_min is 3.11"),
        ({"build_matrix": BuildMatrix(platforms=(LINUX_X86_64,))}, {},
         "cu130-torch2.9.1-cp310-windows_amd64",
         "the recipe's build_matrix leaves out windows_amd64"),
        ({"build_matrix": BuildMatrix(python_versions=(PythonTag.of_version("3.11"),))}, {},
         "cu130-torch2.9.1-cp310-linux_x86_64",
         "the recipe's build_matrix leaves out Python 3.10"),
        ({"python_axis": "abi3", "from_python": Minor(3, 11)}, {},
         "cu130-torch2.9.1-cp310-linux_x86_64", "the package's abi3 floor is Python 3.11"),
        ({"torch_axis": "stable_abi", "from_torch": Minor(2, 10)}, {},
         "cu130-torch2.9.1-cp310-linux_x86_64", "the package needs the stable ABI of torch 2.10"),
        ({}, {"arch_policy_aarch64": {}}, "cu130-torch2.9.1-cp310-linux_aarch64",
         "the farm builds no CUDA 13.0 on linux_aarch64 (no architectures)"),
        ({"arch_list": ArchList.parse("7.0")}, {}, "cu130-torch2.9.1-cp310-linux_x86_64",
         "7.0 is gone in CUDA 13: the last with it is CUDA 12.x"),
        ({"build_matrix": BuildMatrix(combinations=(
            Combination(cuda=Minor(13, 0), torch=Minor(2, 9), release=Version("2.9.7")),))}, {},
         "cu130-torch2.9.1-cp310-linux_x86_64", "PyTorch published no torch 2.9.7 for cu130"),
        ({"build_matrix": BuildMatrix(combinations=(
            Combination(cuda=Minor(12, 1), torch=Minor(2, 4)),))}, {},
         "cu121-torch2.4-cp310-linux_x86_64", "the farm does not build CUDA 12.1"),
        ({"build_matrix": BuildMatrix(combinations=(
            Combination(cuda=Minor(13, 0), torch=Minor(2, 4)),))}, {},
         "cu130-torch2.4-cp310-linux_x86_64", "PyTorch published no torch 2.4 for CUDA 13.0"),
    ],
)  # fmt: skip
def test_every_refusal_has_its_reason(
    facts: UpstreamFacts, recipe: dict[str, Any], policy: dict[str, Any], point: str, reason: str
) -> None:
    grid = grid_of(make_recipe(**recipe), make_policy("13.0", **policy), facts)
    assert reason_of(grid, point) == reason


def test_every_candidate_has_exactly_one_decision(facts: UpstreamFacts) -> None:
    for axis in ("linked", "free", "abi_flag"):
        grid = grid_of(make_recipe(torch_axis=axis), make_policy(), facts)
        points = [item.point for item in grid.decisions]
        assert len(points) == len(set(points))
        built = [item for item in grid.decisions if item.outcome == "built"]
        assert len(built) == len(grid.cells)
        assert all(item.reason for item in grid.decisions if item.outcome != "built")


def test_free_threaded_pythons_are_policy() -> None:
    facts = committed_facts()
    off = names_of(grid_of(make_recipe(), make_policy("13.2"), facts))
    on = names_of(grid_of(make_recipe(), make_policy("13.2", free_threaded=True), facts))
    assert not any("cp314t" in name for name in off)
    assert "demo-1.0-cu132-torch2.15-cp315t-linux_aarch64" in on


def test_abi3_collapses_pythons_and_leaves_free_threaded_ones_their_own() -> None:
    recipe = make_recipe(python_axis="abi3", from_python=Minor(3, 10))
    facts = committed_facts()
    grid = grid_of(recipe, make_policy("13.2", free_threaded=True), facts)
    names = [name for name in names_of(grid) if "torch2.15" in name and "x86_64" in name]
    assert sorted(names) == [
        "demo-1.0-cu132-torch2.15-cp310.abi3-linux_x86_64",
        "demo-1.0-cu132-torch2.15-cp314t-linux_x86_64",
        "demo-1.0-cu132-torch2.15-cp315t-linux_x86_64",
    ]
    (cell,) = (cell for cell in grid.cells if str(cell.identifier) == names[0])
    # torch 2.15 has no cp310 wheel: the lowest Python that it has builds the abi3 wheel.
    assert cell.python.dotted == "3.11"
    assert len(cell.serves) == 5


def test_py3_none_is_one_wheel_per_line_and_platform(facts: UpstreamFacts) -> None:
    recipe = make_recipe(torch_axis="free", python_axis="none")
    assert names_of(grid_of(recipe, make_policy("12.9"), facts)) == [
        "demo-1.0-cu129-torch2.13-py3-linux_x86_64",
        "demo-1.0-cu129-torch2.13-py3-linux_aarch64",
        "demo-1.0-cu129-torch2.8-py3-windows_amd64",
    ]


def test_the_stable_abi_is_built_against_its_floor(facts: UpstreamFacts) -> None:
    recipe = make_recipe(torch_axis="stable_abi", from_torch=Minor(2, 9))
    grid = grid_of(recipe, make_policy("12.6"), facts)
    by_python = {
        cell.python.dotted: (str(cell.identifier.torch), str(cell.target))
        for cell in grid.cells
        if cell.identifier.platform == LINUX_X86_64
    }
    # No torch before 2.13 has a wheel for Python 3.15, so none earlier is lost.
    assert by_python["3.10"] == ("2.9", "2.9")
    assert by_python["3.15"] == ("2.13", "2.13")


def test_an_abi_flag_package_has_one_wheel_on_each_side_of_the_switch() -> None:
    both = {"linux_x86_64": ["3.11"], "linux_aarch64": ["3.11"], "windows": ["3.11"]}
    facts = facts_of(
        release("cu124", "2.5.1", both),
        release("cu124", "2.6.0", both),
        release("cu126", "2.6.0", both),
        release("cu126", "2.7.1", both),
    )
    names = names_of(
        grid_of(make_recipe(torch_axis="abi_flag"), make_policy("12.4", "12.6"), facts)
    )
    assert names == [
        # cu124: 2.5 and 2.6 use the old ABI on x86_64; aarch64 changed with 2.6; Windows has one.
        "demo-1.0-cu124-torch2.6-cp311-linux_x86_64",
        "demo-1.0-cu124-torch2.5-cp311-linux_aarch64",
        "demo-1.0-cu124-torch2.6-cp311-windows_amd64",
        "demo-1.0-cu124-torch2.6-cp311-linux_aarch64",
        "demo-1.0-cu126-torch2.7-cp311-linux_x86_64",
        "demo-1.0-cu126-torch2.7-cp311-linux_aarch64",
        "demo-1.0-cu126-torch2.7-cp311-windows_amd64",
    ]


def test_a_narrow_build_matrix_is_no_independence(facts: UpstreamFacts) -> None:
    rows = tuple(
        Combination(cuda=Minor.parse(cuda), torch=Minor(2, 13)) for cuda in ("12.6", "12.9")
    )
    matrix = BuildMatrix(combinations=rows)
    linked = grid_of(make_recipe(build_matrix=matrix), make_policy("12.6", "12.9"), facts)
    assert {item.outcome for item in linked.decisions} == {"built", "refused"}
    assert {str(cell.identifier.torch) for cell in linked.cells} == {"2.13"}


def test_hand_made_rows_are_redundant_only_where_nothing_changes(facts: UpstreamFacts) -> None:
    policy = make_policy("12.6", "12.9")
    rows = rows_of(policy, facts)
    newest = BuildMatrix(combinations=(
        Combination(cuda=Minor(12, 6), torch=Minor(2, 13)),
        Combination(cuda=Minor(12, 9), torch=Minor(2, 13)),
    ), platforms=(LINUX_X86_64,))  # fmt: skip
    narrow = BuildMatrix(combinations=newest.combinations[:1], platforms=(LINUX_X86_64,))

    def change(**changes: Any) -> str:
        return rows_against_axis(make_recipe(**changes), policy, facts, rows)

    assert change(torch_axis="free", build_matrix=newest) == "same"
    assert change(torch_axis="free", build_matrix=narrow) == "more"
    assert change(torch_axis="linked", build_matrix=newest) == "differ"
    assert change(torch_axis="free") == "differ"


def test_the_reference_folder_is_where_the_counts_come_from(shared_reference: Path) -> None:
    assert (shared_reference / "torch_matrix.json").is_file()
