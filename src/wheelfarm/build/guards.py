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
    r"(?<![\w=/.-])(/[\w./+-]*/(?:nvcc|(?:[\w-]+-)?(?:gcc|g\+\+|clang\+*|cc|c\+\+)))\b"
)
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
    known = tuple(calls)
    compiled = [call for call in known if call.action == "compile"]
    if results or not expected:
        return
    if compiled:
        reasons = Counter(call.reason or call.cache for call in compiled)
        told = ", ".join(f"{count} x {reason}" for reason, count in reasons.most_common())
        raise GuardError(
            "the shard's cache is empty although units were compiled",
            [call.unit for call in compiled],
            cause=told,
            hint="run wheelfarm cache doctor",
        )
    names = ", ".join(
        f"{name}={variables[name]}"
        for name in ("PYTORCH_NVCC", "CUDACXX", "CUDA_HOME", "CC", "CXX")
        if name in variables
    )
    ran = sorted(set(_COMPILER.findall(log_text)))
    raise GuardError(
        "the shard's cache is empty: the seat was never asked",
        cause=f"the build was given {names}; compilers in its log: {', '.join(ran) or 'none'}",
        hint="have the build use these variables, or set shard_filter: source in the recipe",
    )


def check_bypassed(calls: Iterable[Call]) -> dict[str, int]:
    """Return how many units went past the cache, by reason; GuardError above the floor."""
    compiled = [call for call in calls if call.action == "compile" and call.cache != "none"]
    past = [call for call in compiled if call.cache in {"bypass", "unsafe hit"}]
    reasons = Counter(call.reason for call in past)
    if compiled and len(past) / len(compiled) > MOST_BYPASSED:
        told = "; ".join(f"{count} x {reason}" for reason, count in reasons.most_common())
        raise GuardError(
            f"{len(past)} of {len(compiled)} units went past the cache",
            [call.unit for call in past],
            cause=told,
            hint="without a cache there is no handoff: build this package in one job",
        )
    return dict(reasons)


def unseen_objects(build: Path, calls: Iterable[Call], root: Path) -> tuple[str, ...]:
    """Return the objects under ``build`` that no call of the seat made, relative to ``root``."""
    seen = {call.output for call in calls if call.is_unit}
    # One call that compiles and links, or an assembler's, leaves its output under its own name.
    seen |= {word for call in calls if not call.is_unit for word in call.argv}
    base = root.resolve()
    found = []
    for path in sorted(build.rglob("*.o")):
        name = path.resolve().relative_to(base).as_posix()
        if name not in seen and path.name not in seen and str(path) not in seen:
            found.append(name)
    return tuple(found)


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
        raise GuardError(
            "an empty object of a shard is in the build",
            [str(path.relative_to(folder)) for path in stubs],
            cause="a cache that is not the seat's has kept it",
            hint="see which ccache or sccache the build uses, and clear that cache",
        )


def judge_link(
    calls: Iterable[Call],
    *,
    there: Mapping[str, UnitInputs],
    missing: frozenset[str],
    inputs: Mapping[str, UnitInputs],
    keys: Iterable[str],
) -> LinkReport:
    """Return how the link job's compiles ended.

    ``there`` are the units that the shards compiled, ``missing`` those of shards that are not
    there, ``inputs`` what went into the link job's own compiles, ``keys`` the plan's units.
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
        elif key in missing:
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
        asked = len(report.hits) + len(report.misses)
        raise GuardError(
            f"only {len(report.hits)} of {asked} units of the shards were used",
            [f"{miss.unit}: {miss.reason}" for miss in report.misses],
            cause="the link job's compiles differ from the shards'",
            hint="give all jobs the same sources, toolkit, host compiler and options",
        )


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
    with path.open("rb") as stream:
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return data.find(STUB_MARK) >= 0
