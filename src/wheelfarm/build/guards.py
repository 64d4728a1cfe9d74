"""Guards of a sharded build: calls, caches and objects come in, a report or a refusal goes out.

A compiler cache fails without a word: every unit compiles again, or, worse, an empty object is
linked. Each guard turns one way of that into an error that names what to look at.
"""

import mmap
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wheelfarm.build.calls import Call
from wheelfarm.build.census import unit_key
from wheelfarm.build.inputs import UnitInputs, first_difference
from wheelfarm.build.seat_setup import STUB_MARK
from wheelfarm.errors import BuildError

#: The link job fails under this share of hits over the units whose shards were there.
LEAST_HITS = 0.9
#: A build fails where more than this share of its units went past the cache.
MOST_BYPASSED = 0.1

_COMPILER = re.compile(
    r"(?<![\w=/.-])(/[\w./+-]*/(?:nvcc|(?:[\w-]+-)?(?:gcc|g\+\+|clang|clang\+\+|cc|c\+\+)))(?![\w+])"
)
_VARIABLES = ("PYTORCH_NVCC", "CUDACXX", "CUDA_HOME", "CC", "CXX")
_OBJECTS = frozenset((".o", ".obj", ".a", ".so", ".lib", ".pyd"))
_SHOWN = 8


class GuardError(BuildError):
    """A guard stopped a job; ``units`` are those that it is about."""

    def __init__(self, what: str, units: Iterable[str] = (), *, cause: str, hint: str) -> None:
        self.units = tuple(units)
        listed = "".join(f"\n    {unit}" for unit in self.units[:_SHOWN])
        more = len(self.units) - _SHOWN
        super().__init__(
            f"{what}{listed}" + (f"\n    and {more} more" if more > 0 else ""),
            cause=cause,
            hint=hint,
        )


class SeatNeverAskedError(GuardError):
    """A shard compiled its units by another way than the seat."""

    def __init__(self, variables: Mapping[str, str], log_text: str) -> None:
        given = ", ".join(f"{name}={variables[name]}" for name in _VARIABLES if name in variables)
        ran = ", ".join(sorted(set(_COMPILER.findall(log_text)))) or "none"
        super().__init__(
            "the shard's cache is empty: the seat was never asked",
            cause=f"the build was given {given}; compilers in its log: {ran}",
            hint="have the build use these variables, or set shard_filter: source in the recipe",
        )


class EmptyCacheError(GuardError):
    """A shard compiled units through the seat, and no cache kept them."""

    def __init__(self, compiled: Iterable[Call]) -> None:
        known = tuple(compiled)
        super().__init__(
            "the shard's cache is empty although units were compiled",
            [call.unit for call in known],
            cause=_counted(Counter(call.reason or call.cache for call in known)),
            hint="run wheelfarm cache doctor",
        )


class TooManyBypassedError(GuardError):
    """Too many units went past the cache for a handoff to be worth it."""

    def __init__(self, past: Iterable[Call], units: int) -> None:
        known = tuple(past)
        super().__init__(
            f"{len(known)} of {units} units went past the cache",
            [call.unit for call in known],
            cause=_counted(Counter(call.reason for call in known)),
            hint="without a cache there is no handoff: build this package in one job",
        )


