"""What a check looks at: the wheel's facts, and what its cell and recipe promise of it."""

import fnmatch
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from packaging.version import Version

from wheelfarm.errors import BadInputError
from wheelfarm.facts.model import BinaryFacts, Evidence, WheelFacts
from wheelfarm.model.arch import ArchList
from wheelfarm.model.axis import CxxAbi, TorchAxis
from wheelfarm.model.cell import CellId, cell_name
from wheelfarm.model.versions import Minor
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.verify.report import Check, Knob

#: How the farm writes torch into a wheel's requirements.
Requirements = Literal["pinned", "blank", "upstream", "own"]

#: An asset of a GitHub release may not be larger (bytes).
ASSET_LIMIT = 2 << 30
_SHOWN = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Expected:
    """What a recipe and the farm's policy declare of a wheel; None and empty: nothing declared.

    ``torch_axis_stated`` tells a stated axis from a defaulted one. ``archs`` is the planned list
    for every CUDA module, ``module_archs`` (path pattern, list) the exceptions. ``glibc`` is the
    policy's floor: the wheel must run on it. ``requires_dist`` is the exact curated list. The knobs
    carry the written reason of every exemption below.
    """

    torch_axis: TorchAxis | None = None
    torch_axis_stated: bool = False
    from_torch: Minor | None = None
    torch_release: Version | None = None
    cxx_abi: CxxAbi | None = None
    archs: ArchList | None = None
    module_archs: tuple[tuple[str, ArchList], ...] = ()
    glibc: Minor | None = None
    requirements: Requirements | None = None
    requires_dist: tuple[str, ...] | None = None
    allowed_needed: tuple[str, ...] = ()
    allowed_archives: tuple[str, ...] = ()
    grafted: tuple[str, ...] = ()
    max_size: int | None = None
    pure: bool = False
    import_names: tuple[str, ...] = ()
    extra_imports: tuple[str, ...] = ()
    no_direct_import: tuple[str, ...] = ()
    expect_ops: tuple[str, ...] = ()
    needs_driver: bool = False
    forgive_device_errors: bool = False
    skip_import: bool = False
    skip_arch: bool = False
    knobs: tuple[Knob, ...] = ()

    def reason(self, field: str) -> str:
        """Return the reason that a knob gives, empty where there is no such knob."""
        return next((knob.reason for knob in self.knobs if knob.field == field), "")


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """A wheel's facts beside its cell and what is expected; both None for a stranger's wheel."""

    facts: WheelFacts
    cell: CellId | None = None
    expected: Expected | None = None

    @property
    def binaries(self) -> tuple[BinaryFacts, ...]:
        """The binaries that could be read."""
        return tuple(binary for binary in self.facts.binaries if not binary.problem)

    @property
    def modules(self) -> tuple[BinaryFacts, ...]:
        """The libraries and modules that hold device code (loose device files are not modules)."""
        return tuple(
            binary for binary in self.binaries if binary.device_code and binary.kind != "device"
        )

    @property
    def inside(self) -> frozenset[str]:
        """The names under which the wheel's own libraries can be found."""
        names = {member.name.rsplit("/", 1)[-1] for member in self.facts.members}
        names |= {binary.soname for binary in self.facts.binaries if binary.soname}
        return frozenset(names)

    def evidence(self, *facts: str) -> tuple[Evidence, ...]:
        """Return the evidence of derived facts."""
        return tuple(entry for entry in self.facts.linkage.evidence if entry.fact in facts)


def cell_of(file_name: str) -> CellId:
    """Return the cell that a wheel's file name says it is of.

    Raises BadInputError where the name lacks a part: the accelerator, torch or platform.
    """
    name = WheelName.parse(file_name)
    accelerator, torch, platform = name.label.accelerator, name.label.torch, name.platform
    if accelerator is None or torch is None or platform is None:
        message = f"{file_name} does not say of which cell it is"
        raise BadInputError(message, hint="name the cell with --cell")
    public = Version(name.version.public)
    package = cell_name(name.distribution)
    return CellId(package, public, accelerator, torch, name.python, platform)


def shown(entries: Iterable[Evidence]) -> tuple[str, ...]:
    """Return evidence as lines of a report."""
    return tuple(f"{entry.path}: {entry.detail}" for entry in entries)


def judged(
    identifier: str,
    *,
    fails: Iterable[str] = (),
    warnings: Iterable[str] = (),
    fine: str,
    evidence: Iterable[str] = (),
) -> Check:
    """Return a check that fails or warns with its findings, or passes with the sentence ``fine``.

    The first finding is the summary; all of them (the first dozen) are the evidence.
    """
    bad, odd = tuple(fails), tuple(warnings)
    findings = bad or odd
    if not findings:
        return Check(id=identifier, status="pass", summary=fine, evidence=cut(evidence))
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    rest = (*bad[1:], *odd) if bad else odd[1:]
    return Check(
        id=identifier,
        status="fail" if bad else "warn",
        summary=f"{findings[0]}{more}",
        evidence=cut((*rest, *evidence)),
    )


def cut(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the first dozen lines, with a count of the rest."""
    every = tuple(lines)
    if len(every) <= _SHOWN:
        return every
    return (*every[:_SHOWN], f"… and {len(every) - _SHOWN} more")


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a name fits one of some shell patterns."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
