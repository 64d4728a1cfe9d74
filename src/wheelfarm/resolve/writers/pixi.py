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
from packaging.requirements import InvalidRequirement, Requirement

from wheelfarm.errors import BadInputError
from wheelfarm.model.project_name import normalized
from wheelfarm.model.versions import Minor
from wheelfarm.reading import parse_toml
from wheelfarm.resolve.lock import Profile, Question, hashed_address
from wheelfarm.resolve.resolution import Resolution
from wheelfarm.resolve.writers.tables import (
    key_of,
    list_at,
    table_at,
    text_of,
    value_at,
    write_note,
)

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
#: What a package that compiles at run time needs: the toolkit's wheels by torch's CUDA major.
_TOOLKIT_EXTRAS = ("nvcc", "nvvm", "crt", "cccl", "cudart")


def write(
    profiles: Sequence[Profile],
    question: Question,
    name: str,
    existing: str = "",
    *,
    feature: str = "",
    version: Minor = PLATFORM_TABLES,
) -> dict[str, str]:
    """Return the file's name and its new text.

    ``feature`` puts a single profile into that feature; several profiles always become features
    and environments of their names. Of a ``pyproject.toml`` it is the part at ``tool.pixi``. Raises
    BadInputError for a platform that pixi does not know, and for a package that the project's own
    dependencies name, since pixi takes it from one place only.
    """
    parse_toml(existing, name)
    document = tomlkit.parse(existing)
    project: Mapping[str, Any] = {}
    place: tuple[str, ...] = ()
    if PurePath(name).name == "pyproject.toml":
        place, project = ("tool", "pixi"), document
    if all(value_at(document, *place, key) is None for key in ("workspace", "project")):
        workspace = table_at(document, *place, "workspace")
        if not value_at(project, "project", "name"):
            workspace["name"] = "environment"
        workspace["channels"] = ["conda-forge"]
    manifest = table_at(document, *place)
    for profile in profiles:
        writer = _Writer(
            document=manifest,
            project=project,
            resolution=profile.resolution,
            feature=profile.name or feature,
            version=version,
        )
        writer.platform()
        writer.dependencies()
        if profile.name or feature:
            writer.environment(alone=bool(profile.name))
    write_note(document, question)
    return {PurePath(name).name: text_of(document, name)}


class _Writer:
    """Write one profile into its place of the document: the top, or a feature."""

    def __init__(
        self,
        *,
        document: Any,
        project: Mapping[str, Any],
        resolution: Resolution,
        feature: str,
        version: Minor,
    ) -> None:
        self.document = document
        self.project = project
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
            self.table()["platforms"] = [self.platform_name(needs)]

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

    def dependencies(self) -> None:
        """Write Python, torch with its index, and every wheel by its address and hash."""
        python = self.resolution.host.python.value
        conda = self.table("dependencies")
        if python is not None and python.version is not None and "python" not in conda:
            conda["python"] = f"{python.version}.*"
        table = self.table("pypi-dependencies")
        pin = self.resolution.torch
        if pin is not None:
            pins = [("torch", pin.version), *pin.family]
            for name, version in pins:
                entry = tomlkit.inline_table()
                entry["version"] = f"=={version}"
                if pin.index:
                    entry["index"] = pin.index
                self.put(table, name, entry)
        for choice in self.resolution.choices:
            entry = tomlkit.inline_table()
            entry["url"] = hashed_address(choice.candidate)
            self.put(table, choice.candidate.package, entry)
        if any(choice.candidate.entry.runtime_jit for choice in self.resolution.choices):
            self.compiler(conda, table)

    def put(self, table: Any, name: str, entry: Any) -> None:
        """Put a project's entry in the place of its old one, however that spells the name.

        Raises BadInputError where a table of this platform states the project too, as that one
        counts more.
        """
        targets = self.table("target") if "target" in self.table() else {}
        for target in targets:
            packages = targets[target].get("pypi-dependencies", {})
            if _is_of(str(target), self.subdir) and (key := key_of(packages, name)) in packages:
                head = f"feature.{self.feature}." if self.feature else ""
                place = f"{head}target.{target}.pypi-dependencies.{key}"
                message = f"{place} would count instead of what is written for {name}"
                raise BadInputError(message, hint="remove it, and run again")
        self.refuse_twice(name)
        table[key_of(table, name)] = entry

    def refuse_twice(self, name: str) -> None:
        """Raise BadInputError where the project's own dependencies of this feature name a package.

        pixi reads these too, and takes each package of a feature from one place only.
        """
        places: tuple[tuple[str, ...], ...] = (("project", "dependencies"),)
        if self.feature:
            places = (
                ("project", "optional-dependencies", self.feature),
                ("dependency-groups", self.feature),
            )
        for place in places:
            listed = value_at(self.project, *place)
            for line in listed if isinstance(listed, list) else ():
                try:
                    named = normalized(Requirement(str(line)).name)
                except InvalidRequirement:
                    continue
                if named == name:
                    message = (
                        f"{'.'.join(place)} names {name}, which pixi takes from one place only"
                    )
                    hint = f"take {str(line)!r} out there, or write into a feature (--feature NAME)"
                    raise BadInputError(message, hint=hint)

    def compiler(self, conda: Any, table: Any) -> None:
        """Add what packages that compile at run time need: a host compiler and the toolkit."""
        conda.setdefault("cxx-compiler", "*")
        conda.setdefault("ninja", "*")
        accelerator = self.resolution.answer.target.accelerator
        cuda = None if accelerator is None else accelerator.version
        if cuda is None:
            return
        if cuda.major >= 13:  # noqa: PLR2004 - the first CUDA whose nvcc comes as wheels
            entry = tomlkit.inline_table()
            entry["version"] = f"=={cuda}.*"
            entry["extras"] = list(_TOOLKIT_EXTRAS)
            table.setdefault("cuda-toolkit", entry)
        else:
            conda.setdefault("cuda-nvcc", f"{cuda}.*")

    def environment(self, *, alone: bool) -> None:
        """Give the feature an environment of its name, unless one has it already."""
        environments = table_at(self.document, "environments")
        if self.word in environments or any(map(self.has_feature, environments.values())):
            return
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


def _is_of(target: str, subdir: str) -> bool:
    """Return whether a target's table holds on a platform: its own name, its system, unix."""
    system = subdir.partition("-")[0]
    return target in {subdir, system} or (target == "unix" and system != "win")


def _name(entry: Any) -> str:
    if isinstance(entry, Mapping):
        return str(entry.get("name") or entry.get("platform"))
    return str(entry)


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
