"""What a build is made from and what it gives: the values around the pipeline."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wheelfarm.build.environment import Environment
from wheelfarm.build.retag import RequirementPolicy
from wheelfarm.build.source import (
    ArchiveSource,
    FolderSource,
    GitSource,
    LockedSource,
    folder_fingerprint,
)
from wheelfarm.build.steps import StepResult
from wheelfarm.errors import BadInputError
from wheelfarm.model.arch import ArchList
from wheelfarm.model.axis import TorchAxis
from wheelfarm.model.cell import Cell
from wheelfarm.model.libstdcxx import LibstdcxxChoice
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor
from wheelfarm.toolkit.model import Toolkit


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildRequest:
    """Everything a build depends on: the cell, the locked source, and the recipe's decisions."""

    cell: Cell
    source: LockedSource
    archs: ArchList
    torch_axis: TorchAxis
    from_torch: Minor | None = None
    build_subdir: str = ""
    patches: tuple[Path, ...] = ()
    patch_script: Path | None = None
    pre_build_script: str = ""
    extra_deps: tuple[str, ...] = ()
    cuda_components: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    pure: bool = False
    max_jobs: int | None = None
    nvcc_threads: int = 1
    nvcc_flags: str = ""
    objects_behind_seat: Mapping[str, str] = field(default_factory=dict)
    requirements: RequirementPolicy = "pinned"
    requires_dist: tuple[str, ...] | None = None
    floor: Minor | None = None
    libstdcxx: LibstdcxxChoice = "shared"
    build_tag: str = ""
    torch_pinned: bool = False
    siblings: frozenset[str] = frozenset()
    python: PythonTag | None = None
    """The Python to build with, where the cell's own part is a floor or none."""

    @property
    def build_python(self) -> PythonTag:
        """The exact Python that builds the cell; an abi3 cell is built with its floor."""
        if self.python is not None:
            return self.python
        python = self.cell.identifier.python
        if python.version is None:
            message = f"{self.cell} names no Python to build with"
            raise BadInputError(message)
        return PythonTag("exact", python.version, python.free_threaded)


@dataclass(frozen=True, kw_only=True, slots=True)
class BuiltWheel:
    """A wheel of a cell and all that proves it: what was grafted and what it should require.

    ``packages`` is a folder with its requirements beside ``environment``; ``driver_stub`` the
    folder of a stand-in for the driver's library.
    """

    cell: Cell
    wheel: Path
    grafted: tuple[str, ...]
    requires_dist: tuple[str, ...]
    environment: Environment
    toolkit: Toolkit
    driver_stub: Path
    packages: Path
    steps: Mapping[str, StepResult]


def source_inputs(source: LockedSource) -> dict[str, str]:
    """Return what identifies a source's bytes, for keys."""
    match source:
        case ArchiveSource():
            return {"sha256": source.sha256}
        case GitSource():
            return {"commit": source.commit, "submodules": str(source.submodules)}
        case FolderSource():
            return {"folder": folder_fingerprint(source.folder)}
