"""Why a library does not load: what it needs, where it looks, what is no longer there."""

import logging
from dataclasses import dataclass
from pathlib import Path

from wheelfarm.errors import BadInputError, BuildError

logger = logging.getLogger(__name__)

_HINT = "build it again; load() of wheelfarm.toolkit does so where something moved"


class LibraryLoadError(BuildError):
    """A built library does not load; the text names what is missing and what moved."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Needs:
    """A library's needed names and the absolute folders of its RPATH or RUNPATH, in order."""

    needed: tuple[str, ...]
    folders: tuple[Path, ...]


def read_needs(library: Path) -> Needs:
    """Read an ELF file's dynamic section; BadInputError where it is none or is cut short."""
    from wheelfarm.facts.elf import read_elf

    try:
        facts = read_elf(library.read_bytes(), library.name)
    except OSError as error:
        message = f"{library} cannot be read: {error.strerror}"
        raise BadInputError(message) from error
    if facts.problem:
        message = f"{library} is no whole shared library: {facts.problem}"
        raise BadInputError(message)
    # A RUNPATH makes the loader ignore an RPATH (ld.so(8)).
    chosen = facts.runpath or facts.rpath
    origin = str(library.resolve().parent)
    folders = [entry.replace("$ORIGIN", origin).replace("${ORIGIN}", origin) for entry in chosen]
    return Needs(needed=facts.needed, folders=tuple(Path(entry) for entry in folders if entry))


def load_failure(library: Path, error: Exception) -> LibraryLoadError:
    """Return an error that says why ``library`` did not load, with the loader's words below."""
    if not library.is_file():
        return LibraryLoadError(f"{library} is no longer there", cause=str(error), hint=_HINT)
    try:
        needs = read_needs(library)
    except BadInputError as unreadable:
        return LibraryLoadError(str(unreadable), cause=str(error), hint=_HINT)
    gone = [folder for folder in needs.folders if folder.name and not folder.is_dir()]
    wheels = [folder for folder in gone if "nvidia" in folder.parts or "torch" in folder.parts]
    absent = [name for name in needs.needed if name in str(error)]
    lines = [f"{library} does not load"]
    if wheels:
        lines.append("    the folders that it was built against moved or were removed:")
        lines += [f"        {folder}" for folder in wheels]
    if absent:
        lines.append(f"    not found: {', '.join(absent)}")
    return LibraryLoadError("\n".join(lines), cause=str(error), hint=_HINT)


def load_library(library: Path) -> None:
    """Load a library into this process by the loader alone.

    Raises LibraryLoadError, which names moved folders, where the loader refuses it.
    """
    import ctypes

    try:
        ctypes.CDLL(str(library))
    except OSError as error:
        raise load_failure(library, error) from error
