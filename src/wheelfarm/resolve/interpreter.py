"""A Python interpreter's facts, asked of itself in one short child process.

Nothing is imported there but the standard library. The running interpreter is asked without a
child.
"""

import os
import sys
from pathlib import Path
from typing import Any

from packaging.version import Version

from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.model.project_name import normalized
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor, parse_version
from wheelfarm.reading import Reader, parse_json
from wheelfarm.resolve.host import Libc
from wheelfarm.values import value

#: The question, in a form that every Python 3 understands. Paths that ``-c`` adds are left out.
_QUESTION = """
import json, os, sys
def libc():
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, ValueError, OSError):
        return ""
def machine():
    return os.uname()[4] if hasattr(os, "uname") else os.environ.get("PROCESSOR_ARCHITECTURE", "")
def free_threaded():
    if hasattr(sys, "abiflags"):
        return "t" in sys.abiflags
    import sysconfig
    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
def answer():
    return {
        "version": "%d.%d.%d" % sys.version_info[:3],
        "release": sys.version_info[3],
        "implementation": sys.implementation.name,
        "free_threaded": free_threaded(),
        "system": sys.platform,
        "machine": machine(),
        "bits": 64 if sys.maxsize > 2**32 else 32,
        "libc": libc(),
        "executable": sys.executable,
        "prefix": sys.prefix,
        "path": [entry for entry in sys.path if entry],
    }
"""


@value
class Interpreter:
    """What an interpreter says of itself; ``path`` are the folders that it imports from."""

    executable: str
    prefix: str
    version: Version
    tag: PythonTag
    platform: str
    libc: Libc | None
    path: tuple[Path, ...]

    def installed(self) -> dict[str, str]:
        """Return the versions of what is installed, by normalised name; the first on the path wins.

        Read from the names of the metadata folders, which hold both (PEP 376).
        """
        found: dict[str, str] = {}
        for folder in self.path:
            for name, version, _ in _distributions(folder):
                found.setdefault(name, version)
        return found

    def metadata_folder(self, project: str) -> Path | None:
        """Return the metadata folder of an installed project, None where there is none."""
        for folder in self.path:
            for name, _, path in _distributions(folder):
                if name == project:
                    return path
        return None


def default_interpreter() -> tuple[str, str]:
    """Return the interpreter that is meant when none is named, and the words for why it is."""
    environment = os.environ.get("VIRTUAL_ENV")
    if environment:
        path = Path(environment, "Scripts/python.exe" if os.name == "nt" else "bin/python")
        if path.is_file():
            return str(path), "VIRTUAL_ENV"
    return sys.executable, "the running interpreter"


def ask(executable: str) -> Interpreter:
    """Return the facts of an interpreter, or of a virtual environment's folder.

    Raises BadInputError where there is no such file, CouldNotLookError where it gives no answer.
    """
    path = Path(executable)
    if path.is_dir():
        path /= "Scripts/python.exe" if os.name == "nt" else "bin/python"
    if str(path) == sys.executable:
        return _interpreter(_ask_self(), executable)
    if os.sep in str(path) and not path.is_file():
        message = f"there is no Python interpreter at {path}"
        raise BadInputError(message, hint="give the path of a python, or of an environment")
    return _interpreter(_ask_child(str(path)), executable)


def _ask_self() -> Any:
    scope: dict[str, Any] = {}
    exec(_QUESTION, scope)  # noqa: S102 - our own constant, the same text that a child is given
    return scope["answer"]()


def _ask_child(executable: str) -> Any:
    from wheelfarm.run import run

    code = f"{_QUESTION}\nsys.path.pop(0)\nprint(json.dumps(answer()))"
    completed = run([executable, "-c", code], check=False, timeout=60)
    lines = completed.stdout.strip().splitlines()
    if not completed.ok or not lines:
        message = f"{executable} did not answer as a Python 3 would"
        raise CouldNotLookError(message, cause=completed.stderr.strip()[-500:])
    return parse_json(lines[-1], f"the answer of {executable}")


def _interpreter(answer: Any, asked: str) -> Interpreter:
    reader = Reader(answer, f"the answer of {asked}")
    version = reader.parsed("version", parse_version) or Version("0")
    implementation = reader.string("implementation")
    free = reader.boolean("free_threaded")
    executable = reader.string("executable") or asked
    libc = _libc(reader.string("libc"), executable)
    platform = platform_word(
        reader.string("system"), reader.string("machine"), reader.integer("bits")
    )
    interpreter = Interpreter(
        executable=executable,
        prefix=reader.string("prefix"),
        version=version,
        tag=PythonTag("exact", Minor.of(version), free),
        platform=platform,
        libc=libc,
        path=tuple(map(Path, reader.strings("path"))),
    )
    reader.finish()
    if implementation != "cpython":
        message = f"{asked} is {implementation}; compiled wheels are for CPython"
        raise BadInputError(message)
    return interpreter


def platform_word(system: str, machine: str, bits: int = 64) -> str:
    """Return the platform's word: ``linux_x86_64``, ``windows_amd64``, ``macosx_arm64``."""
    known = {"amd64": "x86_64", "arm64": "aarch64"}
    processor = machine.lower()
    if system.startswith("linux"):
        processor = known.get(processor, processor)
        if bits == 32:  # noqa: PLR2004 - a 32-bit Python on a 64-bit kernel
            processor = {"x86_64": "i686", "aarch64": "armv7l"}.get(processor, processor)
        return f"linux_{processor}"
    if system == "win32":
        return f"windows_{'x86' if bits == 32 else processor}"  # noqa: PLR2004
    if system == "darwin":
        return f"macosx_{processor}"
    return f"{system}_{processor}"


def _libc(confstr: str, executable: str) -> Libc | None:
    words = confstr.split()
    if words[:1] == ["glibc"] and len(words) > 1:
        return Libc(kind="glibc", version=Minor.of(Version(words[1])))
    return _musl(executable)


def _musl(executable: str) -> Libc | None:
    """Ask the loader that the interpreter names in its ELF header, as musl has no other way."""
    import re

    from wheelfarm.run import run

    try:
        with Path(executable).open("rb") as stream:
            head = stream.read(4096)
    except OSError:
        return None
    loader = re.search(rb"/[\x21-\x7e]*ld-musl-[\x21-\x7e]+", head)
    if loader is None:
        return None
    try:
        completed = run([loader[0].decode()], check=False, timeout=10)
    except CouldNotLookError:
        return None
    version = re.search(r"Version (\d+)\.(\d+)", completed.stderr)
    if version is None:
        return None
    return Libc(kind="musl", version=Minor(int(version[1]), int(version[2])))


def _distributions(folder: Path) -> list[tuple[str, str, Path]]:
    try:
        entries = sorted(entry.name for entry in os.scandir(folder))
    except OSError:
        return []
    found = []
    for entry in entries:
        stem, dot, kind = entry.rpartition(".")
        if dot and kind in {"dist-info", "egg-info"}:
            name, _, rest = stem.partition("-")
            version = rest if kind == "dist-info" else rest.partition("-py")[0]
            if version:
                found.append((normalized(name), version, folder / entry))
    return found
