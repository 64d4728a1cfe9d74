"""Wheel file names, ours and those in the wild: read and printed here and nowhere else.

The form is the binary distribution format's (packaging.python.org, "File name convention"); what
the local version says of CUDA and torch has no standard, so every farm's habit is read:
``+cu130torch2.14`` (ours), ``+cu128torch29``, ``+pt26cu124``, ``+cu12torch2.8cxx11abiTRUE``,
``+torch280cu128``, ``+torch2.9.0andhigher.cu128``, ``+torch2.8``.
"""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from packaging.version import Version

from wheelfarm.errors import BadInputError
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.platform import Platform
from wheelfarm.model.project_name import normalized
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor, parse_version
from wheelfarm.values import value

if TYPE_CHECKING:
    from wheelfarm.model.cell import CellId

_NAME = re.compile(
    r"(?P<distribution>[A-Za-z0-9][A-Za-z0-9_.]*)-(?P<version>[A-Za-z0-9_.+!]+)"
    r"(?:-(?P<build>\d[A-Za-z0-9_.]*))?"
    r"-(?P<python>[A-Za-z0-9_.]+)-(?P<abi>[A-Za-z0-9_.]+)-(?P<platform>[A-Za-z0-9_.]+)\.whl",
    re.ASCII,
)
_ACCELERATOR = re.compile(r"cu\d{2,4}|rocm\d+\.\d+|(?<![a-z])cpu(?![a-z])|(?<![a-z])xpu(?![a-z])")
_TORCH = re.compile(r"(?:torch|pt)(?P<version>\d+(?:\.\d+){0,2})(?P<higher>andhigher)?")
_CXX11_ABI = re.compile(r"cxx11abi(true|false)")
_PYTHON = re.compile(r"cp(\d)(\d+)", re.ASCII)


@value(kw_only=False)
class Label:
    """What a local version says: accelerator, torch, C++ ABI; None for each that it does not say.

    ``torch_release`` is set where the label has a patch number. ``or_higher`` is a claim of its
    maker's, not a proof.
    """

    accelerator: Accelerator | None = None
    torch: Minor | None = None
    torch_release: Version | None = None
    or_higher: bool = False
    cxx11_abi: bool | None = None

    @classmethod
    def parse(cls, local: str | None) -> "Label":
        """Read a local version; what is not understood is left out, never guessed."""
        text = (local or "").lower()
        found = _ACCELERATOR.search(text)
        accelerator = None if found is None else Accelerator.parse(found[0])
        torch = _TORCH.search(text)
        abi = _CXX11_ABI.search(text)
        minor, release = None, None
        if torch is not None:
            before = found is not None and torch.start() < found.start()
            patch_first = before and text.startswith("torch", torch.start())
            minor, release = _torch_version(torch["version"], with_patch=patch_first)
        return cls(
            accelerator,
            minor,
            release,
            torch is not None and torch["higher"] is not None,
            None if abi is None else abi[1] == "true",
        )


def _torch_version(text: str, *, with_patch: bool) -> tuple[Minor | None, Version | None]:
    """Read ``2.14``, ``2.9.0`` or undotted digits.

    Undotted, ``torch29`` is 2.9 and ``torch210`` is 2.10, except in labels that put torch before
    CUDA (``torch280cu128``, ``torch2100cu128``), whose last digit is the patch.
    """
    parts = text.split(".")
    if len(parts) == 1:
        digits = parts[0]
        if len(digits) == 1:
            return None, None
        if with_patch and len(digits) > 2:  # noqa: PLR2004 - major, minor and a patch
            parts = [digits[0], digits[1:-1], digits[-1]]
        else:
            parts = [digits[0], digits[1:]]
    minor = Minor(int(parts[0]), int(parts[1]))
    release = Version(".".join(parts)) if len(parts) > 2 else None  # noqa: PLR2004
    return minor, release


