"""The values of this room: points of the grid, what was decided of each, and the cells to build."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from packaging.version import Version

from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.arch import ArchList
from wheelfarm.model.axis import CxxAbi, TorchAxis
from wheelfarm.model.cell import Cell, CellId
from wheelfarm.model.platform import Platform
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor
from wheelfarm.recipes.model import Recipe

Outcome = Literal["built", "served", "refused"]

#: The version in the identifiers of a package whose version only its source tells.
UNKNOWN_VERSION = Version("0+unknown")


@dataclass(frozen=True, slots=True)
class Point:
    """What a user may have: an accelerator, a torch release, an exact Python, a platform."""

    accelerator: Accelerator
    torch: Version
    python: PythonTag
    platform: Platform

    @property
    def minor(self) -> Minor:
        """The torch minor."""
        return Minor.of(self.torch)

    def is_built_as(self, cell: CellId) -> bool:
        """Return whether a cell is for this accelerator, torch minor and platform."""
        return (
            self.accelerator == cell.accelerator
            and self.minor == cell.torch
            and self.platform == cell.platform
        )

    def __str__(self) -> str:
        return f"{self.accelerator}-torch{self.torch}-{self.python}-{self.platform}"


@dataclass(frozen=True, kw_only=True, slots=True)
class GridCell:
    """One wheel to build: its cell, what it is built for, and the points that it serves."""

    cell: Cell
    torch_axis: TorchAxis
    archs: ArchList
    python: PythonTag
    """The exact Python that builds it; the cell's own Python part may be ``cp310.abi3``."""
    serves: tuple[Point, ...]
    torch_pinned: bool = False
    """Whether the recipe names the torch release, so that the wheel requires exactly that."""
    target: Minor | None = None
    """TORCH_TARGET_VERSION of a ``stable_abi`` wheel."""
    cxx_abi: CxxAbi | None = None
    """The C++ ABI of the official torch that it is built against; None on Windows."""

    @property
    def identifier(self) -> CellId:
        """The cell's identifier."""
        return self.cell.identifier

    @property
    def coverage(self) -> str:
        """What the architectures mean for GPUs, in words."""
        ptx = self.archs.ptx
        sass = ", ".join(map(str, self.archs.archs))
        if not ptx:
            return f"machine code for {sass}; no PTX, so GPUs outside these are not served"
        return f"machine code for {sass}; PTX of {', '.join(map(str, ptx))} for later GPUs"


class Refusal(NamedTuple):
    """Why a point is refused: the rule, in a few words that totals count by, and the sentence."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class GridDecision:
    """What was decided of a point: it has its own cell, another serves it, or it is refused.

    ``cell`` is the cell that serves it; ``reason`` why it is refused, or why another one serves
    it; ``rule`` the reason in a few words.
    """

    point: Point
    outcome: Outcome
    reason: str = ""
    rule: str = ""
    cell: CellId | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PackageGrid:
    """One package's part of the grid."""

    recipe: Recipe
    version: Version | None
    """None: not known yet; the cells then carry ``UNKNOWN_VERSION``."""
    cells: tuple[GridCell, ...]
    decisions: tuple[GridDecision, ...]

    @property
    def refused(self) -> tuple[GridDecision, ...]:
        """The refused points."""
        return tuple(item for item in self.decisions if item.outcome == "refused")
