"""Prove a build reproducible: one request is built again, or for other torches, and compared.

The second build starts from empty folders and an empty compiler cache, so that nothing of the
first one's objects can make the two alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from wheelfarm import files
from wheelfarm.build.cache import verdict_file
from wheelfarm.build.pipeline import StepListener, build_cell
from wheelfarm.build.request import BuildRequest
from wheelfarm.build.wheel_file import read_members
from wheelfarm.build.workspace import Workspace
from wheelfarm.errors import BadInputError, NegativeVerdictError
from wheelfarm.model.cell import Cell
from wheelfarm.model.versions import Minor
from wheelfarm.values import replace

_BINARIES = (".so", ".pyd", ".dll")


class NotReproducibleError(NegativeVerdictError):
    """Two builds that should be alike are not; ``members`` are those that differ."""

    def __init__(self, what: str, members: Sequence[str], *, hint: str) -> None:
        self.members = tuple(members)
        listed = "".join(f"\n    {name}" for name in members)
        super().__init__(f"{what}{listed}", hint=hint)


class TwoBuildsDifferError(NotReproducibleError):
    """The same request gave two different wheels."""

    def __init__(self, wheel: Path, members: Sequence[str]) -> None:
        super().__init__(
            f"two builds of {wheel.name} differ",
            members,
            hint="look for dates, random names and the order of files in what the build writes",
        )


class NotTorchFreeError(NotReproducibleError):
    """A package that is declared free of torch has another binary for another torch."""

    def __init__(self, one: Version, other: Version, members: Sequence[str]) -> None:
        super().__init__(
            f"the binaries for torch {one} and {other} differ",
            members,
            hint="declare what it takes from torch: links_torch: true, or torch_axis: abi_flag",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """What was built and found alike: the wheels, and the members that were compared."""

    wheels: tuple[Path, ...]
    members: tuple[str, ...]


def prove_twice(
    request: BuildRequest,
    workspace: Workspace,
    wheel: Path,
    *,
    listen: StepListener | None = None,
) -> Proof:
    """Build the request of ``wheel`` again, from nothing, and compare the two files' bytes.

    Raises NotReproducibleError with the members that differ.
    """
    again = build_cell(request, _apart(workspace, "again"), listen=listen).wheel
    differing = different_members(wheel, again)
    if differing or wheel.read_bytes() != again.read_bytes():
        raise TwoBuildsDifferError(wheel, differing)
    return Proof(wheels=(wheel, again), members=tuple(sorted(read_members(again))))


def prove_torch_free(
    request: BuildRequest,
    workspace: Workspace,
    releases: Sequence[Version],
    *,
    listen: StepListener | None = None,
) -> Proof:
    """Build a package that links no torch against each torch and compare the binaries.

    Raises BadInputError for a package that does link it, NotReproducibleError where the binaries
    differ: the package is not free of torch then, whatever its recipe says.
    """
    if request.torch_axis != "free":
        message = f"{request.cell} is declared {request.torch_axis}, so its binary is one torch's"
        raise BadInputError(message, hint="only a package that does not link torch has one for all")
    wheels = []
    for release in releases:
        identifier = replace(request.cell.identifier, torch=Minor(release.major, release.minor))
        other = replace(request, cell=Cell(identifier, release))
        place = _apart(workspace, f"torch{release}")
        wheels.append(build_cell(other, place, listen=listen).wheel)
    first, *others = wheels
    names = [name for name in read_members(first) if name.endswith(_BINARIES)]
    for release, wheel in zip(releases[1:], others, strict=True):
        differing = [name for name in different_members(first, wheel) if name.endswith(_BINARIES)]
        if differing:
            raise NotTorchFreeError(releases[0], release, differing)
    return Proof(wheels=tuple(wheels), members=tuple(sorted(names)))


def different_members(one: Path, other: Path) -> tuple[str, ...]:
    """Return the members in which two wheels differ, or that only one of them has."""
    left, right = read_members(one), read_members(other)
    return tuple(
        name for name in sorted(left.keys() | right.keys()) if left.get(name) != right.get(name)
    )


def _apart(workspace: Workspace, name: str) -> Workspace:
    """Return a workspace in an empty folder, with the environments of the other and no results."""
    root = workspace.root / name
    files.remove(root)
    # A cache that failed its examination stays refused.
    verdicts = verdict_file(workspace.compilers)
    if verdicts.is_file():
        files.copy(verdicts, verdict_file(root / "compilers"))
    return Workspace(root, workspace.cache, results=root / "compilers")
