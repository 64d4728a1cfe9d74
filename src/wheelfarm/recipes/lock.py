"""``farm.lock``: which bytes each recipe's source is. What changed under its name is refused."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from packaging.version import Version

from wheelfarm.errors import BadInputError
from wheelfarm.model.versions import parse_version
from wheelfarm.reading import Reader, parse_json, read_text
from wheelfarm.recipes.model import Farm, PathSource, Recipe
from wheelfarm.values import replace

SCHEMA = "wheelfarm.farm-lock/1"

_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class LockedArchive:
    """An archive (an sdist, or a file of this machine) with its SHA-256."""

    url: str
    file_name: str
    sha256: str

    @property
    def identity(self) -> str:
        """What must not change."""
        return f"sha256 {self.sha256}"


@dataclass(frozen=True, kw_only=True, slots=True)
class LockedCommit:
    """A commit of a repository."""

    url: str
    commit: str
    submodules: bool = False

    @property
    def identity(self) -> str:
        """What must not change."""
        return f"commit {self.commit}"


@dataclass(frozen=True, kw_only=True, slots=True)
class LockedFolder:
    """A folder of this machine; its bytes are the author's own and are not fixed."""

    path: str

    @property
    def identity(self) -> str:
        """What must not change."""
        return f"folder {self.path}"


LockedSource = LockedArchive | LockedCommit | LockedFolder


@dataclass(frozen=True, kw_only=True, slots=True)
class LockEntry:
    """One package: the source as the recipe wrote it, what it is, and what was read from it.

    ``survey`` is the verdict of the survey over the patched tree ("" where there was none),
    ``evidence`` its first place, and ``patches`` the hash of the patches it was made with. ``says``
    is the version that the source's files state, where the recipe states another one.
    """

    spec: str
    source: LockedSource
    version: Version | None = None
    survey: str = ""
    evidence: str = ""
    patches: str = ""
    says: Version | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FarmLock:
    """A farm's lock: entries by package name."""

    entries: Mapping[str, LockEntry] = field(default_factory=dict)

    def source_of(self, recipe: Recipe) -> LockedSource:
        """Return what a recipe's source is; paths of this machine come out absolute.

        Raises BadInputError where it is not locked, or was locked from another source.
        """
        source = self.entry_of(recipe).source
        if isinstance(recipe.source, PathSource):
            path = recipe.source.path
            if isinstance(source, LockedArchive):
                return replace(source, url=path.as_uri())
            return LockedFolder(path=str(path))
        return source

    def entry_of(self, recipe: Recipe) -> LockEntry:
        """Return a recipe's entry; raises as ``source_of``."""
        entry = self.entries.get(recipe.package)
        hint = f"run `wheelfarm lock {recipe.package}`"
        if entry is None:
            message = f"the source of {recipe.package} is not in farm.lock"
            raise BadInputError(message, hint=hint)
        if entry.spec != str(recipe.source):
            message = f"farm.lock has {recipe.package} from {entry.spec}, not {recipe.source}"
            raise BadInputError(message, cause="the recipe changed since", hint=hint)
        return entry

    def version_of(self, recipe: Recipe) -> Version | None:
        """Return a recipe's version: stated, else the one that was read from its source."""
        entry = self.entries.get(recipe.package)
        if recipe.version is not None or entry is None or entry.spec != str(recipe.source):
            return recipe.version
        return entry.version

    def with_entries(self, entries: Mapping[str, LockEntry]) -> "FarmLock":
        """Return the lock with some entries replaced."""
        return FarmLock(entries={**self.entries, **entries})


def load_lock(farm: Farm) -> FarmLock:
    """Read a farm's lock; an absent file is an empty lock.

    Raises FaultsError with all faults of a damaged one.
    """
    if not farm.lock_path.exists():
        return FarmLock()
    return read_lock(read_text(farm.lock_path), str(farm.lock_path))


def read_lock(text: str, context: str) -> FarmLock:
    """Read a lock from its text."""
    reader = Reader(parse_json(text, context), context)
    if (schema := reader.string("schema")) != SCHEMA:
        reader.fault(f"expected {SCHEMA!r}, found {schema!r}", "schema")
    table = reader.table("packages")
    if table is None:
        reader.fault("the key 'packages' is required")
    entries: dict[str, LockEntry] = {}
    for name in table or ():
        entry = None if table is None else table.table(name)
        if entry is not None and (read := _read_entry(entry)) is not None:
            entries[name] = read
    reader.done()
    reader.finish(hint="restore it from version control, or remove it and run `wheelfarm lock`")
    return FarmLock(entries=entries)


def _read_entry(reader: Reader) -> LockEntry | None:
    spec = reader.string("source")
    version = reader.parsed("version", parse_version)
    survey = reader.string("survey", "")
    evidence = reader.string("evidence", "")
    patches = reader.string("patches", "")
    says = reader.parsed("says", parse_version)
    source: LockedSource | None = None
    if reader.has("commit"):
        commit = reader.parsed("commit", _checked(_COMMIT, "a commit of 40 digits")) or ""
        source = LockedCommit(
            url=reader.string("url"),
            commit=commit,
            submodules=reader.boolean("submodules", default=False),
        )
    elif reader.has("sha256"):
        sha256 = reader.parsed("sha256", _checked(_SHA256, "64 hexadecimal digits")) or ""
        source = LockedArchive(
            url=reader.string("url"), file_name=reader.string("file"), sha256=sha256
        )
    elif reader.has("folder"):
        source = LockedFolder(path=reader.string("folder"))
    else:
        reader.fault("expected one of commit, sha256 and folder")
    reader.done()
    if source is None:
        return None
    return LockEntry(
        spec=spec,
        source=source,
        version=version,
        survey=survey,
        evidence=evidence,
        patches=patches,
        says=says,
    )


def _checked(pattern: re.Pattern[str], what: str) -> Any:
    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            message = f"expected {what}, found {text!r}"
            raise BadInputError(message)
        return text

    return check
