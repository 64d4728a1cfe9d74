"""Many wheels at once: each in a process of its own, reports in the order they were asked for."""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from wheelfarm.model.cell import CellId
from wheelfarm.verify.facts_cache import cached_facts
from wheelfarm.verify.gate import verify_wheel
from wheelfarm.verify.report import Report
from wheelfarm.verify.subject import Expected

#: Called with each report as it comes, in no order.
Listener = Callable[[Report], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One wheel to verify, as ``verify_wheel`` takes it; ``cache`` None reads it in any case."""

    wheel: Path
    cell: CellId | None = None
    expected: Expected | None = None
    environment: Path | None = None
    driver_stub: Path | None = None
    packages: Path | None = None
    strict: bool = False
    gpu: bool = False
    smoke_test: Path | None = None
    cache: Path | None = None

    def report(self) -> Report:
        """Verify the wheel."""
        return verify_wheel(
            self.wheel,
            cell=self.cell,
            expected=self.expected,
            environment=self.environment,
            driver_stub=self.driver_stub,
            packages=self.packages,
            strict=self.strict,
            gpu=self.gpu,
            smoke_test=self.smoke_test,
            facts=None if self.cache is None else cached_facts(self.wheel, self.cache),
        )


def verify_many(
    tasks: Sequence[Task], *, workers: int | None = None, listen: Listener | None = None
) -> tuple[Report, ...]:
    """Return the report of every task, in order.

    ``workers`` is by default the number of processors; a single wheel needs no process. The first
    error of a task is raised after the others were cancelled.
    """
    count = min(len(tasks), workers or os.cpu_count() or 1)
    if count <= 1:
        return tuple(_told(task.report(), listen) for task in tasks)
    # A fresh interpreter per worker: forking a process that has threads may deadlock.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, mp_context=context) as pool:
        futures = [pool.submit(task.report) for task in tasks]
        try:
            for future in as_completed(futures):
                _told(future.result(), listen)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return tuple(future.result() for future in futures)


def _told(report: Report, listen: Listener | None) -> Report:
    if listen is not None:
        listen(report)
    return report
