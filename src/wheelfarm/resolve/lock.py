"""What a lock is made of: one answer per host profile, and the note that says what it answers.

The note stands in every format (``wheelfarm.resolve-lock/1``), so that ``--check`` and
``--upgrade`` can ask the same question again on any machine.
"""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from wheelfarm.http import redacted
from wheelfarm.reading import Reader
from wheelfarm.resolve.candidate import Candidate
from wheelfarm.resolve.choose import Choice
from wheelfarm.resolve.host import Host
from wheelfarm.resolve.pages import safe_address
from wheelfarm.resolve.resolution import Resolution
from wheelfarm.values import NOTHING, replace, value

LOCK_SCHEMA = "wheelfarm.resolve-lock/1"
#: The key of the note in a user's own file that lists the places which are ours.
WRITTEN = "written"


@value
class Profile:
    """One host's answer under its name; the name is empty where a lock holds one host alone."""

    name: str
    resolution: Resolution


@value
class LockedWheel:
    """One wheel of a written lock: its package, address, hash, and the profiles that take it.

    ``ours`` is False where it stands in a line of the user's own.
    """

    name: str
    url: str
    sha256: str
    profiles: tuple[str, ...] = ("",)
    ours: bool = True


@value
class Written:
    """The texts of a lock by file name, and what is to be said of them."""

    texts: Mapping[str, str]
    notes: tuple[str, ...] = ()


@value
class Question:
    """What a lock answers: index, packages, how, and each profile's host in stated facts."""

    index: str
    packages: tuple[str, ...]
    choose_torch: bool = False
    prereleases: bool = False
    profiles: Mapping[str, Mapping[str, str]] = NOTHING

    def to_dict(self) -> dict[str, Any]:
        """Return the note as it stands in a lock."""
        return {
            "schema": LOCK_SCHEMA,
            "index": redacted(self.index),
            "packages": list(self.packages),
            "choose-torch": self.choose_torch,
            "pre": self.prereleases,
            "profiles": {name or "default": dict(facts) for name, facts in self.profiles.items()},
        }

    def of_profile(self, name: str) -> "Question":
        """Return what the file of one profile answers, in which that profile has no name."""
        return replace(self, profiles={"": self.profiles[name]})

    @classmethod
    def read(cls, data: object, context: str) -> "Question":
        """Read a lock's note; FaultsError lists what is wrong with it."""
        reader = Reader(data, context)
        reader.choice("schema", (LOCK_SCHEMA,))
        profiles: dict[str, Mapping[str, str]] = {}
        table = reader.table("profiles")
        for name in table or ():
            facts = None if table is None else table.string_map(name)
            profiles["" if name == "default" else name] = facts or {}
        question = cls(
            index=reader.string("index"),
            packages=reader.strings("packages"),
            choose_torch=reader.boolean("choose-torch", default=False),
            prereleases=reader.boolean("pre", default=False),
            profiles=profiles,
        )
        reader.finish()
        return question


def file_of_profile(name: str, profile: str) -> str:
    """Return the name of one profile's file, of a format that takes one file each."""
    path = PurePath(name)
    return f"{path.stem}-{profile}{path.suffix}" if profile else path.name


def stated_facts(host: Host) -> dict[str, str]:
    """Return a host as the options that would state it (``OVERRIDES``), those that are known."""
    torch = host.torch.value
    gpus = host.gpus.value or ()
    known = [str(gpu.capability) for gpu in gpus if gpu.capability is not None]
    facts = {
        "python_version": None if host.python.value is None else host.python.value.dotted,
        "platform": host.platform.value,
        "libc": None if host.libc.value is None else str(host.libc.value),
        "torch": "none" if torch is None else str(torch),
        "accelerator": None if host.accelerator.value is None else str(host.accelerator.value),
        "cxx_abi": None if host.cxx_abi.value is None else str(host.cxx_abi.value),
        "backend": host.backend.value,
        "gpu": ",".join(known) or ("none" if host.devices.value == "none" else None),
        "driver_cuda": None if host.driver_cuda.value is None else str(host.driver_cuda.value),
    }
    return {name: value for name, value in facts.items() if value is not None}


def address(candidate: Candidate) -> str:
    """Return a wheel's address as a lock holds it: ``+`` escaped, no fragment, no login."""
    parts = urlsplit(safe_address(candidate.entry.url))
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def hashed_address(candidate: Candidate) -> str:
    """Return a wheel's address with its hash as fragment."""
    return f"{address(candidate)}#sha256={candidate.entry.sha256}"


def merged(profiles: Sequence[Profile]) -> list[tuple[Choice, tuple[str, ...]]]:
    """Return every distinct wheel with the profiles that take it, in a fixed order."""
    found: dict[tuple[str, str], tuple[Choice, list[str]]] = {}
    for profile in profiles:
        for choice in profile.resolution.choices:
            key = (choice.candidate.package, address(choice.candidate))
            found.setdefault(key, (choice, []))[1].append(profile.name)
    return [(choice, tuple(names)) for _, (choice, names) in sorted(found.items())]
