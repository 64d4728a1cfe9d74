"""Which job runs next on one machine: plan order, needs, memory. Pure: no clock, no process."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable

from wheelfarm.engines.plan_file import PlannedJob


class Schedule:
    """The jobs that wait, in plan order; a link job waits for all shards of its cell.

    ``need`` tells the memory (bytes) that a job is expected to take.
    """

    def __init__(
        self,
        jobs: Iterable[PlannedJob],
        need: Callable[[PlannedJob], int],
        done: Iterable[str] = (),
    ) -> None:
        self._need = need
        self._ready: deque[PlannedJob] = deque()
        self._links: dict[str, PlannedJob] = {}
        self._shards: dict[str, set[str]] = defaultdict(set)
        self._running: dict[str, int] = {}
        self._alone: set[str] = set()
        finished = set(done)
        todo = [job for job in jobs if job.id not in finished]
        for job in todo:
            if job.kind == "shard":
                self._shards[job.cell].add(job.id)
        for job in todo:
            if job.kind == "link" and self._shards.get(job.cell):
                self._links[job.cell] = job
            else:
                self._ready.append(job)

    @property
    def waiting(self) -> int:
        """How many jobs have not been started."""
        return len(self._ready) + len(self._links)

    @property
    def running(self) -> int:
        """How many jobs run."""
        return len(self._running)

    def start(self, memory: int) -> PlannedJob | None:
        """Return the next job and count it as running; None where none fits beside the others.

        ``memory`` is what all jobs together may take (bytes). A job that needs more than there is
        runs alone rather than never.
        """
        used = sum(self._running.values())
        for index, job in enumerate(self._ready):
            need = _EVERYTHING if job.id in self._alone else self._need(job)
            if not self._running or used + need <= memory:
                del self._ready[index]
                self._running[job.id] = need
                return job
            if index >= _LOOK_AHEAD:
                break
        return None

    def finish(self, job: PlannedJob, *, ok: bool) -> tuple[PlannedJob, ...]:
        """Count a job as ended; return those that cannot run any more for its sake."""
        self._running.pop(job.id, None)
        if job.kind != "shard":
            return ()
        left = self._shards[job.cell]
        left.discard(job.id)
        link = self._links.get(job.cell)
        if link is None:
            return ()
        if not ok:
            del self._links[job.cell]
            return (link,)
        if not left:
            del self._links[job.cell]
            # Its shards' caches are warm and its wheel is near: before all others.
            self._ready.appendleft(link)
        return ()

    def retry_alone(self, job: PlannedJob) -> None:
        """Put a job that ended back, to run when nothing else does."""
        self._running.pop(job.id, None)
        self._alone.add(job.id)
        self._ready.append(job)

    def drop(self) -> tuple[PlannedJob, ...]:
        """Return all jobs that wait, and start none of them any more."""
        rest = (*self._ready, *self._links.values())
        self._ready.clear()
        self._links.clear()
        return rest


#: More memory (bytes) than any machine has.
_EVERYTHING = 1 << 62
#: How many jobs that do not fit are passed over for one that does.
_LOOK_AHEAD = 64
