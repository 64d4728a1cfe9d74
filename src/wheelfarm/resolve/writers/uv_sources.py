"""uv's sources of one project: ours beside those that the user has for other cases."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import tomlkit
from packaging.markers import InvalidMarker, Marker
from tomlkit.items import Array

from wheelfarm.errors import BadInputError
from wheelfarm.resolve.host import Host
from wheelfarm.resolve.markers import marker_environment, marker_holds

_CASES = ("extra", "group")


def put_beside(sources: Any, name: str, ours: Sequence[Any], host: Host) -> bool:
    """Put our sources of a project where the user's stand that would hold at the same time.

    Those for other extras, groups and systems stay; the return value is whether some are for other
    systems. Raises BadInputError where the user's are for extras or groups, and ours would be for
    all: uv takes several sources of one project where no two hold at once.
    """
    stated = sources.get(name)
    if not isinstance(stated, list):
        sources[name] = ours[0] if len(ours) == 1 else _array(ours)
        return False
    extras = {each["extra"] for each in ours if "extra" in each}
    if not extras:
        _refuse_cases(stated, name)
    shared = False
    for index, entry in reversed(list(enumerate(stated))):
        if not isinstance(entry, Mapping) or _is_for_others(entry, extras, host):
            shared = shared or (isinstance(entry, Mapping) and "marker" in entry)
            continue
        if "marker" in entry:
            _mark(ours, str(entry["marker"]))
        del stated[index]
    if shared:
        _mark(ours, platform_marker(host))
    for each in ours:
        stated.append(each if isinstance(stated, Array) else tomlkit.item(dict(each)))
    return shared


def _is_for_others(entry: Mapping[str, Any], extras: Collection[str], host: Host) -> bool:
    """Return whether a source holds for other extras, groups or systems than ours."""
    if any(case in entry for case in _CASES):
        return entry.get("extra") not in extras
    return "marker" in entry and not _holds(entry["marker"], host)


def _refuse_cases(stated: Sequence[Any], name: str) -> None:
    for entry in stated:
        case = next((word for word in _CASES if isinstance(entry, Mapping) and word in entry), "")
        if case:
            message = (
                f"tool.uv.sources.{name} has a source for the {case} {entry[case]!r}, and no"
                " other holds for all beside it"
            )
            hint = "write profiles, which are extras: --profile NAME=HOST.json"
            raise BadInputError(message, hint=hint)


def _array(entries: Sequence[Any]) -> Array:
    array = tomlkit.array()
    array.extend(entries)
    return array


def platform_marker(host: Host) -> str:
    """Return the marker of a host's system and processor."""
    environment = marker_environment(host)
    names = (name for name in ("sys_platform", "platform_machine") if name in environment)
    return " and ".join(f'{name} == "{environment[name]}"' for name in names)


def _mark(ours: Sequence[Any], marker: str) -> None:
    for each in ours:
        each.setdefault("marker", marker)


def _holds(text: object, host: Host) -> bool:
    try:
        return marker_holds(Marker(str(text)), frozenset(), host)
    except InvalidMarker:
        return False
