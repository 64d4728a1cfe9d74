"""The wheel's zip: from a file to its members' bytes in one pass, every oddity noted on the way.

Each member is unpacked once; while its bytes go by they are hashed, and binaries are handed to
their readers: small ones from memory, large ones from a mapped temporary file. Names and sizes are
held against what installers accept (binary distribution format; the zip APPNOTE 6.3; uv refuses
members that only a local header names, since a streaming reader would install them).
"""

import hashlib
import mmap
import re
import stat
import struct
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from wheelfarm.errors import BadInputError
from wheelfarm.facts.buffers import Buffer
from wheelfarm.facts.inner import BAD_ZIP, HEAD, is_archive, read_inner
from wheelfarm.facts.model import InnerArchive, Member, Problem
from wheelfarm.files import MAX_MEMBERS, MAX_UNPACKED, safe_member

#: Deflate cannot pack tighter than this, so a member that claims more is lying.
_TIGHTEST = 1100
_CHUNK = 1 << 20
#: The end-of-central-directory record without its comment (bytes).
_END_SIZE = 22
_THREADS = 2
#: Binaries above this size (bytes) go to a temporary file, so that memory stays bounded.
_IN_MEMORY = 48 << 20
#: No metadata file may be larger than this (bytes).
_LARGEST_TEXT = 32 << 20
_LOCAL = struct.Struct("<4sHHHHHIIIHH")

_BINARY_NAME = re.compile(r"\.(dll|pyd|exe|so(\.\d+)*|cubin|fatbin)$", re.IGNORECASE)

#: Takes a binary's name and bytes; the bytes are gone when it returns.
Visit = Callable[[str, Buffer], None]


@dataclass(slots=True)
class Contents:
    """What one pass over the zip gave: members, the dist-info's files, archives, problems."""

    members: list[Member] = field(default_factory=list)
    texts: dict[str, bytes] = field(default_factory=dict)
    inner: list[InnerArchive] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def note(self, message: str) -> None:
        """Note one problem of the zip."""
        self.problems.append(Problem(kind="zip", message=message))


def read_archive(path: Path, visit: Visit) -> Contents:
    """Read every member of a zip once; ``visit`` sees the ELF, PE and device binaries.

    Raises BadInputError where the file does not exist. What is no zip has a problem and no members.
    """
    contents = Contents()
    try:
        archive = zipfile.ZipFile(path)
    except FileNotFoundError as error:
        message = f"{path} does not exist"
        raise BadInputError(message) from error
    except BAD_ZIP as error:
        contents.note(f"not a readable zip: {error}")
        return contents
    with archive:
        infos = list(_acceptable(archive, path, contents))
    # Unpacking and hashing leave the interpreter's lock, so two threads use two processors.
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="wheel") as pool:
        for _ in pool.map(lambda share: _read_share(path, share, contents, visit), _shares(infos)):
            pass
    order = {info.filename: index for index, info in enumerate(infos)}
    contents.members.sort(key=lambda member: order[member.name])
    contents.problems.sort(key=lambda problem: problem.message)
    return contents


def _shares(infos: list[zipfile.ZipInfo]) -> list[list[zipfile.ZipInfo]]:
    """Return the members in as many shares as there are threads, of about the same size."""
    shares: list[list[zipfile.ZipInfo]] = [[] for _ in range(_THREADS)]
    loads = [0] * _THREADS
    for info in sorted(infos, key=lambda info: -info.file_size):
        least = loads.index(min(loads))
        shares[least].append(info)
        loads[least] += info.file_size + 10_000
    return [sorted(share, key=lambda info: info.header_offset) for share in shares]


def _read_share(path: Path, infos: list[zipfile.ZipInfo], contents: Contents, visit: Visit) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            for info in infos:
                _try_member(archive, info, contents, visit)
    except BAD_ZIP as error:
        contents.note(f"not a readable zip: {error}")


def _try_member(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, contents: Contents, visit: Visit
) -> None:
    try:
        _read_member(archive, info, contents, visit)
    except BAD_ZIP as error:
        contents.note(f"{info.filename!r} could not be unpacked: {error}")


def _acceptable(
    archive: zipfile.ZipFile, path: Path, contents: Contents
) -> Iterator[zipfile.ZipInfo]:
    infos = archive.infolist()
    size = path.stat().st_size
    total = sum(info.file_size for info in infos)
    if len(infos) > MAX_MEMBERS or total > MAX_UNPACKED:
        contents.note(f"claims {len(infos)} members of {total} bytes: not unpacked")
        return
    names = Counter(info.filename for info in infos)
    for name, count in names.items():
        if count > 1:
            contents.note(f"{count} members are named {name!r}; which one wins is chance")
    _check_layout(archive, infos, size, contents)
    for info in infos:
        reason = _refusal(info)
        if reason:
            contents.note(f"{info.filename!r} {reason}")
        elif not info.is_dir():
            yield info


