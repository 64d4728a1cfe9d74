"""The memory of this machine's jobs: what each is expected to take, and who was killed for it."""

from pathlib import Path

from wheelfarm.build.costs import Costs
from wheelfarm.build.resources import BYTES_PER_JOB, RESERVE_BYTES, read_machine
from wheelfarm.build.workspace import Workspace
from wheelfarm.engines.plan_file import PlannedJob
from wheelfarm.errors import BadInputError

#: What a job takes beside its compilers: its own process, the build tool, the linker (bytes).
_BESIDE = 300_000_000


class MemoryModel:
    """What jobs are expected to take: measured peaks where there are any.

    ``compiles`` is how many compilers each job may run at once.
    """

    def __init__(self, workspace: Workspace, compiles: int) -> None:
        self.workspace = workspace
        self.compiles = compiles
        self._peaks: dict[str, int] = {}

    def need(self, job: PlannedJob) -> int:
        """Return the bytes that a job is expected to take."""
        return self.compiles * self._peak(job.package) + _BESIDE

    def forget(self, package: str) -> None:
        """Read a package's peaks anew: a job of it measured some."""
        self._peaks.pop(package, None)

    def _peak(self, package: str) -> int:
        if package not in self._peaks:
            path = self.workspace.cache / "costs" / f"{package}.json"
            try:
                measured = Costs.read(path).peak()
            except BadInputError:
                measured = None
            self._peaks[package] = measured or BYTES_PER_JOB
        return self._peaks[package]


def memory_for_jobs() -> int:
    """Return the bytes that all jobs together may take, of what is free now."""
    return max(0, read_machine().memory - RESERVE_BYTES)


def memory_kills(root: Path = Path("/")) -> int:
    """Return how many processes the kernel has killed for memory: the cgroup's count, else all."""
    for path, key in (
        ("sys/fs/cgroup/memory.events", "oom_kill"),
        ("proc/vmstat", "oom_kill"),
    ):
        try:
            lines = (root / path).read_text(encoding="ascii").splitlines()
        except (OSError, UnicodeDecodeError):
            continue
        for line in lines:
            name, _, value = line.partition(" ")
            if name == key and value.strip().isdigit():
                return int(value)
    return 0
