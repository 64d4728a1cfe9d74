"""What runs in a Dask worker: a look at the worker, and one job. Only small values pass."""

import shutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wheelfarm import __version__, files
from wheelfarm.build.workspace import Workspace
from wheelfarm.engines.exchange import Exchange, open_exchange
from wheelfarm.engines.farm_cells import CellFinder
from wheelfarm.engines.farm_files import shared_costs, unpack_farm
from wheelfarm.engines.job import JobOptions, JobPlace, run_job
from wheelfarm.engines.job_result import JobResult
from wheelfarm.engines.plan_file import PlannedJob
from wheelfarm.errors import CouldNotLookError
from wheelfarm.places import cache_root
from wheelfarm.run import guard_children, stop_children


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteRun:
    """What all jobs of a run have in common: the exchange, the plan's part in it, the recipes."""

    exchange: str
    prefix: str
    recipes: str
    heal: bool = False
    compiles: int | None = None

    @property
    def farm_name(self) -> str:
        """The name of the packed farm in the exchange."""
        return f"{self.prefix}/farm-{self.recipes[:16]}.tar.gz"

    def log_name(self, job: str) -> str:
        """Return the name of a job's log in the exchange."""
        return f"{self.prefix}/logs/{job}.log"


def look() -> dict[str, Any]:
    """Return what a worker is: its wheelfarm, its C++ compiler, its compiler cache."""
    return {
        "wheelfarm": __version__,
        "compiler": shutil.which("g++") or "",
        "cache": shutil.which("ccache") or shutil.which("sccache") or "",
    }


def stop() -> None:
    """End every program that this worker's jobs run."""
    stop_children()


def remote_job(job: PlannedJob, run: RemoteRun, attempt: int) -> dict[str, Any]:
    """Run one job in this worker's own folder and return its result's fields."""
    # Without this, a compiler outlives a worker that is killed.
    guard_children()
    folder = _worker_folder() / "wheelfarm" / run.recipes[:16]
    exchange = open_exchange(run.exchange)
    finder = _finder(run, folder, exchange)
    place = JobPlace(
        workspace=Workspace(folder / ".wheelfarm", cache_root(), shared_costs(finder.farm)),
        wheelhouse=folder / "wheelhouse",
        exchange=exchange,
        prefix=run.prefix,
    )
    options = JobOptions(compiles=run.compiles, heal=run.heal, engine="dask", attempt=attempt)
    result = run_job(job, finder, place, options)
    if result.status != "done":
        _hand_on_logs(job, run, place, exchange)
    return result.to_dict()


_finders: dict[tuple[Path, str], CellFinder] = {}
_finders_lock = threading.Lock()


def _finder(run: RemoteRun, folder: Path, exchange: Exchange) -> CellFinder:
    """Return the farm's cells; unpacked once per worker, read once per process."""
    with _finders_lock, files.locked(folder.with_suffix(".lock")):
        key = (folder, run.recipes)
        if key not in _finders:
            archive = folder.with_suffix(".tar.gz")
            if not archive.is_file() and not exchange.get(run.farm_name, archive):
                message = f"{exchange.location} has no farm of this run"
                raise CouldNotLookError(message, hint="start the run again")
            _finders[key] = CellFinder(unpack_farm(archive, folder / "farm", run.recipes))
        return _finders[key]


def _worker_folder() -> Path:
    from distributed import get_worker  # noqa: PLC0415 - an extra, there where workers are

    return Path(get_worker().local_directory)


def _hand_on_logs(job: PlannedJob, run: RemoteRun, place: JobPlace, exchange: Exchange) -> None:
    """Put the steps' logs of a job that did not end well where its owner can read them."""
    folder = place.workspace.cell(job.cell_id) / "logs"
    target = place.workspace.root / "logs" / f"{job.id}.log"
    texts = [
        f"=== {path.name}\n{path.read_text(encoding='utf-8', errors='replace')}"
        for path in sorted(folder.glob("*.log"), key=lambda path: path.stat().st_mtime)
    ]
    if texts:
        files.write_text(target, "\n".join(texts))
        exchange.put(run.log_name(job.id), target)


def read_result(document: Mapping[str, Any]) -> JobResult:
    """Return the result that a worker handed back."""
    return JobResult.from_dict(document, "a worker's result")
