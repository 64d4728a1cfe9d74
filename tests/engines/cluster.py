"""A Dask scheduler and workers, each a process of its own with a folder of its own."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Cluster:
    """A scheduler on loopback and its workers; ``cache`` holds the environments they share."""

    folder: Path
    address: str
    cache: Path
    workers: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def worker(self, name: str, **variables: str) -> "subprocess.Popen[bytes]":
        """Start a worker in a folder that no other one sees."""
        home = self.folder / name
        cache = home / "cache"
        cache.mkdir(parents=True)
        # Each environment takes minutes to make and is only read: the one thing that is shared.
        (cache / "environments").symlink_to(self.cache / "environments")
        process = started(
            [
                *(sys.executable, "-m", "distributed.cli.dask_worker", self.address),
                *("--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "60"),
                *("--local-directory", str(home), "--name", name, "--memory-limit", "0"),
                *("--resources", "CPU=1 MEMORY=8e9"),
            ],
            cwd=home,
            log=home / "out",
            env={**os.environ, "WHEELFARM_CACHE": str(cache), **variables},
        )
        self.workers[name] = process
        wait_for(lambda: "Registered to" in (home / "out").read_text(errors="replace"), process)
        return process


def started(
    words: list[str], *, cwd: Path, log: Path, env: dict[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    with log.open("wb") as stream:
        return subprocess.Popen(
            words,
            cwd=cwd,
            env=env,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def wait_for(happened: "object", process: "subprocess.Popen[bytes]", seconds: float = 120) -> None:
    """Wait until ``happened()`` is true, as long as the process that makes it so lives."""
    end = time.monotonic() + seconds
    while not happened():  # type: ignore[operator] # a callable
        assert process.poll() is None, "the process ended"
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.05)


@contextlib.contextmanager
def cluster(folder: Path, cache: Path) -> Iterator[Cluster]:
    """Run a scheduler; it and all workers are killed at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder.mkdir(parents=True)
    log = folder / "scheduler.out"
    scheduler = started(
        [
            *(sys.executable, "-m", "distributed.cli.dask_scheduler"),
            *("--host", "127.0.0.1", "--port", str(port), "--no-dashboard", "--no-show"),
        ],
        cwd=folder,
        log=log,
    )
    made = Cluster(folder=folder, address=f"tcp://127.0.0.1:{port}", cache=cache)
    try:
        wait_for(lambda: re.search(r"Scheduler at", log.read_text(errors="replace")), scheduler)
        yield made
    finally:
        for process in (*made.workers.values(), scheduler):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
