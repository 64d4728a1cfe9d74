"""The one door to files we write: whole or not at all, with locks, hashes and safe unpacking."""

import contextlib
import errno
import fnmatch
import glob
import hashlib
import os
import shutil
import stat
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from wheelfarm import locks
from wheelfarm.errors import BadInputError, CouldNotLookError

_CHUNK = 1 << 20
_REMOVAL_ROUNDS = 5
#: How the name of what is not whole yet ends, behind a dot, its later name and eight letters.
_UNFINISHED = ".part"
#: Where no lock tells the living from the dead: untouched for so long (seconds) is dead.
_FORGOTTEN = 24 * 3600

#: No archive that we unpack may claim more than this (bytes); a CUDA source tree is far smaller.
MAX_UNPACKED = 8 << 30
#: Nor hold more members than this.
MAX_MEMBERS = 200_000


def broken_archive() -> tuple[type[Exception], ...]:
    """Return what the readers of zips and tars raise for damaged or encrypted ones.

    OSError is not among them: without a number it is theirs too (``is_of_reader``).
    """
    # Most starts unpack nothing.
    import lzma
    import struct
    import zlib

    errors = (tarfile.TarError, zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error)
    return (*errors, lzma.LZMAError, struct.error, EOFError, RuntimeError, ValueError)


def is_of_reader(error: OSError) -> bool:
    """Return whether an OSError is gzip's or bzip2's word for damage, not the system's."""
    return error.errno is None


class UnsafeArchiveError(BadInputError):
    """An archive has a member that would leave its folder, or claims an absurd size."""


class DiskFullError(CouldNotLookError):
    """There is no room for a file; what stood there before is untouched."""


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; on success it becomes ``path`` in one step.

    The bytes are on disk (fsync) before the name changes. On any exception the temporary file is
    removed and whatever stood at ``path`` stays; what a killed process left, ``dead`` finds. The
    temporary file is to be written, not to be replaced by another. Raises DiskFullError where there
    is no room.
    """
    with disk_full_named(path), _unfinished(path, tempfile.mkstemp) as temporary:
        yield temporary
        _sync(temporary)
        temporary.chmod(0o644)
        temporary.replace(path)
        _sync(path.parent)


@contextlib.contextmanager
def _unfinished(path: Path, make: Callable[..., tuple[int, str] | str]) -> Iterator[Path]:
    """Yield a new file or folder beside ``path``, which is gone after a failure.

    It is locked until the end, so that it can be told from what a killed process left.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary, handle = _begun(path, make)
    try:
        yield temporary
    except BaseException:
        remove(temporary)
        raise
    finally:
        if handle is not None:
            os.close(handle)


def _begun(path: Path, make: Callable[..., tuple[int, str] | str]) -> tuple[Path, int | None]:
    """Return a new unfinished file or folder, and what holds its lock.

    Windows has no lock on a folder, and no new name for an open file: there only time tells.
    """
    while True:
        made = make(prefix=f".{path.name}.", suffix=_UNFINISHED, dir=path.parent)
        handle, name = made if isinstance(made, tuple) else (None, made)
        if sys.platform == "win32":
            if handle is not None:
                os.close(handle)
            return Path(name), None
        if handle is None:
            handle = os.open(name, os.O_RDONLY)
        # A file system without locks has none that somebody else could get either.
        with contextlib.suppress(OSError):
            locks.lock(handle)
        if Path(name).exists():
            return Path(name), handle
        # Somebody looked between our two steps, and took it for a dead process's.
        os.close(handle)


def is_unfinished(path: Path) -> bool:
    """Return whether a file's or folder's name is that of something that is not whole yet."""
    return fnmatch.fnmatchcase(path.name, f".*.????????{_UNFINISHED}")


def remove_dead(path: Path) -> None:
    """Remove what killed processes left of a file or folder that they were to put at ``path``."""
    for left in dead(path.parent, glob.escape(path.name)):
        remove(left)


def dead(folder: Path, name: str = "*", *, deep: bool = False) -> Iterator[Path]:
    """Yield what killed processes left half-written in ``folder``, each while it is ours.

    ``name`` (a pattern) is what they were to become; with ``deep`` all folders below are looked at.
    What a living process writes is locked, and stays.
    """
    pattern = f".{name}.????????{_UNFINISHED}"
    for path in sorted(folder.rglob(pattern) if deep else folder.glob(pattern)):
        with claimed(path) as free:
            if free:
                yield path


@contextlib.contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Yield whether nobody writes an unfinished file or folder; then it is ours in the block."""
    if sys.platform == "win32":
        yield time.time() - path.lstat().st_mtime > _FORGOTTEN
        return
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        yield False
        return
    try:
        yield locks.try_lock(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def disk_full_named(path: Path) -> Iterator[None]:
    """Turn "no space left" inside the block into DiskFullError about ``path``."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            message = f"no room left to write {path}"
            raise DiskFullError(message, hint="free some disk space and run again") from error
        raise


def require_folder(path: Path, what: str) -> None:
    """Raise where ``path`` can be no folder to write into, before the work whose result goes there.

    ``what`` names that for the message. BadInputError where a file stands in the way,
    CouldNotLookError where the system lets nobody write; nothing is made.
    """
    there = next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())
    if not there.is_dir():
        message = f"{there} is a file where {what} needs a folder"
        raise BadInputError(message, hint="name another folder")
    if not os.access(there, os.W_OK | os.X_OK):
        message = f"{there} cannot be written, and {what} would go there"
        raise CouldNotLookError(message, hint="change its rights, or name another folder")