class EmptyObjectError(GuardError):
    """A shard's empty object stands in what was linked, or is about to be."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(
            "an empty object of a shard is in the build",
            names,
            cause="a cache that is not the seat's has kept it",
            hint="see which ccache or sccache the build uses, and clear that cache",
        )


class TooFewHitsError(GuardError):
    """The link job compiled what its shards had compiled."""

    def __init__(self, report: "LinkReport") -> None:
        asked = len(report.hits) + len(report.misses)
        super().__init__(
            f"only {len(report.hits)} of {asked} units of the shards were used",
            [f"{miss.unit}: {miss.reason}" for miss in report.misses],
            cause="the link job's compiles differ from the shards'",
            hint="give all jobs the same sources, toolkit, host compiler and options",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Miss:
    """A unit that the link job compiled although its shard was there, and the first difference."""

    unit: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkReport:
    """How a link job's compiles ended, by unit.

    ``healed`` are units of shards that were missing, ``clock`` those with ``__DATE__`` or
    ``__TIME__``, which no cache answers for; neither counts in ``rate``.
    """

    hits: tuple[str, ...]
    misses: tuple[Miss, ...]
    clock: tuple[str, ...]
    healed: tuple[str, ...]
    bypassed: Mapping[str, int]

    @property
    def rate(self) -> float:
        """Hits over the units that could hit; 1 where there are none."""
        asked = len(self.hits) + len(self.misses)
        return len(self.hits) / asked if asked else 1.0


def check_shard(
    calls: Iterable[Call],
    results: int,
    *,
    variables: Mapping[str, str],
    log_text: str,
    expected: int,
) -> None:
    """Raise GuardError where a shard's cache is empty although it had units to compile.

    ``results`` is the number of results in the shard's cache, ``variables`` what the build was
    given, ``log_text`` the build's log, in which the compilers stand that did run, ``expected`` the
    number of the shard's units.
    """
    if results or not expected:
        return
    compiled = [call for call in calls if call.action == "compile"]
    if compiled:
        raise EmptyCacheError(compiled)
    raise SeatNeverAskedError(variables, log_text)


def check_bypassed(calls: Iterable[Call]) -> dict[str, int]:
    """Return how many units went past the cache, by reason; GuardError above the floor."""
    compiled = [call for call in calls if call.action == "compile" and call.cache != "none"]
    past = [call for call in compiled if call.cache in {"bypass", "unsafe hit"}]
    if compiled and len(past) / len(compiled) > MOST_BYPASSED:
        raise TooManyBypassedError(past, len(compiled))
    return dict(Counter(call.reason for call in past))


def stubs_in(folder: Path) -> tuple[Path, ...]:
    """Return the objects, archives and libraries under ``folder`` that hold the empty object."""
    found = []
    for path in sorted(folder.rglob("*")):
        suffixes = {part for part in path.suffixes if part in _OBJECTS}
        if suffixes and path.is_file() and not path.is_symlink() and _has_mark(path):
            found.append(path)
    return tuple(found)


def check_no_stubs(folder: Path) -> None:
    """Raise GuardError where an empty object stands in what was linked or is to be."""
    stubs = stubs_in(folder)
    if stubs:
        raise EmptyObjectError(str(path.relative_to(folder)) for path in stubs)


def judge_link(
    calls: Iterable[Call],
    *,
    there: Mapping[str, UnitInputs],
    missing: frozenset[str] | None,
    inputs: Mapping[str, UnitInputs],
    keys: Iterable[str],
) -> LinkReport:
    """Return how the link job's compiles ended.

    ``there`` are the units that the shards compiled, ``missing`` those of shards that are not
    there (None: all that no shard compiled), ``inputs`` what went into the link job's own compiles,
    ``keys`` the plan's units.
    """
    known = frozenset(keys)
    hits: list[str] = []
    misses: list[Miss] = []
    clock: list[str] = []
    healed: list[str] = []
    bypassed: Counter[str] = Counter()
    for call in calls:
        if call.action != "compile" or call.status != 0:
            continue
        key = unit_key(call, known)
        own = inputs.get(key)
        if call.cache == "hit":
            hits.append(key)
        elif key in missing if missing is not None else key not in there:
            healed.append(key)
        elif own is not None and own.clock:
            clock.append(key)
        else:
            misses.append(Miss(unit=key, reason=_why(call, there.get(key), own)))
            if call.cache == "bypass":
                bypassed[call.reason] += 1
    return LinkReport(
        hits=tuple(hits),
        misses=tuple(misses),
        clock=tuple(clock),
        healed=tuple(healed),
        bypassed=dict(bypassed),
    )


def check_link(report: LinkReport) -> None:
    """Raise GuardError where the link job compiled what its shards had compiled."""
    if report.rate < LEAST_HITS:
        raise TooFewHitsError(report)


def _counted(reasons: Mapping[str, int]) -> str:
    return "; ".join(f"{count} x {reason}" for reason, count in sorted(reasons.items()))


def _why(call: Call, shard: UnitInputs | None, own: UnitInputs | None) -> str:
    if call.cache == "bypass":
        return call.reason
    if shard is None:
        return "no shard compiled it"
    if own is None:
        return "its inputs were not noted"
    return first_difference(shard, own) or "nothing differs that the seat can see"


def _has_mark(path: Path) -> bool:
    if path.stat().st_size < len(STUB_MARK):
        return False
    with (
        path.open("rb") as stream,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        return data.find(STUB_MARK) >= 0
