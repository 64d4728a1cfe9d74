"""What holds for every plan: a store that holds all of it leaves nothing; batches fit."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.grid.grids import grid_of, make_policy
from tests.grid.strategies import LINES, recipes, upstream_facts
from wheelfarm.model.cell import JobId
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.plan.jobs import MATRIX_BYTES, MATRIX_JOBS, matrices
from wheelfarm.plan.make import make_plan
from wheelfarm.plan.model import Plan, PlanRequest, StoredWheel
from wheelfarm.recipes.model import Defaults, Recipe
from wheelfarm.upstream.model import UpstreamFacts

TAGS = {
    "linux_x86_64": "manylinux_2_28_x86_64",
    "linux_aarch64": "manylinux_2_27_aarch64.manylinux_2_28_aarch64",
    "windows_amd64": "win_amd64",
}


def plan_of(
    facts: UpstreamFacts,
    packages: tuple[Recipe, ...],
    wheels: list[StoredWheel],
    request: PlanRequest | None = None,
) -> Plan:
    policy = make_policy(*LINES, free_threaded=True)
    grids = tuple(grid_of(recipe, policy, facts) for recipe in packages)
    return make_plan(grids, wheels, Defaults(), request or PlanRequest())


def built(plan: Plan) -> list[StoredWheel]:
    """Return the wheels that a plan makes, as a store would list them."""
    return [
        StoredWheel(
            name=WheelName.of_cell(
                item.cell.identifier,
                TAGS[str(item.cell.identifier.platform)],
                build=str(item.build or ""),
            )
        )
        for item in plan.cells
    ]


@settings(max_examples=40)
@given(upstream_facts(), recipes("one"), recipes("two"), st.data())
def test_a_store_that_holds_the_plan_leaves_nothing_to_plan(
    facts: UpstreamFacts, one: Recipe, two: Recipe, data: st.DataObject
) -> None:
    first = plan_of(facts, (one, two), [])
    wheels = built(first)
    rest = plan_of(facts, (one, two), wheels)
    assert rest.cells == ()
    assert len(rest.existing) == len(first.cells)
    if wheels:
        lost = data.draw(st.sampled_from(wheels))
        again = plan_of(facts, (one, two), [wheel for wheel in wheels if wheel != lost])
        assert built(again) == [lost]


@settings(max_examples=40)
@given(upstream_facts(), recipes("one"))
def test_a_rebuild_plans_the_same_cells_with_the_next_build_tag(
    facts: UpstreamFacts, one: Recipe
) -> None:
    first = plan_of(facts, (one,), [])
    wheels = built(first)
    request = PlanRequest(rebuild_reason="a faulty compiler")
    second = plan_of(facts, (one,), wheels, request)
    assert [item.cell for item in second.cells] == [item.cell for item in first.cells]
    assert [len(batch) for batch in second.batches] == [len(batch) for batch in first.batches]
    assert {item.build for item in second.cells} <= {1}
    third = plan_of(facts, (one,), [*wheels, *built(second)], request)
    assert {item.build for item in third.cells} <= {2}
    assert plan_of(facts, (one,), [*wheels, *built(second)]).cells == ()


@settings(max_examples=40)
@given(upstream_facts(), recipes("one"), recipes("two"))
def test_batches_fit_and_no_cell_is_split(facts: UpstreamFacts, one: Recipe, two: Recipe) -> None:
    plan = plan_of(facts, (one, two), [])
    for batch in plan.batches:
        assert sum(len(item.jobs) for item in batch) <= MATRIX_JOBS
        assert len(json.dumps(matrices(batch))) <= MATRIX_BYTES
    names = [job.name for job in plan.jobs]
    assert len(names) == len(set(names))
    for job in plan.jobs:
        assert str(job.id) == job.name
        assert JobId.parse(job.name) == job.id
