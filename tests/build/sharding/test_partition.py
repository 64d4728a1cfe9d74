"""Sharing out units: the plan's shape, its balance, its file, and what units cost."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheelfarm.build.balance import lower_bound, share_out
from wheelfarm.build.calls import Call
from wheelfarm.build.census import NoUnitsError, Unit, take_census
from wheelfarm.build.costs import Costs, modelled
from wheelfarm.build.partition import (
    ShardPlan,
    TooManyShardsError,
    assign,
    hashed_makespan,
)
from wheelfarm.errors import BadInputError, FaultsError
from wheelfarm.values import replace


def unit(key: str, *, kind: str = "cu", archs: int = 1, **more: object) -> Unit:
    names = tuple(str(80 + index) for index in range(archs if kind == "cu" else 0))
    values = {"source": key, "output": f"{key}.o", "role": "nvcc", "size": 4096, **more}
    return Unit(key=key, kind=kind, archs=names, **values)  # type: ignore[arg-type]  # test data


def plan(costs: dict[str, float], shards: int) -> ShardPlan:
    units = [unit(key) for key in costs]
    return assign(
        units, costs, shards, cell="c", build="b", cache="ccache 4.7.5", identity="0" * 64
    )


def call(source: str, output: str, **more: object) -> Call:
    values: dict[str, object] = {
        "tool": "nvcc", "role": "nvcc", "action": "stub", "reason": "", "unit": source,
        "output": output, "kind": "cu", "argv": (), "safe": (), "cwd": "/", "cache": "",
        "inputs": "", "size": 1, "seconds": 0.0, "peak": 0, "planned": True, "alone": False,
        "status": 0, **more,
    }  # fmt: skip
    return Call(**values)  # type: ignore[arg-type]  # test data


@given(
    st.dictionaries(st.text("abc/.", min_size=1), st.floats(0.1, 500), min_size=1, max_size=25),
    st.data(),
)
def test_every_unit_has_one_shard_and_the_bound_holds(
    costs: dict[str, float], data: st.DataObject
) -> None:
    shards = data.draw(st.integers(1, len(costs)))
    made = plan(costs, shards)
    assert set(made.assignment) == set(costs)
    assert set(made.assignment.values()) == set(range(1, shards + 1))
    # Graham's bound for any list schedule.
    even = sum(costs.values()) / shards
    assert made.makespan <= even + (1 - 1 / shards) * max(costs.values()) + 1e-6
    assert plan(dict(reversed(costs.items())), shards) == made
    again = ShardPlan.of_document(json.loads(made.to_text()), "plan")
    assert again.digest == made.digest


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), st.integers(1, 4))
def test_the_bound_is_below_the_best_partition_and_ours_is_near_it(
    costs: list[int], shards: int
) -> None:
    loads = {(0,) * shards}
    for cost in costs:
        loads = {
            tuple(sorted([*load[:place], load[place] + cost, *load[place + 1 :]]))
            for load in loads
            for place in range(shards)
        }
    best = min(max(load) for load in loads)
    seconds = [float(cost) for cost in costs]
    ours = [0] * shards
    for shard, cost in zip(share_out(seconds, shards), costs, strict=True):
        ours[shard] += cost
    assert max(*costs, sum(costs) / shards) <= lower_bound(seconds, shards) <= best
    assert best <= max(ours) <= best * (4 / 3)


@pytest.mark.parametrize(
    ("costs", "shards", "bound"),
    [
        # Three units of which no two fit 10 s, whatever the even share of 8 s says.
        ([6.0, 6.0, 6.0, 6.0], 3, 12.0),
        # Five on two shards: one of them takes three.
        ([4.0, 4.0, 4.0, 4.0, 4.0], 2, 12.0),
        # The large ones leave no room for the small ones.
        ([9.0, 9.0, 3.0, 3.0, 3.0, 3.0], 3, 12.0),
        ([], 2, 0.0),
    ],
)
def test_the_bound_knows_that_units_cannot_be_cut(
    costs: list[float], shards: int, bound: float
) -> None:
    assert lower_bound(costs, shards) == pytest.approx(bound)


def test_units_change_places_where_largest_first_is_not_best() -> None:
    # Graham's own example: largest first gives 3, 2, 2 and 3, 2 -> 7; the best is 6.
    chosen = share_out([3.0, 3.0, 2.0, 2.0, 2.0], 2)
    assert sorted(chosen) in ([0, 0, 0, 1, 1], [0, 0, 1, 1, 1])
    assert chosen[0] == chosen[1]


def test_the_largest_units_part_and_hashes_do_worse() -> None:
    costs = {f"csrc/unit{index}.cu": 30.0 + 40.0 * (index % 5) for index in range(12)}
    made = plan(costs, 3)
    assert made.makespan <= 1.1 * lower_bound(list(costs.values()), 3)
    assert hashed_makespan(costs, 3) > made.makespan


def test_more_shards_than_units_names_the_maximum() -> None:
    with pytest.raises(TooManyShardsError, match="has 2 units") as caught:
        plan({"a.cu": 1.0, "b.cu": 1.0}, 3)
    assert "2 at most" in str(caught.value)
    assert caught.value.exit_code == 4


def test_a_program_that_the_build_runs_is_in_every_job() -> None:
    units = [unit("a.cu"), unit("gen.cpp", kind="c++", executable=True)]
    made = assign(
        units, {"a.cu": 9.0, "gen.cpp": 1.0}, 1, cell="c", build="b", cache="x", identity="y"
    )
    assert made.assignment == {"a.cu": 1, "gen.cpp": 0}
    assert made.loads == (9.0,)


def test_another_compiler_is_refused() -> None:
    made = plan({"a.cu": 1.0}, 1)
    made.require_identity("0" * 64)
    with pytest.raises(BadInputError, match="another nvcc, ptxas"):
        made.require_identity("1" * 64)


def test_a_faulty_plan_shows_every_fault(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    text = plan({"a.cu": 1.0, "b.cu": 2.0}, 2).to_text()
    path.write_text(text.replace('"shard": 1', '"shard": 7').replace("1.0", '"x"'))
    with pytest.raises(FaultsError) as caught:
        ShardPlan.read(path)
    assert "units.b.cu.shard: there are 2 shards" in str(caught.value)
    assert "units.a.cu.seconds: expected a number" in str(caught.value)


def test_units_of_a_census_are_named_once_and_told_apart() -> None:
    calls = (
        call("a.cu", "x/a.o"),
        call("a.cu", "y/a.o"),
        call("b.cu", "b.o"),
        call("b.cu", "b.o"),
        call("gen.cpp", "gen.o", action="stub", kind="c++"),
        call("gen.cpp", "gen.o", action="compile", kind="c++"),
        call("", "", action="real", reason="link"),
    )
    census = take_census(calls)
    assert [found.key for found in census.units] == [
        "a.cu => x/a.o", "a.cu => y/a.o", "b.cu", "gen.cpp",
    ]  # fmt: skip
    assert [found.key for found in census.divisible] == ["a.cu => x/a.o", "a.cu => y/a.o", "b.cu"]
    assert census.others == {"link": 1}


def test_a_census_of_nothing_is_an_error() -> None:
    with pytest.raises(NoUnitsError, match="1 x query"):
        take_census([call("", "", action="real", reason="query")])


def test_measured_times_come_before_the_model(tmp_path: Path) -> None:
    measured = call("a.cu", "a.o", action="compile", cache="miss", seconds=12.0, peak=7,
                    argv=("-gencode", "arch=compute_80,code=sm_80"))  # fmt: skip
    hit = call("b.cu", "b.o", action="compile", cache="hit", seconds=0.1)
    path = tmp_path / "costs.json"
    Costs().with_calls([measured, hit]).write(path)
    costs = Costs.read(path)
    assert costs.peak() == 7
    assert costs.estimate(unit("a.cu")) == 12.0
    assert costs.estimate(unit("a.cu", archs=3)) == pytest.approx(
        12.0 * modelled(unit("a.cu", archs=3)) / modelled(unit("a.cu"))
    )
    scaled = costs.estimates([unit("a.cu"), unit("b.cu")])
    assert scaled["b.cu"] == pytest.approx(12.0)
    assert Costs().estimate(unit("b.cu", archs=2)) > Costs().estimate(unit("b.cu"))


def test_an_object_that_two_extensions_make_costs_both_of_its_compiles() -> None:
    # Both extensions of torch-spline-conv compile csrc/basis.cpp into one object, one after the
    # other.
    calls = [
        call("a.cpp", "a.o", action="compile", cache="miss", kind="c++", role="host", argv=argv,
             seconds=seconds, peak=peak)
        for argv, seconds, peak in ((("-DWITH_CUDA",), 30.0, 5), ((), 25.0, 7), ((), 20.0, 6))
    ]  # fmt: skip
    (found,) = take_census(replace(each, action="stub") for each in calls).units
    assert found.compiles == 2
    costs = Costs().with_calls(calls)
    assert costs.estimate(found) == 50.0
    assert costs.peak() == 6
    assert modelled(found) == 2 * modelled(replace(found, compiles=1))


@pytest.mark.parametrize("text", ["[]", '{"schema": "x", "units": {"a": [{"archs": -1}]}}'])
def test_a_file_of_costs_that_is_none_is_bad_input(tmp_path: Path, text: str) -> None:
    path = tmp_path / "costs.json"
    path.write_text(text)
    with pytest.raises(BadInputError):
        Costs.read(path)
