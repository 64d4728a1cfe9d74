"""A Python in, what it says of itself out: asked in one short child process, or in this one."""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.version import Version

from wheelfarm import interpreter_probe
from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.model.project_name import normalized
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor, parse_version
from wheelfarm.reading import Reader, parse_json
from wheelfarm.values import NOTHING, value

_SECONDS = 60


@value
class Interpreter:
    """What an interpreter says of itself; ``path`` are the folders that it imports from.

    ``full_version`` is its own spelling (``3.15.0a1``), ``libc`` the C library's (``glibc 2.36``,
    empty where that does not say). ``user_site`` is None where the user's packages are disabled
    (PEP 370), and ``disabled_user_site`` the folder that then does not count. ``folders`` are
    sysconfig's, by name, where they were asked for.
    """

    executable: Path
    prefix: Path
    base_prefix: Path
    version: Version
    full_version: str
    tag: PythonTag
    platform: str
    libc: str
    path: tuple[Path, ...]
    user_site: Path | None
    disabled_user_site: Path | None
    folders: Mapping[str, Path] = NOTHING

    @property
    def include(self) -> Path:
        """The folder of its headers; KeyError where folders were not asked for."""
        return self.folders["include"]

    @property
    def site_packages(self) -> Path:
        """The folder of its compiled packages; KeyError where folders were not asked for."""
        return self.folders["platlib"]

    def installed(self) -> dict[str, str]:
        """Return the versions of what is installed, by normalised name; the first on the path wins.

        Read from the names of the metadata folders, which hold both (PEP 376).
        """
        found: dict[str, str] = {}
        for folder in self.path:
            for name, version, _ in distributions(folder):
                found.setdefault(name, version)
        return found

    def metadata_folder(self, project: str) -> Path | None:
        """Return the metadata folder of an installed project, None where there is none."""
        for folder in self.path:
            for name, _, path in distributions(folder):
                if name == project:
                    return path
        return None


def here() -> Interpreter:
    """Return the facts of the running interpreter."""
    return _read(interpreter_probe.answer(folders=False), Path(sys.executable))


def ask(python: Path | str, *, isolated: bool = False, folders: bool = False) -> Interpreter:
    """Return the facts of an interpreter, or of a virtual environment's folder.

    With ``isolated`` neither the user's packages nor PYTHON* variables count (``-I``), as in a
    build; ``folders`` asks sysconfig too. Raises BadInputError where there is no such file or it is
    no CPython, CouldNotLookError where it gives no answer.
    """
    path = Path(python)
    if path.is_dir():
        path = python_of(path)
    if str(path) == sys.executable and not isolated and not folders:
        return here()
    if os.sep in str(path) and not path.is_file():
        message = f"there is no Python interpreter at {path}"
        raise BadInputError(message, hint="give the path of a python, or of an environment")
    return _read(_ask_child(path, isolated=isolated, folders=folders), path)


def python_of(environment: Path) -> Path:
    """Return where a virtual environment has its interpreter."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _ask_child(python: Path, *, isolated: bool, folders: bool) -> Any:
    from wheelfarm.run import run

    question = Path(interpreter_probe.__file__).read_text(encoding="utf-8")
    words = [str(python), *["-I"] * isolated, "-c", question, *["folders"] * folders]
    completed = run(words, check=False, timeout=_SECONDS)
    lines = completed.stdout.strip().splitlines()
    if not completed.ok or not lines:
        message = f"{python} did not answer as a Python 3 would"
        raise CouldNotLookError(message, cause=completed.stderr.strip()[-500:])
    return parse_json(lines[-1], f"the answer of {python}")


def _read(answer: Any, asked: Path) -> Interpreter:
    reader = Reader(answer, f"the answer of {asked}")
    version = reader.parsed("version", parse_version) or Version("0")
    implementation = reader.string("implementation")
    user, disabled = reader.string("user_site"), reader.string("disabled_user_site")
    found = Interpreter(
        executable=Path(reader.string("executable") or asked),
        prefix=Path(reader.string("prefix")),
        base_prefix=Path(reader.string("base_prefix")),
        version=version,
        full_version=reader.string("full"),
        tag=PythonTag("exact", Minor.of(version), reader.boolean("free_threaded")),
        platform=platform_word(
            reader.string("system"), reader.string("machine"), reader.integer("bits")
        ),
        libc=reader.string("libc"),
        path=tuple(map(Path, reader.strings("path"))),
        user_site=Path(user) if user else None,
        disabled_user_site=Path(disabled) if disabled else None,
        folders={name: Path(path) for name, path in reader.string_map("folders").items()},
    )
    reader.finish()
    if implementation != "cpython":
        message = f"{asked} is {implementation}; compiled wheels are for CPython"
        raise BadInputError(message)
    return found


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


def distributions(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield what is installed in one folder: normalised name, version, metadata folder."""
    try:
        entries = sorted(entry.name for entry in os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        stem, dot, kind = entry.rpartition(".")
        if dot and kind in {"dist-info", "egg-info"}:
            name, _, rest = stem.partition("-")
            version = rest if kind == "dist-info" else rest.partition("-py")[0]
            if version:
                yield normalized(name), version, folder / entry
