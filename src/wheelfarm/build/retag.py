"""From a repaired wheel to the cell's: name, tags, requirements and RECORD change together."""

from collections.abc import Iterable
from email.parser import HeaderParser
from pathlib import Path
from typing import Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from wheelfarm.build.build_id import with_content_build_id
from wheelfarm.build.search_paths import relative_search_paths
from wheelfarm.build.wheel_file import (
    read_members,
    rename_version,
    set_fields,
    text_of,
    write_wheel,
)
from wheelfarm.errors import BadInputError
from wheelfarm.facts.elf import read_elf
from wheelfarm.facts.libraries import nvidia_library
from wheelfarm.model.axis import TorchAxis
from wheelfarm.model.cell import CellId
from wheelfarm.model.versions import Minor
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.values import replace

RequirementPolicy = Literal["pinned", "blank", "upstream"]


def retag_wheel(
    wheel: Path,
    folder: Path,
    *,
    cell: CellId,
    platform_tag: str,
    requires_dist: tuple[str, ...] | None,
    build: str = "",
) -> Path:
    """Write the cell's wheel into ``folder`` and return it.

    ``requires_dist`` replaces the wheel's own list; None keeps it. Search paths of binaries are
    made relative to the wheel, and their build IDs from their content.
    """
    old = WheelName.parse(wheel.name)
    if canonicalize_name(old.distribution) != canonicalize_name(cell.package):
        message = f"the build made {wheel.name}, expected a wheel of {cell.package}"
        raise BadInputError(message, hint="is the recipe's name the project's own?")
    if old.version.public != cell.version.public:
        message = f"the build made version {old.version.public}, the cell says {cell.version}"
        raise BadInputError(message, hint="the recipe's version must be what the source says")
    if old.python != cell.python:
        message = f"the build made {wheel.name}, which is for {old.python}, not {cell.python}"
        raise BadInputError(message, hint="state the recipe's python axis: exact, abi3 or none")
    # The distribution keeps upstream's spelling, since folders inside the wheel are named by it.
    new = replace(WheelName.of_cell(cell, platform_tag, build=build), distribution=old.distribution)
    members = rename_version(read_members(wheel), old, new)
    members = relative_search_paths(members, cuda_major=cell.accelerator.major)
    members = {
        path: replace(content, data=with_content_build_id(content.data))
        for path, content in members.items()
    }
    if requires_dist is not None:
        path = f"{new.dist_info}/METADATA"
        text = set_fields(text_of(members, path, new), {"Requires-Dist": list(requires_dist)})
        members[path] = replace(members[path], data=text.encode())
    return write_wheel(folder, new, members)


def upstream_requirements(wheel: Path) -> tuple[str, ...]:
    """Return the ``Requires-Dist`` of a wheel."""
    for path, content in read_members(wheel).items():
        if path.endswith(".dist-info/METADATA"):
            message = HeaderParser().parsestr(content.data.decode(errors="replace"))
            return tuple(message.get_all("Requires-Dist") or ())
    return ()


def needed_outside(wheel: Path) -> tuple[str, ...]:
    """Return the sonames that a wheel's ELF files need and the wheel itself does not hold."""
    binaries = [
        read_elf(content.data, path)
        for path, content in read_members(wheel).items()
        if content.data.startswith(b"\x7fELF")
    ]
    inside = {binary.path.rpartition("/")[2] for binary in binaries}
    inside |= {binary.soname for binary in binaries}
    needed = dict.fromkeys(name for binary in binaries for name in binary.needed)
    return tuple(name for name in needed if name not in inside)


def curated_requirements(
    upstream: Iterable[str],
    *,
    policy: RequirementPolicy,
    axis: TorchAxis,
    torch: Minor,
    from_torch: Minor | None = None,
    libraries: Iterable[str] = (),
    cuda_major: int | None = None,
    release: Version | None = None,
) -> tuple[str, ...]:
    """Return what the wheel declares under the policy.

    ``pinned`` is upstream's list plus torch: ``==X.Y.*`` for a wheel that links it (or upstream's
    own pin where that is tighter), ``>=X.Y`` for one on the stable ABI, none for the others. Where
    ``release`` pins torch to that very release. Where
    no torch brings them, the NVIDIA wheels of the needed ``libraries`` (sonames) are added.
    """
    given = tuple(upstream)
    if policy == "upstream":
        return given
    if policy == "blank":
        return ()
    others: list[str] = []
    pins: list[Requirement] = []
    for text in given:
        requirement = _parsed(text)
        if requirement is not None and requirement.name == "torch" and requirement.marker is None:
            pins.append(requirement)
        else:
            others.append(text)
    if axis in {"abi_flag", "free"}:
        present = (*others, *map(str, pins))
        return (*present, *([] if pins else nvidia_requirements(libraries, present, cuda_major)))
    if release is not None:
        return (*others, f"torch=={release.public}")
    wanted = f"=={torch}.*" if axis == "linked" else f">={from_torch or torch}"
    tight = next((pin for pin in pins if _is_exact(pin.specifier)), None)
    return (*others, str(tight) if tight is not None else f"torch{wanted}")


def nvidia_requirements(
    libraries: Iterable[str], present: Iterable[str], cuda_major: int | None
) -> tuple[str, ...]:
    """Return requirements on the NVIDIA wheels that ship some sonames, those present left out."""
    known = {canonicalize_name(found.name) for found in map(_parsed, present) if found is not None}
    wanted: dict[str, None] = {}
    for soname in libraries:
        library = nvidia_library(soname)
        names = () if library is None else library.distributions(cuda_major)
        if not names or known.intersection(names):
            continue
        number = soname.rpartition(".so.")[2].partition(".")[0]
        # NVIDIA's wheels carry their library's own major, which is not always CUDA's.
        wanted[f"{names[0]}=={number}.*" if number.isdigit() else names[0]] = None
    return tuple(wanted)


def _is_exact(specifier: SpecifierSet) -> bool:
    return any(
        part.operator == "===" or (part.operator == "==" and not part.version.endswith(".*"))
        for part in specifier
    )


def _parsed(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None
