"""What is asked for, and how: the value that every kind of input becomes."""

from collections.abc import Mapping
from typing import Any

from wheelfarm.resolve.candidate import Wanted
from wheelfarm.values import NOTHING, value


@value
class Asking:
    """What a file asks for and how: packages, index addresses by backend, and the rest.

    ``releases`` names the farm's repository for the second transport; ``carried`` holds the tables
    that belong to others and go into a written file as they are; ``notes`` say what of the file
    counts for nothing.
    """

    wanted: tuple[Wanted, ...]
    indexes: Mapping[str, str] = NOTHING
    releases: str = ""
    choose_torch: bool = False
    prereleases: bool = False
    carried: Mapping[str, Any] = NOTHING
    notes: tuple[str, ...] = ()
