"""The rows of the grid: for each CUDA line and torch minor, the one release that it pins."""

from collections.abc import Mapping
from dataclasses import dataclass

from packaging.version import Version

from wheelfarm.grid.archs import check_archs, policy_archs
from wheelfarm.grid.model import Point, Refusal
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.arch import ArchList
from wheelfarm.model.platform import LINUX_X86_64, PLATFORMS, WINDOWS_AMD64, Platform
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor, is_release
from wheelfarm.recipes.model import FarmPolicy
from wheelfarm.upstream.model import Release, UpstreamFacts
from wheelfarm.values import replace


@dataclass(frozen=True, slots=True)
class Offer:
    """A point of a row, the same value for every package, and why it is a phantom if it is one."""

    point: Point
    phantom: Refusal | None


@dataclass(frozen=True, slots=True)
class PolicyArchs:
    """Architectures of the farm's policy, and why they cannot be built (by kind of package)."""

    archs: ArchList
    why_not: str
    why_not_free: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One torch minor of one CUDA line, and the release that stands for it.

    ``others`` are the minor's further releases, which explain a phantom: a platform that only
    they have. ``pinned`` is set where a recipe names the release.
    """

    cuda: Minor
    accelerator: Accelerator
    minor: Minor
    release: Release
    others: tuple[Release, ...]
    pythons: tuple[PythonTag, ...]
    """Every Python that any release of the minor has anywhere."""
    offers: Mapping[Platform, tuple[Offer, ...]]
    """What the release has on each platform, in the order of ``pythons``."""
    policy_archs: Mapping[Platform, PolicyArchs]
    """The policy's architectures, where it has any."""
    pinned: bool = False

    def with_release(self, torch: Version) -> "Row | None":
        """Return the row pinned to another of its releases; None where that is not published."""
        every = (self.release, *self.others)
        chosen = next((release for release in every if release.torch == torch), None)
        if chosen is None:
            return None
        others = tuple(release for release in every if release is not chosen)
        offers = offers_of(chosen, others, self.pythons)
        return replace(self, release=chosen, others=others, offers=offers, pinned=True)


def offers_of(
    release: Release, others: tuple[Release, ...], pythons: tuple[PythonTag, ...]
) -> dict[Platform, tuple[Offer, ...]]:
    """Return every point of a release, with the reason where PyTorch has no such wheel."""
    return {
        platform: tuple(
            Offer(
                Point(release.accelerator, release.torch, python, platform),
                None
                if release.ships(python, platform)
                else Refusal("phantom", _phantom(release, others, python, platform)),
            )
            for python in pythons
        )
        for platform in PLATFORMS
    }


def _phantom(
    release: Release, others: tuple[Release, ...], python: PythonTag, platform: Platform
) -> str:
    wheel = f"{release.accelerator} {python} wheel for {platform}"
    for other in others:
        if other.ships(python, platform):
            return (
                f"phantom: PyTorch published a {wheel} of torch {other.torch}, not of "
                f"{release.torch}, which this row pins"
            )
    return f"phantom: PyTorch published no {wheel} of torch {release.torch}"


def rows_of(policy: FarmPolicy, facts: UpstreamFacts) -> tuple[Row, ...]:
    """Return a farm's rows, by CUDA line and torch minor.

    A row pins the newest release that has x86 wheels: a patch release that came out for one
    platform alone is no basis for the others.
    """
    rows: list[Row] = []
    for cuda in policy.supported_cudas:
        accelerator = Accelerator.cuda(cuda)
        minors: dict[Minor, list[Release]] = {}
        for release in facts.releases_of(accelerator):
            if is_release(release.torch):
                minors.setdefault(release.minor, []).append(release)
        rows += [
            row
            for minor, releases in sorted(minors.items())
            if (row := _row(policy, facts, cuda, minor, releases)) is not None
        ]
    return tuple(rows)


def _row(
    policy: FarmPolicy, facts: UpstreamFacts, cuda: Minor, minor: Minor, releases: list[Release]
) -> Row | None:
    x86 = [release for release in releases if has_x86(release)]
    if not x86:
        return None
    newest = max(x86, key=lambda release: release.torch)
    others = tuple(release for release in releases if release is not newest)
    pythons = tuple(
        sorted({tag for release in releases for tags in release.pythons.values() for tag in tags})
    )
    archs: dict[Platform, PolicyArchs] = {}
    for platform in policy.platforms:
        found = policy_archs(policy, cuda, minor, platform)
        if found is not None:
            archs[platform] = PolicyArchs(
                found,
                check_archs(found, facts, cuda, minor, "linked"),
                check_archs(found, facts, cuda, minor, "free"),
            )
    return Row(
        cuda=cuda,
        accelerator=newest.accelerator,
        minor=minor,
        release=newest,
        others=others,
        pythons=pythons,
        offers=offers_of(newest, others, pythons),
        policy_archs=archs,
    )


def has_x86(release: Release) -> bool:
    """Return whether a release has any wheel for x86_64."""
    return bool(release.pythons.get(LINUX_X86_64) or release.pythons.get(WINDOWS_AMD64))
