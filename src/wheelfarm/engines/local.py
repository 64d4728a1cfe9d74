"""The local engine: a plan's jobs on this machine, as many at once as memory and cores allow."""

import logging
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from wheelfarm.build.pipeline import StepListener
from wheelfarm.build.resources import read_machine
from wheelfarm.build.steps import StepResult
from wheelfarm.build.workspace import Workspace
from wheelfarm.engines.child import JobBody, JobProcess, start_job
from wheelfarm.engines.job import JobOptions
from wheelfarm.engines.job_result import JobResult, Status
from wheelfarm.engines.machine_memory import MemoryModel, memory_for_jobs, memory_kills
from wheelfarm.engines.plan_file import PlannedJob
from wheelfarm.engines.record import RunRecord
from wheelfarm.engines.schedule import Schedule
from wheelfarm.run import signal_name
from wheelfarm.values import replace

logger = logging.getLogger(__name__)

#: What a job's process does; it is called there, not here.
Work = Callable[[PlannedJob, JobOptions, StepListener], JobResult]

#: How often the view is drawn anew (seconds); jobs' ends are seen at once.
_TICK = 0.5
#: How long jobs may take to put their work down after an interrupt (seconds).
_GRACE = 10.0


class RunListener(Protocol):
    """Told how a run goes."""

    def started(self, job: PlannedJob) -> None:
        """Hear that a job was started."""

    def finished(self, result: JobResult) -> None:
        """Hear that a job ended, or will not be run."""

    def tick(self, running: "Iterable[Running]", waiting: int) -> None:
        """Hear that time passed."""


@dataclass(kw_only=True, slots=True)
class Running:
    """A job and its process; ``kills`` is the kernel's count of memory kills at its start."""

    job: PlannedJob
    process: JobProcess
    since: float
    kills: int
    attempt: int
    stopping: Status | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalOptions:
    """How the local engine runs: ``jobs`` at once at most (None: by cores and memory)."""

    jobs: int | None = None
    keep_going: bool = True
    heal: bool = False
    minutes: float | None = None
    """Of the whole run; jobs that are not done then are stopped, and go on another time."""


