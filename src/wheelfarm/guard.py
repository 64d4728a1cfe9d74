"""Ends what a killed process left running: sessions come in by number, nothing of them lives on.

Run as a program (``python -I -S guard.py MARK``) it reads lines: ``?`` before its parent starts a
program, ``+N`` once that leads session N, ``!`` where it could not be started, ``-N`` when it has
ended. When the parent is gone, however it died, what is left is killed. A program that the parent
had no time to name is known by its environment, which holds MARK. A session, not a process group:
build tools such as ninja give each compiler a group of its own.
"""

import contextlib
import os
import signal
import sys
import time

#: The variable in a program's environment that says whose it is.
VARIABLE = "WHEELFARM_GUARD"

#: Members may be forking while they are killed; each round finds the ones that the last missed.
_ROUNDS = 50

#: Seconds in which a program that was about to be started when its parent died must have begun.
_BIRTH = 5.0


def session_members(session: int) -> list[int]:
    """Return the living processes of a session (Linux; elsewhere none are found)."""
    found = []
    for number in _processes():
        try:
            with open(f"/proc/{number}/stat", "rb") as stream:  # noqa: PTH123 - as above
                fields = stream.read().rpartition(b")")[2].split()
        except OSError:
            continue
        # After the name: state, parent, process group, session (proc_pid_stat(5)).
        if len(fields) > 3 and fields[0] not in {b"Z", b"X"} and int(fields[3]) == session:  # noqa: PLR2004
            found.append(number)
    return found


def _processes() -> list[int]:
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - starts without pathlib, once per job
    except OSError:
        return []
    return [int(name) for name in names if name.isdigit()]


def kill_session(session: int) -> None:
    """Kill every process of a session, those that are born meanwhile too."""
    for _ in range(_ROUNDS):
        members = session_members(session)
        if not members:
            return
        for pid in members:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def marked_sessions(mark: str) -> list[int]:
    """Return the sessions whose leaders were started with ``mark`` in their environment."""
    entry = f"{VARIABLE}={mark}".encode()
    found = []
    for number in _processes():
        with contextlib.suppress(OSError):
            with open(f"/proc/{number}/environ", "rb") as stream:  # noqa: PTH123 - as above
                entries = stream.read().split(b"\0")
            if entry in entries and os.getsid(number) == number:
                found.append(number)
    return found


def _kill_unnamed(mark: str, sessions: set[int]) -> None:
    """Kill what the parent had started, or was about to start, when it died."""
    end = time.monotonic() + _BIRTH
    while time.monotonic() < end:
        unnamed = [session for session in marked_sessions(mark) if session not in sessions]
        for session in unnamed:
            kill_session(session)
        if unnamed:
            return
        time.sleep(0.02)


def main() -> None:
    """Keep the list of living sessions until the parent's end, then kill them."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sessions: set[int] = set()
    starting = 0
    for line in sys.stdin:
        word = line.strip()
        if word == "?":
            starting += 1
        elif word == "!":
            starting -= 1
        elif word[:1] == "+" and word[1:].isdigit():
            starting -= 1
            sessions.add(int(word[1:]))
        elif word[:1] == "-" and word[1:].isdigit():
            sessions.discard(int(word[1:]))
    for session in sessions:
        kill_session(session)
    for _ in range(starting):
        _kill_unnamed(sys.argv[1], sessions)


if __name__ == "__main__":
    main()
