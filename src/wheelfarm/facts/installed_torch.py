"""What an installed torch says of itself in its files; torch is never imported to look at it."""

import ast
import re
from email.parser import HeaderParser
from pathlib import Path

from packaging.version import InvalidVersion, Version

from wheelfarm.errors import BadInputError
from wheelfarm.model.versions import Minor
from wheelfarm.values import value


@value
class InstalledTorch:
    """A torch: its folder, the full version of ``version.py``, its CUDA, its requirements.

    ``hip`` and ``xpu`` are the versions that builds for AMD's and Intel's devices name.
    """

    folder: Path
    version: Version
    cuda: Minor | None
    requires_dist: tuple[str, ...]
    hip: str | None = None
    xpu: str | None = None

    @property
    def cpu_only(self) -> bool:
        """Whether this torch drives no accelerator at all."""
        return self.cuda is None and not self.foreign

    @property
    def foreign(self) -> bool:
        """Whether this torch drives an accelerator other than CUDA (HIP, SYCL)."""
        return self.cuda is None and bool(self.hip or self.xpu)


def read_installed_torch(site_packages: Path) -> InstalledTorch | None:
    """Return the torch of a site-packages folder, None where there is none.

    The metadata of PyPI's torch has no local label, ``torch/version.py`` always tells the CUDA.
    """
    source = site_packages / "torch" / "version.py"
    try:
        values = version_constants(source)
        version = Version(values["__version__"])
    except (BadInputError, KeyError, InvalidVersion):
        return None
    return InstalledTorch(
        folder=source.parent,
        version=version,
        cuda=_first_two_numbers(values.get("cuda", "")),
        requires_dist=_requirements(site_packages),
        hip=values.get("hip"),
        xpu=values.get("xpu"),
    )


def version_constants(path: Path) -> dict[str, str]:
    """Return the strings that torch's ``version.py`` assigns, by name; the file is not run.

    ``__version__`` has the local label that PyPI's metadata lacks; ``cuda``, ``hip``, ``rocm`` and
    ``xpu`` are there where torch was built for one. Raises BadInputError where it is unreadable.
    """
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError) as error:
        message = f"{path} could not be read: {error}"
        raise BadInputError(message) from error
    values: dict[str, str] = {}
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
        value = node.value
        if (
            isinstance(target, ast.Name)
            and isinstance(value, ast.Constant)
            and isinstance(value.value, str)
            and value.value
        ):
            values[target.id] = value.value
    return values


def _requirements(site_packages: Path) -> tuple[str, ...]:
    for metadata in site_packages.glob("torch-*.dist-info/METADATA"):
        text = metadata.read_text(encoding="utf-8", errors="replace")
        return tuple(HeaderParser().parsestr(text).get_all("Requires-Dist") or ())
    return ()


def _first_two_numbers(text: str) -> Minor | None:
    match = re.match(r"(\d+)\.(\d+)", text, re.ASCII)
    return None if match is None else Minor(int(match[1]), int(match[2]))
