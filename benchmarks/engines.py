"""What an engine costs per job, and a plan of 30,000 jobs: nothing is built, only run.

Prints each figure beside its target. ``python benchmarks/engines.py [local|dask|plan]``.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wheelfarm.build.pipeline import StepListener
from wheelfarm.build.workspace import Workspace
from wheelfarm.engines.dask import DaskEngine, DaskOptions
from wheelfarm.engines.dask_worker import RemoteRun
from wheelfarm.engines.exchange import FolderExchange
from wheelfarm.engines.job import JobOptions, JobPlace
from wheelfarm.engines.job_result import JobResult
from wheelfarm.engines.local import LocalEngine, LocalOptions, Running
from wheelfarm.engines.plan_file import PlannedJob, read_plan
from wheelfarm.engines.record import RunRecord
from wheelfarm.recipes.load import load_farm
from wheelfarm.recipes.model import Farm

DEMO = Path(__file__).parents[1] / "examples/demo-farm"
JOBS = 30_000
MEASURED = 300


class FirstJob:
    """Ends the run when the first job has been started, or counts what ended."""

    def __init__(self, *, stop: bool) -> None:
        self.stop = stop
        self.first = 0.0
        self.ended = 0

    def started(self, _job: PlannedJob) -> None:
        """Note when the first job started."""
        self.first = self.first or time.perf_counter()

    def finished(self, _result: JobResult) -> None:
        """Count the jobs that ended."""
        self.ended += 1

    def tick(self, _running: Iterable[Running], _waiting: int) -> None:
        """End the run where only its start is timed."""
        if self.stop:
            raise KeyboardInterrupt


def nothing(job: PlannedJob, _options: JobOptions, _listen: StepListener) -> JobResult:
    """Do a job that takes no time."""
    return JobResult(
        job=job.id, cell=job.cell, package=job.package, kind=job.kind, status="done", seconds=0.0
    )


def write_plan(path: Path, jobs: int) -> None:
    """Write a plan of cells with four shards and a link each, and whole ones."""
    rows = []
    while len(rows) < jobs:
        cell = f"package{len(rows) % 44}-1.{len(rows)}-cu130-torch2.14-cp311-linux_x86_64"
        base = {"cell": cell, "package": f"package{len(rows) % 44}", "cost_minutes": 20.0}
        if len(rows) % 3:
            rows.append({**base, "id": cell, "kind": "whole"})
            continue
        rows += [
            {**base, "id": f"{cell}-shard{n}of4", "kind": "shard", "shard": n, "shards": 4}
            for n in range(1, 5)
        ]
        rows.append({**base, "id": f"{cell}-link", "kind": "link"})
    document = {"schema": "wheelfarm.plan/1", "recipes": "none", "jobs": rows}
    path.write_text(json.dumps(document))


def run_local(folder: Path, jobs: int, listener: FirstJob) -> float:
    """Read a plan and run it; return the seconds of the whole."""
    started = time.perf_counter()
    plan = read_plan(folder / "plan.json")
    record = RunRecord(folder / "run")
    with record.writing(plan, "local"):
        engine = LocalEngine(
            nothing, Workspace(folder, folder), record, LocalOptions(jobs=2), listener
        )
        try:
            engine.run(plan.jobs[:jobs])
        except KeyboardInterrupt:
            listener.stop = False
    return time.perf_counter() - started


def scheduling(folder: Path) -> None:
    """Time a plan of 30,000 jobs to the start of its first job."""
    write_plan(folder / "plan.json", JOBS)
    listener = FirstJob(stop=True)
    started = time.perf_counter()
    run_local(folder, JOBS, listener)
    seconds = listener.first - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{JOBS} jobs: plan to first job {seconds:.2f} s (target 5): ratio {seconds / 5:.2f}")
    print(f"{JOBS} jobs: memory {peak:.2f} GB (target 1): ratio {peak:.2f}")


def local(folder: Path) -> None:
    """Time jobs that do nothing, a process each."""
    write_plan(folder / "plan.json", MEASURED)
    seconds = run_local(folder, MEASURED, FirstJob(stop=False)) / MEASURED
    print(f"local: {seconds * 1000:.1f} ms a job (target 50): ratio {seconds / 0.05:.2f}")


def remote_nothing(job: PlannedJob, _run: RemoteRun, _attempt: int) -> dict[str, Any]:
    """Do a job that takes no time, on a worker."""
    return nothing(job, JobOptions(), lambda _name, _result: None).to_dict()


def dask(folder: Path) -> None:
    """Time jobs that do nothing, on one worker process: the whole engine but the builds."""
    address = folder / "address"
    python = [sys.executable, "-m"]
    with (folder / "log").open("wb") as log:
        scheduler = subprocess.Popen(
            [
                *(*python, "distributed.cli.dask_scheduler", "--host", "127.0.0.1"),
                *("--port", "0", "--no-dashboard", "--scheduler-file", str(address)),
            ],
            stdout=log,
            stderr=log,
        )
        worker = subprocess.Popen(
            [
                *(*python, "distributed.cli.dask_worker", "--scheduler-file", str(address)),
                *("--no-nanny", "--no-dashboard", "--nthreads", "1"),
                *("--local-directory", str(folder)),
            ],
            stdout=log,
            stderr=log,
        )
    try:
        seconds = run_dask(folder, address) / MEASURED
        print(f"dask: {seconds * 1000:.1f} ms a job (target 200): ratio {seconds / 0.2:.2f}")
    finally:
        worker.kill()
        scheduler.kill()
        worker.wait()
        scheduler.wait()


def run_dask(folder: Path, address: Path) -> float:
    """Run the measured jobs on a cluster whose worker is there; return the seconds."""
    from distributed import Client

    with Client(scheduler_file=str(address), timeout=60) as client:
        client.wait_for_workers(1)
    write_plan(folder / "plan.json", MEASURED)
    (folder / "farm.yml").write_text("{}")
    plan = read_plan(folder / "plan.json")
    record = RunRecord(folder / "run")
    place = JobPlace(
        workspace=Workspace(folder, folder),
        wheelhouse=folder / "wheelhouse",
        exchange=FolderExchange(folder / "exchange"),
        prefix="benchmark",
    )
    farm = Farm(root=folder, policy=load_farm(DEMO).policy, recipes={})
    options = DaskOptions(scheduler=json.loads(address.read_text())["address"])
    with record.writing(plan, "dask"):
        engine = DaskEngine(
            farm, place, record, options, FirstJob(stop=False), remote=remote_nothing
        )
        started = time.perf_counter()
        engine.run(plan.jobs[:MEASURED], plan.recipes)
        return time.perf_counter() - started


def main() -> None:
    """Run the benchmarks that are named, all of them for none."""
    chosen = sys.argv[1:] or ["plan", "local", "dask"]
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            {"plan": scheduling, "local": local, "dask": dask}[name](Path(folder))


if __name__ == "__main__":
    main()
