"""Fat binaries: from the bytes of a device-code section to its entries, payloads left packed.

A section holds containers one after another: a header with a magic number, then entries, each with
a header of its own that names kind, architecture and flags even where the payload is compressed.
The layout is not documented by NVIDIA; the fields read here were checked against cuobjdump for
every target that nvcc 13.0 knows, and against wheels made with CUDA 12.
"""

import struct
from collections.abc import Iterable, Iterator

from wheelfarm.facts.buffers import Buffer, CutShortError
from wheelfarm.facts.model import DeviceCode
from wheelfarm.model.arch import Arch, Suffix
from wheelfarm.model.versions import Minor

MAGIC = b"\x50\xed\x55\xba"
#: Sections (or Windows sections, cut to eight letters) that hold linked device code.
SECTIONS = (".nv_fatbin", ".nv_fatb")

_CONTAINER = struct.Struct("<4sHHQ")
#: kind, version, header size, payload size, (compressed size, options), version, arch.
_ENTRY = struct.Struct("<HHIQ8xHHI")
_FLAGS_AT = 40
_FLAGS = struct.Struct("<Q")
_LEAST_ENTRY = _FLAGS_AT + _FLAGS.size
_KINDS = {1: "ptx", 2: "sass", 8: "lto"}
_ARCH_SPECIFIC = 0x100000
_FAMILY_SPECIFIC = 0x200000
_COMPRESSED = 0x2000 | 0x8000 | 0x1000
_MAX_ENTRIES = 1_000_000


class FatbinError(ValueError):
    """The bytes are no fat binary, or it is cut short."""


def read_fatbins(data: Buffer, start: int, end: int) -> tuple[DeviceCode, ...]:
    """Return the entries of all containers between two offsets (bytes).

    Raises FatbinError where a header leads out of the section.
    """
    found: list[DeviceCode] = []
    while (at := data.find(MAGIC, start, end)) >= 0:
        if at + _CONTAINER.size > end:
            message = f"a fat binary's header at {at:#x} is cut short"
            raise FatbinError(message)
        _, _, header, size = _CONTAINER.unpack_from(data, at)
        start = at + header + size
        if header < _CONTAINER.size or start > end:
            message = f"the fat binary at {at:#x} claims {size} bytes, past its section"
            raise FatbinError(message)
        found += _entries(data, at + header, start)
        if len(found) > _MAX_ENTRIES:
            message = f"more than {_MAX_ENTRIES} entries of device code"
            raise FatbinError(message)
    return tuple(found)


def device_code(data: Buffer, sections: Iterable[tuple[str, int, int]]) -> tuple[DeviceCode, ...]:
    """Return what the sections of device code among ``sections`` hold, each kind once.

    A section is its name, offset and size (bytes). Raises CutShortError with its name.
    """
    found: list[DeviceCode] = []
    for name, start, size in sections:
        if name not in SECTIONS:
            continue
        try:
            found += read_fatbins(data, start, start + size)
        except FatbinError as error:
            message = f"{name}: {error}"
            raise CutShortError(message) from error
    return tuple(dict.fromkeys(found))


def _entries(data: Buffer, at: int, end: int) -> Iterator[DeviceCode]:
    while at + _LEAST_ENTRY <= end:
        kind, _, header, size, minor, major, number = _ENTRY.unpack_from(data, at)
        (flags,) = _FLAGS.unpack_from(data, at + _FLAGS_AT)
        if header < _LEAST_ENTRY or at + header + size > end:
            message = f"the entry of device code at {at:#x} is cut short"
            raise FatbinError(message)
        word = _KINDS.get(kind)
        if word is not None:
            yield DeviceCode(
                kind="ptx" if word == "ptx" else "sass" if word == "sass" else "lto",
                arch=Arch.of_number(number, _suffix(flags)),
                compressed=bool(flags & _COMPRESSED),
                isa=Minor(major, minor) if word == "ptx" else None,
            )
        at += header + size


def _suffix(flags: int) -> Suffix:
    if flags & _ARCH_SPECIFIC:
        return "a"
    return "f" if flags & _FAMILY_SPECIFIC else ""


#: PTX ISA -> the CUDA release that brought it (PTX ISA manual, "Release Notes").
_ISA_RELEASES = {
    (6, 0): (9, 0),
    (6, 1): (9, 1),
    (6, 2): (9, 2),
    (6, 3): (10, 0),
    (6, 4): (10, 1),
    (6, 5): (10, 2),
    **{(7, minor): (11, minor) for minor in range(9)},
    **{(8, minor): (12, minor) for minor in range(6)},
    (8, 6): (12, 7),
    (8, 7): (12, 8),
    (8, 8): (12, 9),
    **{(9, minor): (13, minor) for minor in range(10)},
}


def toolkit_of(isa: Minor) -> Minor | None:
    """Return the CUDA release that brought a PTX ISA: a driver of that release can translate it.

    None for an ISA that this table does not know.
    """
    found = _ISA_RELEASES.get((isa.major, isa.minor))
    return None if found is None else Minor(*found)
