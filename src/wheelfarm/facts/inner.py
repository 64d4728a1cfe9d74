"""An archive inside a wheel: from its bytes to the names of the compiled code that it holds.

No check looks at such code, which may be unpacked and loaded at run time, so it must at least be
named. One level is read, of zips, tars and single compressed files; everything claimed is bounded.
What could not be read is said, and is never "holds none".
"""

import bz2
import gzip
import importlib
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any

from wheelfarm.facts.model import InnerArchive

#: Bytes that tell what a file is; a tar's own mark stands at 257.
HEAD = 262

#: No inner archive may have more members, nor unpack to more (bytes), to be looked into.
MOST_MEMBERS = 20_000
LARGEST_UNPACKED = 256 << 20
_CHUNK = 1 << 20
#: What a decompressor may take of memory (bytes).
_MEMORY = 128 << 20
#: As many members' names are kept.
_NAMED = 12

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_GZIP = b"\x1f\x8b\x08"
_BZIP2 = b"BZh"
_XZ = b"\xfd7zXZ\x00"
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
_FOREIGN = {
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"Rar!\x1a\x07": "RAR",
    b"MSCF\x00\x00\x00\x00": "cabinet",
    b"\x04\x22\x4d\x18": "LZ4",
}
#: What reading a damaged or hostile zip may end in.
BAD_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    OSError,
    struct.error,
    ValueError,
    RuntimeError,
)
_BROKEN = (*BAD_ZIP, tarfile.TarError, lzma.LZMAError, OverflowError)
#: How members of a zip may be packed; LZMA takes as much memory as it claims to need.
_PACKED = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2})


class _NotLookedAtError(Exception):
    """Why an archive was not read; the text is for the report."""


def is_archive(head: bytes) -> bool:
    """Return whether a file that starts so (HEAD bytes) holds other files, or one compressed."""
    return (
        head.startswith((*_ZIP, _GZIP, _XZ, _ZSTANDARD, *_FOREIGN))
        or _is_bzip2(head)
        or _is_tar(head)
    )


def is_code(head: bytes) -> bool:
    """Return whether a file that starts so is an ELF, PE or device binary."""
    return head[:4] in {b"\x7fELF", b"\x50\xed\x55\xba"} or (head[:2] == b"MZ" and len(head) > 63)  # noqa: PLR2004 - a PE header's size


def read_inner(path: str, stream: IO[bytes]) -> InnerArchive:
    """Return what an archive holds; ``stream`` can be sought, ``path`` is the member's name."""
    stream.seek(0)
    head = stream.read(HEAD)
    stream.seek(0)
    code: list[str] = []
    problem = ""
    try:
        _look(head, stream, code)
    except _NotLookedAtError as error:
        problem = str(error)
    except _BROKEN as error:
        problem = f"{type(error).__name__}: {error}"
    return InnerArchive(
        path=path, code=tuple(sorted(code)[:_NAMED]), count=len(code), problem=problem
    )


def _look(head: bytes, stream: IO[bytes], code: list[str]) -> None:
    for mark, kind in _FOREIGN.items():
        if head.startswith(mark):
            message = f"{kind} archives are not read"
            raise _NotLookedAtError(message)
    inside: list[str] = []
    if head.startswith(_ZIP):
        members = _zip_heads(stream)
    elif _is_tar(head):
        members = _tar_heads(_Bounded(stream))
    else:
        members = _compressed_heads(head, stream)
    for name, start in members:
        if is_code(start):
            # A program is run by choice, as the launchers that installers carry; nobody loads it.
            if start[:2] != b"MZ" or not name.lower().endswith(".exe"):
                code.append(name)
        elif is_archive(start):
            inside.append(name)
    if inside:
        message = f"it holds archives of its own, such as {inside[0]!r}"
        raise _NotLookedAtError(message)


