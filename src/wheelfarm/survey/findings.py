"""From findings, each under its guards, to one verdict; pure."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from wheelfarm.survey.guards import Guard, Guards
from wheelfarm.survey.logic import holds_plainly
from wheelfarm.survey.model import Evidence, Shows, SurveyResult, SurveyVerdict
from wheelfarm.values import replace

#: At most this many places stand in the evidence of one result.
MAX_EVIDENCE = 24
#: At most this many alternatives stand in a condition.
MAX_CONDITIONS = 4
#: At most this many findings are compared for tests of which both outcomes ship torch.
MAX_COVERED = 200
_ROUNDS = 8

_Linking = Literal["linked", "stable_abi", "abi_flag"]
_TORCH: tuple[_Linking, ...] = get_args(_Linking)


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing that a build of the tree would ship, or why that cannot be told."""

    shows: Shows
    file: str
    line: int
    sentence: str
    guards: Guards = ()

    def evidence(self) -> Evidence:
        """Return the finding as evidence, with what it hangs on."""
        return Evidence(
            file=self.file,
            line=self.line,
            sentence=self.sentence,
            shows=self.shows,
            condition=conditions(self.guards),
        )


def conditions(guards: Guards) -> str:
    """Return guards as one condition; what holds in every plain build is left out."""
    told = [str(guard) for guard in guards if guard.plain is not True]
    if len(told) > 1:
        told = [f"({text})" if " or " in text else text for text in dict.fromkeys(told)]
    return " and ".join(told)


def conclude(findings: Iterable[Finding], build_system: str) -> SurveyResult:
    """Return the verdict of all findings of a tree.

    What ships surely decides. A torch extension that only may ship makes the tree ``optional``;
    where none can ship, anything that could not be followed makes it ``unknown``.
    """
    found = _covered(list(dict.fromkeys(findings)))
    sure = {each.shows for each in found if holds_plainly(each.guards) is True}
    maybe = {each.shows for each in found if holds_plainly(each.guards) is None}
    verdict = _verdict(sure, maybe)
    gated = [each for each in found if each.shows in _TORCH and conditions(each.guards)]
    if verdict in {"free", "unknown"} and gated and "unknown" not in maybe | sure:
        verdict = "optional"
    return SurveyResult(
        torch_axis=verdict,
        evidence=_ordered(found, verdict),
        build_system=build_system,
        condition=_condition(gated) if verdict == "optional" else "",
    )


def _verdict(sure: set[Shows], maybe: set[Shows]) -> SurveyVerdict:
    shipped: list[SurveyVerdict] = [kind for kind in _TORCH if kind in sure]
    possible = {kind for kind in _TORCH if kind in maybe}
    if "linked" in sure:
        # An ABI flag beside libtorch itself adds nothing: the wheel is bound to one torch anyhow.
        return "mixed" if "stable_abi" in sure else "linked"
    if shipped:
        return "mixed" if possible - set(shipped) or len(shipped) > 1 else shipped[0]
    if possible:
        return "optional"
    if "unknown" in sure or "unknown" in maybe or "free" not in sure | maybe:
        return "unknown"
    return "free"


def _condition(gated: list[Finding]) -> str:
    """Return the condition of several findings, with the settings that all of them hang on."""
    told = list(dict.fromkeys(conditions(each.guards) for each in gated))
    text = " or ".join(told[:MAX_CONDITIONS]) + (" or …" if len(told) > MAX_CONDITIONS else "")
    counted = Counter(
        name
        for each in gated
        for name in {name for guard in each.guards for name in guard.settings if not guard.plain}
    )
    common = [name for name, count in counted.items() if 2 * count >= len(gated)]
    hidden = sorted(name for name in common if name not in text and name.isupper())[:3]
    return f"{text} (settings: {', '.join(hidden)})" if hidden else text


def _covered(found: list[Finding]) -> list[Finding]:
    """Return the findings, and those that follow where both outcomes of a test lead to one kind."""
    every = {(each.shows, frozenset(each.guards)): each for each in reversed(found)}
    fresh = [each for each in every.values() if each.shows in _TORCH][:MAX_COVERED]
    for _ in range(_ROUNDS):
        made = {key: each for key, each in _reduced(fresh, every) if key not in every}
        if not made:
            break
        every |= made
        found = [*found, *made.values()]
        fresh = list(made.values())[:MAX_COVERED]
    return found


_Key = tuple[Shows, frozenset[Guard]]


def _reduced(fresh: list[Finding], every: dict[_Key, Finding]) -> Iterator[tuple[_Key, Finding]]:
    """Yield each finding without a guard whose opposite leads to the same kind."""
    for each in fresh:
        guards = frozenset(each.guards)
        for guard in each.guards:
            rest = guards - {guard}
            twins = (
                frozenset(other.guards)
                for (shows, _), other in every.items()
                if shows == each.shows and any(_opposite(guard, twin) for twin in other.guards)
            )
            if any({g for g in twin if not _opposite(guard, g)} <= rest for twin in twins):
                kept = tuple(other for other in each.guards if other is not guard)
                yield (each.shows, rest), replace(each, guards=kept)


def _opposite(one: Guard, other: Guard) -> bool:
    return one.test is other.test and one.taken != other.taken


def _ordered(found: list[Finding], verdict: SurveyVerdict) -> tuple[Evidence, ...]:
    """Return the evidence, what carries the verdict first, each place once."""
    rank = {"linked": 1, "stable_abi": 1, "abi_flag": 1, "unknown": 2, "free": 3, "none": 4}
    items = dict.fromkeys(each.evidence() for each in found)
    ordered = sorted(items, key=lambda e: (e.shows != verdict, rank[e.shows], bool(e.condition)))
    places: set[tuple[str, int, Shows]] = set()
    kept = []
    for item in ordered:
        if (item.file, item.line, item.shows) not in places:
            places.add((item.file, item.line, item.shows))
            kept.append(item)
    return tuple(kept[:MAX_EVIDENCE])
