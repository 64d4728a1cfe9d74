"""Which channels a wheel stands in, and under which names old clients look for it. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from wheelfarm.errors import BadInputError
from wheelfarm.index.model import Combination
from wheelfarm.index.shipped import Shipped
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.axis import TorchAxis
from wheelfarm.model.platform import PLATFORMS, Platform
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor
from wheelfarm.model.wheel_name import Label, WheelName


@dataclass(frozen=True, slots=True)
class Kind:
    """All that decides where a wheel stands; many wheels share one.

    ``torch`` is the minor that the label names, ``python`` None for a wheel of no CPython.
    """

    accelerator: Accelerator
    torch: Minor | None
    axis: TorchAxis | None
    from_torch: Minor | None
    cxx_abi: int | None
    python: PythonTag | None
    platform: Platform | None


@dataclass(frozen=True, slots=True)
class Lines:
    """The torch minors of each CUDA line of one site: those shipped and those in its labels."""

    torches: Mapping[Accelerator, frozenset[Minor]]

    @classmethod
    def of(cls, labels: Iterable[Label], shipped: Shipped) -> "Lines":
        """Return the lines of a site whose wheels have these labels."""
        found: dict[Accelerator, set[Minor]] = {}
        for label in labels:
            if label.accelerator is None or label.accelerator.version is None:
                continue
            minors = found.setdefault(label.accelerator, set(shipped.torches(label.accelerator)))
            if label.torch is not None:
                minors.add(label.torch)
        return cls({accelerator: frozenset(minors) for accelerator, minors in found.items()})

    def combinations(self) -> tuple[Combination, ...]:
        """Return every channel of the site, in order."""
        return tuple(
            sorted(
                Combination(accelerator, torch)
                for accelerator, minors in self.torches.items()
                for torch in minors
            )
        )


def kind_of(
    name: WheelName, axis: TorchAxis | None, from_torch: Minor | None, cxx_abi: int | None
) -> Kind | None:
    """Return the kind of a wheel; None where its label names no exact accelerator."""
    local = name.version_text.partition("+")[2]
    return _kind(local, axis, from_torch, cxx_abi, (name.pythons, name.abis, name.platforms))


_Tags = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]


@lru_cache(maxsize=65536)
def _kind(
    local: str, axis: TorchAxis | None, from_torch: Minor | None, cxx_abi: int | None, tags: _Tags
) -> Kind | None:
    label = Label.parse(local)
    if label.accelerator is None or label.accelerator.version is None:
        return None
    pythons, abis, platforms = tags
    return Kind(
        accelerator=label.accelerator,
        torch=label.torch,
        axis=axis,
        from_torch=from_torch,
        cxx_abi=cxx_abi,
        python=_python(pythons, abis),
        platform=_platform(platforms),
    )


@dataclass(frozen=True, slots=True)
class Stand:
    """Where wheels of one kind stand: ``channels`` by path, and their names for old clients.

    An alias is a local version and a Python; the Python is None where the file name's own tags say
    it already. ``cover`` names, by channel and platform, the Pythons that are served.
    """

    channels: tuple[str, ...]
    aliases: tuple[tuple[str, PythonTag | None], ...]
    cover: tuple[tuple[str, str, tuple[str, ...]], ...]


#: A wheel whose label names no exact accelerator stands on the root pages alone.
NOWHERE = Stand((), (), ())


class Placement:
    """Where wheels stand on one site: its ``lines`` against what PyTorch ``shipped``."""

    def __init__(self, lines: Lines, shipped: Shipped) -> None:
        self.lines = lines
        self.shipped = shipped
        # Kinds are shared by many wheels, and hashing one costs more than all else of the look-up.
        self._stands: dict[int, tuple[Kind, Stand]] = {}

    def stand(self, kind: Kind | None) -> Stand:
        """Return where wheels of a kind stand."""
        if kind is None:
            return NOWHERE
        found = self._stands.get(id(kind))
        if found is None:
            found = (kind, self._stand(kind))
            self._stands[id(kind)] = found
        return found[1]

    def _serving(self, kind: Kind, torch: Minor) -> dict[str, list[PythonTag]]:
        """Return, by platform, the Pythons of one torch that a wheel serves.

        A torch that nobody knows is served for the wheel's own Python.
        """
        if not self._known(kind, torch):
            own = [] if kind.python is None or kind.python.axis == "none" else [kind.python]
            exact = [PythonTag("exact", tag.version, tag.free_threaded) for tag in own]
            return {platform.identifier: exact for platform in _over(kind)}
        return {
            platform.identifier: [
                python
                for python in self.shipped.pythons(kind.accelerator, torch, platform)
                if kind.python is not None and kind.python.serves(python)
            ]
            for platform in _over(kind)
        }

    def _stand(self, kind: Kind) -> Stand:
        torches = [
            torch
            for torch in sorted(self.lines.torches.get(kind.accelerator, ()))
            if self._serves(kind, torch)
        ]
        paths = {torch: Combination(kind.accelerator, torch).path for torch in torches}
        aliases = tuple(
            (f"{kind.accelerator}torch{torch}", python)
            for torch in torches
            for python in self._named_pythons(kind, torch)
        )
        cover = tuple(
            (paths[torch], platform, tuple(python.dotted for python in pythons))
            for torch in torches
            for platform, pythons in self._serving(kind, torch).items()
        )
        return Stand(tuple(paths.values()), aliases, cover)

    def _serves(self, kind: Kind, torch: Minor) -> bool:
        if kind.axis is None or kind.axis == "linked":
            return torch == kind.torch
        if torch == kind.torch and not self._known(kind, torch):
            # The wheel was built against it, so it exists, whatever the table does not know yet.
            return True
        if kind.axis == "stable_abi":
            floor = kind.from_torch or kind.torch
            if floor is not None and torch < floor:
                return False
        if kind.axis == "abi_flag" and not self._same_abi(kind, torch):
            return False
        return self._python_exists(kind, torch)

    def _known(self, kind: Kind, torch: Minor) -> bool:
        return any(
            self.shipped.pythons(kind.accelerator, torch, platform) for platform in _over(kind)
        )

    def _same_abi(self, kind: Kind, torch: Minor) -> bool:
        if torch == kind.torch:
            return True
        known = [
            self.shipped.cxx_abi(kind.accelerator, torch, platform) for platform in _over(kind)
        ]
        # A wheel whose flag nobody knows serves the torch that it was built with, and no other.
        return kind.cxx_abi is not None and kind.cxx_abi in known

    def _python_exists(self, kind: Kind, torch: Minor) -> bool:
        return bool(self._pythons(kind, torch))

    def _pythons(self, kind: Kind, torch: Minor) -> list[PythonTag]:
        shipped = {
            python
            for platform in _over(kind)
            for python in self.shipped.pythons(kind.accelerator, torch, platform)
        }
        return sorted(
            python for python in shipped if kind.python is not None and kind.python.serves(python)
        )

    def _named_pythons(self, kind: Kind, torch: Minor) -> tuple[PythonTag | None, ...]:
        if kind.python is None or kind.python.axis == "exact":
            return (None,)
        return tuple(self._pythons(kind, torch)) or (None,)


def alias_names(name: WheelName, own: str, stand: Stand) -> tuple[str, ...]:
    """Return the texts under which a wheel is listed for clients that match on the local tag.

    The file's ``own`` name comes first; each alias names one torch, and for a wheel that serves
    several Pythons one Python.
    """
    labels = stand.aliases
    if len(labels) == 1 and labels[0][1] is None and own.count(f"+{labels[0][0]}-"):
        return (own,)
    return (own, *[text for text in name.relabelled(labels) if text != own])


def _over(kind: Kind) -> tuple[Platform, ...]:
    """Return the wheel's platform, or every one for a wheel of any platform."""
    return PLATFORMS if kind.platform is None else (kind.platform,)


@lru_cache(maxsize=4096)
def _python(pythons: tuple[str, ...], abis: tuple[str, ...]) -> PythonTag | None:
    name = _probe(pythons=pythons, abis=abis, platforms=("any",))
    try:
        return name.python
    except BadInputError:
        return None


@lru_cache(maxsize=4096)
def _platform(platforms: tuple[str, ...]) -> Platform | None:
    return _probe(pythons=("py3",), abis=("none",), platforms=platforms).platform


def _probe(
    *, pythons: tuple[str, ...], abis: tuple[str, ...], platforms: tuple[str, ...]
) -> WheelName:
    return WheelName(
        distribution="x", version_text="0", pythons=pythons, abis=abis, platforms=platforms
    )
