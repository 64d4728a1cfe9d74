"""The census: the calls of a build in which nothing was compiled come in, its units go out."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from wheelfarm.build.calls import Call
from wheelfarm.errors import BuildError

#: Options that say which of several compiles of one source this is; the rest is the same noise.
_SHOWN_FLAGS = ("-D", "-O", "-std", "-rdc", "--use_fast_math", "-maxrregcount", "-G", "-lineinfo")


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Unit:
    """A translation unit: what one compile makes.

    ``key`` is the name by which plans and measured times know it: the source's path in the build
    root, with the output's behind ``=>`` where the build makes several objects of one source.
    ``size`` is the source's bytes, ``archs`` the GPU architectures (none for a host unit).
    ``compiles`` is how often the build compiles it into one object, with other options each time.
    ``executable`` marks a unit that ends in a program which the build itself runs.
    """

    key: str
    source: str
    output: str
    kind: str
    role: str
    size: int
    archs: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    compiles: int = 1
    executable: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Census:
    """The units of a build, and the calls that no seat can part, by reason."""

    units: tuple[Unit, ...]
    others: dict[str, int]

    @property
    def divisible(self) -> tuple[Unit, ...]:
        """The units that shards can share out."""
        return tuple(unit for unit in self.units if not unit.executable)


class NoUnitsError(BuildError):
    """A build asked the seat for no unit at all."""

    def __init__(self, others: dict[str, int]) -> None:
        seen = ", ".join(f"{count} x {reason}" for reason, count in sorted(others.items()))
        super().__init__(
            "the build compiled nothing through the seat",
            cause=f"the seat saw {seen}" if seen else "the seat was never asked",
            hint="set upstream's FORCE_BUILD variable in the recipe's env, or use "
            "shard_filter: source where the build has a compiler of its own",
        )


def take_census(calls: Iterable[Call]) -> Census:
    """Return the units that the calls of a census name, each once, in the order of their keys.

    Raises NoUnitsError where there are none.
    """
    known = tuple(calls)
    made: dict[tuple[str, str], Call] = {}
    options: defaultdict[tuple[str, str], set[tuple[str, ...]]] = defaultdict(set)
    executables: set[tuple[str, str]] = set()
    for call in known:
        if call.is_unit:
            made.setdefault((call.unit, call.output), call)
            options[call.unit, call.output].add(call.argv)
            if call.action == "compile":
                # In a census only a program that the build runs makes a unit real.
                executables.add((call.unit, call.output))
    outputs: dict[str, set[str]] = defaultdict(set)
    for source, output in made:
        outputs[source].add(output)
    units = tuple(
        sorted(
            _unit(
                call,
                alone=len(outputs[source]) == 1,
                compiles=len(options[source, output]),
                executable=(source, output) in executables,
            )
            for (source, output), call in made.items()
        )
    )
    others = dict(Counter(call.reason for call in known if not call.is_unit))
    if not units:
        raise NoUnitsError(others)
    return Census(units=units, others=others)


def unit_key(call: Call, keys: Iterable[str]) -> str:
    """Return the key, of those in ``keys``, by which a plan knows a call's unit."""
    long = f"{call.unit} => {call.output}"
    return long if long in keys else call.unit


def _unit(call: Call, *, alone: bool, compiles: int, executable: bool) -> Unit:
    return Unit(
        key=call.unit if alone else f"{call.unit} => {call.output}",
        source=call.unit,
        output=call.output,
        kind=call.kind,
        role=call.role,
        size=call.size,
        archs=call.archs,
        flags=tuple(word for word in call.argv if word.startswith(_SHOWN_FLAGS)),
        compiles=compiles,
        executable=executable,
    )
