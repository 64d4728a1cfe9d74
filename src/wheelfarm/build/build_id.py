"""An ELF file's build ID, made from what the file holds: bytes come in, bytes go out.

The linker hashes its inputs with their symbols, and nvcc names one of them by a temporary file; so
two builds of one source differ in the build ID alone once they are stripped (ld(1), --build-id).
"""

import hashlib
import struct

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_NOTE = struct.Struct("<III")
_PT_NOTE = 4
_NT_GNU_BUILD_ID = 3
#: An ELF file of 64 bits, little endian.
_MAGIC = b"\x7fELF\x02\x01"


def with_content_build_id(data: bytes) -> bytes:
    """Return an ELF file whose build ID is a hash of all its other bytes; others as they are."""
    places = list(_places(data))
    if not places:
        return data
    changed = bytearray(data)
    for start, size in places:
        changed[start : start + size] = bytes(size)
    digest = hashlib.sha256(changed).digest()
    for start, size in places:
        changed[start : start + size] = (digest * (size // len(digest) + 1))[:size]
    return bytes(changed)


def _places(data: bytes) -> list[tuple[int, int]]:
    """Return where the build IDs stand: (offset, size). A file that lies about itself has none."""
    if not data.startswith(_MAGIC) or len(data) < _HEADER.size:
        return []
    header = _HEADER.unpack_from(data)
    table, entry, count = header[5], header[9], header[10]
    if entry != _SEGMENT.size or table + entry * count > len(data):
        return []
    found: dict[int, int] = {}
    for index in range(count):
        kind, _, offset, _, _, size, _, _ = _SEGMENT.unpack_from(data, table + index * entry)
        if kind == _PT_NOTE and offset + size <= len(data):
            found.update(_build_ids(data, offset, offset + size))
    return sorted(found.items())


def _build_ids(data: bytes, start: int, end: int) -> list[tuple[int, int]]:
    found = []
    while start + _NOTE.size <= end:
        name_size, size, kind = _NOTE.unpack_from(data, start)
        name = start + _NOTE.size
        content = name + _padded(name_size)
        if content + size > end:
            break
        if kind == _NT_GNU_BUILD_ID and data[name : name + name_size] == b"GNU\0":
            found.append((content, size))
        start = content + _padded(size)
    return found


def _padded(size: int) -> int:
    return (size + 3) & ~3
