"""A build's packages shared out to all cores: the outcome is that of one process."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from wheelfarm.errors import BuildError, WheelfarmError
from wheelfarm.index.channels import Placement
from wheelfarm.index.package import Desk, Staged
from wheelfarm.index.render import SiteConfig
from wheelfarm.index.tree import SiteTree
from wheelfarm.store.model import Catalogue

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

#: Below this many bytes of catalogues (some 4,000 wheels) another process costs more than it saves.
WORTH_IT = 3_000_000


class Office(Protocol):
    """What works on packages: one desk, or one in each of several processes."""

    def labels(self) -> frozenset[str]:
        """Read every catalogue and return the local versions of its wheels."""

    def staged(self, placement: Placement, config: SiteConfig, *, full: bool) -> Sequence[Staged]:
        """Render the packages and stage what is new."""


@contextmanager
def office(tree: SiteTree, catalogues: Sequence[Catalogue], part: str) -> Iterator[Office]:
    """Yield what works on these packages; ``part`` names its place in the stage.

    Large sites use a process per core, where the system can fork and nothing else runs in this
    process: children then have the catalogues without a copy.
    """
    workers = min(len(catalogues), os.cpu_count() or 1)
    able = "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1
    size = sum(len(each.data) for each in catalogues)
    if size < WORTH_IT or workers < 2 or not able:  # noqa: PLR2004 - one worker is us
        yield Desk(tree, part, catalogues)
        return
    shares = [
        Desk(tree, f"{part}-{number}", share)
        for number, share in enumerate(_shared(catalogues, workers))
    ]
    crew = _Crew(shares)
    try:
        yield crew
    finally:
        crew.close()


def _shared(catalogues: Sequence[Catalogue], workers: int) -> list[list[Catalogue]]:
    """Return the catalogues in shares of about one size, largest first to the smallest share."""
    shares: list[tuple[int, list[Catalogue]]] = [(0, []) for _ in range(workers)]
    for each in sorted(catalogues, key=lambda one: (-len(one.data), one.package)):
        least = min(range(workers), key=lambda number: shares[number][0])
        size, share = shares[least]
        share.append(each)
        shares[least] = (size + len(each.data), share)
    return [sorted(share, key=lambda one: one.package) for _, share in shares]


class _Crew:
    """Desks in processes of their own, each behind a pipe."""

    def __init__(self, desks: Sequence[Desk]) -> None:
        context = multiprocessing.get_context("fork")
        self._pipes: list[Connection[Any, Any]] = []
        self._processes: list[BaseProcess] = []
        for desk in desks:
            ours, theirs = context.Pipe()
            self._pipes.append(ours)
            words = (desk, theirs, tuple(self._pipes))
            process = context.Process(target=_work, args=words, daemon=True)
            process.start()
            theirs.close()
            self._processes.append(process)

    def labels(self) -> frozenset[str]:
        return frozenset().union(*self._ask("labels", (), {}))

    def staged(self, placement: Placement, config: SiteConfig, *, full: bool) -> Sequence[Staged]:
        answers = self._ask("staged", (placement, config), {"full": full})
        return [each for answer in answers for each in answer]

    def close(self) -> None:
        """End the processes, whatever they are at."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.terminate()
            process.join()

    def _ask(self, name: str, words: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        """Have every desk call a method, and return what each says; raises what one raised."""
        try:
            for pipe in self._pipes:
                pipe.send((name, words, named))
            answers = [pipe.recv() for pipe in self._pipes]
        except (EOFError, OSError) as error:
            message = "a process that rendered pages ended before it was done"
            cause = "the system stopped it, perhaps for want of memory"
            raise BuildError(message, cause=cause, hint="nothing was written") from error
        faults = [answer for answer in answers if isinstance(answer, Exception)]
        if faults:
            # Which desk a package is at depends on the machine; what is reported does not.
            raise min(faults, key=str)
        return answers


def _work(
    desk: Desk, pipe: "Connection[Any, Any]", others: "tuple[Connection[Any, Any], ...]"
) -> None:
    """Answer until the pipe is closed. Ctrl-C is the parent's to handle, and to pass on."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in others:
        # The parent's ends: while one of us held them, none of us would see the parent die.
        other.close()
    while True:
        try:
            name, words, named = pipe.recv()
        except EOFError:
            return
        try:
            answer = getattr(desk, name)(*words, **named)
        except (WheelfarmError, OSError) as error:
            answer = error
        try:
            pipe.send(answer)
        except BrokenPipeError:
            return  # The parent was killed; its lock is ours until we end, so nobody waits long.