def _zip_heads(stream: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(stream) as archive:
        infos = archive.infolist()
        if len(infos) > MOST_MEMBERS:
            message = f"it claims {len(infos)} members"
            raise _NotLookedAtError(message)
        for info in infos:
            if info.flag_bits & 1:
                message = f"its member {info.filename!r} is encrypted"
                raise _NotLookedAtError(message)
            if info.compress_type not in _PACKED:
                message = f"its member {info.filename!r} is packed in a way that is not read"
                raise _NotLookedAtError(message)
            if not info.is_dir():
                with archive.open(info) as member:
                    yield info.filename, member.read(HEAD)


def _tar_heads(stream: "_Bounded") -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=stream, mode="r|") as archive:  # type: ignore[call-overload] # it reads, no more
        for number, member in enumerate(archive):
            if number >= MOST_MEMBERS:
                message = f"it has more than {MOST_MEMBERS} members"
                raise _NotLookedAtError(message)
            held = archive.extractfile(member) if member.isreg() else None
            if held is not None:
                yield member.name, held.read(HEAD)


def _compressed_heads(head: bytes, stream: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield what a compressed file holds: a tar's members, or itself."""
    start: bytes = _opener(head)(stream).read(HEAD)
    if not _is_tar(start):
        yield "its one file", start
        return
    stream.seek(0)
    yield from _tar_heads(_Bounded(_opener(head)(stream)))


def _opener(head: bytes) -> Callable[[IO[bytes]], Any]:
    if head.startswith(_GZIP):
        return lambda stream: gzip.GzipFile(fileobj=stream, mode="rb")
    if head.startswith(_XZ):
        return _Xz
    if head.startswith(_ZSTANDARD):
        return _Zstandard
    return bz2.BZ2File


class _Xz:
    """An xz stream, read within a bound of memory, which ``lzma.LZMAFile`` does not have."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY)

    def read(self, size: int) -> bytes:
        """Read on; less than ``size`` only at the end."""
        found = b""
        while len(found) < size and not self._decompressor.eof:
            more = self._stream.read(_CHUNK) if self._decompressor.needs_input else b""
            if self._decompressor.needs_input and not more:
                message = "it is cut short"
                raise EOFError(message)
            found += self._decompressor.decompress(more, size - len(found))
        return found


class _Zstandard:
    """A zstandard stream, read within a bound of memory, by the package of that name."""

    def __init__(self, stream: IO[bytes]) -> None:
        try:
            self._module = importlib.import_module("zstandard")
        except ModuleNotFoundError as error:
            message = "zstandard is not installed (pip install 'wheelfarm[farm]')"
            raise _NotLookedAtError(message) from error
        self._stream = stream
        self._decompressor = self._module.ZstdDecompressor(max_window_size=_MEMORY)
        self._reader = self._decompressor.stream_reader(stream, closefd=False)

    def read(self, size: int) -> bytes:
        """Read on; less than ``size`` only at the end."""
        found: bytes = b""
        try:
            while len(found) < size and (more := self._reader.read(size - len(found))):
                found += more
            if len(found) < size:
                self._require_end()
        except self._module.ZstdError as error:
            raise ValueError(str(error)) from error
        return found

    def _require_end(self) -> None:
        """Raise EOFError where the frame was cut short: the reader calls that its end.

        All of it was read, so that it unpacks to no more than what was bounded already.
        """
        self._stream.seek(0)
        frame = self._decompressor.decompressobj()
        while not frame.eof:
            chunk = self._stream.read(_CHUNK)
            if not chunk:
                message = "it is cut short"
                raise EOFError(message)
            frame.decompress(chunk)


class _Bounded:
    """A stream that is read so far and no farther."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._left = LARGEST_UNPACKED

    def read(self, size: int = _CHUNK) -> bytes:
        """Read on; raises where more was read than an inner archive may unpack to."""
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            message = f"it unpacks to more than {LARGEST_UNPACKED >> 20} MiB"
            raise _NotLookedAtError(message)
        return data


def _is_tar(head: bytes) -> bool:
    return head[257:262] == b"ustar"


def _is_bzip2(head: bytes) -> bool:
    return head.startswith(_BZIP2) and head[3:4].isdigit() and head[4:10] == b"1AY&SY"
