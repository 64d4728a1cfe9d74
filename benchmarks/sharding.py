"""Build one real package in one job, and in shards with a link job; print walls and ratios.

    python benchmarks/sharding.py ENVIRONMENT SDIST WORK [--shards 3] [--jobs 1] [--only-cuda]

ENVIRONMENT is a folder with torch and the toolkit's wheels, SDIST a package's source archive, WORK
an empty folder. Both sides start with an empty compiler cache. Shards run one after another, so
that each has the machine alone, as each would have one of its own. A plain build comes first, and
its times are what the partition is made from, as for any package that was built before. What is
measured stays in WORK: the same command goes on where it was cut short.
"""

import argparse
import json
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import mean
from typing import TypeVar

from packaging.version import Version

from wheelfarm import files
from wheelfarm.build.balance import lower_bound
from wheelfarm.build.calls import Call, read_calls, summarise
from wheelfarm.build.census import Unit
from wheelfarm.build.costs import Costs, modelled
from wheelfarm.build.environment import open_environment
from wheelfarm.build.part import Prepared, compile_part, job_cache
from wheelfarm.build.partition import ShardPlan, assign, hashed_makespan
from wheelfarm.build.request import BuildRequest
from wheelfarm.build.sharded import (
    CensusResult,
    Linked,
    make_plan,
    report_document,
    run_census,
    run_link,
    run_shard,
)
from wheelfarm.build.source import FolderSource
from wheelfarm.model.arch import ArchList
from wheelfarm.model.cell import Cell, CellId
from wheelfarm.toolkit.find import find_toolkit
from wheelfarm.toolkit.view import make_view

T = TypeVar("T")


def main() -> None:
    """Run both sides and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("environment", type=Path)
    parser.add_argument("sdist", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--shards", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--archs", default="8.0")
    parser.add_argument("--only-cuda", action="store_true")
    parser.add_argument("--simulate", action="store_true", help="the simulation alone")
    arguments = parser.parse_args()
    if not arguments.simulate:
        Measurement(arguments).run()
    simulate(arguments.work / "costs.json")


class Measurement:
    """The steps of one comparison; those that are done are not run again."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.work: Path = arguments.work.absolute()
        self.walls_file = self.work / "walls.json"
        self.walls: dict[str, float] = {}
        if self.walls_file.is_file():
            self.walls = json.loads(self.walls_file.read_text(encoding="utf-8"))

    def run(self) -> None:
        """Build plain, then in shards, then link, and report."""
        plan_file, costs_file = self.work / "plan.json", self.work / "costs.json"
        if not plan_file.is_file():
            found = self.timed("census", self.census)
            keys = [unit.key for unit in found.census.units]
            print(f"census: {len(keys)} units, {found.census.others}", flush=True)
            if not costs_file.is_file():
                calls = self.timed("plain", self.plain)
                print(f"plain: {summarise(calls)}", flush=True)
                Costs().with_calls(calls, keys).write(costs_file)
            plan = make_plan(
                found,
                Costs.read(costs_file),
                cell=self.arguments.sdist.name,
                build="b",
                shards=self.arguments.shards,
            )
            plan.write(plan_file)
        plan = ShardPlan.read(plan_file)
        for shard in range(1, plan.shards + 1):
            if f"shard {shard}" not in self.walls:
                calls = self.timed(f"shard {shard}", partial(self.shard, plan, shard))
                print(f"shard {shard}: {summarise(calls)}", flush=True)
        linked = self.timed("link", partial(self.link, plan))
        report(self.walls, plan, self.measured_again(plan), report_document(linked))

    def timed(self, name: str, work: Callable[[], T]) -> T:
        """Run a step and keep its wall."""
        started = time.monotonic()
        result = work()
        self.walls[name] = round(time.monotonic() - started, 1)
        files.write_text(self.walls_file, json.dumps(self.walls, indent=1) + "\n")
        print(f"{name}: {self.walls[name]} s", flush=True)
        return result

    def census(self) -> CensusResult:
        """Find the units."""
        return run_census(
            self.prepared("census"), self.work / "census", log=self.work / "census.log"
        )

    def plain(self) -> tuple[Call, ...]:
        """Build in one job."""
        prepared, root = self.prepared("plain"), self.work / "plain"
        files.remove(root)
        cache = job_cache(prepared, root / "cache")
        return compile_part(prepared, root, log=self.work / "plain.log", cache=cache).calls

    def shard(self, plan: ShardPlan, shard: int) -> tuple[Call, ...]:
        """Compile one part."""
        log, archive = self.work / f"shard{shard}.log", self.archive(shard)
        prepared = self.prepared(f"shard{shard}")
        _, calls = run_shard(prepared, plan, shard, self.work / f"shard{shard}", archive, log=log)
        return calls

    def link(self, plan: ShardPlan) -> Linked:
        """Link what the parts made."""
        archives = [self.archive(shard) for shard in range(1, plan.shards + 1)]
        return run_link(
            self.prepared("link"), plan, archives, self.work / "link", log=self.work / "link.log"
        )

    def measured_again(self, plan: ShardPlan) -> dict[int, float]:
        """Return each shard's compile seconds as its own run measured them."""
        logs = {n: self.work / f"shard{n}/seat/calls.jsonl" for n in range(1, plan.shards + 1)}
        return {shard: summarise(read_calls(log)).seconds for shard, log in logs.items()}

    def archive(self, shard: int) -> Path:
        """Return the path of a shard's archive."""
        return self.work / f"shard{shard}.tar.zst"

    def prepared(self, step: str) -> Prepared:
        """Return what a step starts from, with an empty folder of kept results."""
        kept = self.work / f"{step}-kept"
        files.remove(kept)
        return prepare(self.arguments, kept)


