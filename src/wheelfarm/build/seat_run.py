"""Programs that the seat runs: words and an environment come in, how they ended goes out.

Part of the seat (see ``seat_arguments``): ``subprocess`` alone costs more than a call may.
"""

from __future__ import annotations

import os
import sys
import time
from _signal import (  # type: ignore[import-not-found]  # ``signal`` itself brings ``enum``
    ITIMER_REAL,
    SIGALRM,
    setitimer,
    signal,
)

from wheelfarm.build.seat_files import remove

#: What a compiler, or the one that drives it, says when the kernel has killed it for memory.
_KILLED = (b"Killed", b"(Kill signal)", b"signal 9", b"out of memory allocating", b"std::bad_alloc")
_SIGKILL = 9
#: Looks at a program's memory: the first comes after this many seconds, each later one after a
#: twentieth of the time gone, so that a compile of minutes costs some 20 ms of looking.
_FIRST_LOOK = 0.1
_SHARE_BETWEEN_LOOKS = 0.05
_PAGE_KIBIBYTES = os.sysconf("SC_PAGE_SIZE") // 1024
_EXIT_OF_SIGKILL = 128 + _SIGKILL
_EXIT_OF_SILENCE = 255
#: Counters of ccache's statistics log that mean that a call was not cacheable.
_UNCACHEABLE = frozenset(
    "autoconf_test bad_compiler_arguments bad_input_file bad_output_file called_for_link "
    "called_for_preprocessing compiler_check_failed could_not_find_compiler "
    "could_not_use_modules could_not_use_precompiled_header disabled error_hashing_extra_file "
    "internal_error missing_cache_file modified_input_file multiple_source_files no_input_file "
    "output_to_stdout preprocessor_error unsupported_code_directive unsupported_compiler_option "
    "unsupported_environment_variable unsupported_source_encoding "
    "unsupported_source_language".split()
)


class Finished:
    """How a program that the seat started ended: status, both streams, seconds, peak KiB."""

    __slots__ = ("err", "out", "peak", "seconds", "status")

    def __init__(self, status: int, out: bytes, err: bytes, seconds: float, peak: int) -> None:
        self.status = status
        self.out = out
        self.err = err
        self.seconds = seconds
        self.peak = peak

    @property
    def killed(self) -> bool:
        """Whether the kernel killed the compiler (or a part of it), as it does for memory."""
        if self.status == 0:
            return False
        # ccache says nothing, and 255, of a compiler that a signal ended.
        silent = self.status == _EXIT_OF_SILENCE and not self.err.strip()
        signs = any(sign in self.err for sign in _KILLED)
        return silent or signs or self.status == _EXIT_OF_SIGKILL


def run_program(words: list[str], environment: dict[str, str], own: str) -> Finished:
    """Run a program to its end with both streams kept."""
    streams = [os.open(f"{own}.{name}", os.O_RDWR | os.O_CREAT | os.O_TRUNC) for name in "12"]
    for name in "12":
        remove(f"{own}.{name}")
    status, seconds, peak = wait_for(words, environment, streams)
    texts = []
    for stream in streams:
        os.lseek(stream, 0, os.SEEK_SET)
        with os.fdopen(stream, "rb") as reader:
            texts.append(reader.read())
    return Finished(status, texts[0], texts[1], seconds, peak)


def wait_for(
    words: list[str], environment: dict[str, str], streams: list[int] | None = None
) -> tuple[int, float, int]:
    """Return exit status (128 + signal for a killed one), seconds and peak KiB of a program.

    The peak is that of the program and all that runs below it at once (``nvcc --threads`` runs
    several compilers), as far as looks found it, and at least that of the largest of them.
    """
    sys.stdout.flush()
    actions = [
        (os.POSIX_SPAWN_DUP2, stream, number) for number, stream in enumerate(streams or [], 1)
    ]
    started = time.monotonic()
    try:
        process = os.posix_spawnp(words[0], words, environment, file_actions=actions)
    except OSError as error:
        sys.stderr.write(f"seat: {words[0]} could not be started: {error.strerror}\n")
        return 127, 0.0, 0
    most = [0]
    waiting = [True]

    def look(*_signal: object) -> None:
        if not waiting:
            return
        most[0] = max(most[0], memory_below(process))
        gone = time.monotonic() - started
        setitimer(ITIMER_REAL, max(_FIRST_LOOK, gone * _SHARE_BETWEEN_LOOKS))

    # The alarm interrupts the wait for a look; the wait then goes on by itself (PEP 475).
    before = signal(SIGALRM, look)
    setitimer(ITIMER_REAL, _FIRST_LOOK)
    _, status, usage = os.wait4(process, 0)
    waiting.clear()
    setitimer(ITIMER_REAL, 0)
    signal(SIGALRM, before)
    code = os.waitstatus_to_exitcode(status)
    peak = max(most[0], usage.ru_maxrss)
    return (code if code >= 0 else 128 - code), time.monotonic() - started, peak


def memory_below(process: int) -> int:
    """Return the resident KiB of a process and its descendants; 0 where the kernel does not tell.

    Pages that several of them share are counted in each: of compilers those are few.
    """
    pages = 0
    waiting = [process]
    while waiting:
        found = waiting.pop()
        try:
            pages += int(_first_bytes(f"/proc/{found}/statm").split()[1])
            for thread in os.listdir(f"/proc/{found}/task"):
                waiting += map(int, _first_bytes(f"/proc/{found}/task/{thread}/children").split())
        except (OSError, IndexError):
            # It has ended meanwhile.
            continue
    return pages * _PAGE_KIBIBYTES


def _first_bytes(path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY)
    try:
        return os.read(handle, 4096)
    finally:
        os.close(handle)


def read_counters(statistics: str) -> frozenset[str]:
    """Return the counters that ccache raised in one run (its ``CCACHE_STATSLOG``)."""
    try:
        with open(statistics, encoding="utf-8", errors="replace") as stream:
            lines = stream.read().splitlines()
    except OSError:
        return frozenset()
    remove(statistics)
    return frozenset(line for line in lines if not line.startswith("#"))


def cache_result(kind: str, counters: frozenset[str]) -> tuple[str, str]:
    """Return what the cache did with a call, and the reason where it did nothing."""
    if kind != "ccache":
        return "used", ""
    uncacheable = sorted(counters & _UNCACHEABLE)
    if uncacheable:
        return "bypass", f"ccache: {uncacheable[0]}"
    if "direct_cache_hit" in counters:
        return "hit", ""
    if "preprocessed_cache_hit" in counters:
        # Never wanted: the mode that compares preprocessed text is wrong for nvcc.
        return "unsafe hit", "ccache compared preprocessed text"
    if "compile_failed" in counters:
        return "failed", ""
    return ("miss", "") if "cache_miss" in counters else ("bypass", "ccache: no result")
