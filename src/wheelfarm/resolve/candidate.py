"""A wheel that an index offers, and what is asked for: the two values that every rule compares."""

from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING, Literal

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from wheelfarm.index.model import WheelEntry
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.axis import TorchAxis
from wheelfarm.model.versions import Minor, is_release
from wheelfarm.model.wheel_name import Label, WheelName
from wheelfarm.resolve.host import Host
from wheelfarm.values import value

if TYPE_CHECKING:
    from packaging.markers import Marker


#: What holds for a package of which any version will do.
_ANY_VERSION = SpecifierSet()


@value(unseen=("source",))
class Candidate:
    """One wheel as one package's page offers it.

    ``name`` is the file's; ``serves`` is the name under which the page offers it, which says the
    cells it serves and differs where a page lists one file for several. ``proven`` says whether
    the facts come from a manifest or from names alone. ``source`` reads the rest of the entry when
    a rule first asks for it, as most wheels are out by name and ``torch_axis``.
    """

    name: WheelName
    serves: WheelName
    proven: bool
    torch_axis: TorchAxis | None
    source: Callable[[], WheelEntry]

    @classmethod
    def of(cls, entry: WheelEntry, *, serves: WheelName, proven: bool) -> "Candidate":
        """Return a candidate whose entry was read already."""
        return cls(
            name=entry.name,
            serves=serves,
            proven=proven,
            torch_axis=entry.torch_axis,
            source=lambda: entry,
        )

    def with_entry(self, entry: WheelEntry) -> "Candidate":
        """Return the same offer with another entry."""
        return Candidate.of(entry, serves=self.serves, proven=self.proven)

    @cached_property
    def entry(self) -> WheelEntry:
        """What the index says of the file; BadInputError where that is faulty."""
        return self.source()

    @cached_property
    def version(self) -> Version:
        """The version that the page offers, with its local part."""
        return self.serves.version

    @property
    def label(self) -> Label:
        """What the offered name's local version says."""
        return label_of(self.serves.version_text)

    @property
    def package(self) -> str:
        """The normalised name."""
        return self.name.package

    def __str__(self) -> str:
        if self.serves == self.name:
            return str(self.name)
        return f"{self.name} (offered as {self.serves})"


@cache
def label_of(version_text: str) -> Label:
    """Return what a version's local part says; a page has thousands of wheels and few versions."""
    return Label.parse(version_text.partition("+")[2])


@value
class Wanted:
    """One package that is asked for: normalised name, versions, extras, and who asks.

    ``because`` is empty where the user asks, else the package whose requirement it is.
    ``optional`` marks one that is the installer's business where the index does not serve it.
    """

    name: str
    specifier: SpecifierSet = _ANY_VERSION
    extras: frozenset[str] = frozenset()
    because: str = ""
    optional: bool = False
    marker: "Marker | None" = None

    def __str__(self) -> str:
        extras = f"[{','.join(sorted(self.extras))}]" if self.extras else ""
        return f"{self.name}{extras}{self.specifier}"


@value
class Target:
    """What wheels must fit: a host, and the torch and accelerator that all of them share.

    ``torch`` is None where the environment has none and none is to be chosen; then only wheels
    that do not depend on torch can serve. ``prereleases`` is whether they were asked for;
    ``preferred`` holds the SHA-256 of wheels of a lock, which win where they serve; with
    ``exact`` a wheel of an earlier minor of the accelerator's major does not serve.
    """

    host: Host
    torch: Version | None
    accelerator: Accelerator | None
    prereleases: bool = False
    preferred: frozenset[str] = frozenset()
    exact: bool = False

    @cached_property
    def torch_minor(self) -> Minor | None:
        """The minor of torch's release; None where there is none, or where it is a snapshot."""
        return None if self.torch is None or not is_release(self.torch) else Minor.of(self.torch)

    def __str__(self) -> str:
        torch = "no torch" if self.torch is None else f"torch {self.torch.public}"
        accelerator = "no accelerator" if self.accelerator is None else str(self.accelerator)
        return f"{torch}, {accelerator}"


#: What a failure is about, and so what one would have to change.
Aspect = Literal[
    "version",
    "yanked",
    "python",
    "platform",
    "glibc",
    "torch",
    "abi",
    "accelerator",
    "driver",
    "gpu",
]


@value
class Failure:
    """One rule's no: its aspect, the reason, and what would change it."""

    aspect: Aspect
    reason: str
    change: str = ""
