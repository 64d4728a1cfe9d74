"""What PyTorch itself published, as far as channels need it: torches, Pythons, C++ ABI."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.axis import CxxAbi
from wheelfarm.model.platform import Platform
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor
from wheelfarm.upstream.cxx_abi import cxx_abi
from wheelfarm.upstream.model import UpstreamFacts


class Shipped(Protocol):
    """Which torch builds exist."""

    @property
    def digest(self) -> str:
        """A hash of all that is known, so that a site is rendered again when it changes."""

    def torches(self, accelerator: Accelerator) -> Iterable[Minor]:
        """Return the torch minors that exist for an accelerator, on any platform."""

    def pythons(
        self, accelerator: Accelerator, torch: Minor, platform: Platform
    ) -> frozenset[PythonTag]:
        """Return the Pythons for which this torch exists; empty where it does not."""

    def cxx_abi(self, accelerator: Accelerator, torch: Minor, platform: Platform) -> CxxAbi | None:
        """Return the C++ ABI of this torch's binaries, None where nobody knows."""


_Key = tuple[Accelerator, Minor, str]


@dataclass(frozen=True, slots=True)
class ShippedTorch:
    """What was shipped, as a table; the empty one knows nothing."""

    table: Mapping[_Key, frozenset[PythonTag]] = field(default_factory=dict)
    abis: Mapping[_Key, CxxAbi] = field(default_factory=dict)

    @classmethod
    def of(cls, facts: UpstreamFacts) -> "ShippedTorch":
        """Return the table of what PyTorch published: a minor has what any of its patches has."""
        table: dict[_Key, frozenset[PythonTag]] = {}
        abis: dict[_Key, CxxAbi] = {}
        for release in facts.releases:
            for platform, pythons in release.pythons.items():
                key = (release.accelerator, release.minor, platform.identifier)
                table[key] = table.get(key, frozenset()) | frozenset(pythons)
                abi = cxx_abi(release.accelerator, release.minor, platform)
                if abi is not None:
                    abis[key] = abi
        return cls(table, abis)

    @property
    def digest(self) -> str:
        """A hash of both tables."""
        rows = [
            f"{key[0]} {key[1]} {key[2]} {sorted(map(str, pythons))} {self.abis.get(key)}"
            for key, pythons in self.table.items()
        ]
        return hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest()

    def torches(self, accelerator: Accelerator) -> Iterable[Minor]:
        """Return the torch minors that exist for an accelerator."""
        return sorted({torch for known, torch, _ in self.table if known == accelerator})

    def pythons(
        self, accelerator: Accelerator, torch: Minor, platform: Platform
    ) -> frozenset[PythonTag]:
        """Return the Pythons for which this torch exists."""
        return self.table.get((accelerator, torch, platform.identifier), frozenset())

    def cxx_abi(self, accelerator: Accelerator, torch: Minor, platform: Platform) -> CxxAbi | None:
        """Return the C++ ABI of this torch's binaries."""
        return self.abis.get((accelerator, torch, platform.identifier))
