"""GPU architectures, and which code runs on which GPU.

The rules are NVIDIA's (CUDA C++ Programming Guide, "Compute Capability" and "Feature Set
Compiler Targets"; CUDA Compatibility): SASS of a major runs on the same and later minors of that
major; an ``a`` target runs on that very capability alone; an ``f`` target on its family, which is
the same major from its minor upward; plain PTX is translated for anything later. Tegra parts share
no SASS with desktop parts of the same major.
"""

import re
from functools import lru_cache
from typing import Literal

from wheelfarm.errors import BadInputError
from wheelfarm.values import value

Suffix = Literal["", "a", "f"]

_ARCH = re.compile(r"(\d+)\.(\d)([af]?)", re.ASCII)
_SM = r"(?:sm_|compute_|sm|)(\d{2,3})([af]?)"

#: (major, minor) of integrated (Tegra, Jetson, DRIVE) parts, whose SASS no desktop part runs.
TEGRA = frozenset({(5, 3), (6, 2), (7, 2), (8, 7), (11, 0)})


@value(kw_only=False, order=True)
class Arch:
    """A compute capability with its feature suffix: ``9.0``, ``9.0a``, ``10.0f``."""

    major: int
    minor: int
    suffix: Suffix = ""

    @classmethod
    def parse(cls, text: str) -> "Arch":
        """Read ``9.0``, ``9.0a`` or ``10.0f``; BadInputError for anything else."""
        return _parsed(text)

    @classmethod
    def of_number(cls, number: int, suffix: Suffix = "") -> "Arch":
        """Return the architecture of nvcc's number: 90 is 9.0, 120 is 12.0."""
        return cls(number // 10, number % 10, suffix)

    @classmethod
    def of_target(cls, text: str) -> "Arch":
        """Read nvcc's spelling: ``sm_90a``, ``compute_120``, ``90``."""
        match = re.fullmatch(_SM, text.strip(), re.ASCII)
        if match is None:
            message = f"{text!r} is no GPU target; expected one such as sm_90a"
            raise BadInputError(message)
        return cls.of_number(int(match[1]), _suffix(match[2]))

    @property
    def number(self) -> int:
        """Nvcc's number: 90 for 9.0."""
        return self.major * 10 + self.minor

    @property
    def target(self) -> str:
        """Nvcc's digits with the suffix: ``90a``."""
        return f"{self.number}{self.suffix}"

    @property
    def is_tegra(self) -> bool:
        """Whether this is an integrated part."""
        return (self.major, self.minor) in TEGRA

    @property
    def plain(self) -> "Arch":
        """The same capability without a suffix."""
        return Arch(self.major, self.minor)

    def sass_runs_on(self, gpu: "Arch") -> bool:
        """Return whether machine code of this target runs on a GPU of capability ``gpu``."""
        if self.major != gpu.major or gpu.minor < self.minor:
            return False
        if self.suffix == "a":
            return self.minor == gpu.minor
        if self.is_tegra != gpu.is_tegra:
            return False
        return not self.is_tegra or self.minor == gpu.minor

    def ptx_runs_on(self, gpu: "Arch") -> bool:
        """Return whether PTX of this target can be translated for a GPU of capability ``gpu``.

        The driver must also be at least as new as the toolkit that wrote the PTX; that is the
        caller's to check, as it is a fact of the machine.
        """
        if self.suffix == "a":
            return (self.major, self.minor) == (gpu.major, gpu.minor)
        if self.suffix == "f":
            return self.major == gpu.major and gpu.minor >= self.minor
        return (gpu.major, gpu.minor) >= (self.major, self.minor)

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}{self.suffix}"


@value(kw_only=False, order=True)
class ArchRequest:
    """One entry of an arch list: SASS for ``arch``, and PTX too where ``ptx`` is set."""

    arch: Arch
    ptx: bool = False

    @classmethod
    def parse(cls, text: str) -> "ArchRequest":
        """Read ``9.0`` or ``9.0+PTX``."""
        word = text.strip()
        ptx = word.upper().endswith("+PTX")
        return cls(Arch.parse(word[:-4] if ptx else word), ptx)

    def __str__(self) -> str:
        return f"{self.arch}{'+PTX' if self.ptx else ''}"


@value(kw_only=False)
class ArchList:
    """A list of architectures as TORCH_CUDA_ARCH_LIST takes it, sorted, each once."""

    entries: tuple[ArchRequest, ...]

    @classmethod
    def parse(cls, text: str) -> "ArchList":
        """Read ``8.0;9.0+PTX`` (blanks or commas separate too); BadInputError where empty."""
        words = [word for word in re.split(r"[;,\s]+", text) if word]
        if not words:
            message = "an arch list must name at least one architecture"
            raise BadInputError(message)
        merged: dict[Arch, bool] = {}
        for entry in map(ArchRequest.parse, words):
            merged[entry.arch] = merged.get(entry.arch, False) or entry.ptx
        return cls(tuple(ArchRequest(arch, ptx) for arch, ptx in sorted(merged.items())))

    @property
    def archs(self) -> tuple[Arch, ...]:
        """The architectures with machine code."""
        return tuple(entry.arch for entry in self.entries)

    @property
    def ptx(self) -> tuple[Arch, ...]:
        """The architectures with PTX."""
        return tuple(entry.arch for entry in self.entries if entry.ptx)

    def __str__(self) -> str:
        return ";".join(map(str, self.entries))


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Arch:
    """Read a capability; an index names a few of them very often."""
    match = _ARCH.fullmatch(text.strip())
    if match is None:
        message = f"{text!r} is no GPU architecture; expected one such as 9.0, 9.0a or 10.0f"
        raise BadInputError(message)
    return Arch(int(match[1]), int(match[2]), _suffix(match[3]))


def _suffix(text: str) -> Suffix:
    return "a" if text == "a" else "f" if text == "f" else ""
