"""Why there is no answer, in words: the nearest misses, and the one change that would help."""

from collections.abc import Iterable
from dataclasses import dataclass

from wheelfarm.resolve.candidate import Candidate, Failure, Target, Wanted
from wheelfarm.resolve.choose import Answer, Miss
from wheelfarm.resolve.host import Host
from wheelfarm.resolve.ranking import rank
from wheelfarm.resolve.rules import failures

#: How many near misses a report shows of a package.
_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class NearMiss:
    """A wheel that would serve if only few things were other."""

    candidate: Candidate
    failures: tuple[Failure, ...]


def near_misses(miss: Miss, target: Target) -> tuple[NearMiss, ...]:
    """Return the wheels with the fewest failures, the best first."""
    if miss.page is None:
        return ()
    found = [
        NearMiss(candidate=each, failures=tuple(failures(each, miss.wanted, target)))
        for each in miss.page.all_candidates()
    ]
    found = [each for each in found if each.failures]
    found.sort(key=lambda each: rank(each.candidate, target), reverse=True)
    found.sort(key=lambda each: len({failure.aspect for failure in each.failures}))
    return tuple(found)


def report(answer: Answer, index: str) -> list[str]:
    """Return the report of an answer that is no: lines, without control characters of ours."""
    lines = []
    for miss in answer.misses:
        lines += _report_miss(miss, answer.target, index)
    lines += _host_lines(answer.target.host)
    return lines


def _report_miss(miss: Miss, target: Target, index: str) -> list[str]:
    because = f" (needed by {miss.wanted.because})" if miss.wanted.because else ""
    head = f"{miss.wanted}{because}: no wheel serves {target}"
    if miss.page is None:
        return [head, f"  {index} has no package of that name"]
    everything = miss.page.all_candidates()
    if not everything:
        lines = [head, "  its page is there and lists no wheel that could be read"]
        return lines + [f"  - {name}: {why}" for name, why in miss.page.unread[:_SHOWN]]
    nearest = near_misses(miss, target)
    if not nearest:
        return [head, "  each wheel would serve alone, and no set of all packages agrees"]
    lines = [f"{head}; nearest of {len(everything)}:"]
    for near in nearest[:_SHOWN]:
        lines.append(f"  - {near.candidate}")
        lines += [f"      {failure.reason}" for failure in near.failures]
    lines += [f"  would help: {change}" for change in changes(nearest)]
    return lines


def changes(nearest: Iterable[NearMiss]) -> tuple[str, ...]:
    """Return the single changes that would help, each once, the nearest first."""
    found: list[str] = []
    for near in nearest:
        aspects = {failure.aspect for failure in near.failures}
        change = next((each.change for each in near.failures if each.change), "")
        if len(aspects) == 1 and change and change not in found:
            found.append(change)
    return tuple(found[:_SHOWN])


def _host_lines(host: Host) -> list[str]:
    lines = []
    if host.devices.problem:
        lines.append(f"note: {host.devices.problem}")
    if host.visible_devices.problem:
        lines.append(f"note: {host.visible_devices.problem}")
    return lines


def wanted_lines(wanted: Iterable[Wanted]) -> str:
    """Return what was asked for, in one line."""
    return ", ".join(map(str, wanted))
