"""What ``plan`` knows of the store: its wheels, and where they were read from."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wheelfarm.plan.model import StoredWheel
    from wheelfarm.recipes.model import Farm


def stored_wheels(
    farm: "Farm", store: str | None, have: Path | None
) -> "tuple[list[StoredWheel], str]":
    """Return the store's wheels and the store's name.

    A farm whose own default store was never made has none. Any other store that cannot be read is
    an error, so that a lost store never becomes "build everything".
    """
    from wheelfarm.errors import UsageError

    if store is not None and have is not None:
        message = "give either --store or --have"
        raise UsageError(message)
    if have is not None:
        return _listed(have), str(have)
    path = farm.root / (store or farm.policy.store)
    if store is None and farm.policy.store == "store" and not path.exists():
        return [], f"{path} (not made yet)"
    return _folder(path), str(path)


def _listed(path: Path) -> "list[StoredWheel]":
    from wheelfarm.model.wheel_name import WheelName
    from wheelfarm.plan.model import StoredWheel
    from wheelfarm.reading import read_text

    words = (line.strip() for line in read_text(path).splitlines())
    return [StoredWheel(name=WheelName.parse(word)) for word in words if word]


def _folder(path: Path) -> "list[StoredWheel]":
    from wheelfarm.errors import CouldNotLookError
    from wheelfarm.model.wheel_name import WheelName
    from wheelfarm.plan.model import StoredWheel

    if not path.is_dir():
        message = f"the store {path} could not be read: there is no such folder"
        raise CouldNotLookError(message, hint="nothing was planned; name the store with --store")
    return [StoredWheel(name=WheelName.parse(file.name)) for file in sorted(path.rglob("*.whl"))]
