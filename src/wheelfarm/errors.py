"""The one tree of errors: what happened, likely cause, next step, an exit code per class."""

import errno
import os
from typing import ClassVar


class WheelfarmError(Exception):
    """The base of every error that a user may see.

    ``what`` says what happened, ``cause`` the likely reason, ``hint`` the next step; the last two
    may be empty. Subclasses own the exit code. Only the command line's edge catches this class.
    """

    exit_code: ClassVar[int] = 3

    def __init__(self, what: str, *, cause: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.cause = cause
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions are rebuilt from their arguments by default, and subclasses have their own.
        return _rebuilt, (type(self), self.args, self.__dict__)

    def __str__(self) -> str:
        lines = [self.what]
        if self.cause:
            lines.append(f"  cause: {self.cause}")
        if self.hint:
            lines.append(f"  next:  {self.hint}")
        return "\n".join(lines)


def _rebuilt(
    kind: type[WheelfarmError], words: tuple[object, ...], members: dict[str, object]
) -> WheelfarmError:
    """Return an error as another process raised it."""
    error = kind.__new__(kind)
    error.args = words
    error.__dict__.update(members)
    return error


class NegativeVerdictError(WheelfarmError):
    """We looked, and the answer is no: a wheel failed, no wheel serves, an index has faults."""

    exit_code = 1


class CouldNotLookError(WheelfarmError):
    """A server, a store, a driver or a tool did not answer. Never taken for "no"."""

    exit_code = 2


def refused_by_system(error: OSError) -> CouldNotLookError:
    """Return what the operating system refused, as a sentence: a folder that cannot be written, ...

    ``shutil`` puts all that a copy of a tree met into one error; the first speaks for them.
    """
    names = [str(name) for name in (error.filename, error.filename2) if name is not None]
    why = error.strerror or str(error)
    several = error.args[0] if len(error.args) == 1 and isinstance(error.args[0], list) else []
    if several and isinstance(several[0], tuple):
        _, *names, why = (str(word) for word in several[0])
        # The text of the error below names both paths again.
        why = why.partition("] ")[2].partition(": '")[0] or why
        why += f" (and {len(several) - 1} more)" if len(several) > 1 else ""
    full = {errno.ENOSPC: "some disk space", errno.EDQUOT: "some of your quota"}
    free = next((what for code, what in full.items() if os.strerror(code) in why), "")
    hint = f"free {free} and run again" if free else ""
    return CouldNotLookError(": ".join([*names, why]), hint=hint)


class BuildError(WheelfarmError):
    """A build step or a job failed."""

    exit_code = 3


class BadInputError(WheelfarmError):
    """A recipe, plan, filter, lock, wheel or other input is not acceptable."""

    exit_code = 4


class UsageError(WheelfarmError):
    """The command line itself is off."""

    exit_code = 64


class InterruptedByUserError(WheelfarmError):
    """Ctrl-C; what was finished stays, and a second run continues."""

    exit_code = 130


class FaultsError(BadInputError):
    """Every fault of one document at once, each with its place (``context``) and sentence."""

    def __init__(self, title: str, faults: "list[Fault]", *, hint: str = "") -> None:
        self.faults = tuple(faults)
        text = "\n".join([title, *(f"  {fault}" for fault in self.faults)])
        super().__init__(text, hint=hint)


class Fault:
    """One fault of a document: where it stands and what is wrong."""

    __slots__ = ("context", "line", "message")

    def __init__(self, context: str, message: str, line: int | None = None) -> None:
        self.context = context
        self.message = message
        self.line = line

    def __str__(self) -> str:
        place = self.context if self.line is None else f"{self.context} (line {self.line})"
        return f"{place}: {self.message}"

    def __repr__(self) -> str:
        return f"Fault({self.context!r}, {self.message!r}, {self.line!r})"
