"""What ``plan`` knows of the store: its wheels, and where they were read from."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wheelfarm.plan.model import StoredWheel
    from wheelfarm.recipes.model import Farm
    from wheelfarm.store.protocol import Store


def stored_wheels(
    farm: "Farm", store: str | None, have: Path | None
) -> "tuple[list[StoredWheel], str]":
    """Return the store's wheels of the farm's packages, and the store's name.

    A farm whose own default store was never made has none. Any other store that cannot be read is
    an error, so that a lost store never becomes "build everything". Raises CouldNotLookError.
    """
    from wheelfarm.errors import UsageError

    if store is not None and have is not None:
        message = "give either --store or --have"
        raise UsageError(message)
    if have is not None:
        return _listed(have), str(have)
    location = store or farm.policy.store
    if "://" not in location:
        path = Path(location) if store is not None else farm.root / location
        if not path.is_dir():
            if store is None and location == "store":
                return [], f"{path} (not made yet)"
            why = "it is no folder" if path.exists() else "there is no such folder"
            raise _unreadable(str(path), why, hint=f"where it is new: mkdir -p {path}; else ")
        location = str(path)
    return _of_store(location, farm), location


def _unreadable(location: str, why: str, *, hint: str = "") -> Exception:
    from wheelfarm.errors import CouldNotLookError

    message = f"the store {location} could not be read: {why}"
    return CouldNotLookError(
        message, hint=f"nothing was planned; {hint}name the store with --store"
    )


def _listed(path: Path) -> "list[StoredWheel]":
    from wheelfarm.errors import BadInputError
    from wheelfarm.model.wheel_name import WheelName
    from wheelfarm.plan.model import StoredWheel
    from wheelfarm.reading import read_text

    found: list[StoredWheel] = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            found.append(StoredWheel(name=WheelName.parse(line.strip())))
        except BadInputError as error:
            message = f"{path}, line {number}: {error.what}"
            raise BadInputError(message, hint="give one wheel's file name a line") from error
    return found


def _of_store(location: str, farm: "Farm") -> "list[StoredWheel]":
    from wheelfarm.store.location import open_store

    store = open_store(location)
    try:
        present = set(store.heads())
        names = sorted(name.replace("_", "-") for name in farm.recipes)
        return [wheel for name in names if name in present for wheel in _of_package(store, name)]
    except OSError as error:
        raise _unreadable(location, str(error)) from error


def _of_package(store: "Store", package: str) -> "list[StoredWheel]":
    from wheelfarm.model.axis import TORCH_AXES
    from wheelfarm.model.wheel_name import WheelName
    from wheelfarm.plan.model import StoredWheel
    from wheelfarm.reading import Reader

    found: list[StoredWheel] = []
    context = f"{store.location}: catalogue of {package}"
    for document in store.catalogue(package).documents():
        reader = Reader(document, context)
        name = reader.parsed("filename", WheelName.parse)
        word = reader.string("torch_axis", "")
        # A yanked or removed wheel serves nobody, but its name and build tag stay taken.
        usable = not reader.has("yanked") and not reader.boolean("removed", default=False)
        reader.finish()
        if name is not None:
            axis = next((known for known in TORCH_AXES if known == word), None)
            found.append(StoredWheel(name=name, torch_axis=axis, usable=usable))
    return found
