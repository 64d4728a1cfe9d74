"""The cell: one point of the grid, and the identifier by which everything names it.

``diso-0.1.4-cu130-torch2.14-cp311-linux_x86_64`` is read from the right, since a package's name and
version may hold almost anything; jobs add ``-shard3of8`` or ``-link``.
"""

import re
from dataclasses import dataclass

from packaging.version import Version

from wheelfarm.errors import BadInputError
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.platform import Platform
from wheelfarm.model.project_name import normalized
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor, parse_version

_IDENTIFIER = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9_.]*)-(?P<version>[^-]+)-(?P<accelerator>[a-z0-9.]+)"
    r"-torch(?P<torch>\d+\.\d+)-(?P<python>[a-z0-9.]+)-(?P<platform>[a-z0-9_]+)",
    re.ASCII,
)
_JOB = re.compile(r"(?P<cell>.+)-(?:shard(?P<shard>\d+)of(?P<shards>\d+)|(?P<link>link))", re.ASCII)


def cell_name(package: str) -> str:
    """Return a package's name as cells and wheels write it: normalised (PEP 503), with ``_``."""
    return normalized(package).replace("-", "_")


@dataclass(frozen=True, order=True, slots=True)
class CellId:
    """What an identifier says: everything of a cell but torch's patch release."""

    package: str
    version: Version
    accelerator: Accelerator
    torch: Minor
    python: PythonTag
    platform: Platform

    @classmethod
    def parse(cls, text: str) -> "CellId":
        """Read an identifier; BadInputError shows the form where it is none."""
        match = _IDENTIFIER.fullmatch(text)
        if match is None:
            message = f"{text!r} is no cell identifier"
            raise BadInputError(
                message, hint="the form is diso-0.1.4-cu130-torch2.14-cp311-linux_x86_64"
            )
        return cls(
            match["name"],
            parse_version(match["version"]),
            Accelerator.parse(match["accelerator"]),
            Minor.parse(match["torch"]),
            PythonTag.parse(match["python"]),
            Platform.parse(match["platform"]),
        )

    @property
    def local_tag(self) -> str:
        """The wheel's local version, such as ``cu130torch2.14``."""
        return f"{self.accelerator}torch{self.torch}"

    def __str__(self) -> str:
        return (
            f"{self.package}-{self.version}-{self.accelerator}-torch{self.torch}"
            f"-{self.python}-{self.platform}"
        )


@dataclass(frozen=True, order=True, slots=True)
class Cell:
    """A point of the grid, with the torch release it is built against."""

    identifier: CellId
    torch_release: Version

    def __str__(self) -> str:
        return str(self.identifier)


@dataclass(frozen=True, order=True, slots=True)
class JobId:
    """A cell's job: the whole build (``shards`` 1), one of its shards (from 1), or its link."""

    cell: CellId
    shard: int = 0
    shards: int = 1
    link: bool = False

    @classmethod
    def parse(cls, text: str) -> "JobId":
        """Read a job's identifier."""
        match = _JOB.fullmatch(text)
        if match is None:
            return cls(CellId.parse(text))
        cell = CellId.parse(match["cell"])
        if match["link"]:
            return cls(cell, link=True)
        shard, shards = int(match["shard"]), int(match["shards"])
        if not 1 <= shard <= shards:
            message = f"{text!r} names shard {shard} of {shards}"
            raise BadInputError(message, hint="shards are counted from 1")
        return cls(cell, shard, shards)

    def __str__(self) -> str:
        if self.link:
            return f"{self.cell}-link"
        return f"{self.cell}-shard{self.shard}of{self.shards}" if self.shard else str(self.cell)