def write_bytes(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path``, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 ``text`` to ``path``, whole or not at all."""
    write_bytes(path, text.encode())


def rewrite_text(path: Path, text: str) -> None:
    """Write UTF-8 ``text`` in the place of somebody's own file, whole or not at all.

    A symbolic link stays one, and a file that is there keeps its mode. Line ends are written as
    they stand in ``text``.
    """
    place = path.resolve()
    mode = stat.S_IMODE(place.stat().st_mode) if place.is_file() else None
    write_bytes(place, text.encode())
    if mode is not None:
        place.chmod(mode)


def copy(source: Path, target: Path) -> None:
    """Copy a file's bytes to ``target``, whole or not at all."""
    with replacing(target) as temporary:
        shutil.copyfile(source, temporary)


def copy_new(source: Path, target: Path) -> bool:
    """Copy a file's bytes to ``target`` where that name is free, whole or not at all.

    Returns whether it was.
    """
    with disk_full_named(target), _unfinished(target, tempfile.mkstemp) as temporary:
        shutil.copyfile(source, temporary)
        _sync(temporary)
        temporary.chmod(0o644)
        try:
            # A hard link is the one way to a whole file that fails where the name is taken.
            os.link(temporary, target)
        except FileExistsError:
            return False
        finally:
            temporary.unlink()
        _sync(target.parent)
    return True


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on ``path`` (made when absent); a crash releases it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        locks.lock(stream.fileno())
        try:
            yield
        finally:
            locks.unlock(stream.fileno())


@contextlib.contextmanager
def try_locked(path: Path) -> Iterator[bool]:
    """Yield whether the lock on ``path`` could be had at once; where it could, it is held."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        if not locks.try_lock(stream.fileno()):
            yield False
            return
        try:
            yield True
        finally:
            locks.unlock(stream.fileno())


@contextlib.contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder beside ``path``; on success it takes the place of ``path``.

    What killed processes left of the same folder is removed before.
    """
    remove_dead(path)
    with _unfinished(path, tempfile.mkdtemp) as temporary:
        yield temporary
        temporary.chmod(0o755)
        remove(path)
        temporary.rename(path)


def remove(path: Path) -> None:
    """Remove a file or a whole folder; nothing there is fine.

    A folder into which a dying program still writes is tried again; OSError after some rounds.
    """
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    for _ in range(_REMOVAL_ROUNDS - 1):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
    shutil.rmtree(path)


def free_bytes(path: Path) -> int:
    """Return the free bytes of the disk that holds ``path`` (or its nearest existing parent)."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free


def safe_member(name: str) -> PurePosixPath:
    """Return an archive member's name as a relative path.

    Raises UnsafeArchiveError for absolute names, drive letters, backslashes and ``..``.
    """
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts or "\\" in name or ":" in path.parts[0]:
        message = f"the archive has a member that would leave its folder: {name!r}"
        raise UnsafeArchiveError(message)
    return path


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar (any compression) or zip archive into ``folder``; hostile archives are refused.

    Raises UnsafeArchiveError for members, links or sizes that are not acceptable, BadInputError
    where the file is no archive or is cut short.
    """
    try:
        if zipfile.is_zipfile(archive):
            _unpack_zip(archive, folder)
        else:
            _unpack_tar(archive, folder)
    except OSError as error:
        if not is_of_reader(error):
            raise
        message = f"{archive.name} is no readable archive: {error}"
        raise BadInputError(message) from error
    except broken_archive() as error:
        message = f"{archive.name} is no readable archive: {error}"
        raise BadInputError(message) from error


def _check_size(archive: Path, members: int, size: int) -> None:
    if members > MAX_MEMBERS or size > MAX_UNPACKED:
        message = f"{archive.name} claims {members} members of {size} bytes"
        raise UnsafeArchiveError(message, cause="it is larger than any source tree")


def _unpack_zip(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as stream:
        infos = stream.infolist()
        _check_size(archive, len(infos), sum(info.file_size for info in infos))
        for info in infos:
            target = folder / safe_member(info.filename.rstrip("/"))
            mode = info.external_attr >> 16
            if stat.S_ISLNK(mode):
                message = f"the archive has a symbolic link: {info.filename!r}"
                raise UnsafeArchiveError(message)
            if info.is_dir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with stream.open(info) as source, target.open("wb") as out:
                shutil.copyfileobj(source, out, _CHUNK)
            if mode & 0o111:
                target.chmod(0o755)


def _unpack_tar(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as stream:
        members = stream.getmembers()
        _check_size(archive, len(members), sum(member.size for member in members))
        for member in members:
            _check_tar_member(member)
            stream.extract(member, folder, set_attrs=False)
            if member.isfile():
                (folder / member.name).chmod(0o755 if member.mode & 0o111 else 0o644)


def _check_tar_member(member: tarfile.TarInfo) -> None:
    safe_member(member.name)
    if member.isdir() or member.isfile():
        return
    if member.issym() or member.islnk():
        base = PurePosixPath(member.name).parent if member.issym() else PurePosixPath()
        target = os.path.normpath(base / member.linkname)
        if not member.linkname.startswith("/") and not target.startswith(".."):
            return
    message = f"the archive has a member that would leave its folder: {member.name!r}"
    raise UnsafeArchiveError(message)


def _sync(path: Path) -> None:
    if sys.platform == "win32" and path.is_dir():
        return  # Windows opens no folder, and orders a rename by itself.
    # Windows flushes through a handle that may write alone.
    handle = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
