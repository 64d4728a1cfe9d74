"""``constraints.txt``: for an installation that is made by others; nothing in it is required.

Torch and its family stand with their versions, the wheels with address and hash.
"""

import json
from collections.abc import Sequence
from pathlib import PurePath

from wheelfarm.resolve.lock import Profile, Question, hashed_address
from wheelfarm.resolve.writers.requirements import NOTE


def write(profiles: Sequence[Profile], question: Question, name: str) -> dict[str, str]:
    """Return file name -> text; with several profiles one file each."""
    path = PurePath(name)
    texts = {}
    for profile in profiles:
        suffix = f"-{profile.name}" if profile.name else ""
        pin = profile.resolution.torch
        lines = [f"# Versions for {profile.resolution.answer.target}."]
        lines.append(NOTE + json.dumps(question.to_dict()))
        if pin is not None:
            if pin.index:
                lines.append(f"# torch comes from {pin.index}")
            lines += pin.requirements()
        lines += [
            f"{choice.candidate.package} @ {hashed_address(choice.candidate)}"
            for choice in profile.resolution.choices
        ]
        texts[f"{path.stem}{suffix}{path.suffix}"] = "\n".join(lines) + "\n"
    return texts
