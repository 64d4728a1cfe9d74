"""How far a long verb is: a live line in a terminal, one line per finished step elsewhere."""

import sys
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.status import Status

    from wheelfarm.build.steps import StepResult


class Stoppable(Protocol):
    """A live display of rich's."""

    def stop(self) -> None:
        """Give the terminal back."""


class Display:
    """The end of whatever stands on the terminal while a verb works: ``live`` is stopped."""

    live: Stoppable | None = None

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()


class StepProgress(Display):
    """Shows the steps of one build on stderr; ``step`` is the listener of the pipeline."""

    def __init__(self, title: str, *, quiet: bool = False) -> None:
        self.title = title
        self.quiet = quiet
        self._status: Status | None = None
        self._started = time.monotonic()

    def __enter__(self) -> "StepProgress":  # noqa: PYI034 - typing.Self needs Python 3.11
        if sys.stderr.isatty() and not self.quiet:
            from rich.console import Console

            self._status = Console(stderr=True).status(self.title)
            self._status.start()
            self.live = self._status
        return self

    def step(self, name: str, result: "StepResult | None") -> None:
        """Show that a step begins, or how it ended."""
        if result is None:
            self._started = time.monotonic()
            if self._status is not None:
                self._status.update(f"{self.title}: {name}")
            return
        if self.quiet:
            return
        took = time.monotonic() - self._started
        done = "kept from before" if result.reused else f"{took:.1f} s"
        print(f"{name:<13} {done}", file=sys.stderr)
