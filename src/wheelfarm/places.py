"""Where a user's own files lie, as far as the system knows."""

from pathlib import Path

from wheelfarm.errors import CouldNotLookError


def home_or_none() -> Path | None:
    """Return the user's home; None for a user that the system does not know, without HOME."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def home(variable: str) -> Path:
    """Return the user's home; CouldNotLookError where none is known, with ``variable`` as a way."""
    found = home_or_none()
    if found is None:
        message = "this user has no home folder: HOME is not set, and the system knows none"
        raise CouldNotLookError(message, hint=f"set HOME, or {variable}")
    return found
