"""Where this room keeps what it makes: one folder of the user's, never site-packages."""

from collections.abc import Mapping
from pathlib import Path

from wheelfarm import places
from wheelfarm.errors import CouldNotLookError

VARIABLE = "WHEELFARM_CACHE"


def cache_root(environ: Mapping[str, str], home: Path | None = None) -> Path:
    """Return the cache's folder: WHEELFARM_CACHE, else the system's usual place for caches."""
    if given := environ.get(VARIABLE, "").strip():
        return Path(given)
    if local := environ.get("LOCALAPPDATA", "").strip():
        return Path(local) / "wheelfarm" / "cache"
    if base := environ.get("XDG_CACHE_HOME", "").strip():
        return Path(base) / "wheelfarm"
    return (home or places.home(VARIABLE)) / ".cache" / "wheelfarm"


def make_folder(folder: Path) -> Path:
    """Make a folder of the cache; CouldNotLookError names the variable where that is refused."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"the folder {folder} cannot be made: {error.strerror}"
        hint = f"set {VARIABLE} to a folder that you may write to"
        raise CouldNotLookError(message, hint=hint) from error
    return folder
