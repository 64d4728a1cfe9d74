"""The local engine with real processes: results, kills, interrupts, memory, and the verbs."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engines.conftest import CELLS, Farm, wheels_of
from tests.processes import running
from wheelfarm import guard
from wheelfarm.build.environment import Environment

CELL = CELLS["tiny_cuda"]

#: A run of made-up jobs through the real engine, in a process without any other thread.
ENGINE = """
import json, os, signal, sys, time
from pathlib import Path
from wheelfarm.build.workspace import Workspace
from wheelfarm.engines.job_result import JobResult
from wheelfarm.engines.local import LocalEngine, LocalOptions
from wheelfarm.engines.plan_file import PlanFile, PlannedJob
from wheelfarm.engines.record import RunRecord

root = Path(sys.argv[1])

class Silent:
    def started(self, job): pass
    def finished(self, result): pass
    def tick(self, running, waiting): pass

def cell(name):
    return f"{name}-1.0-cu130-torch2.14-cp311-linux_x86_64"

def job(name, kind="whole", shard=0, shards=1):
    suffix = {"whole": "", "link": "-link"}.get(kind, f"-shard{shard}of{shards}")
    return PlannedJob(id=cell(name) + suffix, cell=cell(name), package=name, kind=kind,
                      shard=shard, shards=shards, cost_minutes=1.0)

def done(job, **changes):
    return JobResult(job=job.id, cell=job.cell, package=job.package, kind=job.kind,
                     status="done", **changes)

def engine(work, todo, **options):
    record = RunRecord(root / "run")
    plan = PlanFile(path=root / "plan.json", recipes="r", digest="d" * 64, jobs=tuple(todo))
    kills = options.pop("kills", lambda: 0)
    with record.writing(plan, "local"):
        made = LocalEngine(work, Workspace.of(root), record, LocalOptions(**options), Silent(),
                           kills=kills)
        results = made.run(todo)
    print(json.dumps({name: [r.status, r.error, r.attempt] for name, r in results.items()}))
"""


def run_engine(tmp_path: Path, body: str) -> dict[str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", ENGINE + body, str(tmp_path)],
        check=False,
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return {
        name.replace("-1.0-cu130-torch2.14-cp311-linux_x86_64", ""): r for name, r in found.items()
    }


def test_jobs_that_die_and_fail(tmp_path: Path) -> None:
    body = """
def work(job, options, listen):
    if job.package == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if job.package == "leaves":
        os._exit(7)
    return done(job)

engine(work, [job("dies"), job("leaves"), job("fine"),
              job("dies", "shard", 1, 2), job("dies", "link")], jobs=2)
"""
    results = run_engine(tmp_path, body)
    assert results["dies"][:2] == ["killed", "its process ended with signal SIGKILL"]
    assert results["leaves"][:2] == ["killed", "its process ended with exit status 7"]
    assert results["fine"][0] == "done"
    assert results["dies-shard1of2"][0] == "killed"
    assert results["dies-link"][0] == "not-run"


PIPE = """
import os, sys
from pathlib import Path
from wheelfarm.engines.child import start_job
from wheelfarm.engines.job_result import JobResult

def body(tell):
    return JobResult(job="j", cell="c", package="p", kind="whole", status="done")

process = start_job(body, Path(sys.argv[1]))
while process.read():
    pass
os.fstat(process.pipe)
assert process.wait()[0] == 0
try:
    os.fstat(process.pipe)
except OSError:
    print("closed last")
"""


def test_a_pipe_is_open_until_its_selector_has_forgotten_it(tmp_path: Path) -> None:
    # Later children hold copies of a pipe: closed before it is unregistered, epoll goes on
    # reporting its end under a number that the next job's pipe has.
    done = subprocess.run(
        [sys.executable, "-c", PIPE, str(tmp_path / "log")],
        check=False,
        text=True,
        capture_output=True,
    )
    assert done.stdout == "closed last\n", done.stderr


COUNTED_KILLS = """
kills = root / "kills"
kills.write_text("0")

def count(kills):
    # The engine reads while this is written: the new text takes the old one's place whole.
    new = kills.with_suffix(".new")
    new.write_text(str(int(kills.read_text()) + 1))
    new.replace(kills)
"""


def test_a_job_killed_for_memory_runs_again_alone(tmp_path: Path) -> None:
    body = (
        COUNTED_KILLS
        + """
def work(job, options, listen):
    if job.package == "large" and (options.attempt == 1 or not job.id.startswith("large-1")):
        count(kills)
        os.kill(os.getpid(), signal.SIGKILL)
    assert options.compiles == 1 or options.attempt == 1
    return done(job, attempt=options.attempt)

