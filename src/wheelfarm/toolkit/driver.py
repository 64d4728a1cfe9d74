"""Where the CUDA driver's library lies; a stand-in is made where there is none."""

import logging
import shlex
from dataclasses import dataclass
from pathlib import Path

from wheelfarm import files
from wheelfarm.errors import BadInputError
from wheelfarm.places import cache_root, make_folder
from wheelfarm.run import find_program
from wheelfarm.toolkit.layout import Machine
from wheelfarm.toolkit.model import Toolkit
from wheelfarm.toolkit.stub import is_stub, make_driver_stub

logger = logging.getLogger(__name__)

DRIVER_FILE = "libcuda.so.1"
_NO_COMPILER = "install a C++ compiler (Debian, Ubuntu: apt install g++) or set CXX"
_LAUNCHERS = frozenset({"ccache", "sccache", "distcc", "icecc", "buildcache"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Driver:
    """The library to link for the driver's API.

    ``in_search_path``: the loader finds it by itself, so that no RPATH is needed.
    """

    folder: Path
    file_name: str
    stand_in: bool
    in_search_path: bool


def driver_folders(machine: Machine) -> tuple[tuple[Path, bool], ...]:
    """Return where a driver's library may lie, and whether the loader looks there by itself.

    WSL's comes first: a Linux driver installed inside WSL does not work.
    """
    usr = machine.top / "usr"
    triplet = f"{machine.processor}-linux-gnu"
    return (
        (usr / "lib" / "wsl" / "lib", False),
        (usr / "lib" / triplet, True),
        (usr / "lib64", True),
        (usr / "lib64-nvidia", False),
        (usr / "lib" / triplet / "nvidia" / "current", False),
        (usr / "lib64" / "nvidia", False),
        (usr / "lib" / "nvidia", False),
        (usr / "local" / "nvidia" / "lib64", False),
        (usr / "local" / "nvidia" / "lib", False),
        (machine.top / "run" / "opengl-driver" / "lib", False),
        (machine.top / "opt" / "nvidia" / "lib64", False),
        (usr / "lib", True),
        (machine.top / "lib64", True),
    )


def find_driver(machine: Machine, *, variable: str) -> Driver | None:
    """Return the installed driver's library; None where there is none.

    ``variable`` names the variable that overrides the search; BadInputError where it names a
    folder without a driver, since a build that was told where the driver is must not guess.
    """
    given = machine.environ.get(variable, "").strip()
    if given:
        folder = Path(given)
        if not (folder / DRIVER_FILE).is_file():
            reason = "has no libcuda.so.1" if folder.is_dir() else "is no folder"
            message = f"{variable}={given} is invalid: it {reason}"
            raise BadInputError(message, hint=f"name the driver's folder, or unset {variable}")
        stand_in = is_stub(folder / DRIVER_FILE)
        return Driver(folder=folder, file_name=DRIVER_FILE, stand_in=stand_in, in_search_path=False)
    for folder, known in driver_folders(machine):
        if (folder / DRIVER_FILE).is_file():
            return Driver(
                folder=folder, file_name=DRIVER_FILE, stand_in=False, in_search_path=known
            )
    return None


def driver_or_stand_in(toolkit: Toolkit, machine: Machine, *, variable: str) -> Driver:
    """Return the installed driver, else a stand-in made from the toolkit's own cuda.h."""
    found = find_driver(machine, variable=variable)
    if found is not None:
        return found
    logger.info("no driver is installed; linking against a stand-in")
    library = stand_in(toolkit, machine)
    return Driver(folder=library.parent, file_name=DRIVER_FILE, stand_in=True, in_search_path=False)


def stand_in(toolkit: Toolkit, machine: Machine) -> Path:
    """Return a stand-in for the driver from the cache, made on first use."""
    header = toolkit.parts["cuda.h"]
    folder = cache_root(machine.environ) / "driver" / f"v1-{files.sha256(header)[:16]}"
    return make_driver_stub(header.parent, make_folder(folder), host_compiler(machine))


def host_compiler(machine: Machine) -> Path:
    """Return the C++ compiler that torch would take: CXX's, else ``c++``."""
    name = compiler_words(machine)[0]
    return find_program(name, hint=_NO_COMPILER, path=machine.environ.get("PATH"))


def compiler_words(machine: Machine) -> list[str]:
    """Return the words of CXX: the compiler, and what it is always given.

    A launcher before it (ccache) is left out, as results are kept by contents here. BadInputError
    where CXX is no command line.
    """
    given = machine.environ.get("CXX", "").strip() or "c++"
    if Path(given).is_file():
        return [given]
    try:
        words = shlex.split(given)
    except ValueError as error:
        message = f"CXX={given} is invalid: {str(error).lower()}"
        raise BadInputError(message, hint="name a C++ compiler") from error
    while len(words) > 1 and Path(words[0]).name in _LAUNCHERS:
        words.pop(0)
    return words or ["c++"]
