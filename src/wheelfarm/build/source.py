"""From a locked source to a verified, unpacked tree. Nothing unverified is unpacked."""

import hashlib
import logging
import shutil
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from wheelfarm import files
from wheelfarm.errors import BadInputError
from wheelfarm.http import Client, HashMismatchError
from wheelfarm.run import run

logger = logging.getLogger(__name__)

#: Never part of a project's source, wherever it lies.
_NO_SOURCE = frozenset({".git", ".hg", "__pycache__"})
#: What tools leave at a project's top; a folder of such a name deeper down is the project's own.
_OUTPUTS = frozenset({".wheelfarm", ".venv", "build", "dist", "wheelhouse"})


def is_source(relative: Path) -> bool:
    """Return whether a path below a project's top is part of its source."""
    top = relative.parts[0]
    if _NO_SOURCE.intersection(relative.parts) or top in _OUTPUTS:
        return False
    return not top.endswith(".egg-info")


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchiveSource:
    """An archive at an address (an sdist of an index, or a file), with its SHA-256."""

    url: str
    file_name: str
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class GitSource:
    """A commit of a repository, with its submodules where ``submodules`` is set."""

    url: str
    commit: str
    submodules: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderSource:
    """A folder on this machine: an author's own project."""

    folder: Path


LockedSource = ArchiveSource | GitSource | FolderSource


def fetch_source(source: LockedSource, target: Path, *, downloads: Path, log: Path) -> Path:
    """Put the source's tree into ``target`` and return its top folder.

    Raises HashMismatchError or BadInputError where the bytes are not the locked ones, so that a
    moved tag or a replaced file never builds.
    """
    match source:
        case ArchiveSource():
            return _fetch_archive(source, target, downloads)
        case GitSource():
            return _fetch_commit(source, target, log)
        case FolderSource():
            return _copy_folder(source, target)


def _fetch_archive(source: ArchiveSource, target: Path, downloads: Path) -> Path:
    archive = downloads / source.sha256[:2] / source.sha256 / Path(source.file_name).name
    if not source.url.startswith(("http://", "https://")):
        # A file of this machine is always looked at: the right bytes may lie in the cache, but the
        # one who changed the file expects the change to be built or refused.
        local = _local_path(source.url)
        _require_hash(local, source)
        files.copy(local, archive)
    elif not archive.exists() or files.sha256(archive) != source.sha256:
        Client().download(source.url, archive, sha256=source.sha256)
    files.unpack(archive, target)
    return single_folder(target)


def _local_path(url: str) -> Path:
    return Path(unquote(urlsplit(url).path)) if url.startswith("file://") else Path(url)


def _require_hash(archive: Path, source: ArchiveSource) -> None:
    try:
        actual = files.sha256(archive)
    except OSError as error:
        message = f"{archive} could not be read: {error.strerror}"
        raise BadInputError(message, hint="correct the recipe's path") from error
    if actual != source.sha256:
        raise HashMismatchError(source.file_name, source.sha256, actual)


def single_folder(target: Path) -> Path:
    """Return the one folder an archive unpacked to, or ``target`` where it has no single top."""
    entries = [path for path in target.iterdir() if path.name != "pax_global_header"]
    if len(entries) == 1 and entries[0].is_dir():
        return entries[0]
    return target


def _fetch_commit(source: GitSource, target: Path, log: Path) -> Path:
    # Fetching the commit itself, not a branch, is what makes a moved tag harmless.
    tree = target / "tree"
    tree.mkdir(parents=True)
    git = ["git", "-C", str(tree), "-c", "protocol.ext.allow=never", "-c", "core.hooksPath="]
    run([*git, "init", "--quiet"], log=log)
    run([*git, "fetch", "--quiet", "--depth", "1", "--", source.url, source.commit], log=log)
    run([*git, "checkout", "--quiet", "--detach", "FETCH_HEAD"], log=log)
    found = run([*git, "rev-parse", "HEAD"]).stdout.strip()
    if found != source.commit:
        message = f"{source.url} gave commit {found}, the lock says {source.commit}"
        raise BadInputError(message, hint="run `wheelfarm lock` and review the difference")
    if source.submodules:
        run(
            [*git, "submodule", "update", "--quiet", "--init", "--recursive", "--depth", "1"],
            log=log,
        )
    return tree


def _copy_folder(source: FolderSource, target: Path) -> Path:
    if not source.folder.is_dir():
        message = f"{source.folder} is no folder"
        raise BadInputError(message)

    def left_out(folder: str, names: list[str]) -> set[str]:
        below = Path(folder).relative_to(source.folder)
        return {name for name in names if not is_source(below / name)}

    tree = target / "tree"
    shutil.copytree(source.folder, tree, ignore=left_out, symlinks=True)
    return tree


def folder_fingerprint(folder: Path) -> str:
    """Return a hash of the names and bytes of a project's source, the key of a FolderSource."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if is_source(relative) and path.is_file():
            digest.update(f"{relative}\0{files.sha256(path)}\0".encode())
    return digest.hexdigest()
