"""The seat's record: what was done with one call goes in, one JSON line of the log comes out.

Part of the seat (see ``seat_arguments``); the ``json`` package alone costs more than a call may.
"""

from __future__ import annotations

import os
from _json import encode_basestring_ascii as _quoted


class Record:
    """One call: what it was, what was done, how long it took (s), and the peak memory (KiB)."""

    __slots__ = (
        "action",
        "alone",
        "argv",
        "cache",
        "cwd",
        "inputs",
        "kind",
        "output",
        "peak",
        "planned",
        "reason",
        "role",
        "safe",
        "seconds",
        "size",
        "tool",
        "unit",
    )

    def __init__(self, role: str, tool: str, argv: list[str], cwd: str) -> None:
        self.role = role
        self.tool = tool
        self.argv = argv
        self.safe: list[str] = []
        self.cwd = cwd
        self.action = ""
        self.reason = ""
        self.unit = ""
        self.output = ""
        self.kind = ""
        self.cache = ""
        self.inputs = ""
        self.size = 0
        self.seconds = 0.0
        self.peak = 0
        self.planned = True
        self.alone = False

    def keep(self, seconds: float, peak: int) -> None:
        """Keep what the compiler's run measured."""
        self.seconds = seconds
        self.peak = peak

    def write(self, log: str, status: int) -> int:
        """Append the line, in one write so that parallel calls do not mix; return ``status``."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        fields["status"] = status
        line = ", ".join(f"{_quoted(name)}: {_json(value)}" for name, value in fields.items())
        handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, f"{{{line}}}\n".encode())
        finally:
            os.close(handle)
        return status


def _json(value: object) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, list):
        return f"[{', '.join(_json(item) for item in value)}]"
    return str(value)
