"""The one door to other programs: argument lists, output kept, nothing left running."""

import contextlib
import logging
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, ClassVar

from wheelfarm import guard
from wheelfarm.errors import BuildError, CouldNotLookError

logger = logging.getLogger(__name__)

#: How many of a failed program's last lines an error shows.
TAIL_LINES = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Completed:
    """What a program answered: its exit status (negative: the signal), output and wall time."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether the program exited with status 0."""
        return self.returncode == 0


class ProgramFailedError(BuildError):
    """A program exited with a non-zero status, was killed, or ran past its time."""

    def __init__(self, completed: Completed, *, log: Path | None, hint: str = "") -> None:
        self.completed = completed
        self.log = log
        code = completed.returncode
        how = f"exit status {code}" if code >= 0 else f"signal {signal_name(-code)}"
        text = completed.stderr.strip() or completed.stdout.strip()
        tail = "\n".join(f"    {line}" for line in text.splitlines()[-TAIL_LINES:])
        what = f"{shown(completed.argv)} failed: {how} after {completed.seconds:.1f} s"
        if tail:
            what += f"\n{tail}"
        if log is not None:
            what += f"\n  log: {log}"
        super().__init__(what, hint=hint)


class ProgramNotFoundError(CouldNotLookError):
    """A program is not installed."""


def signal_name(number: int) -> str:
    """Return the name of a signal, such as ``SIGKILL``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def shown(argv: Sequence[str], limit: int = 200) -> str:
    """Return ``argv`` as one would type it, cut to ``limit`` characters."""
    text = shlex.join(argv)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def find_program(name: str, *, hint: str = "", path: str | None = None) -> Path:
    """Return the absolute path of a program on PATH.

    Raises ProgramNotFoundError, with ``hint`` as the next step, where there is none.
    """
    found = shutil.which(name, path=path)
    if found is None:
        message = f"{name} is not on PATH"
        raise ProgramNotFoundError(message, hint=hint)
    return Path(found)


class Stop:
    """Ends the program that ``run`` waits for, from another thread, once ``request`` is called.

    The program and its whole session are killed; ``run`` then tells of it as of any killed program.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._requested = False

    @property
    def requested(self) -> bool:
        """Whether the program was asked to end."""
        return self._requested

    def request(self) -> None:
        """End the program that runs now, and each that is started from now on."""
        with self._lock:
            self._requested = True
            if self._process is not None and self._process.returncode is None:
                _kill_group(self._process)

    @contextlib.contextmanager
    def _over(self, process: "subprocess.Popen[str]") -> Iterator[None]:
        with self._lock:
            self._process = process
            if self._requested:
                _kill_group(process)
        try:
            yield
        finally:
            with self._lock:
                self._process = None


def guard_children() -> None:
    """Let no program that this process starts from now on outlive it, even where it is killed.

    A small process beside this one keeps the list of what runs and ends it when this one is gone.
    """
    _Guard.wanted = True


def stop_children() -> None:
    """End every program that ``run`` waits for in this process (with ``guard_children``)."""
    for session in tuple(_Guard.sessions):
        guard.kill_session(session)


class _Guard:
    """The process that outlives this one; started with the first program."""

    wanted = False
    sessions: ClassVar[set[int]] = set()
    _lock = threading.Lock()
    _process: "subprocess.Popen[str] | None" = None
    _owner = 0
    _mark = ""

    @classmethod
    def announce(cls, env: Mapping[str, str] | None) -> dict[str, str] | None:
        """Tell the guard that a program is about to start; return the program's environment.

        A kill between the start and the session's number then finds the program by its mark.
        """
        if not cls.wanted:
            return None if env is None else dict(env)
        with cls._lock:
            if cls._process is None or cls._owner != os.getpid():
                cls._mark = os.urandom(16).hex()
                cls._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", guard.__file__, cls._mark],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    start_new_session=True,
                )
                cls._owner = os.getpid()
            cls._write("?")
        return {**(os.environ if env is None else env), guard.VARIABLE: cls._mark}

    @classmethod
    def withdraw(cls) -> None:
        """Tell the guard that the announced program could not be started."""
        if cls.wanted:
            with cls._lock:
                cls._write("!")

    @classmethod
    def tell(cls, word: str, session: int) -> None:
        """Tell the guard that a session began (``+``) or ended (``-``)."""
        if not cls.wanted:
            return
        with cls._lock:
            (cls.sessions.add if word == "+" else cls.sessions.discard)(session)
            cls._write(f"{word}{session}")

    @classmethod
    def _write(cls, line: str) -> None:
        stream = None if cls._process is None else cls._process.stdin
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.write(f"{line}\n")
                stream.flush()


