"""Logs of a command: to stderr, at the level that was asked for, and never steering a terminal."""

import logging
import sys

from wheelfarm.cli.output import clean_lines


class _CleanFormatter(logging.Formatter):
    """A formatter whose lines cannot steer a terminal, whatever a name in them holds."""

    def format(self, record: logging.LogRecord) -> str:
        return clean_lines(super().format(record))


def configure(verbosity: int) -> None:
    """Write logs to stderr: errors at -1, warnings at 0, then information, then all."""
    level = {-1: logging.ERROR, 0: logging.WARNING, 1: logging.INFO}.get(
        max(-1, verbosity), logging.DEBUG
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_CleanFormatter("%(levelname)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])
    for noisy in ("urllib3", "auditwheel"):
        logging.getLogger(noisy).setLevel(max(level, logging.WARNING))
