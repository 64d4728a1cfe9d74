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
    for path in (here, command.output, *command.sources):
        parts = path.split("/")
        if any(part in _PROBE_FOLDERS or part.startswith("TryCompile-") for part in parts):
            return True
        if os.path.splitext(parts[-1])[0] in _PROBE_STEMS:
            return True
    return any(part.startswith("CompilerId") for part in here.split("/"))
