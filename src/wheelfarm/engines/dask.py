"""The Dask engine: a plan's jobs on the workers of a scheduler, found by its address.

Slurm, PBS, LSF, Kubernetes and SSH clusters come with Dask's own deployments. The scheduler sees
small values alone: farm, shards' caches, wheels and logs pass through the exchange.
"""

import importlib
import logging
import tempfile
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wheelfarm import __version__
from wheelfarm.build.costs import Costs
from wheelfarm.build.resources import BYTES_PER_JOB
from wheelfarm.engines import dask_worker
from wheelfarm.engines.dask_worker import RemoteRun
from wheelfarm.engines.exchange import Exchange
from wheelfarm.engines.farm_files import pack_farm
from wheelfarm.engines.job import JobPlace, fetch_wheel
from wheelfarm.engines.job_result import JobResult, Status
from wheelfarm.engines.local import RunListener
from wheelfarm.engines.plan_file import PlannedJob
from wheelfarm.engines.record import RunRecord
from wheelfarm.engines.schedule import Schedule
from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.recipes.model import Farm
from wheelfarm.values import replace

logger = logging.getLogger(__name__)

#: What runs in a worker; its result is a ``JobResult``'s document.
RemoteWork = Callable[[PlannedJob, RemoteRun, int], dict[str, Any]]

#: How long a scheduler may take to answer (seconds).
_TIMEOUT = 10
#: Jobs handed to the scheduler at once, per worker: enough that none waits for the next.
_AHEAD = 4
#: What a job takes beside its compilers (bytes).
_BESIDE = 300_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class DaskOptions:
    """How the Dask engine runs; ``scheduler`` is an address such as ``tcp://host:8786``."""

    scheduler: str
    keep_going: bool = True
    heal: bool = False
    compiles: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Workers:
    """The workers that can run jobs, what each offers, and why the others cannot."""

    fit: Mapping[str, Mapping[str, float]]
    unfit: Mapping[str, str]

    def resources(self, need: int) -> dict[str, float]:
        """Return what a job asks of its worker, of what every fit worker declares.

        No job asks for more than the largest worker has, as it would wait for ever.
        """
        wanted = {"MEMORY": float(need), "CPU": 1.0}
        asked: dict[str, float] = {}
        for name, amount in wanted.items():
            offers = [resources.get(name) for resources in self.fit.values()]
            known = [offer for offer in offers if offer]
            if known and len(known) == len(offers):
                asked[name] = min(amount, max(known))
        return asked


