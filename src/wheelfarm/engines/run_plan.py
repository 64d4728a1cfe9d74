"""A plan's run: plan, farm and options come in, every job's result goes out; on any engine."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wheelfarm import files
from wheelfarm.build.pipeline import StepListener
from wheelfarm.engines.dask import DaskEngine, DaskOptions
from wheelfarm.engines.exchange import open_exchange
from wheelfarm.engines.farm_cells import CellFinder
from wheelfarm.engines.farm_files import farm_workspace, require_recipes
from wheelfarm.engines.job import JobOptions, JobPlace, run_job
from wheelfarm.engines.job_result import JobResult
from wheelfarm.engines.local import LocalEngine, LocalOptions, RunListener, Work
from wheelfarm.engines.plan_file import PlanFile, PlannedJob
from wheelfarm.engines.record import RunRecord
from wheelfarm.recipes.model import Farm

EngineName = Literal["local", "dask"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions:
    """How a plan is run. ``only`` names jobs or cells; ``again`` runs what is done already too."""

    only: tuple[str, ...] = ()
    again: bool = False
    wheelhouse: Path
    exchange: str | None = None
    engine: EngineName = "local"
    scheduler: str = ""
    jobs: int | None = None
    keep_going: bool = True
    heal: bool = False
    minutes: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOutcome:
    """What became of the jobs that were asked for; ``kept`` were done before."""

    results: Mapping[str, JobResult]
    kept: tuple[str, ...]
    record: RunRecord


def run_plan(plan: PlanFile, farm: Farm, options: RunOptions, listener: RunListener) -> RunOutcome:
    """Run a plan's jobs and return what became of each.

    Raises BadInputError where the plan was made from other recipes, or is being run by another
    process; CouldNotLookError where the engine cannot be reached.
    """
    require_recipes(farm, plan.recipes, f"the plan {plan.path}")
    jobs = plan.only(options.only)
    files.require_folder(options.wheelhouse, "the wheelhouse")
    if options.exchange is not None and "://" not in options.exchange:
        files.require_folder(Path(options.exchange), "the exchange")
    workspace = farm_workspace(farm)
    record = RunRecord.of(workspace, plan)
    prefix = f"plans/{plan.digest[:16]}"
    place = JobPlace(
        workspace=workspace,
        wheelhouse=options.wheelhouse.absolute(),
        exchange=None if options.exchange is None else open_exchange(options.exchange),
        prefix=prefix,
    )
    with record.writing(plan, options.engine):
        known = {} if options.again else record.results()
        kept = done_before(jobs, known, place.wheelhouse)
        todo = tuple(job for job in jobs if job.id not in kept)
        if options.engine == "dask":
            engine = DaskEngine(farm, place, record, _dask_options(options), listener)
            results = engine.run(todo, plan.recipes)
        else:
            local = _local_options(options)
            work = _work(CellFinder(farm), place)
            results = LocalEngine(work, workspace, record, local, listener).run(todo)
    found = {name: known[name] for name in kept} | results
    return RunOutcome(results=found, kept=tuple(sorted(kept)), record=record)


def _work(finder: CellFinder, place: JobPlace) -> Work:
    def work(job: PlannedJob, options: JobOptions, listen: StepListener) -> JobResult:
        return run_job(job, finder, place, options, listen)

    return work


def _local_options(options: RunOptions) -> LocalOptions:
    return LocalOptions(
        jobs=options.jobs,
        keep_going=options.keep_going,
        heal=options.heal,
        minutes=options.minutes,
    )


def _dask_options(options: RunOptions) -> DaskOptions:
    return DaskOptions(
        scheduler=options.scheduler,
        keep_going=options.keep_going,
        heal=options.heal,
        compiles=options.jobs,
    )


def done_before(
    jobs: Iterable[PlannedJob], known: Mapping[str, JobResult], wheelhouse: Path
) -> frozenset[str]:
    """Return the jobs that need not run again: their wheel is there, with the bytes of then.

    A shard is done where its cell's link is; without the link it runs again, and finds its steps
    done where they are.
    """
    cells = set()
    for job in jobs:
        result = known.get(job.id)
        if job.kind == "shard" or result is None or result.status != "done":
            continue
        wheel = wheelhouse / result.wheel
        if wheel.is_file() and files.sha256(wheel) == result.sha256:
            cells.add(job.cell)
    return frozenset(job.id for job in jobs if job.cell in cells and job.id in known)


def exit_code(results: Iterable[JobResult]) -> int:
    """Return the exit status of a run: 3 for a failed job, 2 and 1 as the gate says, else 0."""
    statuses = {result.status for result in results}
    if statuses & {"failed", "killed", "timed-out", "not-run"}:
        return 3
    if "could-not-look" in statuses:
        return 2
    return 1 if "refused" in statuses else 0
