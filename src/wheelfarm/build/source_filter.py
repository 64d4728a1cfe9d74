"""Shards without a seat: an extension's sources are parted, and objects are what is handed on.

For systems whose compilers cannot be stood in for (MSVC's): each shard builds the extension with
its part of the ``.cu`` files and packs their objects; the link job builds it with none of them and
links the objects. ``source_filter_hook`` does the parting inside the build.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from wheelfarm import files
from wheelfarm.build.cache import NoCache
from wheelfarm.build.calls import Call
from wheelfarm.build.guards import SeatNeverAskedError
from wheelfarm.build.handoff import ShardProduct, pack_cache, results_in, unite
from wheelfarm.build.part import CompiledPart, Prepared, compile_part, prepare_job_seat
from wheelfarm.build.partition import ShardPlan
from wheelfarm.build.seat_setup import SeatPart
from wheelfarm.build.sharded import gather, source_filter_variables

_HOOK = Path(__file__).with_name("source_filter_hook.py")
_NO_CACHE = NoCache(reason="objects are handed on, not a cache")


def filtered_plan(
    prepared: Prepared, folder: Path, *, cell: str, build: str, shards: int
) -> ShardPlan:
    """Return the plan of such a build: no census, no cache, and the compilers of this machine."""
    return ShardPlan(
        cell=cell,
        build=build,
        shards=shards,
        cache="none",
        identity=prepare_job_seat(prepared, folder, _NO_CACHE, SeatPart()).identity,
        units={},
        filter="extension",
    )


def run_filtered_shard(
    prepared: Prepared, plan: ShardPlan, shard: int, folder: Path, archive: Path, *, log: Path
) -> tuple[ShardProduct, tuple[Call, ...]]:
    """Build the extension with one shard's kernels and pack their objects into ``archive``.

    Raises SeatNeverAskedError where the build made no object of a kernel.
    """
    variables = {
        **filter_environment(prepared, folder, "shard"),
        **source_filter_variables(shard, plan.shards),
        # link.exe reads this; the shard's library is of no use and thrown away.
        "LINK": "/FORCE:UNRESOLVED",
    }
    objects = folder / "objects"
    part = compile_part(
        prepared,
        folder,
        log=log,
        cache=_NO_CACHE,
        variables=variables,
        before_removal=lambda tree: collect_objects(tree / prepared.request.build_subdir, objects),
    )
    if not any(results_in("objects", objects)):
        raise SeatNeverAskedError(variables, log.read_text(encoding="utf-8", errors="replace"))
    product = pack_cache(
        "objects",
        objects,
        archive,
        plan=plan.digest,
        shard=shard,
        identity=part.seat.identity,
        units={},
    )
    return product, part.calls


def run_filtered_link(
    prepared: Prepared, plan: ShardPlan, archives: Sequence[Path], folder: Path, *, log: Path
) -> CompiledPart:
    """Build the extension without its kernels and link the shards' objects.

    Raises MissingShardsError before anything is compiled: without a cache nothing can be healed.
    """
    files.remove(folder / "objects")
    products, _ = gather(plan, archives, identity=plan.identity, heal=False)
    unite("objects", products, folder / "objects")
    variables = filter_environment(prepared, folder, "link")
    return compile_part(prepared, folder, log=log, cache=_NO_CACHE, variables=variables)


def filter_environment(prepared: Prepared, folder: Path, stage: str) -> dict[str, str]:
    """Put the hook into a folder of the build's search path and return the variables it reads."""
    hook = folder / "hook"
    hook.mkdir(parents=True, exist_ok=True)
    (folder / "objects").mkdir(exist_ok=True)
    shutil.copyfile(_HOOK, hook / "sitecustomize.py")
    return {
        "PYTHONPATH": os.pathsep.join([str(hook), str(prepared.packages)]),
        "WHEELFARM_SOURCE_FILTER": stage,
        "WHEELFARM_OBJECTS": str(folder / "objects"),
    }


def collect_objects(tree: Path, folder: Path) -> Mapping[str, Path]:
    """Copy the objects of a tree's kernels into ``folder``, under their sources' paths.

    Build tools put ``csrc/a.cu``'s object at ``build/…/csrc/a.o`` (``.obj`` with MSVC).
    """
    made = [path for suffix in ("o", "obj") for path in sorted(tree.rglob(f"build/**/*.{suffix}"))]
    found: dict[str, Path] = {}
    for source in sorted(tree.rglob("*.cu")):
        relative = source.relative_to(tree)
        wanted = relative.with_suffix("").parts
        for path in made:
            if path.with_suffix("").parts[-len(wanted) :] == wanted:
                target = folder / relative.with_suffix(path.suffix)
                files.copy(path, target)
                found[relative.as_posix()] = target
                break
    return found
