"""Measure the seat's own time per compile: a cached unit through the seat, and the cache alone.

    python benchmarks/seat.py CUDA_HOME [--calls 30]

Prints the least wall and processor time of each, in milliseconds; the difference is the seat's.
"""

import argparse
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from wheelfarm.build.cache import CompilerCache, find_cache
from wheelfarm.build.calls import read_calls
from wheelfarm.build.seat_setup import SeatSpec, prepare_seat

SOURCE = "__global__ void kernel(float* x) { x[0] = 1.0f; }\n"


def main() -> None:
    """Compile one unit once, then ask for it again and again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cuda_home", type=Path)
    parser.add_argument("--calls", type=int, default=30)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        cache = find_cache(root / "cache")
        if not isinstance(cache, CompilerCache):
            raise SystemExit(cache.reason)
        path = "/usr/bin:/bin"
        seat = prepare_seat(
            SeatSpec(
                root=root,
                folder=root / "seat",
                toolkit=arguments.cuda_home.absolute(),
                cache=cache,
                path=path,
            )
        )
        (root / "a.cu").write_text(SOURCE)
        words = ["-c", "a.cu", "-o", "a.o", "-gencode", "arch=compute_80,code=sm_80"]
        environment = {"PATH": path, "HOME": name, **seat.environment}
        call = [str(seat.bin / "nvcc"), *words]
        subprocess.run(call, cwd=root, env=environment, check=True)
        with_seat = least(call, root, environment, arguments.calls)
        last = read_calls(seat.log)[-1]
        if last.cache != "hit":
            raise SystemExit(str(last))
        own = {"PATH": path, "HOME": name, **cache.environment(seat.folder / "identity")}
        safe = ["seat/links/toolkit/bin/nvcc", *last.safe, "a.d"]
        alone = least([str(cache.program), *safe], root, {**own, "LC_ALL": "C"}, arguments.calls)
        start = least(["/bin/sh", "-c", "exec true"], root, own, arguments.calls)
    for title, (wall, busy) in (
        ("seat and cache", with_seat),
        ("cache alone", alone),
        ("sh", start),
    ):
        print(f"{title:<15} {wall:6.1f} ms wall {busy:6.1f} ms processor")
    print(f"the seat's own  {with_seat[0] - alone[0]:6.1f} ms wall "
          f"{with_seat[1] - alone[1]:6.1f} ms processor")  # fmt: skip


def least(
    words: Sequence[str], cwd: Path, environment: Mapping[str, str], calls: int
) -> tuple[float, float]:
    """Return the least wall and processor milliseconds of several runs of one call."""
    walls, busy = [], []
    for _ in range(calls):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        subprocess.run(words, cwd=cwd, env=dict(environment), check=True)
        walls.append(time.perf_counter() - started)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        busy.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(walls) * 1000, min(busy) * 1000


if __name__ == "__main__":
    os.environ.pop("CCACHE_DIR", None)
    main()
