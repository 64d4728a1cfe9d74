"""Take the census of natten's build, then compile two of its units for real, and replay them.

    python benchmarks/natten.py ENVIRONMENT SDIST PACKAGES WORK [--calls LOG]

ENVIRONMENT has torch and the toolkit's wheels, PACKAGES is a folder with CMake installed into it
(``pip install --target``), WORK an empty folder. ``--calls`` is the log of an earlier census, which
is then not taken again. The build runs once per step: CMake's part of it takes minutes.
"""

import argparse
import time
from collections import Counter
from pathlib import Path

from packaging.version import Version

from wheelfarm import files
from wheelfarm.build.calls import Call, read_calls, summarise
from wheelfarm.build.census import take_census
from wheelfarm.build.environment import open_environment
from wheelfarm.build.part import Prepared, compile_part, job_cache
from wheelfarm.build.request import BuildRequest
from wheelfarm.build.seat_setup import SeatPart
from wheelfarm.build.source import FolderSource
from wheelfarm.model.arch import ArchList
from wheelfarm.model.cell import Cell, CellId
from wheelfarm.toolkit.find import find_toolkit
from wheelfarm.toolkit.view import make_view

CELL = "natten-0.21.7-cu130-torch2.14-cp311-linux_x86_64"


def main() -> None:
    """Run the three builds and print what each call was."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("environment", "sdist", "packages", "work"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--calls", type=Path)
    arguments = parser.parse_args()
    prepared = prepare(arguments)
    work: Path = arguments.work.absolute()
    calls = read_calls(arguments.calls) if arguments.calls else ()
    calls = calls or build(prepared, work / "census", SeatPart(mode="census"))
    census = take_census(calls)
    print(f"{len(census.units)} units: {Counter(unit.kind for unit in census.units)}")
    print(f"with response files: {sum('--options-file' in call.argv for call in calls)}")
    print(f"other calls: {census.others}")
    # natten 0.21.7 asks for C++17, torch 2.14's headers for C++20; generated kernels need none.
    kernels = sorted(
        (unit for unit in census.units if "/autogen/" in unit.key), key=lambda unit: unit.size
    )
    chosen = {unit.key for unit in kernels[:2]}
    units = {unit.key: 1 if unit.key in chosen else 2 for unit in census.units}
    part = SeatPart(mode="shard", shard=1, shards=2, units=units)
    for name in ("compiled", "replayed"):
        for call in build(prepared, work / name, part):
            if call.action == "compile":
                print(f"{name}: {call.unit} {call.cache} {call.seconds:.1f} s", flush=True)


def build(prepared: Prepared, root: Path, part: SeatPart) -> tuple[Call, ...]:
    """Run the build with one part and return its calls."""
    started = time.monotonic()
    cache = job_cache(prepared, root / "cache")
    log = root.with_suffix(".log")
    calls = compile_part(prepared, root, log=log, cache=cache, part=part).calls
    print(f"{root.name}: {time.monotonic() - started:.0f} s, {summarise(calls)}", flush=True)
    return calls


def prepare(arguments: argparse.Namespace) -> Prepared:
    """Return what the builds start from."""
    work: Path = arguments.work.absolute()
    files.unpack(arguments.sdist, work / "source")
    (tree,) = (work / "source").iterdir()
    python = arguments.environment.absolute() / "bin" / "python"
    toolkit = find_toolkit(source="wheels", python=python, needs=("device",))
    return Prepared(
        request=BuildRequest(
            cell=Cell(CellId.parse(CELL), Version("2.14.1")),
            source=FolderSource(folder=tree),
            archs=ArchList.parse("8.0"),
            torch_axis="linked",
            environment={
                "NATTEN_CUDA_ARCH": "8.0",
                "NATTEN_N_WORKERS": "2",
                "NATTEN_VERBOSE": "1",
            },
        ),
        tree=tree,
        packages=arguments.packages.absolute(),
        environment=open_environment(arguments.environment.absolute()),
        toolkit=toolkit,
        view=make_view(toolkit, work / "cuda"),
        driver_stub=work,
        kept=work / "kept",
    )


if __name__ == "__main__":
    main()
