"""uv: requirements, sources and explicit indexes in the user's own ``pyproject.toml``.

Each wheel is a requirement by its address with its hash, since uv takes no hash in a source's URL
and would lock whatever bytes come; torch comes from an explicit index, profiles are extras that
exclude each other. Everything else in the file, comments too, stays as it is.
"""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import tomlkit
from packaging.requirements import InvalidRequirement, Requirement
from tomlkit.items import Array, InlineTable

from wheelfarm.errors import BadInputError
from wheelfarm.model.project_name import normalized
from wheelfarm.reading import parse_toml
from wheelfarm.resolve.host import Host
from wheelfarm.resolve.lock import Profile, Question, Written, hashed_address, merged
from wheelfarm.resolve.markers import marker_holds
from wheelfarm.resolve.torch_pin import TorchPin
from wheelfarm.resolve.writers.places import Path, Places
from wheelfarm.resolve.writers.tables import key_of, list_at, table_at, text_of, value_at
from wheelfarm.resolve.writers.uv_pythons import Pythons, is_ours, requires_python
from wheelfarm.resolve.writers.uv_sources import platform_marker, put_beside
from wheelfarm.values import value


def write(
    profiles: Sequence[Profile], question: Question, name: str, existing: str = ""
) -> Written:
    """Return the file's name and its new text.

    Raises BadInputError where the project admits none of a profile's Pythons, and for a file that
    builds a package whose name stands elsewhere: a ``[project]`` of ours would rename it.
    """
    parse_toml(existing, name)
    document = tomlkit.parse(existing)
    if "project" not in document:
        if "build-system" in document or value_at(document, "tool", "poetry") is not None:
            message = f"{name} builds a package and has no [project], which is what uv reads"
            raise BadInputError(
                message, hint="add [project] with its name and version, or write another format"
            )
        project = table_at(document, "project")
        project["name"] = "environment"
        project["version"] = "0"
        project["requires-python"] = requires_python(profiles)
    pythons = Pythons(document, profiles, name)
    sources = _sources(document, profiles)
    for choice, _ in merged(profiles):
        sources.pop(key_of(sources, choice.candidate.package), None)
    shared = _add_torch(document, profiles, sources)
    places = Places(document)
    for profile in profiles:
        _add_requirements(places, profile, pythons.marker(profile.name), shared)
    for path in places.stale():
        _remove(value_at(document, *path[:-1]), path[-1])
    if len(profiles) > 1:
        _add_conflicts(document, [profile.name for profile in profiles])
    notes = (*places.taken_out(name), *pythons.limit())
    places.note(question)
    return Written(texts={PurePath(name).name: text_of(document, name, existing)}, notes=notes)


def _sources(document: Any, profiles: Sequence[Profile]) -> Any:
    """Return the table of sources, made only where something will stand in it."""
    pins = [profile.resolution.torch for profile in profiles]
    if any(pin is not None and pin.index for pin in pins):
        return table_at(document, "tool", "uv", "sources")
    place = document
    for depth, key in enumerate(path := ("tool", "uv", "sources")):
        if key not in place:
            return {}
        place = table_at(document, *path[: depth + 1])
    return place


def _add_torch(document: Any, profiles: Sequence[Profile], sources: Any) -> frozenset[str]:
    """Give torch and its family their explicit index, where they do not come from PyPI.

    Returns the names that have another source for other systems.
    """
    shared: set[str] = set()
    found: dict[str, list[Any]] = {}
    for profile in profiles:
        pin = profile.resolution.torch
        if pin is None or not pin.index:
            continue
        index = _index_name(pin)
        _add_index(document, index, pin.index)
        for name in ("torch", *(name for name, _ in pin.family)):
            source = tomlkit.inline_table()
            source["index"] = index
            if profile.name:
                source["extra"] = profile.name
            found.setdefault(name, []).append(source)
    for name, entries in found.items():
        key = key_of(sources, name)
        if put_beside(sources, key, entries, profiles[0].resolution.host):
            shared.add(name)
    return frozenset(shared)


def _index_name(pin: TorchPin) -> str:
    return f"pytorch-{pin.index.rpartition('/')[2].replace('.', '-')}"