class LocalEngine:
    """Runs jobs in processes of their own, and records what became of each."""

    def __init__(
        self,
        work: Work,
        workspace: Workspace,
        record: RunRecord,
        options: LocalOptions,
        listener: RunListener,
        *,
        kills: Callable[[], int] = memory_kills,
    ) -> None:
        self.work = work
        self.workspace = workspace
        self.record = record
        self.options = options
        self.listener = listener
        self._kills = kills
        self._selector = selectors.DefaultSelector()
        self._running: dict[int, Running] = {}
        self._results: dict[str, JobResult] = {}
        self._attempts: dict[str, int] = {}
        self._stopped: Status | None = None
        self._slots = 1
        self._compiles = 1
        self._budget = 0

    def run(self, jobs: Iterable[PlannedJob]) -> dict[str, JobResult]:
        """Run jobs in their order; return what became of each.

        On an interrupt the jobs that run are stopped, everything is recorded, and KeyboardInterrupt
        goes on to the caller.
        """
        todo = tuple(jobs)
        cores = read_machine().cores
        self._slots = self.options.jobs or max(1, min(cores, len(todo)))
        self._compiles = max(1, cores // self._slots)
        model = MemoryModel(self.workspace, self._compiles)
        schedule = Schedule(todo, model.need)
        deadline = None
        if self.options.minutes is not None:
            deadline = time.monotonic() + self.options.minutes * 60
        try:
            while schedule.waiting or self._running:
                self._start(schedule)
                self._wait(schedule, model)
                if deadline is not None and time.monotonic() > deadline:
                    self._stop(schedule, "timed-out")
                    self._drain(schedule, model)
        except KeyboardInterrupt:
            self._stop(schedule, "interrupted")
            self._drain(schedule, model)
            raise
        finally:
            self._selector.close()
        return self._results

    def _start(self, schedule: Schedule) -> None:
        # What runs already has its memory: the rest is what is free, and what they were given.
        while len(self._running) < self._slots:
            job = schedule.start(self._memory(schedule))
            if job is None:
                return
            attempt = self._attempts.get(job.id, 0) + 1
            self._attempts[job.id] = attempt
            options = JobOptions(
                compiles=1 if attempt > 1 else self._compiles,
                heal=self.options.heal,
                attempt=attempt,
            )
            # Counted before the start: a job may be killed before this process gets on.
            kills = self._kills()
            process = start_job(self._body(job, options), self.record.log(job.id))
            self._running[process.pipe] = Running(
                job=job,
                process=process,
                since=time.monotonic(),
                kills=kills,
                attempt=attempt,
            )
            self._selector.register(process.pipe, selectors.EVENT_READ)
            self.listener.started(job)

    def _body(self, job: PlannedJob, options: JobOptions) -> JobBody:
        def body(tell: Callable[[str], None]) -> JobResult:
            def listen(name: str, result: StepResult | None) -> None:
                if result is None:
                    tell(name)

            return self.work(job, options, listen)

        return body

    def _memory(self, schedule: Schedule) -> int:
        if not schedule.running:
            self._budget = memory_for_jobs()
        return self._budget

    def _wait(self, schedule: Schedule, model: MemoryModel) -> None:
        for key, _ in self._selector.select(timeout=_TICK):
            running = self._running[key.fd]
            if running.process.read():
                continue
            self._selector.unregister(key.fd)
            del self._running[key.fd]
            self._ended(running, schedule, model)
        self.listener.tick(self._running.values(), schedule.waiting)

    def _ended(self, running: Running, schedule: Schedule, model: MemoryModel) -> None:
        code, peak = running.process.wait()
        result = self._result(running, code, peak)
        model.forget(running.job.package)
        lost = result.status in {"killed", "failed"} and self._for_memory(running)
        if lost and running.attempt == 1:
            logger.warning("%s was killed for memory; it runs again alone", running.job.id)
            schedule.retry_alone(running.job)
            return
        self._note(result)
        ok = result.status == "done"
        for job in schedule.finish(running.job, ok=ok):
            self._note(_not_run(job, f"{running.job.id} {result.status}"))
        if not ok and not self.options.keep_going and self._stopped is None:
            for job in schedule.drop():
                self._note(_not_run(job, f"stopped at the first failure, of {running.job.id}"))

    def _result(self, running: Running, code: int, peak: int) -> JobResult:
        known = running.process.result
        log = str(self.record.log(running.job.id))
        if known is not None:
            return replace(known, log=log, peak=max(known.peak, peak))
        status: Status = running.stopping or "killed"
        how = f"signal {signal_name(-code)}" if code < 0 else f"exit status {code}"
        error = {
            "timed-out": "stopped at the time limit; what the compiler cache has is kept",
            "interrupted": "interrupted; finished steps are kept",
        }.get(status, f"its process ended with {how}")
        if status == "killed" and self._for_memory(running):
            error += (
                "; the kernel killed it for memory: set max_jobs to 1 and nvcc_threads to 1 in "
                "the recipe, or run on a machine with more"
            )
        seconds = round(time.monotonic() - running.since, 3)
        return replace(
            _result_of(running.job, status, error),
            seconds=seconds,
            peak=peak,
            log=log,
            attempt=running.attempt,
        )

    def _for_memory(self, running: Running) -> bool:
        return running.stopping is None and self._kills() > running.kills

    def _note(self, result: JobResult) -> None:
        self._results[result.job] = result
        self.record.add(result)
        self.listener.finished(result)

    def _stop(self, schedule: Schedule, status: Status) -> None:
        """Start nothing more, and ask what runs to put its work down."""
        if self._stopped is not None:
            return
        self._stopped = status
        for job in schedule.drop():
            self._results[job.id] = _not_run(job, status)
        for running in self._running.values():
            running.stopping = status
            running.process.signal(signal.SIGTERM)

    def _drain(self, schedule: Schedule, model: MemoryModel) -> None:
        end = time.monotonic() + _GRACE
        while self._running:
            if time.monotonic() > end:
                for running in self._running.values():
                    running.process.signal(signal.SIGKILL)
                end = float("inf")
            self._wait(schedule, model)


def _not_run(job: PlannedJob, why: str) -> JobResult:
    return _result_of(job, "not-run", why)


def _result_of(job: PlannedJob, status: Status, error: str) -> JobResult:
    return JobResult.without_work(job, status, error, engine="local", worker=os.uname().nodename)
