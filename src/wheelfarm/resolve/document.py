"""A resolution as one JSON document, ``wheelfarm.resolve/1``."""

from typing import Any

from wheelfarm.model.decision import Decision
from wheelfarm.resolve.candidate import Candidate
from wheelfarm.resolve.choose import Choice, decisions
from wheelfarm.resolve.explain import changes, near_misses
from wheelfarm.resolve.lock import address
from wheelfarm.resolve.resolution import Resolution

RESOLVE_SCHEMA = "wheelfarm.resolve/1"


def to_dict(resolution: Resolution, *, explain: bool = False) -> dict[str, Any]:
    """Return the document; with ``explain`` every candidate's decision stands in it."""
    answer = resolution.answer
    pin = resolution.torch
    document: dict[str, Any] = {
        "ok": answer.ok,
        "index": resolution.index,
        "asked": [str(wanted) for wanted in resolution.wanted],
        "torch": None
        if pin is None
        else {
            "version": pin.version,
            "accelerator": str(pin.accelerator),
            "index": pin.index,
            "installed": pin.installed,
            "family": dict(pin.family),
        },
        "wheels": [_wheel(choice) for choice in resolution.choices],
        "misses": [
            {
                "package": miss.wanted.name,
                "because": miss.wanted.because,
                "in_index": miss.page is not None,
                "nearest": [
                    {
                        "filename": str(near.candidate.name),
                        "failures": [
                            {"aspect": failure.aspect, "reason": failure.reason}
                            for failure in near.failures
                        ],
                    }
                    for near in near_misses(miss, answer.target)[:5]
                ],
                "would_help": list(changes(near_misses(miss, answer.target))),
            }
            for miss in answer.misses
        ],
        "refused_torch": [
            {"torch": str(each.candidate), "reason": each.reason} for each in resolution.refused
        ],
        "notes": list(resolution.notes),
    }
    if explain:
        document["decisions"] = {
            choice.candidate.package: [_decision(each) for each in _decided(resolution, choice)]
            for choice in resolution.choices
        } | {
            miss.wanted.name: [_decision(each) for each in miss.decisions] for miss in answer.misses
        }
    return document


def _wheel(choice: Choice) -> dict[str, Any]:
    entry = choice.candidate.entry
    return {
        "name": choice.candidate.package,
        "version": str(entry.name.version),
        "filename": str(entry.name),
        "url": address(choice.candidate),
        "sha256": entry.sha256,
        "size": entry.size,
        "because": choice.wanted.because,
        "requires": [str(requirement) for requirement in choice.outside],
        "remarks": list(choice.remarks),
    }


def _decided(resolution: Resolution, choice: Choice) -> tuple[Decision[Candidate], ...]:
    page = None if resolution.pages is None else resolution.pages(choice.wanted.name)
    if page is None:
        return ()
    return decisions(page, choice.wanted, resolution.answer.target)


def _decision(decision: Decision[Candidate]) -> dict[str, Any]:
    return {
        "filename": str(decision.candidate),
        "accepted": decision.accepted,
        "reason": decision.reason,
    }
