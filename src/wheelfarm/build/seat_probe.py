"""Whether a build system only tries the compiler: a call and its folder in, yes or no out.

Part of the seat (see ``seat_arguments``).
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wheelfarm.build.seat_arguments import Command

_PROBE_FOLDERS = ("CMakeTmp", "CMakeScratch", "meson-private")
_PROBE_STEMS = frozenset(
    "conftest _configtest CMakeCCompilerId CMakeCXXCompilerId CMakeCUDACompilerId sanitycheckc "
    "sanitycheckcpp sanitycheckcuda".split()
)


def is_probe(command: Command, here: str) -> bool:
    """Return whether a call in the folder ``here`` is CMake's, meson's or autoconf's own try."""
    if command.output in {"-", "/dev/null"} or "-" in command.sources:
        return True
    return any(is_of_probe(path) for path in (f"{here}/", command.output, *command.sources))


def is_of_probe(path: str) -> bool:
    """Return whether a file is one that a build system's try of the compiler reads or leaves."""
    *folders, name = path.split("/")
    return os.path.splitext(name)[0] in _PROBE_STEMS or any(
        folder in _PROBE_FOLDERS or folder.startswith(("TryCompile-", "CompilerId"))
        for folder in folders
    )
