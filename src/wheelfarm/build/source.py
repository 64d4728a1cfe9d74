"""From a locked source to a verified, unpacked tree. Nothing unverified is unpacked."""

import logging
import shutil
from dataclasses import dataclass
from pathlib import Path

from wheelfarm import files
from wheelfarm.errors import BadInputError
from wheelfarm.http import Client, HashMismatchError
from wheelfarm.run import run

logger = logging.getLogger(__name__)

#: Never part of a source tree that is built: version control and earlier outputs.
_IGNORED = shutil.ignore_patterns(
    ".git", ".hg", "__pycache__", ".wheelfarm", ".venv", "*.egg-info", "build", "dist"
)


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
    if not archive.exists() or files.sha256(archive) != source.sha256:
        if source.url.startswith(("http://", "https://")):
            Client().download(source.url, archive, sha256=source.sha256)
        else:
            files.copy(Path(source.url.removeprefix("file://")), archive)
    actual = files.sha256(archive)
    if actual != source.sha256:
        archive.unlink()
        raise HashMismatchError(source.file_name, source.sha256, actual)
    files.unpack(archive, target)
    return single_folder(target)


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
    tree = target / "tree"
    shutil.copytree(source.folder, tree, ignore=_IGNORED, symlinks=True)
    return tree


def folder_fingerprint(folder: Path) -> str:
    """Return a hash of a folder's files (names and bytes), the key of a FolderSource."""
    import hashlib  # noqa: PLC0415 - only authors' builds come here

    digest = hashlib.sha256()
    ignored = {".git", ".hg", "__pycache__", ".wheelfarm", ".venv", "build", "dist"}
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if ignored.intersection(relative.parts) or not path.is_file():
            continue
        digest.update(f"{relative}\0{files.sha256(path)}\0".encode())
    return digest.hexdigest()
