"""``pixi.toml``: direct-URL pypi-dependencies in the user's own file, or in features of it.

libc and CUDA are stated in the form that the pixi version takes: from 0.71 on the platform's inline
table, before that ``[system-requirements]``. On a machine without a driver, ``CONDA_OVERRIDE_CUDA``
lets pixi solve. Comments and everything else in the file stay as they are.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import tomlkit

from wheelfarm.errors import BadInputError
from wheelfarm.model.versions import Minor
from wheelfarm.reading import parse_toml
from wheelfarm.resolve.lock import Profile, Question, Written
from wheelfarm.resolve.resolution import Resolution
from wheelfarm.resolve.writers.pixi_packages import Packages
from wheelfarm.resolve.writers.places import Path, Places
from wheelfarm.resolve.writers.tables import list_at, table_at, text_of, value_at

_SUBDIRS = {
    "linux_x86_64": "linux-64",
    "linux_aarch64": "linux-aarch64",
    "windows_amd64": "win-64",
    "macosx_arm64": "osx-arm64",
    "macosx_x86_64": "osx-64",
}
#: The first pixi that states virtual packages on the platform.
PLATFORM_TABLES = Minor(0, 71)
#: What pixi assumes of glibc where nothing is stated.
_ASSUMED_GLIBC = Minor(2, 28)


def write(
    profiles: Sequence[Profile],
    question: Question,
    name: str,
    existing: str = "",
    *,
    feature: str = "",
    version: Minor = PLATFORM_TABLES,
) -> Written:
    """Return the file's name and its new text.

    ``feature`` puts a single profile into that feature; several profiles always become features
    and environments of their names. Of a ``pyproject.toml`` it is the part at ``tool.pixi``. Raises
    BadInputError for a platform that pixi does not know, for a manifest of other Pythons, and for a
    package that the project's own dependencies name.
    """
    parse_toml(existing, name)
    document = tomlkit.parse(existing)
    root: Path = ("tool", "pixi") if PurePath(name).name == "pyproject.toml" else ()
    if all(value_at(document, *root, key) is None for key in ("workspace", "project")):
        workspace = table_at(document, *root, "workspace")
        if not (root and value_at(document, "project", "name")):
            workspace["name"] = "environment"
        workspace["channels"] = ["conda-forge"]
    places = Places(document)
    for profile in profiles:
        writer = _Writer(
            places=places,
            root=root,
            resolution=profile.resolution,
            feature=profile.name or feature,
            version=version,
        )
        writer.platform()
        packages = Packages(
            places=places,
            root=root,
            feature=writer.feature,
            subdir=writer.subdir,
            resolution=profile.resolution,
            shared=writer.shared(),
            alone=bool(profile.name),
        )
        packages.write()
        if writer.feature:
            writer.environment(alone=bool(profile.name))
    notes = places.take_out(name)
    places.note(question)
    return Written(texts={PurePath(name).name: text_of(document, name, existing)}, notes=notes)


class _Writer:
    """State one profile's platform and environment: at the top, or in a feature."""

    def __init__(
        self, *, places: Places, root: Path, resolution: Resolution, feature: str, version: Minor
    ) -> None:
        self.places = places
        self.root = root
        self.document = table_at(places.document, *root)
        self.resolution = resolution
        self.feature = feature
        # What a feature may be called is free; its environment's and platform's names are not.
        self.word = re.sub(r"[^a-z0-9]+", "-", feature.lower()).strip("-")
        if feature and not self.word:
            message = f"the feature {feature!r} gives no name for its environment"
            raise BadInputError(message, hint="take letters, digits and hyphens")
        self.version = version
        platform = resolution.host.platform.value or ""
        if platform not in _SUBDIRS:
            message = f"pixi has no platform for {platform or 'an unknown host'}"
            raise BadInputError(message)
        self.subdir = _SUBDIRS[platform]

    def table(self, *path: str) -> Any:
        if self.feature:
            return table_at(self.document, "feature", self.feature, *path)
        return table_at(self.document, *path)

    def shared(self) -> bool:
        """Return whether other platforms solve the same packages; a feature has its own alone."""
        head = "workspace" if "workspace" in self.document else "project"
        platforms = value_at(self.document, head, "platforms") or ()
        return not self.feature and any(_subdir(each) != self.subdir for each in platforms)

    def platform(self) -> None:
        """State the platform, and libc and CUDA in the form that this pixi takes."""
        needs = self.needs()
        head = "workspace" if "workspace" in self.document else "project"
        workspace = table_at(self.document, head)
        if "platforms" not in workspace:
            workspace["platforms"] = tomlkit.array()
        platforms = list_at(workspace, "platforms", f"{head}.platforms")
        if self.version < PLATFORM_TABLES:
            if self.subdir not in [str(each) for each in platforms]:
                platforms.append(self.subdir)
            self.system_requirements(needs)
        elif not needs:
            if self.subdir not in [_name(each) for each in platforms]:
                platforms.append(self.subdir)
        else:
            self.platform_table(platforms, needs)
        if self.feature:
            own = self.table()
            self.places.claim((*self.root, "feature", self.feature, "platforms"))
            own["platforms"] = [self.platform_name(needs)]

    def platform_name(self, needs: Mapping[str, str]) -> str:
        if self.version < PLATFORM_TABLES or not needs:
            return self.subdir
        return f"{self.subdir}-{self.word}" if self.feature else self.subdir

    def platform_table(self, platforms: Any, needs: Mapping[str, str]) -> None:
        entry = tomlkit.inline_table()
        name = self.platform_name(needs)
        if name != self.subdir:
            entry["name"] = name
        entry["platform"] = self.subdir
        for key, value in needs.items():
            entry[key] = value
        for index, each in enumerate(list(platforms)):
            if _name(each) == name:
                platforms[index] = _combined(each, entry)
                return
        platforms.append(entry)

    def system_requirements(self, needs: Mapping[str, str]) -> None:
        if not needs:
            return
        table = self.table("system-requirements")
        if "cuda" in needs:
            table["cuda"] = needs["cuda"]
        if "glibc" in needs:
            libc = tomlkit.inline_table()
            libc["family"] = "glibc"
            libc["version"] = needs["glibc"]
            table["libc"] = libc

    def needs(self) -> dict[str, str]:
        """Return the glibc and CUDA that the wheels need of the machine."""
        found: dict[str, str] = {}
        floors = [
            floor
            for choice in self.resolution.choices
            if (floor := _glibc(choice.candidate.name.platforms)) is not None
        ]
        if self.subdir.startswith("linux") and floors and max(floors) > _ASSUMED_GLIBC:
            found["glibc"] = str(max(floors))
        accelerator = self.resolution.answer.target.accelerator
        if accelerator is not None and accelerator.kind == "cuda":
            found["cuda"] = str(accelerator.major)
        return found

    def environment(self, *, alone: bool) -> None:
        """Give the feature an environment of its name, unless one has it already."""
        environments = table_at(self.document, "environments")
        place = (*self.root, "environments", self.word)
        if self.word in environments or any(map(self.has_feature, environments.values())):
            if self.places.are_ours(place):
                self.places.now.add(place)
            return
        self.places.claim(place)
        entry = tomlkit.inline_table()
        entry["features"] = [self.feature]
        if alone:
            entry["no-default-feature"] = True
        environments[self.word] = entry

    def has_feature(self, environment: Any) -> bool:
        features = environment
        if isinstance(environment, Mapping):
            features = environment.get("features", [])
        return isinstance(features, list) and self.feature in features


def _name(entry: Any) -> str:
    if isinstance(entry, Mapping):
        return str(entry.get("name") or entry.get("platform"))
    return str(entry)


def _subdir(entry: Any) -> str:
    return str(entry.get("platform")) if isinstance(entry, Mapping) else str(entry)


def _combined(old: Any, new: Any) -> Any:
    """Return the platform's table with what it stated besides kept."""
    if isinstance(old, Mapping):
        for key, value in old.items():
            if key not in new:
                new[key] = value
    return new


def _glibc(platforms: tuple[str, ...]) -> Minor | None:
    """Return the lowest glibc that a wheel's tags promise to need."""
    found = [
        Minor(int(match[1]), int(match[2]))
        for tag in platforms
        if (match := re.match(r"manylinux_(\d+)_(\d+)_", tag)) is not None
    ]
    return min(found) if found else None
