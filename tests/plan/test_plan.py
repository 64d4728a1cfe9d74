"""The plan: what counts as existing, filters, shards, order, budget, batches."""

import json
from typing import Any

import pytest

from tests.grid.grids import facts_of, grid_of, make_policy, make_recipe, release
from wheelfarm.errors import BadInputError
from wheelfarm.model.platform import LINUX_X86_64
from wheelfarm.model.versions import Minor
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.plan.jobs import MATRIX_BYTES, PackageWay, batched, planned_cell
from wheelfarm.plan.make import make_plan
from wheelfarm.plan.model import Cost, Filters, Plan, PlanRequest, StoredWheel
from wheelfarm.recipes.model import Defaults, Recipe, Sharding

ALL = ["3.10", "3.11", "3.13", "3.13t"]
FACTS = facts_of(
    release("cu128", "2.8.0", {"linux_x86_64": ALL, "windows": ALL, "linux_aarch64": ALL}),
    release("cu128", "2.9.1", {"linux_x86_64": ALL, "windows": ALL, "linux_aarch64": ALL}),
    release("cu130", "2.9.1", {"linux_x86_64": ALL}),
)
POLICY = make_policy("12.8", "13.0", free_threaded=True)


def plan_of(*packages: Recipe, wheels: tuple[str | StoredWheel, ...] = (), **request: Any) -> Plan:
    grids = tuple(grid_of(recipe, POLICY, FACTS) for recipe in packages)
    stored = [
        wheel if isinstance(wheel, StoredWheel) else StoredWheel(name=WheelName.parse(wheel))
        for wheel in wheels
    ]
    return make_plan(grids, stored, Defaults(), PlanRequest(**request))


def only(*words: str) -> Filters:
    return Filters(only=words)


def is_planned(cell: str, *wheels: str | StoredWheel, **changes: Any) -> bool:
    recipe = make_recipe(**changes)
    return bool(plan_of(recipe, wheels=wheels, filters=only(cell)).cells)


CELL = "demo-1.0-cu128-torch2.9-cp313-linux_x86_64"


@pytest.mark.parametrize(
    ("wheel", "exists"),
    [
        ("demo-1.0+cu128torch2.9-cp313-cp313-manylinux_2_28_x86_64.whl", True),
        ("Demo-1.0+cu128torch2.9-cp313-cp313-linux_x86_64.whl", True),
        ("demo-1.0+cu128torch29-cp313-cp313-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl", True),
        ("demo-1.1+cu128torch2.9-cp313-cp313-linux_x86_64.whl", False),
        ("demo-1.0+cu128torch2.8-cp313-cp313-linux_x86_64.whl", False),
        ("demo-1.0+cu129torch2.9-cp313-cp313-linux_x86_64.whl", False),
        ("demo-1.0+cu12torch2.9-cp313-cp313-linux_x86_64.whl", False),
        ("demo-1.0+torch2.9-cp313-cp313-linux_x86_64.whl", False),
        ("demo-1.0+cu128-cp313-cp313-linux_x86_64.whl", False),
        ("demo-1.0+cu128torch2.9-cp313-cp313-manylinux_2_28_aarch64.whl", False),
        ("demo-1.0+cu128torch2.9-cp313-cp313-win_amd64.whl", False),
        ("demo-1.0+cu128torch2.9-cp313-cp313t-linux_x86_64.whl", False),
        ("demo-1.0+cu128torch2.9-cp310-abi3-linux_x86_64.whl", True),
        ("demo-1.0+cu128torch2.9-cp314-abi3-linux_x86_64.whl", False),
        ("demo-1.0+cu128torch2.9-py3-none-linux_x86_64.whl", True),
        ("demo-1.0+cu128torch2.9-pp310-pypy310_pp73-linux_x86_64.whl", False),
        ("other-1.0+cu128torch2.9-cp313-cp313-linux_x86_64.whl", False),
        ("demo-1.0+cu128torch2.9.0andhigher-cp313-cp313-linux_x86_64.whl", True),
        ("demo-1.0+cu128torch2.8.0andhigher-cp313-cp313-linux_x86_64.whl", False),
    ],
)
def test_which_wheel_makes_a_linked_cell_exist(wheel: str, exists: bool) -> None:
    assert is_planned(CELL, wheel) is not exists


def test_versions_are_compared_as_versions() -> None:
    # 1.0 and 1.0.0 are one version (PEP 440), whatever the file is called.
    assert not is_planned(CELL, "demo-1.0.0+cu128torch2.9-cp313-cp313-linux_x86_64.whl")


@pytest.mark.parametrize(
    ("wheel", "exists"),
    [
        ("demo-1.0+cu128torch2.8-cp313-cp313-linux_x86_64.whl", True),
        ("demo-1.0+cu128torch2.1-cp313-cp313-linux_x86_64.whl", True),
        ("demo-1.0+cu128-cp313-cp313-linux_x86_64.whl", True),
        ("demo-1.0+cu128torch2.8-py3-none-linux_x86_64.whl", True),
        ("demo-1.0+cu128torch2.8-cp313-cp313t-linux_x86_64.whl", False),
        ("demo-1.0+cu130torch2.8-cp313-cp313-linux_x86_64.whl", False),
    ],
)
def test_any_torch_tag_serves_a_torch_free_cell(wheel: str, exists: bool) -> None:
    assert is_planned(CELL, wheel, torch_axis="free") is not exists


