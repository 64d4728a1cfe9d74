"""An index in memory: wheels by name, with the facts that a manifest would have of them."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from wheelfarm.http import Client
from wheelfarm.index.model import Combination, WheelEntry
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.reading import Reader
from wheelfarm.resolve.candidate import Candidate
from wheelfarm.resolve.choose import parse_wanted
from wheelfarm.resolve.detect import detect
from wheelfarm.resolve.host import Host
from wheelfarm.resolve.pages import Page, groups_of
from wheelfarm.resolve.resolution import Resolution, Settings, resolve


def candidate(name: str, **facts: Any) -> Candidate:
    """Return a wheel with a manifest's facts; ``proven=False`` for a name alone."""
    proven = facts.pop("proven", True)
    serves = WheelName.parse(facts.pop("serves", name))
    entry: dict[str, Any] = {"filename": name, "url": f"https://wheels.invalid/files/{name}"}
    entry["sha256"] = hashlib.sha256(name.encode()).hexdigest()
    if proven:
        entry |= {"torch_axis": "linked", "requires_dist": []}
    reader = Reader({**entry, **facts}, name)
    read = WheelEntry.read(reader)
    reader.finish()
    assert read is not None
    return Candidate.of(read, serves=serves, proven=proven)


@dataclass
class Shelf:
    """An index of candidates; ``tells`` is whether it has a manifest's list of packages."""

    candidates: list[Candidate] = field(default_factory=list)
    fallback_combination: Combination | None = None
    tells: bool = True
    address: str = "https://wheels.invalid/"
    transport: str = ""

    def add(self, name: str, **facts: Any) -> "Shelf":
        self.candidates.append(candidate(name, **facts))
        return self

    def packages(self) -> frozenset[str] | None:
        return frozenset(each.package for each in self.candidates) if self.tells else None

    def fallback(self) -> Combination | None:
        return self.fallback_combination

    def pages(self, names: Iterable[str], host: Host) -> Mapping[str, Page]:
        del host
        found = {}
        for name in names:
            own = tuple(each for each in self.candidates if each.package == name)
            found[name] = Page(
                package=name, url=self.address, groups=groups_of(own), missing=not own
            )
        return found

    def resolve(self, host: Host, *packages: str, **settings: Any) -> Resolution:
        wanted = tuple(map(parse_wanted, packages))
        return resolve(wanted, host, self, Client(offline=True), Settings(**settings))


def host(**stated: str) -> Host:
    """Return a machine in stated facts; Linux, Python 3.11 and torch 2.14.1+cu130 by default."""
    facts = {
        "platform": "linux_x86_64",
        "python_version": "3.11",
        "libc": "2.36",
        "torch": "2.14.1+cu130",
        **stated,
    }
    return detect(facts)


def names(resolution: Resolution) -> list[str]:
    """Return the chosen file names."""
    return [str(choice.candidate.entry.name) for choice in resolution.choices]


def reasons(resolution: Resolution) -> str:
    """Return all reasons of all misses in one text."""
    from wheelfarm.resolve.explain import report

    return "\n".join(report(resolution))
