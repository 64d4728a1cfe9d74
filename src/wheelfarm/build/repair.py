"""From a built wheel to one that may leave the machine: foreign libraries stay out, tag is true.

auditwheel does the work; what is policy stands here. CUDA's, torch's and the driver's libraries
come from the user's environment and are never grafted, whatever their suffix; anything else that
is grafted is reported.
"""

import fnmatch
import logging
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from wheelfarm.build.programs import find_beside, scripts_path
from wheelfarm.build.wheel_file import read_members
from wheelfarm.errors import BuildError
from wheelfarm.facts.manylinux import claimed_glibc, tag_machine
from wheelfarm.model.versions import Minor
from wheelfarm.run import run

logger = logging.getLogger(__name__)

#: Sonames that the user's torch, NVIDIA wheels or driver supply. Patterns, since a list written
#: for ``.so.12`` breaks the day CUDA 13 arrives (torchao#2891).
EXTERNAL = (
    "libtorch*.so*", "libc10*.so*", "libshm.so*", "libnvfuser*.so*",
    "libcudart.so*", "libcublas.so*", "libcublasLt.so*", "libcufft.so*", "libcufftw.so*",
    "libcufile*.so*", "libcurand.so*", "libcusolver*.so*", "libcusparse*.so*", "libcudnn*.so*",
    "libnccl.so*", "libnvrtc*.so*", "libnvJitLink.so*", "libnvToolsExt.so*", "libnvtx3*.so*",
    "libcupti.so*", "libnvperf*.so*", "libnvshmem*.so*", "libnpp*.so*", "libnvjpeg.so*",
    "libnvfatbin.so*", "libnvvm.so*", "libcudadevrt.so*",
    "libcuda.so*", "libnvidia-*.so*", "libnvcuvid.so*", "libcudadebugger.so*",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Repaired:
    """A repaired wheel: its path, platform tag, and the sonames grafted into it."""

    wheel: Path
    platform_tag: str
    grafted: tuple[str, ...]
    unused_patterns: tuple[str, ...]


def repair_wheel(
    wheel: Path,
    folder: Path,
    *,
    library_folders: tuple[Path, ...],
    keep_external: tuple[str, ...] = (),
    floor: Minor | None = None,
    log: Path,
) -> Repaired:
    """Repair a Linux wheel into ``folder`` and return it with its true tag.

    ``library_folders`` are where needed libraries lie at build time. ``keep_external`` are the
    recipe's own patterns; one that matches nothing is reported. A wheel whose true floor is above
    ``floor`` keeps its true tag, and a warning says so. Raises BuildError where auditwheel fails.
    """
    patterns = (*EXTERNAL, *keep_external)
    excludes = [word for pattern in patterns for word in ("--exclude", pattern)]
    shutil.rmtree(folder, ignore_errors=True)
    command = find_beside("auditwheel")
    environment = {
        **os.environ,
        "PATH": scripts_path(),
        "AUDITWHEEL_LD_LIBRARY_PATH": os.pathsep.join(map(str, library_folders)),
    }
    run(
        [command, "repair", "--plat", "auto", "--only-plat", "--strip", *excludes,
         "--wheel-dir", folder, wheel],
        env=environment,
        log=log,
    )  # fmt: skip
    made = list(folder.glob("*.whl"))
    if len(made) != 1:
        message = f"auditwheel wrote {len(made)} wheels for {wheel.name}"
        raise BuildError(message, cause=f"see {log}")
    tag = made[0].stem.rpartition("-")[2]
    grafted = _grafted(made[0])
    needed = _log_excluded(log)
    unused = tuple(
        pattern
        for pattern in keep_external
        if not any(fnmatch.fnmatchcase(name, pattern) for name in needed)
    )
    for pattern in unused:
        logger.warning("the exclude pattern %s matched no library of %s", pattern, wheel.name)
    true_floor = glibc_of(tag)
    if floor is not None and true_floor is not None and true_floor > floor:
        logger.warning(
            "%s needs glibc %s, the policy's floor is %s; it is tagged with what is true",
            wheel.name, true_floor, floor,
        )  # fmt: skip
    return Repaired(wheel=made[0], platform_tag=tag, grafted=grafted, unused_patterns=unused)


def glibc_of(platform_tag: str) -> Minor | None:
    """Return the lowest glibc that a platform tag promises to need; None for a plain tag."""
    found = [glibc for tag in platform_tag.split(".") if (glibc := claimed_glibc(tag))]
    return min(found) if found else None


def tag_at_floor(platform_tag: str, floor: Minor | None) -> str:
    """Return the platform tag of a wheel that was linked at a floor: that of the floor, or higher.

    What a wheel's symbols show may be lower. It was neither built nor tried for such systems, and
    all wheels of a farm are to say the same.
    """
    true_floor = glibc_of(platform_tag)
    if floor is None or true_floor is None or true_floor >= floor:
        return platform_tag
    machine = tag_machine(platform_tag.partition(".")[0])
    return f"manylinux_{floor.major}_{floor.minor}_{machine}"


def _grafted(wheel: Path) -> tuple[str, ...]:
    return tuple(
        sorted(
            path.rpartition("/")[2]
            for path in read_members(wheel)
            if path.partition("/")[0].endswith(".libs") and ".so" in path
        )
    )


def _log_excluded(log: Path) -> tuple[str, ...]:
    text = log.read_text(encoding="utf-8", errors="replace")
    return tuple(set(re.findall(r"Excluding (\S+)", text)))
