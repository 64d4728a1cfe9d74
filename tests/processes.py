"""Processes that tests start in the middle of something, and end there."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


@contextlib.contextmanager
def running(
    command: Sequence[str | Path], cwd: Path | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a command in a session of its own, silently; all of that ends with the block."""
    process = subprocess.Popen(
        command,
        cwd=cwd,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Killer:
    """Kills its own process before a step of work; ``steps`` counts them, 0 lets all happen."""

    def __init__(self, step: int) -> None:
        self.step = step
        self.steps = 0

    def counted(self, function: Callable[P, T]) -> Callable[P, T]:
        """Return a function whose every call is a step."""

        def call(*words: P.args, **named: P.kwargs) -> T:
            self.steps += 1
            if self.steps == self.step:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*words, **named)

        return call