def _add_index(document: Any, name: str, url: str) -> None:
    uv = table_at(document, "tool", "uv")
    if "index" not in uv:
        uv["index"] = tomlkit.array() if isinstance(uv, InlineTable) else tomlkit.aot()
    if any(entry.get("name") == name for entry in list_at(uv, "index", "tool.uv.index")):
        return
    entry: Any = tomlkit.inline_table() if isinstance(uv["index"], Array) else tomlkit.table()
    entry["name"] = name
    entry["url"] = url
    entry["explicit"] = True
    uv["index"].append(entry)


def _add_requirements(
    places: Places, profile: Profile, marker: str, shared: frozenset[str]
) -> None:
    """Write one profile's requirements; those that are ``shared`` beside the user's own."""
    document = places.document
    project = table_at(document, "project")
    place = "optional-dependencies" if profile.name else "dependencies"
    if place in list(project.get("dynamic") or []):
        message = f"project.{place} is dynamic: what is written there would be an error"
        raise BadInputError(message, hint="take it out of project.dynamic, or write another format")
    top: Path = ("project", place)
    if profile.name:
        extras = table_at(document, *top)
        top = (*top, key_of(extras, profile.name))
    listed = list_at(table_at(document, *top[:-1]), top[-1], ".".join(top))
    pin = profile.resolution.torch
    wanted = [] if pin is None else list(pin.requirements())
    wanted += [
        f"{choice.candidate.package} @ {hashed_address(choice.candidate)}"
        for choice in profile.resolution.choices
    ]
    for text in wanted:
        name = normalized(Requirement(text).name)
        path = (*top, name)
        old = _Old(own=bool(profile.name), shared=name in shared)
        added = _replace(listed, text, marker, profile.resolution.host, old)
        if added or places.are_ours(path):
            places.now.add(path)


def _remove(listed: Any, name: str) -> None:
    """Take a project's requirement out of a list, as we write it: by address, or exactly pinned."""
    for index, line in reversed(list(enumerate(listed if isinstance(listed, list) else ()))):
        found = _requirement(line)
        if found is None or normalized(found.name) != name:
            continue
        if found.url or str(found.specifier).startswith("=="):
            del listed[index]


def _requirement(line: object) -> Requirement | None:
    try:
        return Requirement(str(line))
    except InvalidRequirement:
        return None


@value
class _Old:
    """What the lines of a project are that stand in a list already.

    ``own``: the list is a profile's. ``shared``: one without a marker is for other systems too,
    where the project has another source.
    """

    own: bool
    shared: bool


def _replace(listed: Any, text: str, marker: str, host: Host, lines: _Old) -> bool:
    """Put a requirement in the place of the same project's, else at the end: True where it is new.

    The user's extras and marker stay. A line whose marker does not hold on the host is for others:
    it stays, and ours is then for this host's platform. ``marker`` is what ours has without that.
    """
    name = normalized(Requirement(text).name)
    others = False
    for index, line in enumerate(list(listed)):
        old = _requirement(line)
        if old is None or normalized(old.name) != name:
            continue
        if lines.own and is_ours(old.marker):
            listed[index] = _like(text, old, marker)
            return False
        for_all = lines.shared and old.marker is None
        if not for_all and marker_holds(old.marker, frozenset(), host):
            listed[index] = _like(text, old, str(old.marker or marker))
            return False
        others = True
    if others or lines.shared:
        marker = " and ".join(filter(None, (marker, platform_marker(host))))
    listed.append(f"{text} ; {marker}" if marker else text)
    return True


def _like(text: str, old: Requirement, marker: str) -> str:
    """Return a requirement with a marker, and the extras of the one that it replaces."""
    name = Requirement(text).name
    extras = f"[{','.join(sorted(old.extras))}]" if old.extras else ""
    return f"{name}{extras}{text[len(name) :]}{f' ; {marker}' if marker else ''}"


def _add_conflicts(document: Any, names: Sequence[str]) -> None:
    uv = table_at(document, "tool", "uv")
    entry = tomlkit.array()
    for name in names:
        extra = tomlkit.inline_table()
        extra["extra"] = name
        entry.append(extra)
    wanted = [{"extra": name} for name in names]
    known = list_at(uv, "conflicts", "tool.uv.conflicts") if "conflicts" in uv else []
    if any(list(each) == wanted for each in known):
        return
    conflicts = tomlkit.array()
    for each in known:
        conflicts.append(each)
    conflicts.append(entry)
    uv["conflicts"] = conflicts
