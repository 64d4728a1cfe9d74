"""Why there is no answer, in words: the nearest misses, and the one change that would help."""

from collections.abc import Iterable, Sequence

from wheelfarm.model.decision import Decision
from wheelfarm.resolve.candidate import Candidate, Failure, Target
from wheelfarm.resolve.choose import Miss, decisions
from wheelfarm.resolve.coverage import built_for
from wheelfarm.resolve.detect import detect
from wheelfarm.resolve.host import nothing
from wheelfarm.resolve.ranking import rank
from wheelfarm.resolve.resolution import Resolution
from wheelfarm.resolve.rules import failures
from wheelfarm.resolve.sources import Index
from wheelfarm.values import value

#: How many near misses a report shows of a package.
_SHOWN = 3
#: How many refused torches a report shows.
_TORCHES_SHOWN = 6
#: An address that is none of an index looks like a plain index without any package.
_PLAIN = (
    "the index has no manifest: if its address is right, it is a plain one, and those are given"
    " as pip takes them (https://host/simple/)"
)


@value
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


def report(resolution: Resolution) -> list[str]:
    """Return the report of an answer that is no, a line each."""
    answer = resolution.answer
    lines = []
    for miss in answer.misses:
        lines += _report_miss(miss, answer.target, resolution.index)
    if not resolution.served and any(miss.page is None for miss in answer.misses):
        lines.append(_PLAIN)
    if not resolution.refused and answer.target.torch is None:
        lines.append("torch: PyTorch published none that is known for this machine")
    for refused in resolution.refused[:_TORCHES_SHOWN]:
        lines.append(f"{refused.candidate}: {refused.reason}")
    if len(resolution.refused) > _TORCHES_SHOWN:
        lines.append(f"... and {len(resolution.refused) - _TORCHES_SHOWN} more (--explain)")
    return lines + [f"note: {note}" for note in resolution.notes]


def all_decisions(resolution: Resolution) -> tuple[Decision[Candidate], ...]:
    """Return the decision on every candidate of every package of an answer."""
    found: list[Decision[Candidate]] = []
    for choice in resolution.choices:
        page = None if resolution.pages is None else resolution.pages(choice.wanted.name)
        if page is not None:
            found += decisions(page, choice.wanted, resolution.answer.target)
    for miss in resolution.answer.misses:
        found += miss.decisions
    return tuple(found)


def available(index: Index, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the cells that an index has wheels for, of some packages or of all it names.

    A row: package, version, accelerator, torch, Python, platform, file name.
    """
    wanted = list(names) or sorted(index.packages() or ())
    anywhere = detect({"platform": "linux_x86_64"}).with_facts(platform=nothing("anywhere"))
    rows = []
    for page in index.pages(wanted, anywhere).values():
        rows += [_cell(each) for each in page.all_candidates()]
    return sorted(rows)


def _cell(candidate: Candidate) -> tuple[str, ...]:
    line = built_for(candidate)
    torch = candidate.label.torch
    return (
        candidate.package,
        candidate.version.public,
        "-" if line is None else str(line),
        "-" if torch is None else str(torch),
        "-".join((".".join(candidate.serves.pythons), ".".join(candidate.serves.abis))),
        ".".join(candidate.serves.platforms),
        str(candidate.name),
    )


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
