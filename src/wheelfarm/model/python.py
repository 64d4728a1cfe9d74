"""The Python part of a cell and of a wheel: ``cp311``, ``cp313t``, ``cp310.abi3``, ``py3``."""

import re
from typing import Literal

from wheelfarm.errors import BadInputError
from wheelfarm.model.versions import Minor
from wheelfarm.values import value

PythonAxis = Literal["exact", "abi3", "none"]

_CPYTHON = r"cp(\d)(\d+)(t?)(\.abi3)?"
_DOTTED = re.compile(r"(\d)\.(\d+)(t?)", re.ASCII)


@value(kw_only=False, order=True)
class PythonTag:
    """A CPython (``version``, free-threaded or not), an abi3 floor, or any Python 3 at all."""

    axis: PythonAxis
    version: Minor | None = None
    free_threaded: bool = False

    @classmethod
    def parse(cls, text: str) -> "PythonTag":
        """Read the cell's spelling; BadInputError for anything else."""
        if text == "py3":
            return cls("none")
        match = re.fullmatch(_CPYTHON, text, re.ASCII)
        if match is None or (match[3] and match[4]):
            message = f"{text!r} is no Python tag; expected cp311, cp313t, cp310.abi3 or py3"
            raise BadInputError(message)
        version = Minor(int(match[1]), int(match[2]))
        return cls("abi3" if match[4] else "exact", version, bool(match[3]))

    @classmethod
    def of_version(cls, text: str) -> "PythonTag":
        """Read ``3.11`` or ``3.13t`` as an exact Python."""
        match = _DOTTED.fullmatch(text)
        if match is None:
            message = f"{text!r} is no Python version; expected one such as 3.11 or 3.13t"
            raise BadInputError(message)
        return cls("exact", Minor(int(match[1]), int(match[2])), bool(match[3]))

    @property
    def dotted(self) -> str:
        """``3.11`` or ``3.13t``; ``3`` for any Python 3."""
        if self.version is None:
            return "3"
        return f"{self.version}{'t' if self.free_threaded else ''}"

    @property
    def interpreter_tag(self) -> str:
        """The wheel's python tag: ``cp311``, ``py3``."""
        if self.version is None:
            return "py3"
        return f"cp{self.version.major}{self.version.minor}"

    @property
    def abi_tag(self) -> str:
        """The wheel's ABI tag: ``cp311``, ``cp313t``, ``abi3``, ``none``."""
        if self.axis == "none":
            return "none"
        if self.axis == "abi3":
            return "abi3"
        return f"{self.interpreter_tag}{'t' if self.free_threaded else ''}"

    def serves(self, python: "PythonTag") -> bool:
        """Return whether a wheel with this tag runs on the exact Python ``python``.

        A free-threaded Python loads neither abi3 nor default-ABI modules (PEP 703).
        """
        if self.axis == "none":
            return True
        if self.axis == "exact":
            return self == python
        if self.version is None or python.version is None or python.free_threaded:
            return False
        return python.version >= self.version

    def __str__(self) -> str:
        if self.axis == "none":
            return "py3"
        return f"{self.interpreter_tag}{'t' if self.free_threaded else ''}" + (
            ".abi3" if self.axis == "abi3" else ""
        )
