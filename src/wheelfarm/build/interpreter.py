"""From a cell's Python to an interpreter of it on this machine."""

import os
import sys
from pathlib import Path

from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.interpreter import Interpreter, ask
from wheelfarm.model.python import PythonTag


def inspect_interpreter(executable: Path) -> Interpreter:
    """Ask an interpreter what it is, with its headers and site-packages, as a build sees it.

    Raises CouldNotLookError where it does not answer, BadInputError where it is no CPython.
    """
    return ask(executable, isolated=True, folders=True)


def find_interpreter(python: PythonTag) -> Interpreter:
    """Return an interpreter of exactly this Python: this one, or one that is on PATH.

    Every ``python3.11`` on PATH is asked, since shims of version managers may refuse. Raises
    CouldNotLookError, naming what was tried, where there is none with headers.
    """
    tried: list[str] = []
    for candidate in _candidates(python):
        try:
            found = inspect_interpreter(candidate)
        except (BadInputError, CouldNotLookError) as error:
            tried.append(f"{error.what} {error.cause}".strip())
            continue
        if found.tag != python:
            tried.append(f"{candidate} is Python {found.tag.dotted}")
        elif not (found.include / "Python.h").exists():
            tried.append(f"{candidate} has no headers ({found.include}/Python.h)")
        else:
            return found
    detail = "; ".join(tried) or f"no python{python.dotted} on PATH"
    message = f"no Python {python.dotted} with headers was found: {detail}"
    raise CouldNotLookError(
        message,
        hint=f"install python{python.dotted} with its headers (Debian: python{python.dotted}-dev "
        f"and python{python.dotted}-venv), or `uv python install {python.dotted}`",
    )


def _candidates(python: PythonTag) -> list[Path]:
    found = [Path(sys.executable)]
    name = f"python{python.dotted}"
    for folder in os.get_exec_path():
        path = Path(folder) / name
        if path.is_file() and os.access(path, os.X_OK):
            found.append(path)
    root = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    found += sorted(root.glob(f"versions/{python.dotted}.*/bin/{name}"), reverse=True)
    share = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", "~/.local/share/uv/python")).expanduser()
    found += sorted(share.glob(f"cpython-{python.dotted}.*/bin/{name}"), reverse=True)
    return found
