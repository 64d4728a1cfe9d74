"""Where builds keep what they make: one cache for environments, one work folder per farm.

``$WHEELFARM_CACHE`` (default ``~/.cache/wheelfarm``) holds what is shared by farms: environments,
downloads, compiler caches. ``<farm>/.wheelfarm`` holds the cells' build folders.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from wheelfarm.build.costs import CostBook, SharedCosts
from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.files import free_bytes
from wheelfarm.model.cell import CellId
from wheelfarm.places import cache_root


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folders of one farm's (or one author's) builds.

    ``shared_costs`` is where its machines share what units cost, None where it has no such place;
    ``results`` replaces the shared folder of compiler results, for a build that may use none.
    """

    root: Path
    cache: Path
    shared_costs: SharedCosts | None = None
    results: Path | None = None

    @classmethod
    def of(cls, farm: Path) -> "Workspace":
        """Return the workspace of a farm's or a project's folder."""
        return cls(farm.absolute() / ".wheelfarm", cache_root())

    @property
    def environments(self) -> Path:
        """One folder per (Python, torch, CUDA), shared by farms: each is several GB."""
        return self.cache / "environments"

    @property
    def compilers(self) -> Path:
        """One folder of compiler results per (CUDA, torch), shared by farms."""
        return self.results or self.cache / "compilers"

    @property
    def downloads(self) -> Path:
        """Source archives by their hash."""
        return self.cache / "downloads"

    def costs(self, package: str) -> CostBook:
        """Return what the units of a package cost (``package`` as cells write it)."""
        return CostBook(self.cache / "costs" / f"{package}.json", package, self.shared_costs)

    def cell(self, cell: CellId) -> Path:
        """Return the build folder of a cell: a folder per step, and ``logs``."""
        return self.root / "cells" / str(cell)


#: What parts or changes a path on its way through setup.py, make, ninja and a shell.
_PARTING = re.compile(r"""[\s'"\\$&;|<>()*?\[\]{}#!`:,]""")


def require_plain_path(folder: Path, hint: str) -> None:
    """Raise BadInputError for a folder whose path compilers' command lines cannot carry.

    setuptools parts ``CC`` at spaces, PATH is parted at colons, make and ninja have signs of their
    own: such a build would end in "No such file" for half a name, if it ended at all.
    """
    found = _PARTING.search(str(folder.resolve()))
    if found is not None:
        message = f"nothing can be built below {folder}: its path has {found[0]!r}"
        cause = "setup.py, make and ninja part their compilers' command lines there"
        raise BadInputError(message, cause=cause, hint=hint)


def require_space(path: Path, needed: int, what: str) -> None:
    """Raise CouldNotLookError where the disk of ``path`` has less than ``needed`` bytes free."""
    free = free_bytes(path)
    if free < needed:
        message = (
            f"{what} needs {needed / 1e9:.1f} GB and the disk of {path} has {free / 1e9:.1f} GB"
        )
        raise CouldNotLookError(message, hint="free some space, or set WHEELFARM_CACHE elsewhere")