def test_a_free_threaded_cell_needs_its_own_wheel() -> None:
    cell = CELL.replace("cp313", "cp313t")
    assert is_planned(cell, "demo-1.0+cu128torch2.9-cp313-cp313-linux_x86_64.whl")
    assert is_planned(cell, "demo-1.0+cu128torch2.9-cp310-abi3-linux_x86_64.whl")
    assert not is_planned(cell, "demo-1.0+cu128torch2.9-cp313-cp313t-linux_x86_64.whl")


def test_an_abi3_cell_exists_by_a_lower_floor_or_by_history() -> None:
    cell = CELL.replace("cp313", "cp310.abi3")
    fields = {"python_axis": "abi3", "from_python": Minor(3, 10)}
    assert not is_planned(cell, "demo-1.0+cu128torch2.9-cp38-abi3-linux_x86_64.whl", **fields)
    assert is_planned(cell, "demo-1.0+cu128torch2.9-cp311-abi3-linux_x86_64.whl", **fields)
    every = [
        f"demo-1.0+cu128torch2.9-{tag}-{tag}-linux_x86_64.whl"
        for tag in ("cp310", "cp311", "cp313")
    ]
    assert not is_planned(cell, *every, **fields)
    assert is_planned(cell, *every[1:], **fields)


def test_the_stable_abi_carries_forward_from_its_floor_alone() -> None:
    cell = CELL.replace("2.9", "2.8")
    fields = {"torch_axis": "stable_abi", "from_torch": Minor(2, 8)}
    assert not is_planned(cell, "demo-1.0+cu128torch2.8-cp313-cp313-linux_x86_64.whl", **fields)
    assert is_planned(cell, "demo-1.0+cu128torch2.9-cp313-cp313-linux_x86_64.whl", **fields)
    assert is_planned(cell, "demo-1.0+cu128torch2.7-cp313-cp313-linux_x86_64.whl", **fields)
    # Wheels of the time when the package was linked serve a torch each: together all of them.
    linked = [
        StoredWheel(
            name=WheelName.parse(f"demo-1.0+cu128torch{torch}-cp313-cp313-linux_x86_64.whl"),
            torch_axis="linked",
        )
        for torch in ("2.8", "2.9")
    ]
    assert is_planned(cell, linked[0], **fields)
    assert not is_planned(cell, *linked, **fields)


def test_what_was_proven_of_a_wheel_comes_first() -> None:
    name = WheelName.parse("demo-1.0+cu128torch2.8-cp313-cp313-linux_x86_64.whl")
    assert is_planned(CELL, StoredWheel(name=name, torch_axis="linked"), torch_axis="free")
    assert not is_planned(CELL, StoredWheel(name=name, torch_axis="free"))


def test_a_yanked_wheel_is_built_again_beside_itself() -> None:
    name = WheelName.parse("demo-1.0+cu128torch2.9-3-cp313-cp313-linux_x86_64.whl")
    stored = StoredWheel(name=name, usable=False)
    plan = plan_of(make_recipe(), wheels=(stored,), filters=only(CELL))
    assert [item.build for item in plan.cells] == [4]


def test_a_rebuild_takes_the_next_tag_of_whatever_serves_the_cell() -> None:
    wheels = (
        "demo-1.0+cu128torch2.8-2-cp313-cp313-linux_x86_64.whl",
        "demo-1.0+cu128torch2.9-cp313-cp313-linux_x86_64.whl",
    )
    recipe = make_recipe(torch_axis="free")
    plan = plan_of(recipe, wheels=wheels, filters=only(CELL), rebuild_reason="new compiler")
    assert [(item.build, item.reason) for item in plan.cells] == [(3, "new compiler")]


def test_a_package_of_unknown_version_is_planned_only_where_nothing_of_it_exists() -> None:
    recipe = make_recipe(version=None)
    assert plan_of(recipe).cells[0].jobs[0].name.startswith("demo-0+unknown-cu130-torch2.9-")
    wheels = ("demo-1.0+cu128torch2.9-cp313-cp313-linux_x86_64.whl",)
    plan = plan_of(recipe, wheels=wheels)
    assert plan.cells == ()
    assert plan.totals()["version not known"] == len(plan.left_out) > 0


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"packages": ("dmeo",)}, "no cell has the package 'dmeo'; there are demo"),
        ({"cudas": ("12.6",)}, "no cell has the CUDA '12.6'; there are cu128, cu130"),
        ({"cudas": ("cu12.8",)}, r"no cell has the CUDA 'cu12\.8'"),
        ({"torches": ("2.1",)}, r"no cell has the torch '2\.1'; there are 2\.8, 2\.9"),
        ({"pythons": ("3.12",)}, r"no cell has the Python '3\.12'; there are cp310, cp311"),
        ({"platforms": ("macos",)}, "no cell has the platform 'macos'; there are linux_aarch64"),
        ({"cudas": ("13.0",), "torches": ("2.8",)}, "no cell matches all of them"),
        ({"only": ("demo",)}, "'demo' is no cell identifier"),
        ({"only": ("x-1.0-cu128-torch2.9-cp313-linux_x86_64",)}, "no cell has the package 'x'"),
        ({"only": ("demo-2.0-cu128-torch2.9-cp313-linux_x86_64",)}, r"the farm builds 1\.0"),
        ({"only": ("demo-1.0-cu128-torch2.9-cp312-linux_x86_64",)}, "is outside the grid"),
        ({"only": ("demo-1.0-cu130-torch2.9-cp313-windows_amd64",)},
         "is no cell of the grid: phantom"),
    ],
)  # fmt: skip
def test_a_filter_that_matches_nothing_names_what_there_is(
    filters: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInputError, match=message):
        plan_of(make_recipe(), filters=Filters(**filters))