def prepare(arguments: argparse.Namespace, kept: Path) -> Prepared:
    """Return what a job starts from; its results are kept in ``kept``."""
    work: Path = arguments.work.absolute()
    if not (work / "source").is_dir():
        files.unpack(arguments.sdist, work / "unpacking")
        (work / "unpacking").rename(work / "source")
    (tree,) = (work / "source").iterdir()
    python = arguments.environment / "bin" / "python"
    toolkit = find_toolkit(source="wheels", python=python, needs=("device",))
    (work / "packages").mkdir(exist_ok=True)
    only_cuda = {"FORCE_ONLY_CUDA": "1"} if arguments.only_cuda else {}
    return Prepared(
        request=BuildRequest(
            cell=Cell(CellId.parse("x-1-cu130-torch2.14-cp311-linux_x86_64"), Version("2.14.1")),
            source=FolderSource(folder=tree),
            archs=ArchList.parse(arguments.archs),
            torch_axis="linked",
            max_jobs=arguments.jobs,
            environment=only_cuda,
        ),
        tree=tree,
        packages=work / "packages",
        environment=open_environment(arguments.environment.absolute()),
        toolkit=toolkit,
        view=make_view(toolkit, work / "cuda"),
        driver_stub=work,
        kept=kept,
    )


def report(
    walls: dict[str, float], plan: ShardPlan, again: dict[int, float], link: dict[str, object]
) -> None:
    """Print the walls, the balance of the partition, and the ratios."""
    for name, seconds in walls.items():
        print(f"{name:<10} {seconds:8.1f} s")
    for key, share in sorted(plan.units.items(), key=lambda item: (item[1].shard, item[0])):
        print(f"  shard {share.shard}  {share.seconds:7.1f} s  {key}")
    costs = {key: share.seconds for key, share in plan.units.items()}
    plain = max(*costs.values(), sum(costs.values()) / plan.shards)
    print(f"makespan over the lower bound: {plan.makespan / plan.lower_bound:.3f}")
    print(f"over max(largest unit, even share): {plan.makespan / plain:.3f}")
    print(f"the same units by hash modulo: {hashed_makespan(costs, plan.shards) / plain:.3f}")
    planned = ", ".join(f"{load:.1f}" for load in plan.loads)
    measured = ", ".join(f"{seconds:.1f}" for _, seconds in sorted(again.items()))
    print(f"compile seconds of the shards, planned: {planned}; measured: {measured}")
    print(f"link over plain: {walls['link'] / walls['plain']:.3f}")
    slowest = max(seconds for name, seconds in walls.items() if name.startswith("shard"))
    print(f"slowest shard and link over plain: {(slowest + walls['link']) / walls['plain']:.3f}")
    print(json.dumps(link, indent=1))


def simulate(costs_file: Path) -> None:
    """Share 73 units of six architectures out, with costs spread as the measured ones are."""
    spread = _spread(Costs.read(costs_file))
    chosen = random.Random(73)  # noqa: S311 - a spread of costs, the same in every run
    units = [_unit(f"csrc/kernel{index}.cu", "cu") for index in range(72)]
    units.append(_unit("csrc/api.cpp", "c++"))
    costs = {unit.key: modelled(unit) * chosen.choice(spread) for unit in units}
    total, largest = sum(costs.values()), max(costs.values())
    print(f"73 units, 6 architectures: {total / 3600:.1f} h, the largest {largest / 60:.1f} min")
    for shards in (10, 20, 40):
        plan = assign(units, costs, shards, cell="s", build="s", cache="s", identity="s")
        bound = lower_bound(list(costs.values()), shards)
        plain = max(largest, total / shards)
        hashed = hashed_makespan(costs, shards) / bound
        print(
            f"{shards:3d} shards: {plan.makespan / bound:.3f} of the bound "
            f"({plan.makespan / plain:.3f} of max(largest, even share)), by hash {hashed:.3f}"
        )


def _unit(key: str, kind: str) -> Unit:
    archs = ("80", "86", "89", "90", "100", "120") if kind == "cu" else ()
    return Unit(key=key, source=key, output=key, kind=kind, role="", size=20_000, archs=archs)


def _spread(costs: Costs) -> list[float]:
    """Return measured units' seconds over their mean; a plain spread where nothing is measured."""
    seconds = [value.seconds for values in costs.measured.values() for value in values.values()]
    if len(seconds) < 3:  # noqa: PLR2004 - too few to be a spread
        return [0.5, 0.75, 1.0, 1.25, 1.5]
    return [value / mean(seconds) for value in seconds]


if __name__ == "__main__":
    main()
