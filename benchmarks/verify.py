"""Verify one wheel against what a person would run by hand: auditwheel show and cuobjdump.

Usage: python benchmarks/verify.py [WHEEL] --cuobjdump PATH

Both sides run as whole processes on the same file, in turns; printed are the best times of a few
rounds, the ratio, and the peak memory of ``wheelfarm verify``. cuobjdump is run once per library
that holds device code, on files that were unpacked before. Without WHEEL, cupy-cuda13x is fetched
from the package index (70 MB, 188 MB unpacked); without --cuobjdump its wheel is installed into a
temporary folder.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

WHEEL = "cupy-cuda13x==14.2.0"
TOOL = "nvidia-cuda-cuobjdump>=13,<14"
ROUNDS = 3


def timed(argv: list[str]) -> float:
    """Return the wall seconds of one run; the exit status is the wheel's affair."""
    started = time.perf_counter()
    subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - started


def fetched(folder: Path) -> Path:
    """Return the default wheel, from the package index."""
    words = ["download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", *words, WHEEL], check=True)
    return next(folder.glob("*.whl"))


def installed(folder: Path) -> Path:
    """Return cuobjdump, installed into a folder."""
    words = ["install", "--quiet", "--no-deps", "--target", str(folder), TOOL]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)
    return folder / "nvidia/cu13/bin/cuobjdump"


def main() -> None:
    """Run both sides in turns and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", nargs="?", type=Path)
    parser.add_argument("--cuobjdump", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = arguments.wheel or fetched(folder)
        cuobjdump = arguments.cuobjdump or installed(folder / "tool")
        unpacked = folder / "unpacked"
        with zipfile.ZipFile(wheel) as archive:
            size = sum(info.file_size for info in archive.infolist())
            archive.extractall(unpacked)
        libraries = [path for path in unpacked.rglob("*.so*") if b".nv_fatbin" in path.read_bytes()]
        ours = [sys.executable, "-m", "wheelfarm", "verify", "--no-cache", str(wheel)]
        scripts = Path(sys.executable).parent
        show = [str(scripts / "auditwheel"), "show", str(wheel)]
        best = {"wheelfarm": float("inf"), "auditwheel": float("inf"), "cuobjdump": float("inf")}
        for _ in range(ROUNDS):
            best["wheelfarm"] = min(best["wheelfarm"], timed(ours))
            best["auditwheel"] = min(best["auditwheel"], timed(show))
            listed = sum(
                timed([str(cuobjdump), "--list-elf", "--list-ptx", str(path)]) for path in libraries
            )
            best["cuobjdump"] = min(best["cuobjdump"], listed)
        memory = _peak(ours)
    print(f"{wheel.name}: {size / 1e6:.0f} MB unpacked, {len(libraries)} CUDA libraries")
    for what, seconds in best.items():
        print(f"  {what:<11} {seconds:6.2f} s")
    print(f"  load        {os.getloadavg()[0]:6.2f}")
    ratio = best["wheelfarm"] / (best["auditwheel"] + best["cuobjdump"])
    print(
        f"  wheelfarm / (auditwheel + cuobjdump) = {ratio:.2f}; peak memory {memory / 1e6:.0f} MB"
    )


def _peak(argv: list[str]) -> int:
    """Return the peak resident memory (bytes) of one run, measured in a process of its own."""
    pid = os.fork()
    if pid == 0:
        with Path(os.devnull).open("w") as sink:
            os.dup2(sink.fileno(), 1)
            os.dup2(sink.fileno(), 2)
        os.execv(argv[0], argv)  # noqa: S606 - no shell is wanted
    _, _, usage = os.wait4(pid, 0)
    peak: int = usage.ru_maxrss
    return peak * 1024


if __name__ == "__main__":
    main()
