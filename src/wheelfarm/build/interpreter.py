"""From a cell's Python to an interpreter on this machine, and what that interpreter is."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from wheelfarm.errors import CouldNotLookError
from wheelfarm.model.python import PythonTag
from wheelfarm.reading import Reader, parse_json
from wheelfarm.run import run

_PROBE = (
    "import json,sys,sysconfig as s;"
    "print(json.dumps({'version':'%d.%d'%sys.version_info[:2],"
    "'full':sys.version.split()[0],'implementation':sys.implementation.name,"
    "'free_threaded':bool(s.get_config_var('Py_GIL_DISABLED')),"
    "'executable':sys.executable,'include':s.get_path('include'),"
    "'site_packages':s.get_path('platlib'),'platform':s.get_platform()}))"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Interpreter:
    """An interpreter: where it is, which Python it is, its headers and its site-packages."""

    executable: Path
    python: PythonTag
    full_version: str
    include: Path
    site_packages: Path


def inspect_interpreter(executable: Path) -> Interpreter:
    """Ask an interpreter what it is; CouldNotLookError where it does not answer."""
    answer = run([executable, "-I", "-c", _PROBE], check=False, timeout=60)
    if not answer.ok:
        message = f"{executable} did not say what it is: {answer.stderr.strip()[-300:]}"
        raise CouldNotLookError(message)
    reader = Reader(parse_json(answer.stdout, str(executable)), str(executable))
    free = "t" if reader.boolean("free_threaded") else ""
    python = reader.attempt(lambda: PythonTag.of_version(reader.string("version") + free))
    found = Interpreter(
        executable=Path(reader.string("executable")),
        python=python or PythonTag("none"),
        full_version=reader.string("full"),
        include=Path(reader.string("include")),
        site_packages=Path(reader.string("site_packages")),
    )
    reader.finish()
    return found


def find_interpreter(python: PythonTag) -> Interpreter:
    """Return an interpreter of exactly this Python: this one, or one that is on PATH.

    Every ``python3.11`` on PATH is asked, since shims of version managers may refuse. Raises
    CouldNotLookError, naming what was tried, where there is none with headers.
    """
    tried: list[str] = []
    for candidate in _candidates(python):
        try:
            found = inspect_interpreter(candidate)
        except CouldNotLookError as error:
            tried.append(error.what)
            continue
        if found.python != python:
            tried.append(f"{candidate} is Python {found.python.dotted}")
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
