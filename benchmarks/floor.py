"""Measure what a glibc floor adds to a link: the same object through the seat, with and without.

    python benchmarks/floor.py [--floor 2.28] [--links 30]

Prints the least wall time of a link in each way, in milliseconds, taken in turns; and what making
the floor costs, once and when it is there.
"""

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

from wheelfarm.build.seat_setup import SeatSpec, prepare_seat
from wheelfarm.model.versions import Minor
from wheelfarm.toolkit.floor.binutils import host_compiler
from wheelfarm.toolkit.floor.prepare import Floor, prepare_floor

PATH = "/usr/bin:/bin"
SOURCE = """\
#include <map>
#include <memory>
#include <sstream>
#include <thread>
extern "C" int work() {
    auto value = std::make_shared<std::map<int, std::string>>();
    std::thread([&] { (*value)[1] = "one"; }).join();
    std::ostringstream text;
    text << (*value)[1];
    return int(text.str().size());
}
"""


def main() -> None:
    """Compile one object, and link it again and again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--floor", default="2.28")
    parser.add_argument("--links", type=int, default=30)
    arguments = parser.parse_args()
    glibc = Minor.parse(arguments.floor)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        compiler = host_compiler(path=PATH)
        floors: dict[str, Floor | None] = {"none": None}
        for choice in ("shared", "static"):
            for state in ("made", "there"):
                started = time.perf_counter()
                floors[choice] = prepare_floor(glibc, compiler, cache=folder, libstdcxx=choice)
                print(f"floor {choice} {state}: {time.perf_counter() - started:.2f} s")
        links = {name: prepare(folder / name, floor) for name, floor in floors.items()}
        least = dict.fromkeys(links, float("inf"))
        for _ in range(arguments.links):
            for name, (words, environment, root) in links.items():
                started = time.perf_counter()
                subprocess.run(words, cwd=root, env=environment, check=True)
                least[name] = min(least[name], time.perf_counter() - started)
    for name, seconds in least.items():
        added = f", {1000 * (seconds - least['none']):+.1f} ms" if name != "none" else ""
        print(f"link, floor {name}: {1000 * seconds:.1f} ms{added}")


def prepare(root: Path, floor: Floor | None) -> tuple[list[str], dict[str, str], Path]:
    """Return the words, the environment and the folder of a link of one compiled object."""
    root.mkdir()
    seat = prepare_seat(
        SeatSpec(root=root, folder=root / "seat", toolkit=None, path=PATH, floor=floor)
    )
    (root / "made.cpp").write_text(SOURCE)
    environment = {"HOME": str(root), **seat.environment, "PATH": f"{seat.bin}{os.pathsep}{PATH}"}
    compiler = str(seat.bin / "g++")
    command = [compiler, "-O2", "-fPIC", "-c", "made.cpp", "-o", "made.o"]
    subprocess.run(command, cwd=root, env=environment, check=True)
    return [compiler, "-shared", "made.o", "-o", "made.so"], environment, root


if __name__ == "__main__":
    main()
