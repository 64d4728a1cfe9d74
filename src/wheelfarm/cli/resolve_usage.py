"""Options of ``wheelfarm resolve`` that contradict one another."""

import argparse

from wheelfarm.errors import UsageError

#: What writes or installs, and so goes with no option that only looks.
_WRITING = ("format", "output", "install", "upgrade", "profile", "feature")


def refuse_contradictions(arguments: argparse.Namespace) -> None:
    """Raise UsageError for options that go with none of the others, rather than ignore some."""
    if arguments.dry_run and not arguments.install:
        message = "--dry-run shows what --install would do, and --install is not given"
        raise UsageError(message, hint="without --output nothing is written anyway")
    for alone in ("check", "available"):
        names = [name for name in _WRITING if getattr(arguments, name)]
        names += ["PACKAGE"] if alone == "check" and arguments.packages else []
        if getattr(arguments, alone) and names:
            others = ", ".join(name if name.isupper() else f"--{name}" for name in names)
            message = f"--{alone} only looks, and goes with no {others}"
            raise UsageError(message)
