"""Ends what a killed process left running: sessions come in by number, nothing of them lives on.

Run as a program (``python -I -S guard.py``) it reads ``+N`` and ``-N`` lines, the sessions that
its parent started and saw end. When the parent is gone, however it died, the rest are killed. A
session, not a process group: build tools such as ninja give each compiler a group of its own.
"""

import contextlib
import os
import signal
import sys

#: Members may be forking while they are killed; each round finds the ones that the last missed.
_ROUNDS = 50


def session_members(session: int) -> list[int]:
    """Return the living processes of a session (Linux; elsewhere none are found)."""
    found = []
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - starts without pathlib, once per job
    except OSError:
        return []
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as stream:  # noqa: PTH123 - as above
                fields = stream.read().rpartition(b")")[2].split()
        except OSError:
            continue
        # After the name: state, parent, process group, session (proc_pid_stat(5)).
        if len(fields) > 3 and fields[0] not in {b"Z", b"X"} and int(fields[3]) == session:  # noqa: PLR2004
            found.append(int(name))
    return found


def kill_session(session: int) -> None:
    """Kill every process of a session, those that are born meanwhile too."""
    for _ in range(_ROUNDS):
        members = session_members(session)
        if not members:
            return
        for pid in members:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def main() -> None:
    """Keep the list of living sessions until the parent's end, then kill them."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sessions: set[int] = set()
    for line in sys.stdin:
        word = line.strip()
        if word[:1] == "+" and word[1:].isdigit():
            sessions.add(int(word[1:]))
        elif word[:1] == "-" and word[1:].isdigit():
            sessions.discard(int(word[1:]))
    for session in sessions:
        kill_session(session)


if __name__ == "__main__":
    main()
