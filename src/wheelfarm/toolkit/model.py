"""The values of this room: a root that may hold CUDA, what it offers, and the toolkit chosen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from packaging.version import Version

from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.model.platform import System
from wheelfarm.model.versions import Minor

Source = Literal["wheels", "conda", "system"]
SOURCES: tuple[Source, ...] = get_args(Source)

#: ``unified``: one folder with include and lib (CUDA 13's wheels); ``split``: a folder for each
#: component (CUDA 12's wheels); ``prefix``: what an installer, a distribution or conda lays down.
Layout = Literal["unified", "split", "prefix"]

#: What one does with a toolkit; each step needs its own files (``parts.STEPS``).
Step = Literal["host", "device", "device-link", "link"]


class NoToolkitError(CouldNotLookError):
    """No place that was looked at holds what was asked for; every place carries its reason."""

    def __init__(self, wanted: str, candidates: "tuple[Candidate, ...]", *, hint: str = "") -> None:
        self.candidates = candidates
        lines = [f"no CUDA toolkit offers {wanted}"]
        lines += [f"    {candidate}" for candidate in candidates]
        if not candidates:
            lines.append("    neither NVIDIA's wheels nor conda nor a system folder has any part")
        super().__init__("\n".join(lines), hint=hint)


class CpuOnlyTorchError(BadInputError):
    """The torch of this environment was built without CUDA."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Library:
    """A shared library by the exact name that the linker and the loader use.

    ``file_name`` is ``libcudart.so.13`` on Linux and ``cudart.lib`` on Windows.
    """

    name: str
    file_name: str
    folder: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Missing:
    """A file that a step needs and a root lacks, and the requirement that would bring it.

    ``requirement`` is empty where no wheel has the file.
    """

    part: str
    file: str
    requirement: str

    def __str__(self) -> str:
        if not self.requirement:
            return f"{self.file} (no wheel has it)"
        return f"{self.file} (pip install {self.requirement!r})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Root:
    """One place that holds parts of CUDA, as it lies on disk.

    ``folders`` are the tops that belong together: one for a prefix, one for each component in the
    split layout, more than one where an environment has both lib and lib64. ``version`` is what
    the headers declare, else what the wheels' metadata says, None where neither tells.
    ``distributions`` are the wheels' versions by normalised name, empty for other sources.
    """

    source: Source
    layout: Layout
    path: Path
    folders: tuple[Path, ...]
    major: int | None
    version: Minor | None
    found_by: str
    include_dirs: tuple[Path, ...]
    library_dirs: tuple[Path, ...]
    bin_dirs: tuple[Path, ...]
    system: System = "linux"
    distributions: Mapping[str, Version] = field(default_factory=dict)
    pins: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        version = "version unknown" if self.version is None else str(self.version)
        if self.version is None and self.major is not None:
            version = f"{self.major}, minor unknown"
        return f"{self.path} (CUDA {version}, {self.source}, found by {self.found_by})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A root and what was decided of it; ``reason`` is empty for the one that was taken."""

    root: Root | None
    place: str
    reason: str = ""
    missing: tuple[Missing, ...] = ()

    def __str__(self) -> str:
        return f"{self.root or self.place}: {self.reason or 'taken'}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Toolkit:
    """CUDA from one root: headers, libraries and, where asked for, the compiler.

    ``parts`` maps each part that is there (``nvcc``, ``crt``, ``libcudart``, ...) to its file;
    ``notes`` are remarks that do not forbid its use; ``candidates`` are all decisions.
    """

    root: Root
    version: Minor
    parts: Mapping[str, Path]
    libraries: Mapping[str, Library]
    missing: tuple[Missing, ...] = ()
    notes: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()

    @property
    def path(self) -> Path:
        """The folder that holds it all."""
        return self.root.path

    @property
    def source(self) -> Source:
        """Where it came from."""
        return self.root.source

    @property
    def major(self) -> int:
        """CUDA's major version."""
        return self.version.major

    @property
    def include_dirs(self) -> tuple[Path, ...]:
        """Folders for the compiler's ``-I``, CCCL's among them."""
        return self.root.include_dirs

    @property
    def library_dirs(self) -> tuple[Path, ...]:
        """Folders that hold libraries."""
        return self.root.library_dirs

    @property
    def nvcc(self) -> Path | None:
        """The compiler; None where only headers and libraries are there."""
        return self.parts.get("nvcc")

    def outside(self, folder: Path) -> dict[str, Path]:
        """Return every part, include and library folder that does not lie below ``folder``.

        For the proof that a build used one environment's CUDA and nothing of the machine's.
        """
        top = folder.resolve()
        places: dict[str, Path] = {**self.parts}
        places |= {f"include {path}": path for path in self.include_dirs}
        places |= {f"library {path}": path for path in self.library_dirs}
        return {
            name: path for name, path in places.items() if not path.resolve().is_relative_to(top)
        }
