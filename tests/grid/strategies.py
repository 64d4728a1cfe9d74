"""Hypothesis strategies: what PyTorch may publish, and packages of every kind."""

from typing import Any

from hypothesis import strategies as st
from packaging.version import Version

from tests.grid.grids import facts_of, make_recipe
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.axis import TORCH_AXES
from wheelfarm.model.platform import PLATFORMS
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor
from wheelfarm.recipes.model import BuildMatrix, Combination, Recipe, Sharding
from wheelfarm.upstream.model import Release, UpstreamFacts

PYTHONS = tuple(map(PythonTag.of_version, ("3.9", "3.10", "3.11", "3.13", "3.13t", "3.14")))
LINES = ("12.4", "12.6", "13.0")
TORCHES = ("2.5.0", "2.5.1", "2.6.0", "2.7.0", "2.7.1", "2.9.0")

platforms = st.sampled_from(PLATFORMS)
python_sets = st.sets(st.sampled_from(PYTHONS), min_size=1).map(lambda tags: tuple(sorted(tags)))


@st.composite
def upstream_facts(draw: st.DrawFn) -> UpstreamFacts:
    releases = [
        Release(
            accelerator=Accelerator.cuda(Minor.parse(line)),
            torch=Version(torch),
            pythons=draw(st.dictionaries(platforms, python_sets, min_size=1)),
        )
        for line in LINES
        for torch in draw(st.sets(st.sampled_from(TORCHES), max_size=4))
    ]
    return facts_of(*releases)


@st.composite
def recipes(draw: st.DrawFn, name: str = "demo") -> Recipe:
    changes: dict[str, Any] = {"torch_axis": draw(st.sampled_from(TORCH_AXES))}
    if changes["torch_axis"] == "stable_abi":
        changes["from_torch"] = draw(st.sampled_from([Minor(2, 5), Minor(2, 6), Minor(2, 9)]))
    changes["python_axis"] = draw(st.sampled_from(["exact", "abi3", "none"]))
    if changes["python_axis"] == "abi3":
        changes["from_python"] = draw(st.sampled_from([Minor(3, 9), Minor(3, 11)]))
    changes["min_pytorch"] = draw(st.none() | st.just(Minor(2, 6)))
    rows = draw(
        st.lists(
            st.tuples(st.sampled_from(LINES), st.sampled_from(TORCHES), st.booleans()),
            max_size=3,
            unique_by=lambda row: (row[0], row[1][:3]),
        )
    )
    combinations = tuple(
        Combination(
            cuda=Minor.parse(line),
            torch=Minor.of(Version(torch)),
            release=Version(torch) if named else None,
        )
        for line, torch, named in rows
    )
    chosen = draw(st.sets(platforms).map(lambda found: tuple(sorted(found))))
    changes["build_matrix"] = BuildMatrix(combinations=combinations, platforms=chosen)
    shards = draw(st.none() | st.integers(2, 40))
    changes["sharding"] = None if shards is None else Sharding(shards=shards, platforms=chosen)
    changes["priority"] = draw(st.integers(-1, 1))
    return make_recipe(name, **changes)
