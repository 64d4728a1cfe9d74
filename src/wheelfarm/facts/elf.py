"""ELF: from a file's bytes to its facts, as the loader sees them (the dynamic segment).

The header and the sections are read by pyelftools; program headers, tags, the dynamic symbol table
and the version needs, which may have hundreds of thousands of rows, by struct at the places that
the loader would use.
So stripped files are read too. Nothing is taken on trust: every offset is held against the file's
size, and a file that is cut short has a ``problem`` and no facts.
Sources: the System V gABI, the GNU symbol versioning and hash sections (LSB 5.0).
"""

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, cast

from wheelfarm.facts.buffers import Buffer, CutShortError, text_at, unpack
from wheelfarm.facts.fatbin import device_code
from wheelfarm.facts.model import BinaryFacts, DeviceCode, VersionNeed
from wheelfarm.model.arch import Arch

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

MAGIC = b"\x7fELF"
_HEADER_SIZE = 64
_MACHINES = {62: "x86_64", 183: "aarch64", 190: "cuda", 3: "i386", 40: "arm", 243: "riscv64"}
_CUDA = 190
_SYMBOL = struct.Struct("<IBBHQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_PT_LOAD, _PT_DYNAMIC = 1, 2
_TAG = struct.Struct("<QQ")
_NEED = struct.Struct("<HHIII")
_NEED_PART = struct.Struct("<IHHII")
_WORD = struct.Struct("<I")
_HALF = struct.Struct("<H")
_TABLE = struct.Struct("<Q")
_SIZES = struct.Struct("<HH")
_GNU_HASH = struct.Struct("<IIII")
_HIDDEN = 0x7FFF
_MAX_ROWS = 5_000_000
#: What a library with packed relative relocations needs of glibc; musl has read them since 1.2.4.
_PACKED = "GLIBC_ABI_DT_RELR"
_MUSL = "libc.musl"


@dataclass(frozen=True, slots=True)
class _Segment:
    address: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    empty: bool
    """Whether it takes no room in the file (SHT_NOBITS)."""
    offset: int
    size: int


def read_elf(data: Buffer, path: str) -> BinaryFacts:
    """Return what an ELF file says of itself; ``problem`` is set where it could not be read."""
    from elftools.common.exceptions import ELFError

    try:
        return _read(data, path)
    except (ELFError, ValueError, KeyError, IndexError, OverflowError, struct.error) as error:
        problem = str(error) or type(error).__name__
    except (AttributeError, TypeError, AssertionError, MemoryError, RecursionError) as error:
        # pyelftools answers some broken headers with these.
        problem = f"the headers make no sense ({type(error).__name__}: {error})"
    return BinaryFacts(path=path, kind="elf", machine="", size=len(data), problem=problem)


def _read(data: Buffer, path: str) -> BinaryFacts:
    from elftools.elf.elffile import ELFFile

    _check_identity(data)
    number = _HALF.unpack_from(data, 18)[0]
    machine = _MACHINES.get(number, f"machine {number}")
    if number == _CUDA:
        code = (cubin_code(data),)
        return BinaryFacts(
            path=path, kind="device", machine=machine, size=len(data), device_code=code
        )
    # A mapped file is a readable, seekable stream, though typeshed does not call it one.
    stream = io.BytesIO(data) if isinstance(data, bytes) else cast("IO[bytes]", data)
    stream.seek(0)
    elf = ELFFile(stream)
    sections = tuple(_sections(elf, len(data)))
    dynamic = _Dynamic.read(data, sections)
    undefined, defined = dynamic.symbols()
    return BinaryFacts(
        path=path,
        kind="elf",
        machine=machine,
        size=len(data),
        soname=dynamic.one("DT_SONAME"),
        needed=dynamic.many("DT_NEEDED"),
        delayed=(*dynamic.many("DT_AUXILIARY"), *dynamic.many("DT_FILTER")),
        rpath=_paths(dynamic.many("DT_RPATH")),
        runpath=_paths(dynamic.many("DT_RUNPATH")),
        version_needs=dynamic.needs(undefined),
        undefined=tuple(dict.fromkeys(name for name, _ in undefined)),
        defined=defined,
        device_code=device_code(
            data, ((each.name, each.offset, each.size) for each in sections if not each.empty)
        ),
    )


def _check_identity(data: Buffer) -> None:
    if len(data) < _HEADER_SIZE or data[:4] != MAGIC:
        message = f"not an ELF file: {len(data)} bytes, no complete header"
        raise CutShortError(message)
    if data[4] != 2 or data[5] != 1:  # noqa: PLR2004 - ELFCLASS64, ELFDATA2LSB
        message = "not a 64-bit little-endian ELF file"
        raise ValueError(message)
    end = _TABLE.unpack_from(data, 40)[0]
    size, count = _SIZES.unpack_from(data, 58)
    if end + size * count > len(data):
        message = f"cut short: its section table ends at {end + size * count}, not in the file"
        raise CutShortError(message)


def _sections(elf: "ELFFile", size: int) -> Iterator[_Section]:
    for section in elf.iter_sections():
        found = _Section(
            section.name,
            section["sh_type"] == "SHT_NOBITS",
            section["sh_offset"],
            section["sh_size"],
        )
        end = found.offset + found.size
        if not found.empty and end > size:
            message = f"cut short: section {found.name} ends at {end}, the file at {size} bytes"
            raise CutShortError(message)
        yield found


def _segments(data: Buffer, kind: int) -> Iterator[_Segment]:
    """Yield the program headers of a kind; pyelftools would walk the sections for each of them."""
    start = _TABLE.unpack_from(data, 32)[0]
    step, count = _SIZES.unpack_from(data, 54)
    if start + step * count > len(data) or (count and step < _SEGMENT.size):
        message = f"cut short: its program headers end at {start + step * count}"
        raise CutShortError(message)
    for index in range(count):
        found, _, offset, address, _, length, _, _ = _SEGMENT.unpack_from(
            data, start + index * step
        )
        if found != kind:
            continue
        if offset + length > len(data):
            message = f"cut short: a segment ends at {offset + length}, the file at {len(data)}"
            raise CutShortError(message)
        yield _Segment(address, offset, length)


def _paths(values: tuple[str, ...]) -> tuple[str, ...]:
    # An empty value is none at all; an empty part among others is the working directory.
    return tuple(part or "." for value in values if value for part in value.split(":"))


@dataclass(frozen=True, slots=True)
class _Dynamic:
    """The dynamic segment: its tags, and the tables that they lead to."""

    data: Buffer
    segments: tuple[_Segment, ...]
    tags: dict[str, tuple[int, ...]]
    section_rows: int
    """Rows of the section ``.dynsym``, 0 where there is none: a count for files without hashes."""

    @classmethod
    def read(cls, data: Buffer, sections: tuple[_Section, ...]) -> "_Dynamic":
        tags: dict[str, list[int]] = {}
        segments = tuple(_segments(data, _PT_LOAD))
        for segment in _segments(data, _PT_DYNAMIC):
            whole = segment.size - segment.size % _TAG.size
            for tag, value in _TAG.iter_unpack(data[segment.offset : segment.offset + whole]):
                if tag == 0:
                    break
                tags.setdefault(_TAGS.get(tag, str(tag)), []).append(value)
        sizes = (section.size for section in sections if section.name == ".dynsym")
        rows = next(sizes, 0) // _SYMBOL.size
        return cls(data, segments, {key: tuple(value) for key, value in tags.items()}, rows)

    def offset(self, tag: str) -> int | None:
        """Return where a table lies in the file, None where there is none."""
        if tag not in self.tags:
            return None
        address = self.tags[tag][0]
        for segment in self.segments:
            if segment.address <= address < segment.address + segment.size:
                return address - segment.address + segment.offset
        message = f"{tag} leads outside the file"
        raise CutShortError(message)

    def text(self, at: int) -> str:
        strings = self.offset("DT_STRTAB")
        if strings is None:
            message = "there is no dynamic string table"
            raise CutShortError(message)
        return text_at(self.data, strings + at)

    def many(self, tag: str) -> tuple[str, ...]:
        return tuple(self.text(at) for at in self.tags.get(tag, ()))

    def one(self, tag: str) -> str:
        values = self.many(tag)
        return values[0] if values else ""

    def symbol_count(self) -> int:
        """Return the rows of the dynamic symbol table, by its hash tables or its section."""
        count = self.section_rows
        classic = self.offset("DT_HASH")
        if classic is not None:
            count = max(count, unpack(_WORD, self.data, classic + 4)[0])
        modern = self.offset("DT_GNU_HASH")
        if modern is not None:
            count = max(count, self._gnu_count(modern))
        return count

    def _gnu_count(self, at: int) -> int:
        buckets, first, bloom, _ = unpack(_GNU_HASH, self.data, at)
        start = at + _GNU_HASH.size + bloom * 8
        chains = start + buckets * 4
        if chains > len(self.data):
            message = "the hash table of symbols leads past the end of the file"
            raise CutShortError(message)
        last = max((value for (value,) in _WORD.iter_unpack(self.data[start:chains])), default=0)
        if last < first:
            return first
        while not unpack(_WORD, self.data, chains + (last - first) * 4)[0] & 1:
            last += 1
        return last + 1

    def symbols(self) -> tuple[list[tuple[str, int]], tuple[str, ...]]:
        """Return undefined symbols with their version's number, and defined symbols."""
        table = self.offset("DT_SYMTAB")
        if table is None:
            return [], ()
        count = self.symbol_count()
        end = table + count * _SYMBOL.size
        if count > _MAX_ROWS or end > len(self.data):
            message = f"the symbol table claims {count} rows, past the end of the file"
            raise CutShortError(message)
        strings = self.offset("DT_STRTAB") or 0
        size = self.tags.get("DT_STRSZ", (0,))[0]
        names = self.data[strings : strings + size]
        versions = self.offset("DT_VERSYM")
        undefined: list[tuple[str, int]] = []
        defined: list[str] = []
        rows = _SYMBOL.iter_unpack(self.data[table:end])
        for index, (name, info, _, section, _, _) in enumerate(rows):
            if not name or info >> 4 == 0:
                continue
            text = text_at(names, name)
            if section:
                defined.append(text)
                continue
            version = 0
            if versions is not None:
                version = unpack(_HALF, self.data, versions + 2 * index)[0] & _HIDDEN
            undefined.append((text, version))
        return undefined, tuple(defined)

    def needs(self, undefined: list[tuple[str, int]]) -> tuple[VersionNeed, ...]:
        """Return the version needs, each with one symbol that asks for it."""
        found = tuple(self._written_needs(undefined))
        packed = "DT_RELR" in self.tags and _PACKED not in {need.version for need in found}
        if not packed or any(name.startswith(_MUSL) for name in self.many("DT_NEEDED")):
            return found
        # Only some linkers write it, and a glibc without packed relocations passes over them.
        return (*found, VersionNeed(library="libc.so.6", version=_PACKED, symbol="DT_RELR"))

    def _written_needs(self, undefined: list[tuple[str, int]]) -> list[VersionNeed]:
        at = self.offset("DT_VERNEED")
        if at is None:
            return []
        first: dict[int, str] = {}
        for name, version in undefined:
            first.setdefault(version, name)
        found: list[VersionNeed] = []
        for _ in range(self.tags.get("DT_VERNEEDNUM", (0,))[0]):
            _, parts, file, aux, following = unpack(_NEED, self.data, at)
            library = self.text(file)
            part = at + aux
            for _ in range(parts):
                _, _, index, version, step = unpack(_NEED_PART, self.data, part)
                symbol = first.get(index & _HIDDEN, "")
                need = VersionNeed(library=library, version=self.text(version), symbol=symbol)
                found.append(need)
                if not step:
                    break
                part += step
            if not following or len(found) > _MAX_ROWS:
                break
            at += following
        return found


_TAGS = {
    1: "DT_NEEDED",
    4: "DT_HASH",
    5: "DT_STRTAB",
    6: "DT_SYMTAB",
    10: "DT_STRSZ",
    14: "DT_SONAME",
    15: "DT_RPATH",
    29: "DT_RUNPATH",
    36: "DT_RELR",
    0x6FFFFEF5: "DT_GNU_HASH",
    0x6FFFFFF0: "DT_VERSYM",
    0x6FFFFFFE: "DT_VERNEED",
    0x6FFFFFFF: "DT_VERNEEDNUM",
    0x7FFFFFFD: "DT_AUXILIARY",
    0x7FFFFFFF: "DT_FILTER",
}


def cubin_code(data: Buffer) -> DeviceCode:
    """Return the target of a loose cubin (an ELF file of machine 190).

    The number stands in the header's flags: in the second byte since ABI 8 (CUDA 13), in the lowest
    before. The suffix is read from the assembler's note, which repeats its command line.
    """
    flags = _WORD.unpack_from(data, 48)[0]
    number = (flags >> 8) & 0xFF if data[8] >= _FLAGS_IN_SECOND_BYTE else flags & 0xFF
    word = f"-arch sm_{number}".encode()
    at = data.find(word)
    letter = data[at + len(word) : at + len(word) + 1] if at >= 0 else b""
    return DeviceCode(
        kind="sass",
        arch=Arch.of_number(number, "a" if letter == b"a" else "f" if letter == b"f" else ""),
        compressed=False,
    )


_FLAGS_IN_SECOND_BYTE = 8
