"""What one feature of a pixi manifest installs: Python, torch with its index, the exact wheels.

The wheels are for one platform. Where the manifest has others besides, since pixi solves each
feature for each of them, everything stands in that platform's own table.
"""

import re
from collections.abc import Mapping
from typing import Any

import tomlkit
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from wheelfarm.errors import BadInputError
from wheelfarm.model.project_name import normalized
from wheelfarm.model.versions import Minor
from wheelfarm.resolve.lock import hashed_address
from wheelfarm.resolve.resolution import Resolution
from wheelfarm.resolve.writers.places import Path, Places
from wheelfarm.resolve.writers.tables import key_of, table_at, value_at
from wheelfarm.resolve.writers.uv_pythons import MINORS, takes

_PYPI, _CONDA = "pypi-dependencies", "dependencies"
#: What a package that compiles at run time needs: the toolkit's wheels by torch's CUDA major.
_TOOLKIT_EXTRAS = ("nvcc", "nvvm", "crt", "cccl", "cudart")
_CLAUSE = re.compile(r"(==|=|>=|<=|!=|~=|<|>|)\s*(\d+(?:\.\d+)*)(\.?\*)?", re.ASCII)


class Packages:
    """Write the packages of one resolution into a feature of a manifest, or into its top.

    ``root`` is the manifest's place in the document, ``shared`` says that other platforms solve
    this feature too, ``alone`` that the feature is used without the default one.
    """

    def __init__(
        self,
        *,
        places: Places,
        root: Path,
        feature: str,
        subdir: str,
        resolution: Resolution,
        shared: bool,
        alone: bool,
    ) -> None:
        self.places = places
        self.document = places.document
        self.root = root
        self.feature = feature
        self.subdir = subdir
        self.resolution = resolution
        self.alone = alone
        self.top = (*root, "feature", feature) if feature else root
        self.own = (*self.top, "target", subdir)
        self.place = self.own if shared else self.top

    def write(self) -> None:
        """Write Python, torch with its index, and every wheel by its address and hash."""
        self.python()
        pin = self.resolution.torch
        if pin is not None:
            for name, version in (("torch", pin.version), *pin.family):
                entry = tomlkit.inline_table()
                entry["version"] = f"=={version}"
                if pin.index:
                    entry["index"] = pin.index
                self.package(name, entry)
        for choice in self.resolution.choices:
            entry = tomlkit.inline_table()
            entry["url"] = hashed_address(choice.candidate)
            self.package(choice.candidate.package, entry)
        if any(choice.candidate.entry.runtime_jit for choice in self.resolution.choices):
            self.compiler()

    def put(self, place: Path, kind: str, name: str, entry: Any) -> None:
        """Put an entry in the place of its old one, however that spells the name."""
        table = table_at(self.document, *place, kind)
        key = key_of(table, name)
        self.places.claim((*place, kind, key))
        table[key] = entry

    def default(self, kind: str, name: str, entry: Any) -> None:
        """Put an entry unless the user has one."""
        for place in {self.place, self.top}:
            table = value_at(self.document, *place, kind) or {}
            key = key_of(table, name)
            if key in table and not self.places.are_ours((*place, kind, key)):
                return
        self.put(self.place, kind, name, entry)

    def package(self, name: str, entry: Any) -> None:
        """Put a project's entry.

        Raises BadInputError where another place would count more, or pixi would find it twice.
        """
        targets = value_at(self.document, *self.top, "target")
        for target in targets if self.place != self.own and isinstance(targets, Mapping) else ():
            packages = value_at(targets, target, _PYPI) or {}
            key = key_of(packages, name)
            path = (*self.top, "target", str(target), _PYPI, key)
            if key in packages and _is_of(str(target), self.subdir):
                if self.places.are_ours(path):
                    continue
                message = f"{'.'.join(path)} would count instead of what is written for {name}"
                raise BadInputError(message, hint="remove it, and run again")
        self.refuse_twice(name)
        self.put(self.place, _PYPI, name, entry)

    def refuse_twice(self, name: str) -> None:
        """Raise BadInputError where the project's own dependencies of this feature name a package.

        pixi reads these too, and takes each package of a feature from one place only.
        """
        if not self.root:
            return
        places: tuple[Path, ...] = (("project", "dependencies"),)
        if self.feature:
            places = (
                ("project", "optional-dependencies", self.feature),
                ("dependency-groups", self.feature),
            )
        for place in places:
            listed = value_at(self.document, *place)
            for line in listed if isinstance(listed, list) else ():
                if _named(str(line)) == name:
                    where = ".".join(place)
                    message = f"{where} names {name}, which pixi takes from one place only"
                    hint = f"take {str(line)!r} out there, or write into a feature (--feature NAME)"
                    raise BadInputError(message, hint=hint)

    def python(self) -> None:
        """State the Python of the wheels, where the manifest leaves more to pixi.

        Raises BadInputError where the manifest is for other Pythons.
        """
        tag = self.resolution.host.python.value
        if tag is None or tag.version is None:
            return
        version = tag.version
        self.refuse_python(version, ("project", "requires-python"), _python_of_project)
        if not self.alone:
            self.refuse_python(version, (*self.root, _CONDA, "python"), _python_of_conda)
        for place in dict.fromkeys((self.own, self.place, self.top)):
            path = (*place, _CONDA, "python")
            stated = value_at(self.document, *path)
            if stated is not None and not self.places.are_ours(path):
                self.refuse_python(version, path, _python_of_conda)
                if _python_of_conda(stated) in ({version}, None):
                    return
                self.put(self.own, _CONDA, "python", f"{version}.*")
                return
        self.put(self.place, _CONDA, "python", f"{version}.*")

    def refuse_python(self, version: Minor, path: Path, pythons: Any) -> None:
        """Raise BadInputError where what the user states at a place takes another Python."""
        stated = value_at(self.document, *path)
        if stated is None or self.places.are_ours(path):
            return
        found = pythons(stated)
        if found is not None and version not in found:
            message = f"{'.'.join(path)} is {_text(stated)}, and these wheels are for {version}"
            hint = "resolve for a Python that is taken there (--python), or change that line"
            raise BadInputError(message, hint=hint)

    def compiler(self) -> None:
        """Add what packages that compile at run time need: a host compiler and the toolkit."""
        self.default(_CONDA, "cxx-compiler", "*")
        self.default(_CONDA, "ninja", "*")
        accelerator = self.resolution.answer.target.accelerator
        cuda = None if accelerator is None else accelerator.version
        if cuda is None:
            return
        if cuda.major >= 13:  # noqa: PLR2004 - the first CUDA whose nvcc comes as wheels
            entry = tomlkit.inline_table()
            entry["version"] = f"=={cuda}.*"
            entry["extras"] = list(_TOOLKIT_EXTRAS)
            self.default(_PYPI, "cuda-toolkit", entry)
        else:
            self.default(_CONDA, "cuda-nvcc", f"{cuda}.*")


