"""The seat's log: its lines come in, typed calls and what they add up to go out."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wheelfarm.errors import BadInputError
from wheelfarm.reading import Reader, parse_json, read_text

_GENERATE = re.compile(r"(?:-gencode|--generate-code|-arch|--gpu-architecture)[= ](\S+)")
_TARGET = re.compile(r"(?:sm|compute|lto)_(\d+[af]?)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One call of a compiler, as the seat recorded it.

    ``action`` is ``compile``, ``stub`` or ``real`` (no unit; ``reason`` says what it was). For a
    compile ``cache`` is ``hit``, ``miss``, ``bypass``, ``none``, ``used`` (sccache tells no more),
    ``failed`` or ``unsafe hit``. ``seconds`` is the compiler's (or the cache's) time, ``peak`` the
    bytes of all its processes at once, ``size`` the bytes of the source. ``argv`` is the caller's,
    ``safe`` the form that the cache saw, ``inputs`` a file with the names of all that was read.
    """

    tool: str
    role: str
    action: str
    reason: str
    unit: str
    output: str
    kind: str
    argv: tuple[str, ...]
    safe: tuple[str, ...]
    cwd: str
    cache: str
    inputs: str
    size: int
    seconds: float
    peak: int
    planned: bool
    alone: bool
    status: int

    @property
    def is_unit(self) -> bool:
        """Whether this call made (or stood in for) the object of a unit."""
        return self.action in {"compile", "stub"}

    @property
    def archs(self) -> tuple[str, ...]:
        """The architectures that a CUDA unit is compiled for, such as ``80`` and ``90a``."""
        if self.role != "nvcc":
            return ()
        found: dict[str, None] = {}
        for match in _GENERATE.finditer(" ".join(self.argv)):
            for target in _TARGET.findall(match[1]):
                found.setdefault(target)
        return tuple(sorted(found, key=lambda arch: (int(arch.rstrip("af")), arch)))


@dataclass(frozen=True, kw_only=True, slots=True)
class CallSummary:
    """What a build's calls add up to; the counts of ``cache`` and ``bypassed`` are of units."""

    units: int
    stubs: int
    real: int
    failed: int
    unplanned: int
    cache: dict[str, int]
    bypassed: dict[str, int]
    seconds: float
    peak: int


def read_calls(log: Path) -> tuple[Call, ...]:
    """Return the calls of a log, in the order in which they ended.

    A half-written last line, as a kill leaves one, is not read. Raises BadInputError for any other
    line that is none of the seat's.
    """
    if not log.exists():
        return ()
    text = read_text(log)
    lines = text.split("\n")
    whole = lines[:-1]
    return tuple(_call(line, f"{log}:{number}") for number, line in enumerate(whole, 1) if line)


def summarise(calls: Iterable[Call]) -> CallSummary:
    """Return what the calls add up to."""
    known = tuple(calls)
    compiled = [call for call in known if call.action == "compile"]
    return CallSummary(
        units=len(compiled),
        stubs=sum(call.action == "stub" for call in known),
        real=sum(call.action == "real" for call in known),
        failed=sum(call.status != 0 for call in compiled),
        unplanned=sum(call.is_unit and not call.planned for call in known),
        cache=dict(Counter(call.cache for call in compiled)),
        bypassed=dict(Counter(call.reason for call in compiled if call.cache == "bypass")),
        seconds=sum(call.seconds for call in compiled),
        peak=max((call.peak for call in known), default=0),
    )


def failures(calls: Sequence[Call]) -> tuple[Call, ...]:
    """Return the units that failed, each once (a build tool may try one again)."""
    seen: dict[str, Call] = {}
    for call in calls:
        if call.action == "compile":
            if call.status != 0:
                seen.setdefault(call.unit, call)
            else:
                seen.pop(call.unit, None)
    return tuple(seen.values())


def _call(line: str, context: str) -> Call:
    reader = Reader(parse_json(line, context), context)
    seconds = reader.raw("seconds")
    if not isinstance(seconds, int | float):
        message = f"{context}: seconds is no number"
        raise BadInputError(message)
    call = Call(
        tool=reader.string("tool"),
        role=reader.string("role"),
        action=reader.string("action"),
        reason=reader.string("reason"),
        unit=reader.string("unit"),
        output=reader.string("output"),
        kind=reader.string("kind"),
        argv=reader.strings("argv"),
        safe=reader.strings("safe"),
        cwd=reader.string("cwd"),
        cache=reader.string("cache"),
        inputs=reader.string("inputs"),
        size=reader.integer("size"),
        seconds=float(seconds),
        peak=reader.integer("peak") * 1024,
        planned=reader.boolean("planned"),
        alone=reader.boolean("alone"),
        status=reader.integer("status"),
    )
    reader.done()
    reader.finish()
    return call
