"""A virtual environment whose torch is files alone: what wheelfarm reads, and what pip sees."""

import sys
import venv
from pathlib import Path


def make_environment(folder: Path) -> Path:
    """Make an environment without pip; return its Python."""
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    return folder / "bin" / "python"


def site_packages(python: Path) -> Path:
    """Return the environment's folder of packages."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return python.parent.parent / "lib" / version / "site-packages"


def install(
    python: Path,
    name: str,
    version: str,
    *,
    requires: tuple[str, ...] = (),
    files: dict[str, str] | None = None,
) -> None:
    """Put a project's metadata, and ``files`` of its package, where an installer would."""
    folder = site_packages(python)
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    needs = "".join(f"Requires-Dist: {text}\n" for text in requires)
    text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"
    (info / "METADATA").write_text(text, encoding="utf-8")
    (info / "INSTALLER").write_text("tests\n", encoding="utf-8")
    rows = [f"{info.name}/METADATA,,", f"{info.name}/INSTALLER,,", f"{info.name}/RECORD,,"]
    for file, content in (files or {}).items():
        path = folder / name / f"{file}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
        rows.append(f"{name}/{file}.py,,")
    (info / "RECORD").write_text("\n".join([*rows, ""]), encoding="utf-8")


def install_torch(
    python: Path, version: str, *, metadata: str | None = None, cuda: str | None = "13.0"
) -> None:
    """Install a torch of that full version; ``metadata`` is what its metadata says instead."""
    stated = (
        "from typing import Optional\n"
        "__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']\n"
        f"__version__ = '{version}'\ndebug = False\n"
        f"cuda: Optional[str] = {cuda!r}\ngit_version = 'f'\nhip: Optional[str] = None\n"
    )
    install(python, "torch", metadata or version, files={"version": stated, "__init__": ""})
