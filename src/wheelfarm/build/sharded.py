"""A build in parts: a census, shards and a link job run one build, and one wheel comes out.

The census compiles nothing and yields the units; the plan shares them out; each shard compiles its
part and hands on its cache; the link job unites the caches and runs the plain build, in which every
compile is answered.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wheelfarm import files
from wheelfarm.build.cache import HOW_TO_GET_CCACHE, CompilerCache, NoCache, require_same
from wheelfarm.build.calls import Call
from wheelfarm.build.census import Census, take_census
from wheelfarm.build.costs import Costs
from wheelfarm.build.guards import (
    LinkReport,
    check_bypassed,
    check_link,
    check_shard,
    judge_link,
)
from wheelfarm.build.handoff import (
    CorruptShardError,
    ShardProduct,
    pack_cache,
    read_product,
    record_of,
    results_in,
    unite,
)
from wheelfarm.build.inputs import UnitInputs, inputs_of_calls
from wheelfarm.build.part import Prepared, compile_part, job_cache, prepare_job_seat
from wheelfarm.build.partition import ShardPlan, assign
from wheelfarm.build.seat_setup import SeatPart
from wheelfarm.errors import BadInputError, BuildError, CouldNotLookError

logger = logging.getLogger(__name__)


class MissingShardsError(BuildError):
    """Shards are missing or corrupt; nothing was compiled."""

    def __init__(self, problems: Mapping[int, str], shards: int) -> None:
        self.problems = dict(problems)
        told = "".join(f"\n    shard {shard}: {why}" for shard, why in sorted(problems.items()))
        super().__init__(
            f"{len(problems)} of {shards} shards cannot be used{told}",
            hint="run them again, or link with --heal to compile their units in the link job",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class CensusResult:
    """What a census found, with the compilers and the cache that a plan is made for."""

    census: Census
    identity: str
    cache: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Linked:
    """A linked wheel, how its compiles were answered, and the shards that were healed."""

    wheel: Path
    calls: tuple[Call, ...]
    report: LinkReport
    healed: tuple[int, ...]


def run_census(prepared: Prepared, folder: Path, *, log: Path) -> CensusResult:
    """Run the build with every compile stood in for, and return its units.

    Raises NoUnitsError where there are none, BehindSeatError where a compiler ran without being
    counted, CouldNotLookError where the machine has no cache.
    """
    cache = _require_cache(job_cache(prepared, folder / "cache"))
    part = compile_part(prepared, folder, log=log, cache=cache, part=SeatPart(mode="census"))
    part.unseen.check()
    census = take_census(part.calls)
    return CensusResult(census=census, identity=part.seat.identity, cache=cache.name)


def make_plan(
    found: CensusResult, costs: Costs, *, cell: str, build: str, shards: int
) -> ShardPlan:
    """Share the units of a census out; TooManyShardsError where there are too few."""
    units = found.census.units
    return assign(
        units,
        costs.estimates(units),
        shards,
        cell=cell,
        build=build,
        cache=found.cache,
        identity=found.identity,
    )


def source_filter_plan(
    prepared: Prepared, folder: Path, *, cell: str, build: str, shards: int
) -> ShardPlan:
    """Return the plan of a package that parts its own sources: there is no census, and no units."""
    cache = _require_cache(job_cache(prepared, folder / "cache"))
    return ShardPlan(
        cell=cell,
        build=build,
        shards=shards,
        cache=cache.name,
        identity=prepare_job_seat(prepared, folder, cache, SeatPart()).identity,
        units={},
        filter="source",
    )


def source_filter_variables(shard: int, shards: int) -> dict[str, str]:
    """Return the variables by which a package's own filter knows its part (from 1)."""
    return {
        f"{prefix}_{name}": str(value)
        for prefix in ("WHEELFARM", "CUDA_WHEELS")
        for name, value in (("SHARD_INDEX", shard), ("SHARD_COUNT", shards))
    }


def run_shard(
    prepared: Prepared, plan: ShardPlan, shard: int, folder: Path, archive: Path, *, log: Path
) -> tuple[ShardProduct, tuple[Call, ...]]:
    """Compile one shard's units and pack its cache into ``archive``.

    Raises BadInputError where the shard, the cache or the compilers are not the plan's, GuardError
    where the cache is empty or too many units went past it.
    """
    if not 1 <= shard <= plan.shards:
        message = f"there is no shard {shard} of {plan.shards}"
        raise BadInputError(message, hint="shards are counted from 1")
    files.remove(folder / "cache")
    cache = require_same(job_cache(prepared, folder / "cache"), plan.cache)
    part = SeatPart(mode="shard", shard=shard, shards=plan.shards, units=plan.assignment)
    variables: dict[str, str] = {}
    if plan.filter == "source":
        part, variables = SeatPart(), source_filter_variables(shard, plan.shards)
    done = compile_part(prepared, folder, log=log, cache=cache, part=part, variables=variables)
    plan.require_identity(done.seat.identity)
    check_shard(
        done.calls,
        sum(1 for _ in results_in(cache.kind, cache.folder)),
        variables=done.seat.environment,
        log_text=log.read_text(encoding="utf-8", errors="replace"),
        expected=sum(share.shard == shard for share in plan.units.values()) or not plan.units,
    )
    check_bypassed(done.calls)
    done.unseen.check()
    product = pack_cache(
        cache.kind,
        cache.folder,
        archive,
        plan=plan.digest,
        shard=shard,
        identity=done.seat.identity,
        units=inputs_of_calls(done.calls, plan.units),
    )
    return product, done.calls


