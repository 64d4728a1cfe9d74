"""A file's bytes as readers see them: in memory when small, mapped from a temporary file if not."""

import struct
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import mmap

Buffer: TypeAlias = "bytes | mmap.mmap"


class CutShortError(ValueError):
    """A table or string leads past the end of its file."""


def unpack(layout: struct.Struct, data: Buffer, at: int) -> tuple[int, ...]:
    """Return the numbers of a layout at an offset; CutShortError past the end."""
    if at < 0 or at + layout.size > len(data):
        message = f"a table at {at:#x} leads past the end of the file"
        raise CutShortError(message)
    return layout.unpack_from(data, at)


def text_at(data: Buffer, at: int, limit: int = 1 << 16) -> str:
    """Return the NUL-ended string at an offset; CutShortError where it does not end."""
    end = data.find(b"\0", at, min(len(data), at + limit)) if 0 <= at < len(data) else -1
    if end < 0:
        message = f"a string at {at:#x} does not end"
        raise CutShortError(message)
    return data[at:end].decode("utf-8", "replace")
