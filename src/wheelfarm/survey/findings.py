"""From findings, each under its guards, to one verdict; pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from wheelfarm.survey.logic import holds_plainly
from wheelfarm.survey.model import Evidence, Shows, SurveyResult, SurveyVerdict
from wheelfarm.survey.values import Guards

#: At most this many places stand in the evidence of one result.
MAX_EVIDENCE = 24

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
    return " and ".join(str(guard) for guard in guards if guard.plain is not True)


def conclude(findings: Iterable[Finding], build_system: str) -> SurveyResult:
    """Return the verdict of all findings of a tree.

    What ships surely decides. A torch extension that only may ship makes the tree ``optional``;
    where none can ship, anything that could not be followed makes it ``unknown``.
    """
    found = list(dict.fromkeys(findings))
    found = _covered(found)
    sure = {each.shows for each in found if holds_plainly(each.guards) is True}
    possible = [each for each in found if holds_plainly(each.guards) is None]
    verdict = _verdict(sure, possible)
    condition = ""
    if verdict in {"free", "unknown"}:
        gated = [each for each in found if each.shows in _TORCH and each.guards]
        if gated:
            verdict = "optional"
    else:
        gated = [each for each in possible if each.shows in _TORCH]
    if verdict == "optional":
        condition = " or ".join(dict.fromkeys(conditions(each.guards) for each in gated))
    return SurveyResult(
        torch_axis=verdict,
        evidence=_ordered(found, verdict),
        build_system=build_system,
        condition=condition,
    )


def _verdict(sure: set[Shows], possible: list[Finding]) -> SurveyVerdict:
    shipped: list[SurveyVerdict] = [kind for kind in _TORCH if kind in sure]
    maybe = {each.shows for each in possible} - {"none", "free"}
    if shipped:
        more = maybe - set(shipped) - {"unknown"}
        return "mixed" if len(shipped) > 1 or (more and shipped != ["linked"]) else shipped[0]
    if maybe & set(_TORCH):
        return "optional"
    if "unknown" in sure or "unknown" in maybe or "free" not in sure:
        return "unknown"
    return "free"


def _covered(found: list[Finding]) -> list[Finding]:
    """Return the findings, less guards of which both outcomes lead to the same kind."""
    reduced = list(found)
    for _ in range(8):
        fresh = _one_round(reduced)
        if not fresh:
            break
        reduced += fresh
    return reduced


def _one_round(found: list[Finding]) -> list[Finding]:
    seen = {(each.shows, frozenset(each.guards)) for each in found}
    fresh: dict[tuple[Shows, frozenset[object]], Finding] = {}
    for each in found:
        if each.shows in {"none", "unknown"}:
            continue
        for guard in each.guards:
            rest = tuple(other for other in each.guards if other is not guard)
            twin = any(
                other.shows == each.shows
                and any(
                    (g.text, g.file, g.line) == (guard.text, guard.file, guard.line)
                    and g.taken != guard.taken
                    for g in other.guards
                )
                and set(rest) >= {g for g in other.guards if g.text != guard.text}
                for other in found
            )
            key = (each.shows, frozenset(rest))
            if twin and key not in seen and key not in fresh:
                fresh[key] = Finding(
                    shows=each.shows, file=each.file, line=each.line, sentence=each.sentence,
                    guards=rest,
                )  # fmt: skip
    return list(fresh.values())


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
