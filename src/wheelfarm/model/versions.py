"""Versions as numbers, never as text: ``2.1`` is not ``2.10``."""

import re
from functools import lru_cache

from packaging.version import InvalidVersion, Version

from wheelfarm.errors import BadInputError
from wheelfarm.values import value

_MINOR = re.compile(r"(\d+)\.(\d+)", re.ASCII)


@value(kw_only=False, order=True)
class Minor:
    """Two numbers: torch ``2.14``, CUDA ``13.0``, Python ``3.11``, glibc ``2.28``."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> "Minor":
        """Read ``2.14`` exactly; BadInputError for anything else (a patch number included)."""
        match = _MINOR.fullmatch(text)
        if match is None:
            message = f"expected a version of two numbers such as '2.14', found {text!r}"
            raise BadInputError(message)
        return cls(int(match[1]), int(match[2]))

    @classmethod
    def of(cls, version: Version) -> "Minor":
        """Return the first two numbers of a version."""
        return cls(version.major, version.minor)

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


@lru_cache(maxsize=16384)
def parse_version(text: str, what: str = "version") -> Version:
    """Read a PEP 440 version; BadInputError names ``what`` it should have been."""
    try:
        return Version(text)
    except InvalidVersion as error:
        message = f"{text!r} is no valid {what} (PEP 440)"
        raise BadInputError(message) from error


def is_release(version: Version) -> bool:
    """Return whether a version is a published final release: no pre, dev or post-snapshot part.

    ``2.4.0a0+07cecf4168`` satisfies ``==2.4.*`` and yet is no torch 2.4 (pytorch_scatter#462).
    """
    return not (version.is_prerelease or version.is_devrelease)
