"""Memory of a build: what units took and what the machine has come in, jobs or a refusal go out."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from wheelfarm.build.resources import BYTES_PER_JOB, Machine, choose_jobs, read_machine
from wheelfarm.errors import BuildError
from wheelfarm.run import Stop

#: A build that pushes more than this to the swap space takes many times its time (bytes).
MOST_SWAP = 1_000_000_000
#: What a compile's processes leave out: the seat, and the build tool's part.
_BESIDE = 300_000_000
_SECONDS_BETWEEN_LOOKS = 2.0


class SwappedError(BuildError):
    """A build used more swap space than it may; with fewer jobs at once it fits."""

    def __init__(self, used: int, jobs: int) -> None:
        super().__init__(
            f"the build was stopped: it used {used / 1e9:.1f} GB of swap space with "
            f"{jobs} jobs at once",
            cause="the compilers together need more memory than the machine has",
            hint=f"set max_jobs to {max(1, jobs // 2)} in the recipe, or nvcc_threads to 1",
        )


def choose_build_jobs(*, most: int | None, peak: int | None, machine: Machine | None = None) -> int:
    """Return how many compiles run at once: at least 1, at most ``most``.

    ``peak`` is the package's largest compile (bytes) where an earlier build measured it.
    """
    each = BYTES_PER_JOB if peak is None else peak + _BESIDE
    return choose_jobs(machine or read_machine(), most=most, bytes_per_job=each)


@contextmanager
def watching_swap(
    *,
    jobs: int,
    limit: int = MOST_SWAP,
    read: Callable[[], int] | None = None,
    seconds: float = _SECONDS_BETWEEN_LOOKS,
) -> Iterator[Stop]:
    """Watch the swap space while the body runs; what it gets ends the body's program.

    ``read`` returns the bytes in use (``swap_used``), looked at every few ``seconds``. Once they
    are more than ``limit`` above those at the start, the program is stopped and SwappedError
    raised; not at one job: there is no knob left to turn then.
    """
    read = read or swap_used
    before = read()
    stop = Stop()
    done = threading.Event()
    most = 0

    def look() -> None:
        nonlocal most
        most = max(most, read() - before)
        if most > limit and jobs > 1:
            stop.request()

    def watch() -> None:
        while not (stop.requested or done.wait(seconds)):
            look()

    watcher = threading.Thread(target=watch, daemon=True, name="swap")
    watcher.start()
    try:
        yield stop
    except BuildError as error:
        if stop.requested:
            raise SwappedError(most, jobs) from error
        raise
    finally:
        done.set()
        watcher.join()
    look()
    if stop.requested:
        raise SwappedError(most, jobs)


def swap_used(root: Path = Path("/")) -> int:
    """Return the bytes of swap space in use: the cgroup's where it says so, else the machine's."""
    current = root / "sys/fs/cgroup/memory.swap.current"
    try:
        return int(current.read_text(encoding="ascii"))
    except (OSError, ValueError):
        pass
    fields: dict[str, int] = {}
    try:
        for line in (root / "proc/meminfo").read_text(encoding="ascii").splitlines():
            name, _, rest = line.partition(":")
            if name in {"SwapTotal", "SwapFree"}:
                fields[name] = int(rest.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        return 0
    return max(0, fields.get("SwapTotal", 0) - fields.get("SwapFree", 0))
