"""``pylock.toml`` (PEP 751): the wheels with addresses and hashes; profiles are extras.

Torch stays out of it, installed or chosen: its own requirements are the installer's to resolve, and
a lock that listed torch without them would be a false one. ``[tool.wheelfarm]`` names it. Each
wheel has its ``name``, since pip 26.1 does not read one with a local version from its address.
"""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import tomlkit

from wheelfarm.errors import BadInputError
from wheelfarm.resolve.choose import Choice
from wheelfarm.resolve.lock import Profile, Question, address, merged
from wheelfarm.resolve.rules import required_python


def write(profiles: Sequence[Profile], question: Question, name: str) -> dict[str, str]:
    """Return the file's name and text; BadInputError for a name that PEP 751 does not allow."""
    file = PurePath(name).name
    parts = file.split(".")
    if parts[0] != "pylock" or parts[-1] != "toml" or len(parts) > 3:  # noqa: PLR2004 - PEP 751
        message = f"{file!r} is no name for a pylock"
        raise BadInputError(message, hint="call it pylock.toml or pylock.<name>.toml")
    names = [profile.name for profile in profiles if profile.name]
    document: dict[str, Any] = {"lock-version": "1.0", "created-by": "wheelfarm"}
    pythons = {_python(profile) for profile in profiles}
    if len(pythons) == 1 and (only := pythons.pop()):
        document["requires-python"] = only
    if names:
        document["extras"] = sorted(names)
    packages = [_package(choice, taken) for choice, taken in merged(profiles)]
    document["packages"] = packages
    torches = {
        profile.name or "default": _torch(profile)
        for profile in profiles
        if profile.resolution.torch is not None
    }
    document["tool"] = {"wheelfarm": {**question.to_dict(), "torch": torches}}
    return {file: tomlkit.dumps(document)}


def _python(profile: Profile) -> str:
    python = profile.resolution.host.python.value
    return "" if python is None or python.version is None else f"=={python.version}.*"


def _torch(profile: Profile) -> dict[str, Any]:
    pin = profile.resolution.torch
    if pin is None:
        return {}
    entry: dict[str, Any] = {"requirements": list(pin.requirements())}
    if pin.index:
        entry["index"] = pin.index
    return entry


def marker_of(profiles: Sequence[str]) -> str:
    """Return the marker of an entry that only some profiles take: one of their extras is asked."""
    return " or ".join(f"'{name}' in extras" for name in profiles)


def _package(choice: Choice, taken: tuple[str, ...]) -> dict[str, Any]:
    entry = choice.candidate.entry
    package: dict[str, Any] = {"name": choice.candidate.package, "version": str(entry.name.version)}
    if any(taken):
        package["marker"] = marker_of(taken)
    # One that is not valid would make the lock invalid.
    if entry.requires_python and required_python(entry.requires_python) is not None:
        package["requires-python"] = entry.requires_python
    wheel: dict[str, Any] = {"name": str(entry.name), "url": address(choice.candidate)}
    if entry.size is not None:
        wheel["size"] = entry.size
    wheel["hashes"] = {"sha256": entry.sha256}
    package["wheels"] = [wheel]
    return package
