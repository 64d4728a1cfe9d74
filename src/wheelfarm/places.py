"""Where a user's own files lie, as far as the system knows."""

import os
from collections.abc import Mapping
from pathlib import Path

from wheelfarm.errors import CouldNotLookError

#: The variable that names the folder of all caches.
CACHE_VARIABLE = "WHEELFARM_CACHE"


def home_or_none() -> Path | None:
    """Return the user's home; None for a user that the system does not know, without HOME."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def _home() -> Path:
    """Return the user's home; CouldNotLookError where none is known."""
    found = home_or_none()
    if found is None:
        message = "this user has no home folder: HOME is not set, and the system knows none"
        raise CouldNotLookError(message, hint=f"set HOME, or {CACHE_VARIABLE}")
    return found


def cache_root(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of all caches of this user: WHEELFARM_CACHE, else the system's usual place.

    Raises CouldNotLookError where no home is known.
    """
    if given := environ.get(CACHE_VARIABLE, "").strip():
        return Path(given).expanduser().absolute()
    if local := environ.get("LOCALAPPDATA", "").strip():
        return Path(local) / "wheelfarm" / "cache"
    if base := environ.get("XDG_CACHE_HOME", "").strip():
        return Path(base).expanduser().absolute() / "wheelfarm"
    return _home() / ".cache" / "wheelfarm"


def make_folder(folder: Path) -> Path:
    """Make a folder of the cache; CouldNotLookError names the variable where that is refused."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"the folder {folder} cannot be made: {error.strerror}"
        hint = f"set {CACHE_VARIABLE} to a folder that you may write to"
        raise CouldNotLookError(message, hint=hint) from error
    return folder
