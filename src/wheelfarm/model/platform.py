"""Operating system and processor of a cell."""

import re
from typing import Literal

from wheelfarm.errors import BadInputError
from wheelfarm.values import value

System = Literal["linux", "windows"]

#: The platform tags of Linux (PEP 425, 513, 571, 599, 600, 656); a tag of another form is known to
#: no installer.
_LINUX_TAG = r"(?:linux|manylinux(?:1|2010|2014|_\d+_\d+)|musllinux_\d+_\d+)_(x86_64|aarch64)"


@value(kw_only=False, order=True)
class Platform:
    """A platform under the three names it has: in a cell, in a recipe, in a wheel's tag."""

    identifier: str
    system: System
    machine: str
    recipe_word: str
    wheel_suffix: str

    @classmethod
    def parse(cls, text: str) -> "Platform":
        """Read an identifier (``linux_x86_64``) or a recipe's word (``linux``, ``windows``)."""
        for platform in PLATFORMS:
            if text in {platform.identifier, platform.recipe_word}:
                return platform
        known = ", ".join(platform.identifier for platform in PLATFORMS)
        message = f"{text!r} is no known platform; known are {known}"
        raise BadInputError(message)

    @classmethod
    def of_tag(cls, tag: str) -> "Platform | None":
        """Return the platform of a wheel's platform tag; None for ``any`` and foreign systems."""
        if tag == WINDOWS_AMD64.wheel_suffix:
            return WINDOWS_AMD64
        match = re.fullmatch(_LINUX_TAG, tag, re.ASCII)
        if match is None:
            return None
        return LINUX_X86_64 if match[1] == LINUX_X86_64.machine else LINUX_AARCH64

    def __str__(self) -> str:
        return self.identifier


LINUX_X86_64 = Platform("linux_x86_64", "linux", "x86_64", "linux", "linux_x86_64")
LINUX_AARCH64 = Platform("linux_aarch64", "linux", "aarch64", "linux_aarch64", "linux_aarch64")
WINDOWS_AMD64 = Platform("windows_amd64", "windows", "amd64", "windows", "win_amd64")
PLATFORMS = (LINUX_X86_64, LINUX_AARCH64, WINDOWS_AMD64)
