"""Guards: the conditions under which parts of a build script or CMake project run."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache


@dataclass(eq=False, kw_only=True, slots=True)
class Guard:
    """One condition under which code runs; ``guard_of`` makes each one once.

    ``plain`` says whether it holds in a plain build on a farm's Linux machine (torch and the CUDA
    toolkit installed, FORCE_CUDA and an arch list set, no GPU): None where that cannot be told.
    ``taken`` is the branch: the test is ``text``, and its truth must be ``taken``. ``settings``
    are what the test hangs on, where that is known. ``test`` is the same for both branches.
    """

    text: str
    file: str
    line: int
    plain: bool | None
    taken: bool
    settings: tuple[str, ...]
    test: object

    def __str__(self) -> str:
        return self.text if self.taken else f"not ({self.text})"


@lru_cache(maxsize=65_536)
def guard_of(  # noqa: PLR0917 - a cache's key
    text: str,
    file: str,
    line: int,
    plain: bool | None,  # noqa: FBT001 - three states
    taken: bool = True,  # noqa: FBT001, FBT002 - as above
    settings: tuple[str, ...] = (),
) -> Guard:
    """Return the guard of one branch of a test; equal ones are one object."""
    return Guard(
        text=text,
        file=file,
        line=line,
        plain=plain,
        taken=taken,
        settings=settings,
        test=_test(text, file, line),
    )


@lru_cache(maxsize=65_536)
def _test(_text: str, _file: str, _line: int) -> object:
    return object()


Guards = tuple[Guard, ...]


def merged(first: Guards, second: Sequence[Guard]) -> Guards:
    """Return both sets of guards, each guard once, in order."""
    if not second:
        return first
    return tuple(dict.fromkeys((*first, *second)))


def contradictory(guards: Guards) -> bool:
    """Return whether the guards ask for both outcomes of one test."""
    if len(guards) < 2:  # noqa: PLR2004 - one guard cannot contradict itself
        return False
    seen: dict[int, bool] = {}
    return any(seen.setdefault(id(guard.test), guard.taken) != guard.taken for guard in guards)
