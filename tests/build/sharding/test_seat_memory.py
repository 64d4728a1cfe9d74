"""What the seat says of a unit's memory: all of its processes at once, not the largest alone."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from wheelfarm.build import seat_run
from wheelfarm.build.seat_run import memory_below, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

#: Two programs at once, as nvcc --threads runs them; each says when it holds its 64 MB.
_TWO = """\
import subprocess, sys
hold = "x = bytearray(b'x') * 64_000_000; import sys; print('ready', flush=True); sys.stdin.read()"
two = [subprocess.Popen([sys.executable, "-ISc", hold], stdout=subprocess.PIPE) for _ in "ab"]
for each in two:
    each.stdout.readline()
print("ready", flush=True)
for each in two:
    each.wait()
"""


def test_memory_is_counted_over_all_that_runs_below_a_program() -> None:
    with subprocess.Popen(
        [sys.executable, "-ISc", _TWO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        held = memory_below(process.pid)
        process.stdin.close()
    assert 128_000 < held * 1024 / 1000 < 300_000
    assert memory_below(process.pid) == 0


def test_a_program_is_looked_at_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    looks: list[int] = []

    def look(process: int) -> int:
        looks.append(process)
        if len(looks) == 3:
            # The program waits for this; so three looks were made before it ended.
            pipe.write_text("go\n")
        return {1: 5, 2: 77_000_000}.get(len(looks), 9)

    monkeypatch.setattr(seat_run, "memory_below", look)
    words = ["sh", "-c", f"read word < {pipe}; exit 7"]
    status, seconds, peak = wait_for(words, dict(os.environ))
    assert (status, peak) == (7, 77_000_000)
    assert seconds > 0
    assert len(set(looks)) == 1


def test_the_largest_process_counts_where_no_look_found_it() -> None:
    hold = "x = bytearray(b'x') * 64_000_000"
    _, _, peak = wait_for([sys.executable, "-ISc", hold], dict(os.environ))
    assert peak > 60_000