class DaskEngine:
    """Runs jobs on a Dask cluster, and records what became of each."""

    def __init__(
        self,
        farm: Farm,
        place: JobPlace,
        record: RunRecord,
        options: DaskOptions,
        listener: RunListener,
        *,
        remote: RemoteWork = dask_worker.remote_job,
    ) -> None:
        self.farm = farm
        self.place = place
        self.record = record
        self.options = options
        self.listener = listener
        self.remote = remote
        self._results: dict[str, JobResult] = {}
        self._peaks: dict[str, int] = {}
        self._futures: dict[str, tuple[PlannedJob, Any]] = {}

    def run(self, jobs: Iterable[PlannedJob], recipes: str) -> dict[str, JobResult]:
        """Run jobs and return what became of each.

        Raises CouldNotLookError where the scheduler does not answer, or has no worker that can
        build. On an interrupt the workers' compilers are ended and KeyboardInterrupt goes on.
        """
        exchange = self.place.exchange
        if exchange is None:
            message = "the Dask engine needs an exchange that all workers see"
            raise BadInputError(message, hint="name a shared folder or an address: --exchange")
        run = RemoteRun(
            exchange=exchange.location,
            prefix=self.place.prefix,
            recipes=recipes,
            heal=self.options.heal,
            compiles=self.options.compiles,
        )
        with _client(self.options.scheduler) as client:
            workers = fit_workers(client)
            self._hand_on_farm(exchange, run)
            try:
                self._run(client, workers, tuple(jobs), run)
            except KeyboardInterrupt:
                # First what waits, or a worker whose compilers end takes the next job.
                client.cancel([future for _, future in self._futures.values()], force=True)
                client.run(dask_worker.stop, on_error="ignore")
                raise
        return self._results

    def _run(
        self, client: Any, workers: Workers, jobs: tuple[PlannedJob, ...], run: RemoteRun
    ) -> None:
        # The scheduler weighs memory; here only order and needs count.
        schedule = Schedule(jobs, lambda _job: 0)
        nonce = uuid.uuid4().hex[:8]
        futures = self._futures
        done = _distributed().as_completed(loop=client.loop)
        while schedule.waiting or futures:
            while len(futures) < _AHEAD * max(1, len(workers.fit)):
                job = schedule.start(0)
                if job is None:
                    break
                future = client.submit(
                    self.remote,
                    job,
                    run,
                    1,
                    key=f"{job.id}-{nonce}",
                    workers=list(workers.fit),
                    resources=workers.resources(self._need(job)),
                    pure=False,
                )
                futures[future.key] = (job, future)
                done.add(future)
                self.listener.started(job)
            if not futures:
                break
            future = next(done)
            job, _ = futures.pop(future.key)
            self._ended(job, future, schedule, run)

    def _ended(self, job: PlannedJob, future: Any, schedule: Schedule, run: RemoteRun) -> None:
        result = self._collected(job, future, run)
        self._note(result)
        ok = result.status == "done"
        for other in schedule.finish(job, ok=ok):
            self._note(_result_of(other, "not-run", f"{job.id} {result.status}"))
        if not ok and not self.options.keep_going:
            for other in schedule.drop():
                self._note(
                    _result_of(other, "not-run", f"stopped at the first failure, of {job.id}")
                )

    def _collected(self, job: PlannedJob, future: Any, run: RemoteRun) -> JobResult:
        try:
            result = dask_worker.read_result(future.result())
            fetch_wheel(self.place, result)
        except _distributed().KilledWorker as error:
            hint = "too little memory for its compilers is the usual cause: lower max_jobs"
            return _result_of(
                job, "killed", f"its workers died one after the other: {error}\n{hint}"
            )
        except CouldNotLookError as error:
            return _result_of(job, "could-not-look", str(error))
        except Exception as error:  # noqa: BLE001 - whatever a worker raises is this job's failure
            return _result_of(job, "failed", f"{type(error).__name__}: {error}")
        log = self.record.log(job.id)
        if result.status != "done" and self.place.exchange is not None:
            self.place.exchange.get(run.log_name(job.id), log)
        return replace(result, log=str(log) if log.is_file() else "")

    def _hand_on_farm(self, exchange: Exchange, run: RemoteRun) -> None:
        with tempfile.TemporaryDirectory(prefix="wheelfarm-") as folder:
            archive = Path(folder) / "farm.tar.gz"
            pack_farm(self.farm, archive)
            exchange.put(run.farm_name, archive)

    def _need(self, job: PlannedJob) -> int:
        if job.package not in self._peaks:
            path = self.place.workspace.cache / "costs" / f"{job.package}.json"
            self._peaks[job.package] = Costs.read(path).peak() or BYTES_PER_JOB
        return self._peaks[job.package] * (self.options.compiles or 1) + _BESIDE

    def _note(self, result: JobResult) -> None:
        self._results[result.job] = result
        self.record.add(result)
        self.listener.finished(result)


def fit_workers(client: Any) -> Workers:
    """Return the workers of a scheduler, each looked at.

    Raises CouldNotLookError, with the reason of each, where none can build.
    """
    known: dict[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    looks: dict[str, Any] = client.run(dask_worker.look, on_error="return") if known else {}
    unfit: dict[str, str] = {}
    for address, found in looks.items():
        reason = _unfit(found)
        if reason:
            unfit[address] = reason
            logger.warning("the worker %s gets no jobs: %s", address, reason)
    fit = {
        address: worker.get("resources") or {}
        for address, worker in known.items()
        if address in looks and address not in unfit
    }
    if not fit:
        message = f"no worker of {client.scheduler.address if client.scheduler else ''} can build"
        causes = "; ".join(f"{address}: {reason}" for address, reason in unfit.items())
        raise CouldNotLookError(message, cause=causes or "there are no workers")
    return Workers(fit=fit, unfit=unfit)


def _unfit(found: Any) -> str:
    if not isinstance(found, Mapping):
        return f"wheelfarm does not run there ({found!r})"
    if found["wheelfarm"] != __version__:
        return f"it has wheelfarm {found['wheelfarm']}, this is {__version__}"
    if not found["compiler"]:
        return "it has no g++"
    return ""


def _client(address: str) -> Any:
    try:
        return _distributed().Client(address, timeout=_TIMEOUT, set_as_default=False)
    except (OSError, ValueError) as error:
        message = f"the scheduler {address} did not answer"
        raise CouldNotLookError(
            message, cause=str(error), hint="`dask scheduler` prints its address"
        ) from error


def _distributed() -> Any:
    """Return the module: an extra without type hints, whose import takes 0.7 s."""
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        message = "the Dask engine needs distributed, which is not installed"
        raise CouldNotLookError(message, hint="pip install 'wheelfarm[dask]'") from error


def _result_of(job: PlannedJob, status: Status, error: str) -> JobResult:
    return JobResult.without_work(job, status, error, engine="dask")
