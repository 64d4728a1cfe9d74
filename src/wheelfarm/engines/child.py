"""A job in a process of its own: forked, so that it starts in milliseconds; watched by a pipe.

The child's standard streams go to the job's log. It tells its steps and its result over the pipe,
a JSON document a line, and dies with its parent; its compilers die with it.
"""

import contextlib
import ctypes
import gc
import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from wheelfarm.engines.job_result import JobResult
from wheelfarm.reading import parse_json
from wheelfarm.run import guard_children

#: prctl(2): the signal that a process gets when its parent dies.
_PR_SET_PDEATHSIG = 1

#: Called in the child with a function that reports a step; returns the job's result.
JobBody = Callable[[Callable[[str], None]], JobResult]


@dataclass(kw_only=True, slots=True)
class JobProcess:
    """A running child: its process, the pipe's reading end, the step it is at."""

    pid: int
    pipe: int
    step: str = ""
    result: JobResult | None = None
    _rest: bytes = field(default=b"")

    def read(self) -> bool:
        """Take in what the child wrote; False once it has closed the pipe."""
        data = os.read(self.pipe, 1 << 16)
        if not data:
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            document = parse_json(line, "a job's report")
            if "step" in document:
                self.step = str(document["step"])
            else:
                self.result = JobResult.from_dict(document["result"], "a job's report")
        return True

    def wait(self) -> tuple[int, int]:
        """Reap the child; return its exit status (negative: a signal), and its peak in bytes.

        The pipe is closed here, and not when it ends: a selector that watches it must forget it
        first. Later children hold copies of it, so that epoll would go on reporting its end under
        a number that the next pipe has.
        """
        os.close(self.pipe)
        _, status, usage = os.wait4(self.pid, 0)
        return os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024

    def signal(self, number: int) -> None:
        """Send the child a signal; one that is gone already needs none."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)


def start_job(body: JobBody, log: Path) -> JobProcess:
    """Fork a child that runs ``body``; it never returns here."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    parent = os.getpid()
    gc.freeze()  # What lives now is never collected in the child: its pages stay shared.
    pid = os.fork()
    if pid:
        os.close(writing)
        return JobProcess(pid=pid, pipe=reading)
    status = 1
    try:
        os.close(reading)
        _settle(parent, log)
        result = body(lambda step: _send(writing, {"step": step}))
        _send(writing, {"result": result.to_dict()})
        status = 0
    except KeyboardInterrupt:
        status = 130
    except BaseException:
        logging.getLogger(__name__).exception("the job's process failed")
    finally:
        _leave(status)


def _settle(parent: int, log: Path) -> None:
    """Make the forked process its own: a session, its streams, its end."""
    os.setsid()  # A Ctrl-C in the terminal reaches the engine, which then tells its jobs.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            _leave(1)
    guard_children()
    null = os.open(os.devnull, os.O_RDONLY)
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(null, 0)
    os.dup2(target, 1)
    os.dup2(target, 2)
    for handle in (null, target):
        os.close(handle)


def _send(pipe: int, document: dict[str, Any]) -> None:
    data = json.dumps(document, separators=(",", ":")).encode() + b"\n"
    while data:
        data = data[os.write(pipe, data) :]


def _leave(status: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)