@value
class WheelName:
    """A wheel's file name in its parts, as they are written; ``str()`` is the file name."""

    distribution: str
    version_text: str
    build: str = ""
    pythons: tuple[str, ...]
    abis: tuple[str, ...]
    platforms: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "WheelName":
        """Read a file name; BadInputError where it is no wheel's."""
        match = _NAME.fullmatch(text)
        if match is None:
            message = f"{text!r} is no wheel file name"
            hint = "the form is name-version(-build)-python-abi-platform.whl"
            if _NAME.fullmatch(last := text.rpartition("/")[2]):
                hint = f"give the name without its folder: {last}"
            raise BadInputError(message, hint=hint)
        distribution, version, build, python, abi, platform = match.groups()
        parse_version(version, "wheel version")
        return cls(
            distribution=distribution,
            version_text=version,
            build=build or "",
            pythons=tuple(python.split(".")),
            abis=tuple(abi.split(".")),
            platforms=tuple(platform.split(".")),
        )

    @classmethod
    def of_cell(cls, cell: "CellId", platform_tag: str, *, build: str = "") -> "WheelName":
        """Return the name of a cell's wheel, with the platform tag that was proven for it."""
        return cls(
            distribution=cell.package,
            version_text=f"{cell.version.public}+{cell.local_tag}",
            build=build,
            pythons=(cell.python.interpreter_tag,),
            abis=(cell.python.abi_tag,),
            platforms=tuple(platform_tag.split(".")),
        )

    @property
    def package(self) -> str:
        """The normalised name (PEP 503)."""
        return normalized(self.distribution)

    @property
    def version(self) -> Version:
        """The version, with its local part."""
        return parse_version(self.version_text)

    @property
    def label(self) -> Label:
        """What the local version says, read from the text as it is written."""
        return Label.parse(self.version_text.partition("+")[2])

    @property
    def build_number(self) -> tuple[int, str]:
        """The build tag as it sorts: its digits as a number, then the rest; (0, "") for none."""
        digits = re.match(r"\d*", self.build)
        count = 0 if digits is None else digits.end()
        return int(self.build[:count] or 0), self.build[count:]

    @property
    def python(self) -> PythonTag:
        """The Python part; the lowest where several are named.

        Raises BadInputError for tags that are no CPython's (``pp310``).
        """
        abi = self.abis[0]
        if abi == "none" and not any(map(_PYTHON.fullmatch, self.pythons)):
            return PythonTag("none")
        versions = [
            Minor(int(match[1]), int(match[2]))
            for match in map(_PYTHON.fullmatch, self.pythons)
            if match is not None
        ]
        if not versions:
            message = f"{self} is for no CPython"
            raise BadInputError(message)
        axis: Literal["abi3", "exact"] = "abi3" if abi == "abi3" else "exact"
        return PythonTag(axis, min(versions), abi.endswith("t") and abi.startswith("cp"))

    @property
    def platform(self) -> Platform | None:
        """The platform of the first known platform tag; None for ``any`` and foreign systems."""
        for tag in self.platforms:
            if (platform := Platform.of_tag(tag)) is not None:
                return platform
        return None

    @property
    def dist_info(self) -> str:
        """The name of the wheel's dist-info folder."""
        return f"{self.distribution}-{self.version_text}.dist-info"

    def relabelled(self, labels: Iterable[tuple[str, PythonTag | None]]) -> list[str]:
        """Return the file name under other local versions, and other Python tags where given.

        A plain text function, since an index asks for hundreds of thousands of names.
        """
        start = f"{self.distribution}-{self.version_text.partition('+')[0]}+"
        build = f"-{self.build}" if self.build else ""
        own = f"{'.'.join(self.pythons)}-{'.'.join(self.abis)}"
        end = f"-{'.'.join(self.platforms)}.whl"
        return [
            f"{start}{label}{build}-{own}{end}"
            if tag is None
            else f"{start}{label}{build}-{tag.interpreter_tag}-{tag.abi_tag}{end}"
            for label, tag in labels
        ]

    def __str__(self) -> str:
        parts = [self.distribution, self.version_text]
        if self.build:
            parts.append(self.build)
        parts += [".".join(self.pythons), ".".join(self.abis), ".".join(self.platforms)]
        return "-".join(parts) + ".whl"
