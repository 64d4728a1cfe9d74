"""``python -m wheelfarm``."""

from wheelfarm.cli import entry_point

entry_point()
