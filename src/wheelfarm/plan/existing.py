"""Which cells the store's wheels already serve. Names are read once, and matched as clients do."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from packaging.version import Version

from wheelfarm.errors import BadInputError
from wheelfarm.grid.model import GridCell, Point
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.axis import CxxAbi, TorchAxis
from wheelfarm.model.cell import CellId, cell_name
from wheelfarm.model.platform import Platform
from wheelfarm.model.python import PythonTag
from wheelfarm.model.wheel_name import Label, WheelName
from wheelfarm.plan.model import StoredWheel
from wheelfarm.upstream.cxx_abi import cxx_abi


@dataclass(frozen=True, slots=True)
class _Known:
    """A stored wheel, its name read into what matters here."""

    name: WheelName
    label: Label
    python: PythonTag
    platforms: frozenset[Platform]
    torch_axis: TorchAxis | None
    usable: bool


#: Where a wheel can serve: version, accelerator, platform.
_Place = tuple[Version, Accelerator | None, Platform]


class StoreView:
    """The wheels of a store, by package; names of other packages are never read."""

    def __init__(self, wheels: Iterable[StoredWheel]) -> None:
        self._wheels: dict[str, list[StoredWheel]] = defaultdict(list)
        for wheel in wheels:
            self._wheels[cell_name(wheel.name.distribution)].append(wheel)
        self._known: dict[str, dict[_Place, list[_Known]]] = {}

    def has(self, package: str) -> bool:
        """Return whether the store has any wheel of a package."""
        return bool(self._wheels.get(package))

    def serving(self, cell: GridCell) -> tuple[WheelName, ...]:
        """Return wheels that together serve every point of a cell; empty where some is missing.

        One wheel serves several points where its tags say so (abi3, ``py3-none``) and where the
        package does not depend on torch's version. History under other tags counts too.
        """
        usable = [wheel for wheel in self._of(cell.identifier) if wheel.usable]
        if not usable:
            return ()
        used: dict[WheelName, None] = {}
        for point in cell.serves:
            wheel = next((item for item in usable if _serves(item, cell, point)), None)
            if wheel is None:
                return ()
            used[wheel.name] = None
        return tuple(used)

    def next_build(self, cell: GridCell) -> int:
        """Return the build tag that lets a cell's new wheel stand beside what the store has.

        0 (none) where no wheel has the cell's name or serves any of its points; else one more than
        the highest of those, so that clients prefer the new wheel.
        """
        highest = [
            wheel.name.build_number[0]
            for wheel in self._of(cell.identifier)
            if _same_name(wheel, cell) or any(_serves(wheel, cell, at) for at in cell.serves)
        ]
        return max(highest) + 1 if highest else 0

    def _of(self, identifier: CellId) -> Sequence[_Known]:
        """Return the wheels of a cell's package, version, accelerator and platform.

        1.0 and 1.0.0 are one version.
        """
        known = self._known.get(identifier.package)
        if known is None:
            known = self._known[identifier.package] = defaultdict(list)
            found = map(_read, self._wheels.get(identifier.package, ()))
            wheels = [wheel for wheel in found if wheel is not None]
            # Of wheels that differ in their build tag alone, clients take the highest.
            wheels.sort(key=lambda item: item.name.build_number, reverse=True)
            for wheel in wheels:
                version = Version(wheel.name.version.public)
                for platform in wheel.platforms:
                    known[version, wheel.label.accelerator, platform].append(wheel)
        key = (identifier.version, identifier.accelerator, identifier.platform)
        return known.get(key, ())


def _read(wheel: StoredWheel) -> _Known | None:
    try:
        python = wheel.name.python
    except BadInputError:
        return None
    tags = (Platform.of_tag(tag) for tag in wheel.name.platforms)
    platforms = frozenset(platform for platform in tags if platform is not None)
    return _Known(wheel.name, wheel.name.label, python, platforms, wheel.torch_axis, wheel.usable)


def _same_name(wheel: _Known, cell: GridCell) -> bool:
    identifier = cell.identifier
    return wheel.label.torch == identifier.torch and wheel.python == identifier.python


def _serves(wheel: _Known, cell: GridCell, point: Point) -> bool:
    return wheel.python.serves(point.python) and _serves_torch(wheel, cell, point)


def _serves_torch(wheel: _Known, cell: GridCell, point: Point) -> bool:
    """Return whether a wheel runs with a point's torch, given what the package is said to be.

    What was proven of the wheel comes before what the recipe says of its next one.
    """
    axis = wheel.torch_axis or cell.torch_axis
    label = wheel.label
    if axis == "free":
        return True
    if label.torch is None:
        return False
    if cell.torch_pinned and label.torch_release not in {None, point.torch}:
        return False
    if label.torch == point.minor:
        return True
    if axis == "abi_flag":
        return _abi_of(wheel, point.platform) == cell.cxx_abi
    # A wheel of an older torch than the stable ABI's first is no stable-ABI wheel.
    floor = cell.target
    return axis == "stable_abi" and floor is not None and floor <= label.torch <= point.minor


def _abi_of(wheel: _Known, platform: Platform) -> CxxAbi | None:
    label = wheel.label
    if label.cxx11_abi is not None:
        return 1 if label.cxx11_abi else 0
    if label.accelerator is None or label.torch is None:
        return None
    return cxx_abi(label.accelerator, label.torch, platform)
