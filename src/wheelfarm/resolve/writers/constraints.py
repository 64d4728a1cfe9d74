"""``constraints.txt``: for an installation that is made by others; nothing in it is required.

Torch and its family stand with their versions, the wheels with address and hash.
"""

import json
from collections.abc import Sequence

from wheelfarm.resolve.lock import Profile, Question, file_of_profile, hashed_address
from wheelfarm.resolve.writers.requirements import NOTE


def write(profiles: Sequence[Profile], question: Question, name: str) -> dict[str, str]:
    """Return file name -> text; with several profiles one file each."""
    texts = {}
    for profile in profiles:
        pin = profile.resolution.torch
        lines = [f"# Versions for {profile.resolution.answer.target}."]
        lines.append(NOTE + json.dumps(question.of_profile(profile.name).to_dict()))
        if pin is not None:
            if pin.index:
                lines.append(f"# torch comes from {pin.index}")
            lines += pin.requirements()
        lines += [
            f"{choice.candidate.package} @ {hashed_address(choice.candidate)}"
            for choice in profile.resolution.choices
        ]
        texts[file_of_profile(name, profile.name)] = "\n".join(lines) + "\n"
    return texts
