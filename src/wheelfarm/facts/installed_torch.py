"""What an installed torch says of itself in its files; torch is never imported to look at it."""

import ast
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

from packaging.version import InvalidVersion, Version

from wheelfarm.model.versions import Minor


@dataclass(frozen=True, kw_only=True, slots=True)
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
        tree = ast.parse(source.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None
    values = _assignments(tree)
    try:
        version = Version(_text(values.get("__version__")) or "")
    except InvalidVersion:
        return None
    cuda = values.get("cuda")
    return InstalledTorch(
        folder=source.parent,
        version=version,
        cuda=Minor.parse(cuda) if isinstance(cuda, str) else None,
        requires_dist=_requirements(site_packages),
        hip=_text(values.get("hip")),
        xpu=_text(values.get("xpu")),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _assignments(tree: ast.Module) -> dict[str, object]:
    values: dict[str, object] = {}
    for node in tree.body:
        target: ast.expr
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
        elif isinstance(node, ast.AnnAssign):
            target = node.target
        else:
            continue
        if isinstance(target, ast.Name) and isinstance(node.value, ast.Constant):
            values[target.id] = node.value.value
    return values


def _requirements(site_packages: Path) -> tuple[str, ...]:
    for metadata in site_packages.glob("torch-*.dist-info/METADATA"):
        text = metadata.read_text(encoding="utf-8", errors="replace")
        return tuple(HeaderParser().parsestr(text).get_all("Requires-Dist") or ())
    return ()
