"""Facts, policies and recipes in memory, for the tests of the grid and of the plan."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from packaging.version import Version

from wheelfarm.grid.build import package_grid
from wheelfarm.grid.model import PackageGrid
from wheelfarm.grid.rows import rows_of
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.arch import ArchList
from wheelfarm.model.platform import LINUX_AARCH64, PLATFORMS, Platform
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor
from wheelfarm.recipes.model import FarmPolicy, PathSource, Recipe
from wheelfarm.upstream.facts import committed_facts
from wheelfarm.upstream.model import Release, UpstreamFacts
from wheelfarm.values import replace

LINES = ("12.4", "12.6", "12.8", "12.9", "13.0", "13.2")


def matrix_facts(reference: Path) -> UpstreamFacts:
    """Return facts whose releases are those of the reference matrix alone."""
    rows = json.loads((reference / "torch_matrix.json").read_text())
    releases = [
        release(
            row["cuda"],
            row["torch"],
            {
                word: row[word]
                for word in ("linux_x86_64", "linux_aarch64", "windows")
                if word in row
            },
        )
        for row in rows
    ]
    return replace(committed_facts(), releases=tuple(releases))


def release(accelerator: str, torch: str, pythons: Mapping[str, list[str]]) -> Release:
    return Release(
        accelerator=Accelerator.parse(accelerator),
        torch=Version(torch),
        pythons={
            Platform.parse(word): tuple(map(PythonTag.of_version, texts))
            for word, texts in pythons.items()
        },
    )


def facts_of(*releases: Release) -> UpstreamFacts:
    return replace(committed_facts(), releases=releases)


def make_policy(*lines: str, **changes: Any) -> FarmPolicy:
    """Return a policy that builds everything on every platform."""
    cudas = tuple(map(Minor.parse, lines or LINES))
    values: dict[str, Any] = {
        "platforms": PLATFORMS,
        "python_min": Minor(3, 10),
        "supported_cudas": cudas,
        "arch_policy": dict.fromkeys(cudas, ArchList.parse("8.0;9.0+PTX")),
        "arch_policy_aarch64": dict.fromkeys(cudas, ArchList.parse("9.0+PTX")),
    }
    return FarmPolicy(**{**values, **changes})


def make_recipe(name: str = "demo", **changes: Any) -> Recipe:
    values: dict[str, Any] = {
        "name": name,
        "source": PathSource(path=Path(), written="."),
        "version": Version("1.0"),
        "torch_axis_stated": True,
    }
    return Recipe(**{**values, **changes})


def grid_of(recipe: Recipe, policy: FarmPolicy, facts: UpstreamFacts) -> PackageGrid:
    rows = rows_of(policy, facts)
    return package_grid(recipe, policy, facts, rows, recipe.version)


def names_of(grid: PackageGrid) -> list[str]:
    return [str(cell.identifier) for cell in grid.cells]


def reason_of(grid: PackageGrid, text: str) -> str:
    """Return why a point, in its own spelling, is refused or served; "" where it is built."""
    (decision,) = (item for item in grid.decisions if str(item.point) == text)
    return decision.reason


NO_AARCH64 = tuple(item for item in PLATFORMS if item != LINUX_AARCH64)
