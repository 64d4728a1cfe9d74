"""The values of this room: what was read from a wheel and its binaries. Facts, never verdicts."""

from dataclasses import dataclass
from typing import Literal

from wheelfarm.model.arch import Arch
from wheelfarm.model.axis import CxxAbi
from wheelfarm.model.versions import Minor
from wheelfarm.model.wheel_name import WheelName

BinaryKind = Literal["elf", "pe"]


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceCode:
    """One entry of a fat binary: machine code (``sass``) or PTX for one architecture."""

    kind: Literal["sass", "ptx"]
    arch: Arch
    compressed: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionNeed:
    """A versioned symbol set that a binary needs of a library: ``libc.so.6``, ``GLIBC_2.34``.

    ``symbol`` is one symbol that asks for it, for the message; empty where none could be named.
    """

    library: str
    version: str
    symbol: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class BinaryFacts:
    """One ELF or PE file of a wheel.

    ``needed`` are DT_NEEDED names, or imported DLLs; ``delayed`` the DLLs that load on first use.
    ``undefined`` and ``defined`` are dynamic symbols (mangled), or imported and exported names.
    ``problem`` is set where the file could not be read to its end; then nothing else is to be
    trusted.
    """

    path: str
    kind: BinaryKind
    machine: str
    size: int
    soname: str = ""
    needed: tuple[str, ...] = ()
    delayed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    version_needs: tuple[VersionNeed, ...] = ()
    undefined: tuple[str, ...] = ()
    defined: tuple[str, ...] = ()
    device_code: tuple[DeviceCode, ...] = ()
    problem: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One member of the wheel's zip: its name, size and the SHA-256 of its bytes (hexadecimal)."""

    name: str
    size: int
    sha256: str
    executable: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Linkage:
    """What was derived from all binaries of a wheel together.

    ``torch``: no libtorch at all; its stable ABI alone (then ``stable_torch`` is the lowest torch
    minor that has every symbol); or the full library. ``cxx_abi`` is the libstdc++ ABI that its
    symbols of torch and std use, None where none tells. ``glibc`` and ``glibcxx`` are floors.
    """

    torch: Literal["none", "stable_abi", "linked"]
    stable_torch: Minor | None = None
    cxx_abi: CxxAbi | None = None
    cuda_major: int | None = None
    glibc: Minor | None = None
    glibcxx: str = ""
    needs_driver: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class WheelFacts:
    """Everything that was read of one wheel."""

    file_name: str
    sha256: str
    size: int
    name: WheelName | None
    members: tuple[Member, ...]
    metadata: str
    """The METADATA file's text, as it stands in the wheel."""
    version: str
    """The ``Version`` field of METADATA, as it is written."""
    project: str
    """The ``Name`` field of METADATA."""
    requires_python: str
    requires_dist: tuple[str, ...]
    tags: tuple[str, ...]
    """The ``Tag`` lines of the WHEEL file."""
    binaries: tuple[BinaryFacts, ...]
    linkage: Linkage
    problems: tuple[str, ...] = ()
    """What kept the wheel from being read: not a zip, no METADATA, a member that lies, ..."""
