"""How ``wheelfarm resolve`` prints its answers: a table, a document, every decision."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from wheelfarm.cli.output import clean, print_json, print_table
from wheelfarm.values import NOTHING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from wheelfarm.resolve.lock import Profile
    from wheelfarm.resolve.resolution import Resolution


def print_answers(
    profiles: "Sequence[Profile]", *, explained: bool, locks: Mapping[str, str] = NOTHING
) -> None:
    """Print one document; ``locks`` are the texts of a lock that goes to no file, by its name."""
    from wheelfarm.resolve.document import RESOLVE_SCHEMA, to_dict

    documents = {
        profile.name: to_dict(profile.resolution, explain=explained) for profile in profiles
    }
    written = {"lock": dict(locks)} if locks else {}
    found = documents[""] if set(documents) == {""} else {"profiles": documents}
    print_json(RESOLVE_SCHEMA, {**found, **written})


def print_answer(profile: "Profile") -> None:
    """Print one host's answer, with what should be said of each wheel."""
    from wheelfarm.resolve.writers.requirements import requirement

    resolution = profile.resolution
    head = f"{profile.name}: " if profile.name else ""
    print(f"{head}for {resolution.answer.target}, from {resolution.index}")
    if resolution.torch is not None and not resolution.torch.installed:
        where = f" from {resolution.torch.index}" if resolution.torch.index else ""
        print(f"{' '.join(resolution.torch.requirements())}{where}")
    for choice in resolution.choices:
        print(clean(requirement(choice.candidate)))
        for remark in choice.remarks:
            print(f"  note: {clean(remark)}")


def print_notes(profiles: "Sequence[Profile]", *, remarks: bool = True) -> None:
    """Print to standard error what should be said of answers, each sentence once."""
    said: dict[str, None] = {}
    for profile in profiles:
        for choice in profile.resolution.choices if remarks else ():
            said |= dict.fromkeys(f"{choice.candidate.package}: {text}" for text in choice.remarks)
        said |= dict.fromkeys(profile.resolution.notes)
    for note in said:
        print(f"note: {clean(note)}", file=sys.stderr)


def print_decisions(resolution: "Resolution") -> None:
    """Print every candidate with the reason for which it was taken or not."""
    from wheelfarm.resolve.explain import all_decisions

    rows = [
        ("yes" if each.accepted else "no", clean(str(each.candidate)), clean(each.reason))
        for each in all_decisions(resolution)
    ]
    if rows:
        print_table(("taken", "candidate", "why not"), rows)
    for refused in resolution.refused:
        print(clean(f"{refused.candidate}: {refused.reason}"))


def progress_to(
    arguments: "argparse.Namespace",
) -> "Callable[[str, int, int | None], None] | None":
    """Return what shows a download's progress; None where nobody looks."""
    return _progress if sys.stderr.isatty() and not arguments.quiet else None


def _progress(name: str, done: int, total: int | None) -> None:
    of = "" if total is None else f" of {total / 1e6:.1f}"
    end = "\n" if done == total else ""
    print(f"\r{clean(name)}: {done / 1e6:.1f}{of} MB", end=end, file=sys.stderr, flush=True)
