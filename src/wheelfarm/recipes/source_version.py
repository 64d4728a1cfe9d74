"""The version that a source tree states literally; nothing of the tree is run."""

import ast
import configparser
from pathlib import Path

from packaging.version import InvalidVersion, Version

from wheelfarm.errors import BadInputError
from wheelfarm.reading import Reader, read_text, read_toml


def read_source_version(tree: Path, subdir: str = "") -> Version | None:
    """Return the version of the project in ``tree/subdir``; None where no file says it literally.

    An sdist's PKG-INFO comes first, as the build's own tool wrote it; then pyproject.toml,
    setup.cfg and setup.py, whose constants are followed.
    """
    folder = tree / subdir
    for read in (_pkg_info, _pyproject, _setup_cfg, _setup_py):
        try:
            text = read(folder)
            if text:
                return Version(text)
        except (BadInputError, InvalidVersion):
            continue
    return None


def _pkg_info(folder: Path) -> str:
    path = folder / "PKG-INFO"
    if not path.is_file():
        return ""
    for line in read_text(path).splitlines():
        if not line.strip():
            break
        name, _, value = line.partition(":")
        if name == "Version":
            return value.strip()
    return ""


def _pyproject(folder: Path) -> str:
    path = folder / "pyproject.toml"
    if not path.is_file():
        return ""
    table = Reader(read_toml(path), str(path)).table("project")
    return "" if table is None else table.string("version", "")


def _setup_cfg(folder: Path) -> str:
    path = folder / "setup.cfg"
    if not path.is_file():
        return ""
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(read_text(path))
    except configparser.Error:
        return ""
    text = parser.get("metadata", "version", fallback="")
    return "" if text.startswith(("attr:", "file:")) else text


def _setup_py(folder: Path) -> str:
    path = folder / "setup.py"
    if not path.is_file():
        return ""
    try:
        module = ast.parse(read_text(path))
    except (SyntaxError, ValueError):
        return ""
    constants = {
        target.id: node.value.value
        for node in module.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.value, str)
    }
    for node in ast.walk(module):
        if isinstance(node, ast.keyword) and node.arg == "version":
            value = node.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                return value.value
            if isinstance(value, ast.Name) and value.id in constants:
                return constants[value.id]
    return ""
