"""One job of a plan: its farm, folders and exchange come in, a result goes out.

Every engine runs this very function, in a process that it may lose. What a job is done with is in
the exchange or the wheelhouse whole or not at all, and the result is made after it; so half-done
work is never taken for done.
"""

import logging
import os
import platform
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from wheelfarm import files
from wheelfarm.build.calls import CallSummary, read_calls, summarise
from wheelfarm.build.handoff import record_of
from wheelfarm.build.jobs import ShardedCell
from wheelfarm.build.pipeline import StepListener
from wheelfarm.build.request import BuildRequest, BuiltWheel
from wheelfarm.build.steps import StepResult
from wheelfarm.build.workspace import Workspace
from wheelfarm.engines.cell_job import run_cell
from wheelfarm.engines.exchange import Exchange
from wheelfarm.engines.farm_cells import CellFinder, FarmCell
from wheelfarm.engines.job_result import JobResult, Status
from wheelfarm.engines.plan_file import PlannedJob
from wheelfarm.errors import (
    BadInputError,
    CouldNotLookError,
    WheelfarmError,
    refused_by_system,
)
from wheelfarm.model.cell import CellId
from wheelfarm.values import replace
from wheelfarm.verify.report import report_path

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class JobOptions:
    """How a job runs: ``compiles`` at once at most, ``heal`` for links without all shards."""

    compiles: int | None = None
    heal: bool = False
    engine: str = "local"
    attempt: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class JobPlace:
    """Where a job runs: its build folders, where wheels that pass go, what jobs share.

    ``prefix`` is the plan's own part of the exchange. Without an exchange all jobs of the plan run
    on this machine, and share its workspace.
    """

    workspace: Workspace
    wheelhouse: Path
    exchange: Exchange | None = None
    prefix: str = ""

    def cell_name(self, cell: CellId, name: str) -> str:
        """Return the name in the exchange of a cell's file."""
        return f"{self.prefix}/cells/{cell}/{name}"

    def wheel_name(self, name: str) -> str:
        """Return the name in the exchange of a wheel or its report."""
        return f"{self.prefix}/wheels/{name}"


def run_job(
    job: PlannedJob,
    finder: CellFinder,
    place: JobPlace,
    options: JobOptions,
    listen: StepListener | None = None,
) -> JobResult:
    """Run a job and return what became of it; only an interrupt or a kill raises."""
    runner = _Runner(job, place, options, listen or (lambda _name, _result: None))
    started = time.monotonic()
    base = JobResult(
        job=job.id,
        cell=job.cell,
        package=job.package,
        kind=job.kind,
        status="failed",
        engine=options.engine,
        worker=f"{platform.node()}:{os.getpid()}",
        started=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        attempt=options.attempt,
    )
    try:
        changes = runner.run(finder.find(job.cell_id))
    except CouldNotLookError as error:
        changes = {"status": "could-not-look", "error": str(error)}
    except WheelfarmError as error:
        changes = {"error": str(error)}
    except OSError as error:
        logger.exception("the operating system refused")
        changes = {"status": "could-not-look", "error": str(refused_by_system(error))}
    except Exception as error:
        logger.exception("the job failed in a way nobody foresaw")
        changes = {"error": "".join(traceback.format_exception_only(error)).strip()}
    seconds = round(time.monotonic() - started, 3)
    return replace(base, seconds=seconds, **{**runner.measured(), **changes})