def _refusal(info: zipfile.ZipInfo) -> str:
    if not _stays_inside(info.orig_filename):
        return "would be written outside of the environment"
    if info.flag_bits & 1:
        return "is encrypted"
    if info.file_size > (info.compress_size + 1) * _TIGHTEST:
        return f"claims {info.file_size} bytes from {info.compress_size}: not unpacked"
    if stat.S_ISLNK(info.external_attr >> 16):
        return "is a symbolic link, which installers write as a text file"
    return ""


def _stays_inside(name: str) -> bool:
    try:
        safe_member(name.rstrip("/"))
    except (BadInputError, IndexError):
        return False
    return "\0" not in name


def _check_layout(
    archive: zipfile.ZipFile, infos: list[zipfile.ZipInfo], size: int, contents: Contents
) -> None:
    """Note bytes that no member of the central directory owns: a stream reader would see them."""
    stream = archive.fp
    if stream is None:
        return
    at = 0
    for info in sorted(infos, key=lambda info: info.header_offset):
        if info.header_offset < at:
            contents.note(f"{info.filename!r} overlaps the member before it")
        elif info.header_offset > at:
            contents.note(f"{info.header_offset - at} bytes before {info.filename!r} are no member")
        end = _end_of(stream, info)
        if end is None:
            contents.note(f"{info.filename!r} has no local header")
            return
        at = _after_descriptor(stream, info, end)
    if at > archive.start_dir or archive.start_dir > size:
        contents.note("members overlap the central directory")
    elif at < archive.start_dir:
        contents.note(f"{archive.start_dir - at} bytes before the central directory are no member")
    stream.seek(max(0, size - _END_SIZE - len(archive.comment)))
    if stream.read(4) != b"PK\x05\x06":
        contents.note("there are bytes behind the end of the zip")


def _end_of(stream: IO[bytes], info: zipfile.ZipInfo) -> int | None:
    # A directory that lies about its own place makes these offsets negative.
    stream.seek(max(0, info.header_offset))
    header = stream.read(_LOCAL.size)
    if len(header) < _LOCAL.size or header[:4] != b"PK\x03\x04":
        return None
    name, extra = _LOCAL.unpack(header)[-2:]
    end: int = info.header_offset + _LOCAL.size + name + extra + info.compress_size
    return end


def _after_descriptor(stream: IO[bytes], info: zipfile.ZipInfo, end: int) -> int:
    """Return where a member ends: behind its data descriptor, whose size has four forms."""
    if not info.flag_bits & 8:
        return end
    stream.seek(end)
    tail = stream.read(24)
    signature = 4 if tail[:4] == b"PK\x07\x08" else 0
    crc = struct.pack("<I", info.CRC)
    if tail[signature : signature + 4] != crc:
        return end
    wide = struct.pack("<QQ", info.compress_size, info.file_size)
    return end + signature + (20 if tail[signature + 4 : signature + 20] == wide else 12)


def _read_member(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, contents: Contents, visit: Visit
) -> None:
    with archive.open(info) as stream:
        head = stream.read(HEAD)
        keep = _is_metadata(info.filename)
        if keep and info.file_size > _LARGEST_TEXT:
            contents.note(f"{info.filename!r} is {info.file_size} bytes: not read")
            keep = False
        binary = _is_binary(head, info.filename) and not is_archive(head)
        if keep or (binary and info.file_size <= _IN_MEMORY):
            data = head + stream.read()
            digest = hashlib.sha256(data).hexdigest()
            if keep:
                contents.texts[info.filename] = data
            else:
                visit(info.filename, data)
        elif is_archive(head):
            digest = _archive_inside(head, stream, info.filename, contents)
        elif binary:
            digest = _through_file(head, stream, info.filename, visit)
        else:
            digest = _hashed(head, stream)
    contents.members.append(
        Member(
            name=info.filename,
            size=info.file_size,
            sha256=digest,
            executable=bool(info.external_attr >> 16 & 0o111),
        )
    )


def _is_binary(head: bytes, name: str) -> bool:
    if head[:4] == b"\x7fELF" or head[:4] == b"\x50\xed\x55\xba":
        return True
    return head[:2] == b"MZ" or _BINARY_NAME.search(name) is not None


def _is_metadata(name: str) -> bool:
    parts = name.split("/")
    return len(parts) == 2 and parts[0].endswith(".dist-info")  # noqa: PLR2004 - folder/file


def _hashed(head: bytes, stream: IO[bytes]) -> str:
    digest = hashlib.sha256(head)
    while chunk := stream.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def _through_file(head: bytes, stream: IO[bytes], name: str, visit: Visit) -> str:
    digest = hashlib.sha256(head)
    with tempfile.TemporaryFile() as file:
        file.write(head)
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            file.write(chunk)
        file.flush()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            visit(name, data)
    return digest.hexdigest()


def _archive_inside(head: bytes, stream: IO[bytes], name: str, contents: Contents) -> str:
    digest = hashlib.sha256(head)
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
        file.write(head)
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            file.write(chunk)
        contents.inner.append(read_inner(name, file))
    return digest.hexdigest()
