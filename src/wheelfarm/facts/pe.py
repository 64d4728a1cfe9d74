"""PE (Windows): from a DLL's bytes to its facts: imports, delayed imports, exports, device code."""

import struct
from typing import TYPE_CHECKING

from wheelfarm.facts.buffers import Buffer, CutShortError
from wheelfarm.facts.fatbin import device_code
from wheelfarm.facts.model import BinaryFacts

if TYPE_CHECKING:
    import pefile
MAGIC = b"MZ"
_MACHINES = {0x8664: "x86_64", 0xAA64: "aarch64", 0x14C: "i386"}
_SYMBOL_SIZE = 18
_EXPORT, _IMPORT, _DELAY_IMPORT = 0, 1, 13


def read_pe(data: Buffer, path: str) -> BinaryFacts:
    """Return what a PE file says of itself; ``problem`` is set where it could not be read.

    ``undefined`` holds imported names as ``dll!name``, so that a symbol's library is known; ordinal
    imports are written ``dll!#ordinal``.
    """
    import pefile

    try:
        return _read(data, path)
    except (pefile.PEFormatError, ValueError, KeyError, IndexError, struct.error) as error:
        problem = str(error).strip("'\"") or type(error).__name__
    except (AttributeError, TypeError, AssertionError, OverflowError, MemoryError) as error:
        # pefile answers some broken directories with these.
        problem = f"the headers make no sense ({type(error).__name__}: {error})"
    return BinaryFacts(path=path, kind="pe", machine="", size=len(data), problem=problem)


def _read(data: Buffer, path: str) -> BinaryFacts:
    import pefile

    pe = pefile.PE(data=data, fast_load=True)
    try:
        _check_sections(pe, len(data))
        pe.parse_data_directories([_EXPORT, _IMPORT, _DELAY_IMPORT])
        imports = [entry for entry in getattr(pe, "DIRECTORY_ENTRY_IMPORT", []) if entry.dll]
        delayed = [entry for entry in getattr(pe, "DIRECTORY_ENTRY_DELAY_IMPORT", []) if entry.dll]
        number = pe.FILE_HEADER.Machine
        return BinaryFacts(
            path=path,
            kind="pe",
            machine=_MACHINES.get(number, f"machine {number:#x}"),
            size=len(data),
            needed=tuple(dict.fromkeys(_text(entry.dll) for entry in imports)),
            delayed=tuple(dict.fromkeys(_text(entry.dll) for entry in delayed)),
            undefined=tuple(
                f"{_text(entry.dll)}!{_text(symbol.name) or f'#{symbol.ordinal}'}"
                for entry in (*imports, *delayed)
                for symbol in entry.imports
            ),
            defined=_exports(pe),
            device_code=device_code(
                data,
                (
                    (_text(each.Name.rstrip(b"\0")), each.PointerToRawData, each.SizeOfRawData)
                    for each in pe.sections
                ),
            ),
        )
    finally:
        pe.close()


def _check_sections(pe: "pefile.PE", size: int) -> None:
    claimed = pe.FILE_HEADER.NumberOfSections
    if len(pe.sections) != claimed:
        message = f"cut short: it claims {claimed} sections, {len(pe.sections)} are there"
        raise CutShortError(message)
    symbols = pe.FILE_HEADER.PointerToSymbolTable
    end = symbols + pe.FILE_HEADER.NumberOfSymbols * _SYMBOL_SIZE
    if symbols and end > size:
        message = f"cut short: its symbols end at {end}, the file at {size} bytes"
        raise CutShortError(message)
    for section in pe.sections:
        end = section.PointerToRawData + section.SizeOfRawData
        if section.SizeOfRawData and end > size:
            name = _text(section.Name.rstrip(b"\0"))
            message = f"cut short: section {name} ends at {end}, the file at {size} bytes"
            raise CutShortError(message)


def _exports(pe: "pefile.PE") -> tuple[str, ...]:
    directory = getattr(pe, "DIRECTORY_ENTRY_EXPORT", None)
    if directory is None:
        return ()
    return tuple(_text(symbol.name) for symbol in directory.symbols if symbol.name)


def _text(value: bytes | None) -> str:
    return "" if value is None else value.decode("utf-8", "replace")