class _Runner:
    """One job's work, and what was measured of it so far."""

    def __init__(
        self, job: PlannedJob, place: JobPlace, options: JobOptions, listen: StepListener
    ) -> None:
        self.job = job
        self.place = place
        self.options = options
        self._listen = listen
        self._steps: dict[str, StepResult] = {}
        self._archs = 0

    def run(self, cell: FarmCell) -> dict[str, Any]:
        """Run the job; the result's fields."""
        request = self._request(cell.request)
        self._archs = len(request.archs.entries)
        if self.job.kind == "whole":
            return self._judged(request, cell, None)
        shards = self._shards(cell)
        sharding = cell.recipe.sharding
        sharded = ShardedCell(
            request,
            self.place.workspace,
            shards,
            shard_filter="seat" if sharding is None else sharding.filter,
            listen=self._step,
        )
        if self.job.kind == "shard":
            return self._shard(sharded)
        self._collect(sharded)
        return self._judged(request, cell, lambda: sharded.link(heal=self.options.heal))

    def measured(self) -> dict[str, Any]:
        """Return what was measured of the steps that ran."""
        calls = self._calls()
        return {
            "steps": {
                name: round(step.seconds, 3)
                for name, step in self._steps.items()
                if not step.reused
            },
            "archs": self._archs,
            "units": calls.units,
            "peak": calls.peak,
            "compile_seconds": round(calls.seconds, 3),
            "cache": calls.cache,
        }

    def _request(self, request: BuildRequest) -> BuildRequest:
        limits = [limit for limit in (request.max_jobs, self.options.compiles) if limit]
        return replace(
            request,
            max_jobs=min(limits) if limits else None,
            build_tag=str(self.job.build) if self.job.build else request.build_tag,
        )

    def _shards(self, cell: FarmCell) -> int:
        shards = cell.recipe.shards_on[cell.grid_cell.identifier.platform]
        if shards == 1 or (self.job.kind == "shard" and self.job.shards != shards):
            message = f"{self.job.id}: the recipe has {shards} shards"
            raise BadInputError(message, hint="make the plan again")
        return shards

    def _step(self, name: str, result: StepResult | None) -> None:
        if result is not None:
            self._steps[name] = result
        self._listen(name, result)

    def _calls(self) -> CallSummary:
        for step in reversed(self._steps.values()):
            if not step.reused and "calls" in step.outputs and step.path("calls").is_file():
                return summarise(read_calls(step.path("calls")))
        return summarise(())

    def _shard(self, sharded: ShardedCell) -> dict[str, Any]:
        self._share_plan(sharded, make=True)
        product = sharded.build_shard(self.job.shard)
        exchange = self.place.exchange
        if exchange is not None:
            # The record last: an archive without one is one that is still on its way.
            for path in (product.archive, record_of(product.archive)):
                exchange.put(self._name(sharded, path), path)
        return {"status": "done", "sha256": product.sha256}

    def _collect(self, sharded: ShardedCell) -> None:
        """Bring the shards' plan and archives here from where the shards put them."""
        self._share_plan(sharded, make=False)
        exchange = self.place.exchange
        if exchange is None:
            return
        for shard in range(1, sharded.shards + 1):
            archive = sharded.archive(shard)
            for path in (record_of(archive), archive):
                exchange.get(self._name(sharded, path), path)

    def _share_plan(self, sharded: ShardedCell, *, make: bool) -> None:
        """Bring the cell's one shard plan here; the first job that needs one makes it for all."""
        exchange = self.place.exchange
        if exchange is None:
            return
        name, file = self._name(sharded, sharded.plan_file), sharded.plan_file
        if exchange.get(name, file) or not make:
            return
        sharded.make_plan()
        if not exchange.put_new(name, file):
            exchange.get(name, file)

    def _name(self, sharded: ShardedCell, path: Path) -> str:
        cell = sharded.pipeline.request.cell.identifier
        return self.place.cell_name(cell, path.name)

    def _judged(
        self, request: BuildRequest, cell: FarmCell, build: Callable[[], BuiltWheel] | None
    ) -> dict[str, Any]:
        result = run_cell(
            request,
            cell.expected,
            self.place.workspace,
            wheelhouse=self.place.wheelhouse,
            build=build,
            listen=self._step,
        )
        report = result.report
        fields: dict[str, Any] = {"wheel": result.wheel.name, "sha256": report.sha256}
        verdicts: dict[str, Status] = {
            "pass": "done",
            "fail": "refused",
            "could-not-look": "could-not-look",
        }
        fields["status"] = verdicts[report.verdict]
        bad = (*report.with_status("fail"), *report.with_status("could-not-look"))
        fields["error"] = "\n".join(f"{check.id}: {check.summary}" for check in bad)
        exchange = self.place.exchange
        if exchange is not None and report.verdict == "pass":
            for path in (result.wheel, report_path(result.wheel)):
                exchange.put(self.place.wheel_name(path.name), path)
        return fields


def fetch_wheel(place: JobPlace, result: JobResult) -> bool:
    """Bring a done job's wheel and report from the exchange to the wheelhouse.

    Raises CouldNotLookError where they are not there, or not the bytes that the job told of.
    """
    exchange = place.exchange
    if exchange is None or not result.wheel or result.status != "done":
        return False
    wheel = place.wheelhouse / result.wheel
    for path in (report_path(wheel), wheel):
        if not exchange.get(place.wheel_name(path.name), path):
            message = f"{exchange.location} has no {path.name} of {result.job}"
            raise CouldNotLookError(message)
    if files.sha256(wheel) != result.sha256:
        files.remove(wheel)
        message = f"{wheel.name} came from {exchange.location} with other bytes than were built"
        raise CouldNotLookError(message, hint="run the job again")
    return True