def gather(
    plan: ShardPlan, archives: Sequence[Path], *, identity: str, heal: bool
) -> tuple[tuple[ShardProduct, ...], dict[int, str]]:
    """Return the shards' products that can be used, and why the others cannot, by shard.

    Raises MissingShardsError where one cannot and ``heal`` is not set.
    """
    products: dict[int, ShardProduct] = {}
    problems: dict[int, str] = {}
    for number, archive in enumerate(archives, 1):
        if not record_of(archive).is_file():
            problems[number] = "it is missing"
            continue
        try:
            product = read_product(archive, plan=plan.digest, identity=identity)
        except CorruptShardError as error:
            problems[number] = error.what
        else:
            products[product.shard] = product
    for number in range(1, plan.shards + 1):
        if number not in products:
            problems.setdefault(number, "it is missing")
    if problems and not heal:
        raise MissingShardsError(problems, plan.shards)
    return tuple(products[number] for number in sorted(products)), problems


def run_link(
    prepared: Prepared,
    plan: ShardPlan,
    archives: Sequence[Path],
    folder: Path,
    *,
    log: Path,
    heal: bool = False,
) -> Linked:
    """Unite the shards' caches in ``folder`` and run the plain build on them.

    Raises MissingShardsError before anything is compiled (unless ``heal``), GuardError where the
    shards' work was not used, BadInputError where cache or compilers are not the plan's.
    """
    files.remove(folder / "cache")
    cache = require_same(job_cache(prepared, folder / "cache", kept=False), plan.cache)
    products, problems = gather(plan, archives, identity=plan.identity, heal=heal)
    there: dict[str, UnitInputs] = {}
    healed = set(problems)
    for product in products:
        try:
            there.update(unite(cache.kind, [product], cache.folder).units)
        except CorruptShardError as error:
            if not heal:
                raise MissingShardsError({product.shard: error.what}, plan.shards) from error
            healed.add(product.shard)
    done = compile_part(prepared, folder, log=log, cache=cache, part=SeatPart(mode="link"))
    plan.require_identity(done.seat.identity)
    done.unseen.check()
    missing = frozenset(key for key, share in plan.units.items() if share.shard in healed)
    # Without units in the plan nobody knows which a missing shard had.
    unknown = bool(healed) and plan.filter == "source"
    link = judge_link(
        done.calls,
        there=there,
        missing=None if unknown else missing,
        inputs=inputs_of_calls(done.calls, plan.units or there),
        keys=plan.units or there,
    )
    check_link(link)
    for miss in link.misses:
        logger.warning("%s was compiled again: %s", miss.unit, miss.reason)
    return Linked(wheel=done.wheel, calls=done.calls, report=link, healed=tuple(sorted(healed)))


def report_document(linked: Linked) -> dict[str, object]:
    """Return what a link job records of itself."""
    report = linked.report
    return {
        "schema": "wheelfarm.link/1",
        "rate": round(report.rate, 4),
        "hits": len(report.hits),
        "misses": [{"unit": miss.unit, "reason": miss.reason} for miss in report.misses],
        "clock": list(report.clock),
        "healed_units": list(report.healed),
        "healed_shards": list(linked.healed),
        "bypassed": dict(report.bypassed),
    }


def write_report(linked: Linked, path: Path) -> None:
    """Write a link job's record."""
    files.write_text(path, json.dumps(report_document(linked), indent=1) + "\n")


def _require_cache(cache: CompilerCache | NoCache) -> CompilerCache:
    if isinstance(cache, NoCache):
        message = "a build in shards needs a compiler cache, and this machine has none"
        raise CouldNotLookError(message, cause=cache.reason, hint=HOW_TO_GET_CCACHE)
    if cache.kind != "ccache":
        message = f"a build in shards needs ccache, and this machine has {cache.name}"
        raise CouldNotLookError(
            message,
            cause="sccache's results are tied to the folder of the build that made them",
            hint=f"{HOW_TO_GET_CCACHE}; or build this package in one job",
        )
    return cache