engine(work, [job("large"), job("small")], jobs=1, kills=lambda: int(kills.read_text()))
"""
    )
    results = run_engine(tmp_path, body)
    assert results["large"] == ["done", "", 2]
    assert results["small"][0] == "done"


def test_a_job_that_never_fits_says_so(tmp_path: Path) -> None:
    body = (
        COUNTED_KILLS
        + """
def work(job, options, listen):
    count(kills)
    os.kill(os.getpid(), signal.SIGKILL)

engine(work, [job("large")], jobs=1, kills=lambda: int(kills.read_text()))
"""
    )
    status, error, attempt = run_engine(tmp_path, body)["large"]
    assert [status, str(attempt)] == ["killed", "2"]
    assert "killed it for memory" in error
    assert "max_jobs" in error


def test_the_first_failure_may_be_the_last(tmp_path: Path) -> None:
    body = """
def work(job, options, listen):
    if job.package == "bad":
        os._exit(1)
    return done(job)

engine(work, [job("bad"), job("a"), job("b")], jobs=1, keep_going=False)
"""
    results = run_engine(tmp_path, body)
    assert [results[name][0] for name in ("bad", "a", "b")] == ["killed", "not-run", "not-run"]


def test_a_time_limit_stops_what_runs(tmp_path: Path) -> None:
    body = """
def work(job, options, listen):
    signal.pause()

engine(work, [job("slow"), job("later")], jobs=1, minutes=0.001)
"""
    results = run_engine(tmp_path, body)
    assert results["slow"][0] == "timed-out"
    assert results["later"][0] == "not-run"


SLOW = """
import os, subprocess
from setuptools import setup
from setuptools.command.build_ext import build_ext
marker = {marker!r}
if not os.path.exists(marker):
    line = "set -m; sleep 600 & echo $! > {marker}.part; mv {marker}.part {marker}; wait"
    subprocess.run(["bash", "-c", line])
"""


def until(happened: Callable[[], object], seconds: float = 240) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.05)


def slow_once(farm: Farm, marker: Path) -> None:
    """Make the package's first build wait in the middle of its compile step."""
    setup = farm.root / "sources/tiny_cuda/setup.py"
    setup.write_text(SLOW.format(marker=str(marker)) + setup.read_text())


@pytest.mark.compile
@pytest.mark.torch
def test_a_run_goes_on_where_it_was_ended(
    compilers: Environment, small_farm: Farm, tmp_path: Path
) -> None:
    """A kill, an interrupt, then the wheel; status and logs tell of each."""
    marker = tmp_path / "compiling"
    slow_once(small_farm, marker)
    plan = small_farm.plan()
    for number in (signal.SIGKILL, signal.SIGINT):
        marker.unlink(missing_ok=True)
        with running(small_farm.command("run", plan), small_farm.root) as process:
            until(lambda process=process: marker.exists() or process.poll() is not None)  # type: ignore[misc]
            compiler = int(marker.read_text())
            session = os.getsid(compiler)
            if number == signal.SIGKILL:
                state = small_farm.json("status")
                assert (state["state"], state["left"]) == ("running", 1)
                second = small_farm.call("run", plan, status=4)
                assert "being run by another process" in second.stderr
            os.kill(process.pid, number)
            status = process.wait(timeout=120)
        assert status == (-signal.SIGKILL if number == signal.SIGKILL else 130)
        until(lambda session=session: not guard.session_members(session))  # type: ignore[misc]
        assert not wheels_of(small_farm.root / "wheelhouse")
    state = small_farm.json("status")
    assert state["outcomes"] == {"interrupted": 1}
    assert (state["state"], state["left"]) == ("stopped", 1)
    assert "stopped: 1 interrupted; 1 job left" in small_farm.call("status").stdout
    done = small_farm.json("run", plan, "--only", CELL)
    assert done["outcomes"] == {"done": 1}
    assert "source" not in done["jobs"][0]["steps"], "the first steps were kept"
    assert list(wheels_of(small_farm.root / "wheelhouse")) == [done["jobs"][0]["wheel"]]
    again = small_farm.json("run", plan)
    assert again["kept"] == [CELL]
    names = [log["name"] for log in small_farm.json("logs", CELL)["logs"]]
    assert "compile" in names
    assert "Successfully built" in small_farm.call("logs", CELL, "--step", "compile").stdout
    assert small_farm.json("status")["costs"]["tiny_cuda"]["fixed"] > 0


@pytest.mark.compile
@pytest.mark.torch
def test_a_job_that_fails_tells_why(compilers: Environment, small_farm: Farm) -> None:
    kernel = small_farm.root / "sources/tiny_cuda/src/kernel.cu"
    kernel.write_text(kernel.read_text() + "undeclared();\n")
    done = small_farm.call("run", small_farm.plan(), status=3)
    assert f"failed: {CELL}" in done.stdout
    assert "kernel.cu" in done.stdout
    assert small_farm.call("logs", "six-1.0-cu130-torch2.14-cp311-linux_x86_64", status=4).stderr