def run(
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    timeout: float | None = None,
    log: Path | None = None,
    check: bool = True,
    hint: str = "",
    stop: Stop | None = None,
) -> Completed:
    """Run a program and wait for it; both output streams are kept.

    ``env`` replaces the environment. With ``log`` both streams go to that file, appended behind the
    command line, and ``stdout`` holds what this run wrote there. The program leads a process group
    of its own; on a time-out (seconds), any exception, or once ``stop`` asks for it, its whole
    session is killed, so that no compiler outlives its build. Raises ProgramFailedError on a
    non-zero status unless ``check`` is false, ProgramNotFoundError where there is no such program.
    """
    call = _Call(
        words=tuple(os.fspath(word) for word in argv),
        cwd=cwd,
        env=env,
        stdin=stdin,
        timeout=timeout,
        stop=stop or Stop(),
    )
    logger.debug("run: %s", shown(call.words, 2000))
    completed = call.captured() if log is None else call.logged(log)
    if check and not completed.ok:
        raise ProgramFailedError(completed, log=log, hint=hint)
    return completed


@dataclass(frozen=True, kw_only=True, slots=True)
class _Call:
    words: tuple[str, ...]
    cwd: Path | None
    env: Mapping[str, str] | None
    stdin: str | None
    timeout: float | None
    stop: Stop

    def captured(self) -> Completed:
        started = time.monotonic()
        process = self._start(subprocess.PIPE, subprocess.PIPE)
        with self.stop._over(process):  # noqa: SLF001 - one module
            out, err, code = _wait(process, self.stdin, self.timeout)
        return self._completed(code, out, err, started)

    def logged(self, log: Path) -> Completed:
        started = time.monotonic()
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a+", encoding="utf-8", errors="replace") as stream:
            stream.write(f"$ {shlex.join(self.words)}\n")
            stream.flush()
            begin = stream.seek(0, os.SEEK_END)
            process = self._start(stream, subprocess.STDOUT)
            with self.stop._over(process):  # noqa: SLF001 - one module
                _, err, code = _wait(process, self.stdin, self.timeout)
            stream.seek(begin)
            text = stream.read()
        return self._completed(code, text, err, started)

    def _completed(self, code: int, out: str, err: str, started: float) -> Completed:
        seconds = time.monotonic() - started
        return Completed(argv=self.words, returncode=code, stdout=out, stderr=err, seconds=seconds)

    def _start(self, stdout: int | IO[str], stderr: int) -> "subprocess.Popen[str]":
        try:
            return self._opened(stdout, stderr)
        except FileNotFoundError as error:
            if self.cwd is not None and not self.cwd.is_dir():
                message = f"the working folder {self.cwd} does not exist"
                raise CouldNotLookError(message) from error
            message = f"{self.words[0]} is not installed"
            raise ProgramNotFoundError(message) from error
        except OSError as error:
            message = f"{self.words[0]} could not be started: {error.strerror}"
            raise CouldNotLookError(message) from error

    def _opened(self, stdout: int | IO[str], stderr: int) -> "subprocess.Popen[str]":
        env = _Guard.announce(self.env)
        try:
            return subprocess.Popen(
                self.words,
                cwd=self.cwd,
                env=env,
                stdin=subprocess.DEVNULL if self.stdin is None else subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        except BaseException:
            _Guard.withdraw()
            raise


def _wait(
    process: "subprocess.Popen[str]", stdin: str | None, timeout: float | None
) -> tuple[str, str, int]:
    try:
        _Guard.tell("+", process.pid)
        out, err = process.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        _kill_group(process)
        out, err = process.communicate()
        err = f"{err or ''}\nkilled after {timeout} s"
    except BaseException:
        _kill_group(process)
        process.wait()
        raise
    finally:
        _Guard.tell("-", process.pid)
    return out or "", err or "", process.returncode


def _kill_group(process: "subprocess.Popen[str]") -> None:
    if sys.platform != "win32":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    guard.kill_session(process.pid)
    process.kill()
