"""``python -m wheelfarm.cli``."""

from wheelfarm.cli import entry_point

entry_point()
