"""A lock that was written, read back: what it answers, and which wheels it holds."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from wheelfarm.errors import BadInputError
from wheelfarm.model.project_name import normalized
from wheelfarm.reading import Reader, parse_json, parse_toml, read_text
from wheelfarm.resolve.lock import WRITTEN, LockedWheel, Question
from wheelfarm.resolve.writers.requirements import NOTE
from wheelfarm.values import value

_REQUIREMENT = re.compile(
    r"^(?P<name>[\w.-]+)(?:\[[^\]]*\])? @ (?P<url>[^\s#]+)"
    r"(?:#sha256=| --hash=sha256:)(?P<sha256>[0-9a-f]{64})(?: ;.*)?$",
    re.MULTILINE,
)
_URL = re.compile(r"(?P<url>[^#]+)#sha256=(?P<sha256>[0-9a-f]{64})")
_EXTRA = re.compile(r"'([^']+)' in extras")
#: The key of our own table that marks what a bundle holds besides the wheels that were asked for.
DEPENDENCY = "dependency"


@value
class Lock:
    """A lock's question and its wheels."""

    path: Path
    question: Question
    wheels: tuple[LockedWheel, ...]

    def of_profile(self, name: str) -> dict[str, LockedWheel]:
        """Return one profile's wheels by package."""
        return {wheel.name: wheel for wheel in self.wheels if name in wheel.profiles}


def read_lock(path: Path) -> Lock:
    """Read a lock of any format that we write.

    Raises BadInputError where it is none of ours, or was damaged.
    """
    text = read_text(path)
    if path.suffix == ".txt":
        return _requirements(path, text)
    document = parse_toml(text, str(path))
    tool = document.get("tool")
    ours = tool.get("wheelfarm") if isinstance(tool, Mapping) else None
    if not isinstance(ours, Mapping):
        raise _not_ours(path)
    if "lock-version" in document:
        note = {key: value for key, value in ours.items() if key != "torch"}
        wheels = tuple(_pylock(Reader(document, str(path))))
    else:
        note = ours.get("lock", {})
        is_pixi = "workspace" in document or "project" not in document
        edited = _Edited(document, _table(ours, "lock"))
        wheels = tuple(edited.pixi() if is_pixi else edited.uv())
        wheels += tuple(edited.pixi("tool", "pixi"))
    if not note:
        raise _not_ours(path)
    if isinstance(note, Mapping):
        note = {key: value for key, value in note.items() if key != WRITTEN}
    return Lock(path=path, question=Question.read(note, str(path)), wheels=wheels)


def refuse_to_replace(path: Path) -> None:
    """Raise BadInputError where a file stands that we did not write, since it would be lost."""
    if not path.is_file() or not read_text(path).strip():
        return
    try:
        read_lock(path)
    except BadInputError as error:
        message = f"{path} was not written by wheelfarm, and would be lost"
        raise BadInputError(
            message, cause=error.what, hint="give --output another name, or remove that file"
        ) from error


def _not_ours(path: Path) -> BadInputError:
    message = f"{path} holds no lock of ours"
    return BadInputError(message, hint="write one with `wheelfarm resolve ... --output FILE`")


def _requirements(path: Path, text: str) -> Lock:
    line = next((line for line in text.splitlines() if line.startswith(NOTE)), None)
    if line is None:
        raise _not_ours(path)
    note = parse_json(line.removeprefix(NOTE), str(path))
    wheels = tuple(
        LockedWheel(name=match["name"], url=match["url"], sha256=match["sha256"])
        for match in _REQUIREMENT.finditer(text)
    )
    return Lock(path=path, question=Question.read(note, str(path)), wheels=wheels)


def _pylock(document: Reader) -> Iterable[LockedWheel]:
    for package in document.tables("packages"):
        tool = package.table("tool")
        ours = None if tool is None else tool.table("wheelfarm")
        if ours is not None and ours.boolean(DEPENDENCY, default=False):
            continue
        names = tuple(_EXTRA.findall(package.string("marker", ""))) or ("",)
        for wheel in package.tables("wheels"):
            hashes = wheel.table("hashes")
            yield LockedWheel(
                name=package.string("name"),
                url=wheel.string("url" if wheel.has("url") else "path"),
                sha256="" if hashes is None else hashes.string("sha256"),
                profiles=names,
            )
    document.finish()


class _Edited:
    """A user's own file: the wheels in it by address and hash, ours and the user's told apart."""

    def __init__(self, document: Mapping[str, Any], note: Mapping[str, Any]) -> None:
        self.document = document
        self.profiles = _table(note, "profiles")
        written = note.get(WRITTEN)
        listed = written if isinstance(written, list) else ()
        self.written = {tuple(path) for path in listed if isinstance(path, list)}

    def pixi(self, *root: str) -> Iterable[LockedWheel]:
        """Yield the wheels of a pixi manifest at a place of the document."""
        manifest = self.document
        for key in root:
            manifest = _table(manifest, key)
        yield from self._feature(manifest, root, "")
        for name in (features := _table(manifest, "feature")):
            place = (*root, "feature", name)
            profile = name if name in self.profiles else ""
            yield from self._feature(_table(features, name), place, profile)

    def _feature(
        self, feature: Mapping[str, Any], place: tuple[str, ...], profile: str
    ) -> Iterable[LockedWheel]:
        tables = [(place, feature)]
        targets = _table(feature, "target")
        tables += [((*place, "target", name), _table(targets, name)) for name in targets]
        for path, table in tables:
            for key, entry in _table(table, "pypi-dependencies").items():
                url = entry.get("url") if isinstance(entry, Mapping) else None
                match = _URL.fullmatch(url) if isinstance(url, str) else None
                if match is not None:
                    at = (*path, "pypi-dependencies", key)
                    yield self._wheel(key, match, profile, at)

    def uv(self) -> Iterable[LockedWheel]:
        """Yield the wheels of a project's own requirements."""
        project = _table(self.document, "project")
        groups = {"": project.get("dependencies"), **_table(project, "optional-dependencies")}
        for profile, lines in groups.items():
            place = ("optional-dependencies", profile) if profile else ("dependencies",)
            texts = map(str, lines) if isinstance(lines, list) else ()
            for match in filter(None, map(_REQUIREMENT.fullmatch, texts)):
                name = normalized(match["name"])
                yield self._wheel(name, match, profile, ("project", *place, name))

    def _wheel(
        self, key: str, match: re.Match[str], profile: str, place: tuple[str, ...]
    ) -> LockedWheel:
        return LockedWheel(
            name=normalized(key),
            url=match["url"],
            sha256=match["sha256"],
            profiles=(profile,),
            ours=place in self.written,
        )


def _table(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the table at a key; an empty one where there is none, or something else."""
    found = document.get(key)
    return found if isinstance(found, Mapping) else {}
