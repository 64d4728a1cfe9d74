"""How many compilers may run at once: from free memory, cgroup limits and cores, never 0."""

import os
from dataclasses import dataclass
from pathlib import Path

#: What one compile of a unit that includes torch's headers takes at its peak (bytes), measured.
BYTES_PER_JOB = 2_500_000_000
#: What stays free for the build tool, the linker and the rest of the machine (bytes).
RESERVE_BYTES = 1_500_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """Usable cores and available memory (bytes)."""

    cores: int
    memory: int


def read_machine(root: Path = Path("/")) -> Machine:
    """Return what this process may use: cgroup limits (v2 and v1) bind where they are lower."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    quota = _cgroup_cores(root)
    memory = _available(root)
    limit = _cgroup_memory(root)
    return Machine(
        cores=max(1, min(cores, quota or cores)),
        memory=memory if limit is None else min(memory, limit),
    )


def choose_jobs(
    machine: Machine, *, most: int | None = None, bytes_per_job: int = BYTES_PER_JOB
) -> int:
    """Return the number of jobs that fit: at least 1, at most ``most`` where it is given."""
    fitting = (machine.memory - RESERVE_BYTES) // bytes_per_job
    jobs = min(machine.cores, fitting, most or machine.cores)
    return max(1, int(jobs))


def _available(root: Path) -> int:
    for line in _text(root / "proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return RESERVE_BYTES + BYTES_PER_JOB


def _cgroup_memory(root: Path) -> int | None:
    for limit, usage in (
        ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current"),
        (
            "sys/fs/cgroup/memory/memory.limit_in_bytes",
            "sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ):
        bound = _text(root / limit).strip()
        if bound.isdigit():
            used = _text(root / usage).strip()
            return max(0, int(bound) - (int(used) if used.isdigit() else 0))
    return None


def _cgroup_cores(root: Path) -> int | None:
    words = _text(root / "sys/fs/cgroup/cpu.max").split()
    if len(words) == 2 and all(word.isdigit() for word in words) and int(words[1]):  # noqa: PLR2004
        return max(1, int(words[0]) // int(words[1]))
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
