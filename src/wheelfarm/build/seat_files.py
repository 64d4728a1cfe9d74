"""Files of the seat: depfiles are read and spelt, and what is written is written whole.

Part of the seat (see ``seat_arguments``).
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wheelfarm.build.seat_arguments import Command


def read_inputs(text: str) -> list[str]:
    """Return the files that a depfile names behind its first target, unescaped."""
    _, _, rest = text.partition(": ")
    rest = rest.replace("\\\r\n", " ").replace("\\\n", " ").partition("\n")[0]
    names = rest.replace("\\ ", "\0").replace("$$", "$").split()
    seen: dict[str, None] = {}
    for name in names:
        seen.setdefault(name.replace("\0", " ").replace("\\#", "#"))
    return list(seen)


def escaped(name: str) -> str:
    """Return a file's name as a depfile spells it."""
    return name.replace("$", "$$").replace(" ", "\\ ").replace("#", "\\#")


def depfile_of(command: Command, output: str) -> str:
    """Return where the caller expects the depfile of an output."""
    return command.depfile or f"{os.path.splitext(output)[0]}.d"


def size_of(path: str) -> int:
    """Return a file's bytes, 0 where it cannot be seen."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def content_of(path: str) -> bytes:
    """Return a file's bytes, none where it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError:
        return b""


def holds_exactly(path: str, content: bytes) -> bool:
    """Return whether a file holds ``content`` and nothing else."""
    return size_of(path) == len(content) and content_of(path) == content


def write_whole(path: str, data: bytes) -> None:
    """Write a file whole: a killed build leaves no half one under the name."""
    temporary = f"{path}.{os.getpid()}.part"
    with open(temporary, "wb") as stream:
        stream.write(data)
    os.replace(temporary, path)


def remove(path: str) -> None:
    """Remove a file; nothing there is fine."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
