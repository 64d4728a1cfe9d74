"""Build one real package in one job, and in shards with a link job; print walls and ratios.

    python benchmarks/sharding.py ENVIRONMENT SDIST WORK [--shards 3] [--jobs 2] [--only-cuda]

ENVIRONMENT is a folder with torch and the toolkit's wheels, SDIST a package's source archive, WORK
an empty folder. Both sides start with an empty compiler cache. Shards run one after another here;
each would have a machine of its own. A plain build comes first, and its times are what the
partition is made from, as for any package that was built before.
"""

import argparse
import json
import random
import time
from pathlib import Path
from statistics import mean

from packaging.version import Version

from wheelfarm import files
from wheelfarm.build.balance import lower_bound
from wheelfarm.build.calls import summarise
from wheelfarm.build.census import Unit
from wheelfarm.build.costs import Costs, modelled
from wheelfarm.build.environment import open_environment
from wheelfarm.build.part import Prepared, compile_part, job_cache
from wheelfarm.build.partition import ShardPlan, assign, hashed_makespan
from wheelfarm.build.request import BuildRequest
from wheelfarm.build.sharded import make_plan, report_document, run_census, run_link, run_shard
from wheelfarm.build.source import FolderSource
from wheelfarm.model.arch import ArchList
from wheelfarm.model.cell import Cell, CellId
from wheelfarm.toolkit.find import find_toolkit
from wheelfarm.toolkit.view import make_view


def main() -> None:
    """Run both sides and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("environment", type=Path)
    parser.add_argument("sdist", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--shards", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--archs", default="8.0")
    parser.add_argument("--only-cuda", action="store_true")
    parser.add_argument("--simulate", action="store_true", help="the simulation alone")
    arguments = parser.parse_args()
    if not arguments.simulate:
        measure(arguments)
    simulate(arguments.work / "costs.json")


def measure(arguments: argparse.Namespace) -> None:
    """Build plain, then in shards."""
    work: Path = arguments.work.absolute()
    walls: dict[str, float] = {}
    plain = prepare(arguments, work / "plain-kept")
    started = time.monotonic()
    found = run_census(plain, work / "census", log=work / "census.log")
    walls["census"] = time.monotonic() - started
    started = time.monotonic()
    built = compile_part(
        plain, work / "plain", log=work / "plain.log", cache=job_cache(plain, work / "plain/cache")
    )
    walls["plain"] = time.monotonic() - started
    keys = [unit.key for unit in found.census.units]
    costs = Costs().with_calls(built.calls, keys)
    costs.write(work / "costs.json")
    print(f"plain: {summarise(built.calls)}", flush=True)
    plan = make_plan(found, costs, cell=arguments.sdist.name, build="b", shards=arguments.shards)
    archives = [work / f"shard{shard}.tar.zst" for shard in range(1, plan.shards + 1)]
    parted = prepare(arguments, work / "parted-kept")
    for shard, archive in enumerate(archives, 1):
        started = time.monotonic()
        root = work / f"shard{shard}"
        product, calls = run_shard(parted, plan, shard, root, archive, log=work / "shard.log")
        walls[f"shard {shard}"] = time.monotonic() - started
        print(f"shard {shard}: {product.bytes} bytes, {summarise(calls)}", flush=True)
    started = time.monotonic()
    linked = run_link(parted, plan, archives, work / "link", log=work / "link.log")
    walls["link"] = time.monotonic() - started
    report(walls, plan, report_document(linked))


def prepare(arguments: argparse.Namespace, kept: Path) -> Prepared:
    """Return what the jobs start from, with an empty folder of kept results."""
    work: Path = arguments.work.absolute()
    files.unpack(arguments.sdist, work / "source")
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


def report(walls: dict[str, float], plan: ShardPlan, link: dict[str, object]) -> None:
    """Print the walls, the balance of the partition, and the ratios."""
    for name, seconds in walls.items():
        print(f"{name:<10} {seconds:8.1f} s")
    for key, share in sorted(plan.units.items()):
        print(f"  shard {share.shard}  {share.seconds:7.1f} s  {key}")
    costs = {key: share.seconds for key, share in plan.units.items()}
    hashed = hashed_makespan(costs, plan.shards)
    print(f"makespan over the lower bound: {plan.makespan / plan.lower_bound:.3f}")
    print(f"the same units by hash modulo: {hashed / plan.lower_bound:.3f}")
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
