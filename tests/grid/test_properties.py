"""What holds for every grid: collapse loses nothing, refuses nothing, and names read back."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.grid.grids import grid_of, make_policy
from tests.grid.strategies import LINES, recipes, upstream_facts
from wheelfarm.model.cell import CellId
from wheelfarm.recipes.model import Recipe
from wheelfarm.upstream.cxx_abi import cxx_abi
from wheelfarm.upstream.model import UpstreamFacts


@settings(max_examples=60)
@given(upstream_facts(), recipes(), st.booleans())
def test_collapse_never_loses_a_servable_point(
    facts: UpstreamFacts, recipe: Recipe, free_threaded: bool
) -> None:
    policy = make_policy(*LINES, free_threaded=free_threaded)
    grid = grid_of(recipe, policy, facts)
    served = [point for cell in grid.cells for point in cell.serves]
    assert len(served) == len(set(served)), "no point has two wheels"
    accepted = {item.point for item in grid.decisions if item.outcome != "refused"}
    assert set(served) == accepted
    for item in grid.decisions:
        assert (item.outcome == "refused") == (item.cell is None)


@settings(max_examples=60)
@given(upstream_facts(), recipes(), st.booleans())
def test_a_wheel_really_serves_its_points(
    facts: UpstreamFacts, recipe: Recipe, free_threaded: bool
) -> None:
    policy = make_policy(*LINES, free_threaded=free_threaded)
    for cell in grid_of(recipe, policy, facts).cells:
        identifier = cell.identifier
        for point in cell.serves:
            assert identifier.python.serves(point.python)
            assert (point.accelerator, point.platform) == (
                identifier.accelerator,
                identifier.platform,
            )
            if recipe.torch_axis == "linked":
                assert point.minor == identifier.torch
            if recipe.torch_axis == "stable_abi":
                assert point.minor >= identifier.torch
            if recipe.torch_axis == "abi_flag":
                assert cell.cxx_abi == cxx_abi(point.accelerator, point.minor, point.platform)
        # What builds the wheel is itself something that PyTorch published.
        release = facts.release(identifier.accelerator, cell.cell.torch_release)
        assert release is not None
        assert release.ships(cell.python, identifier.platform)


@settings(max_examples=60)
@given(upstream_facts(), recipes())
def test_identifiers_are_unique_and_read_back(facts: UpstreamFacts, recipe: Recipe) -> None:
    names = [str(cell.identifier) for cell in grid_of(recipe, make_policy(*LINES), facts).cells]
    assert len(names) == len(set(names))
    for name in names:
        assert str(CellId.parse(name)) == name
