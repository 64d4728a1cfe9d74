"""``requirements.txt``: every wheel by its address, with its hash; one file per profile.

With torch installed, the file is for ``pip install --no-deps --require-hashes -r``: torch is not in
it. With a chosen torch it pins torch and names its index; hashes then stand behind the addresses,
since a file in which one line has ``--hash`` takes no line without.
"""

import json
from collections.abc import Sequence

from wheelfarm.resolve.candidate import Candidate
from wheelfarm.resolve.lock import (
    Profile,
    Question,
    address,
    file_of_profile,
    hashed_address,
)
from wheelfarm.resolve.resolution import Resolution

NOTE = "# wheelfarm: "


def requirement(candidate: Candidate) -> str:
    """Return one pinned requirement: name, address and hash in the form pip and uv check."""
    return f"{candidate.package} @ {address(candidate)} --hash=sha256:{candidate.entry.sha256}"


def write(profiles: Sequence[Profile], question: Question, name: str) -> dict[str, str]:
    """Return file name -> text; with several profiles ``NAME-<profile>.txt``."""
    return {
        file_of_profile(name, profile.name): _text(
            profile.resolution, question.of_profile(profile.name)
        )
        for profile in profiles
    }


def _text(resolution: Resolution, note: Question) -> str:
    pin = resolution.torch
    lines = [f"# Wheels for {resolution.answer.target}.", NOTE + json.dumps(note.to_dict())]
    if pin is None or pin.installed:
        if pin is not None:
            lines.append(f"# {pin.requirement} is installed and stays; use --no-deps")
            where = f" (from {pin.index})" if pin.index else ""
            lines += [
                f"# {text} goes with it and is not in this file{where}"
                for text in pin.missing(resolution.host.installed)
            ]
        lines += [requirement(choice.candidate) for choice in resolution.choices]
    else:
        if pin.index:
            lines.append(f"--extra-index-url {pin.index}")
        lines += pin.requirements()
        lines += [
            f"{choice.candidate.package} @ {hashed_address(choice.candidate)}"
            for choice in resolution.choices
        ]
    return "\n".join(lines) + "\n"
