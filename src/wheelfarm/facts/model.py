"""The values of this room: what was read from a wheel and its binaries. Facts, never verdicts."""

from dataclasses import dataclass
from typing import Literal

from wheelfarm.model.arch import Arch
from wheelfarm.model.axis import CxxAbi
from wheelfarm.model.versions import Minor
from wheelfarm.model.wheel_name import WheelName

BinaryKind = Literal["elf", "pe", "device"]
ProblemKind = Literal["zip", "name", "metadata", "wheel", "record", "binary"]


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceCode:
    """One entry of a fat binary: machine code (``sass``), PTX or link-time code for one target.

    ``isa`` is the PTX ISA version of a PTX entry, which tells the toolkit that wrote it; ``lto``
    entries (NVVM code for nvlink) run on nothing by themselves.
    """

    kind: Literal["sass", "ptx", "lto"]
    arch: Arch
    compressed: bool
    isa: Minor | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionNeed:
    """A versioned symbol set that a binary needs of a library: ``libc.so.6``, ``GLIBC_2.34``.

    ``symbol`` is one symbol that asks for it, for the message; empty where none could be named.
    """

    library: str
    version: str
    symbol: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class TorchUse:
    """What one binary takes of libtorch: how many symbols, and which of them tie it to what.

    ``libraries`` are the torch libraries among its needed names. ``unstable`` are symbols outside
    torch's stable ABI (some of them, ``unstable_count`` counts all). ``from_torch`` is the first
    torch minor that has every stable symbol, ``from_symbol`` the symbol that sets it. ``cxx_abi``
    is the libstdc++ ABI that a symbol with a string shows, ``cxx_abi_symbol`` that symbol.
    """

    libraries: tuple[str, ...] = ()
    symbols: int = 0
    unstable: tuple[str, ...] = ()
    unstable_count: int = 0
    from_torch: Minor | None = None
    from_symbol: str = ""
    cxx_abi: CxxAbi | None = None
    cxx_abi_symbol: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class PythonUse:
    """What one binary takes of CPython.

    ``module`` is the name behind ``PyInit_`` (empty for a library). ``unstable`` are symbols
    outside the stable ABI (some of them). ``floor`` is the first Python whose stable ABI has the
    others, ``floor_symbol`` the symbol that sets it. ``free_threaded`` is True or False where
    symbols tell the two builds of CPython apart.
    """

    module: str = ""
    symbols: int = 0
    unstable: tuple[str, ...] = ()
    floor: Minor | None = None
    floor_symbol: str = ""
    free_threaded: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class BinaryFacts:
    """One ELF or PE file of a wheel, or one loose device binary (a cubin, a fatbin).

    ``needed`` are DT_NEEDED names, or imported DLLs; ``delayed`` the DLLs that load on first use,
    and what an ELF file names as its filter or auxiliary library, which load likewise.
    ``undefined`` and ``defined`` are dynamic symbols (mangled), or imported and exported names;
    they are in memory only, documents keep what was derived of them (``torch``, ``python``).
    ``opens`` are torch's libraries that its data names where it takes the loader's ``dlopen``, and
    ``torch_inside`` are symbols of torch's namespaces that it defines itself (some of them).
    ``problem`` is set where the file could not be read to its end; then nothing else is to be
    trusted. ``device_code`` has each kind of entry once.
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
    opens: tuple[str, ...] = ()
    torch_inside: tuple[str, ...] = ()
    torch: TorchUse | None = None
    python: PythonUse | None = None
    problem: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One member of the wheel's zip: its name, size and the SHA-256 of its bytes (hexadecimal)."""

    name: str
    size: int
    sha256: str
    executable: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class InnerArchive:
    """One member that is an archive, or one compressed file: the compiled code in it.

    ``code`` names some of it, ``count`` counts all. ``problem`` says why it was not, or not all,
    looked into; then nothing is known of the rest.
    """

    path: str
    code: tuple[str, ...] = ()
    count: int = 0
    problem: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One thing that is wrong with the file itself, and the part of the wheel that it concerns."""

    kind: ProblemKind
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordRow:
    """One row of RECORD: a member's path, its digest (``sha256=…``, empty for RECORD), its size."""

    path: str
    digest: str
    size: int | None
    line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """Where a derived fact comes from: its name, the binary, and what in that binary says so."""

    fact: str
    path: str
    detail: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Linkage:
    """What was derived from all binaries of a wheel together.

    ``torch``: no libtorch at all; its stable ABI alone (then ``stable_torch`` is the lowest torch
    minor that has every symbol); or the full library. ``cxx_abi`` is the libstdc++ ABI that its
    symbols of torch and std use, None where none tells. ``glibc`` and ``glibcxx`` are floors.
    ``cuda_major`` is None where no library names one, or where two libraries contradict each other
    (the evidence shows both). ``toolkit`` is the CUDA release that wrote the newest PTX.
    ``python`` is the CPython ABI that the modules really use, ``python_floor`` its floor where that
    is the stable ABI.
    """

    torch: Literal["none", "stable_abi", "linked"]
    stable_torch: Minor | None = None
    cxx_abi: CxxAbi | None = None
    cuda_major: int | None = None
    glibc: Minor | None = None
    glibcxx: str = ""
    needs_driver: bool = False
    cxxabi: str = ""
    toolkit: Minor | None = None
    python: Literal["none", "stable", "exact"] = "none"
    python_floor: Minor | None = None
    evidence: tuple[Evidence, ...] = ()


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
    dist_info: str = ""
    """The name of the dist-info folder that the wheel really holds."""
    record: tuple[RecordRow, ...] | None = None
    """The rows of RECORD that could be read; None where there is no RECORD."""
    root_is_purelib: bool | None = None
    entry_points: str = ""
    inner: tuple[InnerArchive, ...] = ()
    """The archives among the members, and the compressed files."""
    problems: tuple[Problem, ...] = ()
    """What is wrong with the file itself: not a zip, no METADATA, a member that lies, ..."""
