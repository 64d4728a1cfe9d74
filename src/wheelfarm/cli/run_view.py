"""How a run shows itself on stderr: a live table in a terminal, a line per job elsewhere."""

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

from wheelfarm.cli.output import clean
from wheelfarm.cli.progress import Display

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Group
    from rich.live import Live

    from wheelfarm.engines.job_result import JobResult
    from wheelfarm.engines.local import Running
    from wheelfarm.engines.plan_file import PlannedJob


class RunView(Display):
    """Listens to a run and shows it; ``jobs`` are the plan's, with their estimated minutes."""

    def __init__(self, jobs: "Iterable[PlannedJob]", *, quiet: bool = False) -> None:
        self._costs = {job.id: job.cost_minutes for job in jobs}
        self._left = sum(self._costs.values())
        self._quiet = quiet
        self._live: Live | None = None
        self._counts: Counter[str] = Counter()
        self._cache: Counter[str] = Counter()
        self._spent = self._estimated = 0.0
        self._begun = time.monotonic()

    def __enter__(self) -> "RunView":  # noqa: PYI034 - typing.Self needs Python 3.11
        if sys.stderr.isatty() and not self._quiet:
            from rich.console import Console
            from rich.live import Live

            # No thread draws it: the engine forks, and a fork takes no other thread along.
            self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
            self._live.start()
            self.live = self._live
        return self

    def started(self, job: "PlannedJob") -> None:
        """Show that a job was started."""

    def finished(self, result: "JobResult") -> None:
        """Show how a job ended."""
        self._counts[result.status] += 1
        self._cache.update(result.cache)
        cost = self._costs.pop(result.job, 0.0)
        self._left -= cost
        if result.status in {"done", "refused"}:
            self._spent += result.seconds / 60
            self._estimated += cost
        if self._quiet or result.status == "not-run":
            return
        hits = f", {result.hits} of {result.units} from the cache" if result.units else ""
        line = f"{result.status:<9} {result.job}  {result.seconds:.1f} s{hits}"
        if self._live is not None:
            self._live.console.print(clean(line), markup=False, highlight=False)
        else:
            print(clean(line), file=sys.stderr, flush=True)

    def tick(self, running: "Iterable[Running]", waiting: int) -> None:
        """Draw the live table."""
        if self._live is not None:
            self._live.update(self._table(tuple(running), waiting), refresh=True)

    def minutes_left(self, at_once: int) -> float:
        """Return the minutes left: the estimates of what is left, scaled by what others took."""
        ratio = self._spent / self._estimated if self._estimated else 1.0
        return self._left * ratio / max(1, at_once)

    def _table(self, running: "tuple[Running, ...]", waiting: int) -> "Group":
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        from wheelfarm.build.resources import read_machine

        done = sum(self._counts.values())
        bad = done - self._counts["done"]
        free = read_machine().memory / 1e9
        hits, units = self._cache["hit"], sum(self._cache.values())
        head = Text(
            f"{done} of {done + len(running) + waiting} jobs, {bad} not done; "
            f"{free:.1f} GB free; cache {hits} of {units}; "
            f"about {self.minutes_left(len(running)):.0f} min left"
        )
        table = Table(box=None, show_header=False, pad_edge=False)
        now = time.monotonic()
        for each in running:
            table.add_row(clean(each.job.id), each.process.step, f"{now - each.since:.0f} s")
        return Group(head, table)