@pytest.mark.parametrize(
    ("filters", "cells"),
    [
        ({}, 28),
        ({"packages": ("Demo",)}, 28),
        ({"cudas": ("13.0",)}, 4),
        ({"cudas": ("cu130", "12.8")}, 28),
        ({"torches": ("2.8",), "pythons": ("3.13t",)}, 3),
        ({"pythons": ("cp310",), "platforms": ("windows",)}, 2),
        ({"only": (CELL, CELL + "-link", CELL + "-shard1of4")}, 1),
    ],
)
def test_filters_narrow_the_plan(filters: dict[str, Any], cells: int) -> None:
    recipe = make_recipe(sharding=Sharding(shards=4))
    plan = plan_of(recipe, filters=Filters(**filters))
    found = {item.cell.identifier for item in plan.cells}
    assert len(found) == cells


def test_a_filter_by_torch_finds_the_wheel_that_serves_it() -> None:
    plan = plan_of(make_recipe(torch_axis="free"), filters=Filters(torches=("2.8",)))
    assert {str(item.cell.identifier.torch) for item in plan.cells} == {"2.9"}


def test_shards_fan_out_to_one_link() -> None:
    recipe = make_recipe(sharding=Sharding(shards=3, platforms=(LINUX_X86_64,)), cost_minutes=30.0)
    plan = plan_of(recipe, filters=Filters(pythons=("3.13",), torches=("2.9",), cudas=("12.8",)))
    kinds = {
        str(item.cell.identifier.platform): [(job.kind, job.cost_minutes) for job in item.jobs]
        for item in plan.cells
    }
    assert kinds["linux_x86_64"] == [*[("shard", 10.0)] * 3, ("link", 3.0)]
    assert kinds["windows_amd64"] == [("whole", 30.0)]
    names = [job.name.removeprefix(CELL) for job in plan.cells[1].jobs]
    assert names == ["-shard1of3", "-shard2of3", "-shard3of3", "-link"]


def test_priority_then_the_newest_first() -> None:
    plan = plan_of(make_recipe("low"), make_recipe("high", priority=1))
    order = [(item.cell.identifier.package, str(item.cell.identifier.torch)) for item in plan.cells]
    assert order == [*[("high", "2.9")] * 16, *[("high", "2.8")] * 12,
                     *[("low", "2.9")] * 16, *[("low", "2.8")] * 12]  # fmt: skip


def test_a_budget_cuts_by_estimated_cost_and_says_what_it_left() -> None:
    cheap, dear = make_recipe("cheap", cost_minutes=5.0), make_recipe("dear", cost_minutes=60.0)
    filters = Filters(cudas=("13.0",), pythons=("3.11", "3.13"))
    plan = plan_of(dear, cheap, filters=filters, budget_minutes=71)
    packages = [item.cell.identifier.package for item in plan.cells]
    assert sorted(packages) == ["cheap", "cheap", "dear"]
    assert [item.reason for item in plan.left_out] == ["over the budget of 71 minutes"]
    measured = {"dear": Cost(fixed=1.0, per_arch=1.0)}
    again = plan_of(dear, cheap, filters=filters, budget_minutes=71, costs=measured)
    assert again.left_out == ()


def test_a_matrix_stays_below_its_bytes() -> None:
    grid = grid_of(make_recipe("n" * 3000, sharding=Sharding(shards=100)), POLICY, FACTS)
    cells = [planned_cell(cell, PackageWay.of(grid.recipe, Defaults(), {})) for cell in grid.cells]
    batches = batched(cells)
    assert [len(batch) for batch in batches] == [1] * 28
    sizes = [
        len(json.dumps([job.name for item in batch for job in item.jobs])) for batch in batches
    ]
    assert max(sizes) < MATRIX_BYTES


def test_batches_are_filled_to_the_last_job() -> None:
    grid = grid_of(make_recipe(sharding=Sharding(shards=63)), POLICY, FACTS)
    cells = [planned_cell(cell, PackageWay.of(grid.recipe, Defaults(), {})) for cell in grid.cells]
    assert [len(batch) for batch in batched(cells)] == [4] * 7