def _is_of(target: str, subdir: str) -> bool:
    """Return whether a target's table holds on a platform: its own name, its system, unix."""
    system = subdir.partition("-")[0]
    return target in {subdir, system} or (target == "unix" and system != "win")


def _named(line: str) -> str:
    try:
        return normalized(Requirement(line).name)
    except InvalidRequirement:
        return ""


def _text(stated: Any) -> str:
    found = stated.get("version", "*") if isinstance(stated, Mapping) else stated
    return str(found)


def _python_of_project(stated: Any) -> set[Minor] | None:
    """Return the Pythons that ``requires-python`` takes; None where it cannot be read."""
    try:
        specifier = SpecifierSet(_text(stated))
    except InvalidSpecifier:
        return None
    return {minor for minor in MINORS if takes(specifier, minor)}


def _python_of_conda(stated: Any) -> set[Minor] | None:
    """Return the Pythons that a conda specification takes; None where it is of another form."""
    found: set[Minor] = set()
    for choice in _text(stated).split("|"):
        clauses = []
        for word in map(str.strip, choice.split(",")):
            if word == "*":
                continue
            match = _CLAUSE.fullmatch(word)
            if match is None:
                return None
            operator, version, star = match.groups()
            if operator in {"", "=", "=="}:
                full = version.count(".") > 1 and not star
                clauses.append(f"=={version}" if full else f"=={version}.*")
            else:
                clauses.append(f"{operator}{version}{'.*' if star and operator == '!=' else ''}")
        try:
            specifier = SpecifierSet(",".join(clauses))
        except InvalidSpecifier:
            return None
        found |= {minor for minor in MINORS if takes(specifier, minor)}
    return found
