"""The Dask engine with a real scheduler and real worker processes, and what can go wrong there."""

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engines.cluster import Cluster, cluster, wait_for
from tests.engines.conftest import CELLS, Farm, wheels_of
from tests.engines.test_local import slow_once, until
from tests.processes import running
from wheelfarm import guard
from wheelfarm.build.environment import Environment
from wheelfarm.engines.dask import Workers
from wheelfarm.places import cache_root

if TYPE_CHECKING:
    import subprocess

pytest.importorskip("distributed")


def words(dask: Cluster, folder: Path) -> list[str | Path]:
    return ["--engine", "dask", "--scheduler", dask.address, "--exchange", folder / "exchange"]


def test_a_job_asks_for_what_workers_declare() -> None:
    both = {"a": {"MEMORY": 8e9, "CPU": 4.0}, "b": {"MEMORY": 4e9, "CPU": 1.0}}
    assert Workers(fit=both, unfit={}).resources(3_000_000_000) == {"MEMORY": 3e9, "CPU": 1.0}
    assert Workers(fit=both, unfit={}).resources(20_000_000_000)["MEMORY"] == 8e9
    some = {"a": {"MEMORY": 8e9}, "b": {}}
    assert Workers(fit=some, unfit={}).resources(3_000_000_000) == {}


def test_an_unreachable_scheduler(small_farm: Farm, tmp_path: Path) -> None:
    plan = small_farm.plan()
    address = ("--engine", "dask", "--scheduler", "tcp://127.0.0.1:9")
    done = small_farm.call("run", plan, *address, "--exchange", tmp_path, status=2)
    assert "the scheduler tcp://127.0.0.1:9 did not answer" in done.stderr
    assert "Traceback" not in done.stderr
    small_farm.call("run", plan, *address, status=64)


def test_workers_that_cannot_build(small_farm: Farm, tmp_path: Path) -> None:
    """One has no compiler, one another wheelfarm: neither gets a job, and the error says why."""
    plan = small_farm.plan()
    older = tmp_path / "older"
    (older / "wheelfarm").mkdir(parents=True)
    source = Path(guard.__file__).parent
    for path in source.iterdir():
        if path.name not in {"__init__.py", "__pycache__"}:
            (older / "wheelfarm" / path.name).symlink_to(path)
    (older / "wheelfarm/__init__.py").write_text('__version__ = "0.0.1"\n')
    with cluster(tmp_path / "cluster", cache_root()) as dask:
        empty = tmp_path / "empty"
        empty.mkdir()
        dask.worker("bare", PATH=str(empty))
        dask.worker("older", PYTHONPATH=str(older))
        done = small_farm.call("run", plan, *words(dask, tmp_path), status=2)
    assert "can build" in done.stderr
    assert "it has no g++" in done.stderr
    assert "it has wheelfarm 0.0.1" in done.stderr


@pytest.mark.full
@pytest.mark.compile
@pytest.mark.torch
def test_a_worker_that_dies_in_mid_compile(
    compilers: Environment, small_farm: Farm, tmp_path: Path
) -> None:
    """Its compilers die with it, its half-done work is not taken, another worker builds."""
    marker = tmp_path / "compiling"
    slow_once(small_farm, marker)
    plan = small_farm.plan()
    with cluster(tmp_path / "cluster", cache_root()) as dask:
        for name in ("one", "two"):
            dask.worker(name)
        command = small_farm.command("run", plan, *words(dask, tmp_path))
        with running(command, small_farm.root) as client:
            wait_for(marker.exists, client, 240)
            session = os.getsid(int(marker.read_text()))
            victim = owner(dask, session)
            os.kill(victim.pid, signal.SIGKILL)
            victim.wait()
            until(lambda: not guard.session_members(session))
            assert not list((tmp_path / "exchange").rglob("*.whl"))
            assert client.wait(timeout=400) == 0
        state = small_farm.json("status")
    assert state["outcomes"] == {"done": 1}
    pids = {process.pid for process in dask.workers.values()} - {victim.pid}
    assert state["results"][0]["worker"].rpartition(":")[2] in set(map(str, pids))
    assert state["results"][0]["cell"] == CELLS["tiny_cuda"]
    assert len(wheels_of(small_farm.root / "wheelhouse")) == 1


@pytest.mark.full
@pytest.mark.compile
@pytest.mark.torch
def test_an_interrupt_ends_the_workers_compilers(
    compilers: Environment, small_farm: Farm, tmp_path: Path
) -> None:
    marker = tmp_path / "compiling"
    slow_once(small_farm, marker)
    plan = small_farm.plan()
    with cluster(tmp_path / "cluster", cache_root()) as dask:
        worker = dask.worker("one")
        command = small_farm.command("run", plan, *words(dask, tmp_path))
        with running(command, small_farm.root) as client:
            wait_for(marker.exists, client, 240)
            session = os.getsid(int(marker.read_text()))
            os.kill(client.pid, signal.SIGINT)
            assert client.wait(timeout=60) == 130
            until(lambda: not guard.session_members(session))
        assert worker.poll() is None, "the worker itself lives on"
        done = small_farm.json("run", plan, *words(dask, tmp_path))
    assert done["outcomes"] == {"done": 1}


def owner(dask: Cluster, session: int) -> "subprocess.Popen[bytes]":
    """Return the worker whose child leads a session."""
    stat = Path(f"/proc/{session}/stat").read_text()
    parent = int(stat.rpartition(")")[2].split()[1])
    return next(process for process in dask.workers.values() if process.pid == parent)
