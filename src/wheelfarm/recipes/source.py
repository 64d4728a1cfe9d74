"""The ``source`` of a recipe in, a value out; what floats is refused."""

import re
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from wheelfarm.errors import BadInputError
from wheelfarm.model.versions import parse_version
from wheelfarm.reading import Reader
from wheelfarm.recipes.model import GitSource, PathSource, PyPISource, Source
from wheelfarm.recipes.parts import usable_path

#: Names that move: branches by habit, and git's and GitHub's words for "whatever is newest".
FLOATING = frozenset(
    {"main", "master", "head", "develop", "development", "dev", "trunk", "latest", "stable", "next"}
    | {"nightly", "tip", "default"}
)
_GIT_URL = re.compile(r"(?:https?|ssh|git|file)://\S+|git@[\w.-]+:\S+", re.ASCII)
_GITHUB = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{7,39}", re.ASCII)
_TAG_VERSION = re.compile(r"(?:.*[/_-])?v?(\d+(?:\.\d+)+[A-Za-z0-9.]*)", re.ASCII)


def read_source(reader: Reader, folder: Path, *, submodules: bool) -> Source | None:
    """Read ``source``, or the short ``source_repo`` and ``source_tag`` (GitHub).

    ``submodules`` is the default of ``clone_recursive``.
    """
    recursive = reader.boolean("clone_recursive", submodules)
    table = reader.table("source")
    if table is not None:
        for key in ("source_repo", "source_tag"):
            if reader.has(key):
                reader.fault("give either source, or source_repo and source_tag", key)
        return _read_table(table, folder, submodules=recursive)
    if not reader.has("source_repo"):
        reader.fault("the key 'source' is required: {pypi: name==version}, {git: …}, {path: …}")
        reader.has("source_tag")
        return None
    repo = reader.string("source_repo")
    ref = reader.parsed("source_tag", checked_ref)
    if not reader.has("source_tag"):
        reader.fault("the key 'source_tag' is required beside source_repo", "source_repo")
    if not _GITHUB.fullmatch(repo):
        reader.fault(f"expected owner/name on GitHub, found {repo!r}", "source_repo")
        return None
    url = f"https://github.com/{repo}.git"
    return None if ref is None else GitSource(url=url, ref=ref, submodules=recursive)


def _read_table(table: Reader, folder: Path, *, submodules: bool) -> Source | None:
    kinds = [kind for kind in ("pypi", "git", "path") if table.has(kind)]
    source: Source | None = None
    if len(kinds) != 1:
        table.fault("expected exactly one of pypi, git and path")
    elif kinds[0] == "pypi":
        source = table.parsed("pypi", pypi_pin)
    elif kinds[0] == "git":
        source = _git(table, submodules=submodules)
    else:
        source = table.parsed("path", lambda text: _local(text, folder))
    if not kinds or kinds[0] != "git":
        for key in ("tag", "commit", "submodules"):
            if table.has(key):
                table.fault("this goes with git alone", key)
    table.done()
    return source


def _local(text: str, folder: Path) -> PathSource:
    why = usable_path(text)
    if why:
        raise BadInputError(why)
    try:
        path = (folder / Path(text).expanduser()).resolve()
    except (OSError, RuntimeError) as error:
        message = f"{text!r} is no path: {error}"
        raise BadInputError(message) from error
    return PathSource(path=path, written=text)


def _git(table: Reader, *, submodules: bool) -> GitSource | None:
    url = table.string("git")
    if not _GIT_URL.fullmatch(url):
        table.fault(f"{url!r} is no address of a git repository", "git")
    given = [key for key in ("tag", "commit") if table.has(key)]
    if len(given) != 1:
        table.fault("give the tag or the commit that is to be built", "git")
        return None
    ref = table.parsed(given[0], checked_ref)
    recursive = table.boolean("submodules", submodules)
    return None if ref is None else GitSource(url=url, ref=ref, submodules=recursive)


def pypi_pin(text: str) -> PyPISource:
    """Read ``name==version``; anything looser is refused."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        message = f"expected name==version, found {text!r}"
        raise BadInputError(message) from error
    specifiers = list(requirement.specifier)
    exact = len(specifiers) == 1 and specifiers[0].operator == "=="
    if requirement.extras or requirement.marker or requirement.url or not exact:
        message = f"expected name==version (one exact version), found {text!r}"
        raise BadInputError(message)
    version = parse_version(specifiers[0].version)
    return PyPISource(project=canonicalize_name(requirement.name), version=version)


def checked_ref(text: str) -> str:
    """Return a tag or whole commit; BadInputError for what floats or is cut short."""
    word = text.removeprefix("refs/tags/")
    if word.lower() in FLOATING or word.startswith(("refs/", "origin/")) or word.endswith("^{}"):
        message = f"{text!r} is a floating ref: what it names changes; give a tag or a commit"
        raise BadInputError(message)
    if _HEX.fullmatch(word) and not word.isdigit():
        message = f"{text!r} is a shortened commit; give all 40 digits"
        raise BadInputError(message)
    if (
        not word
        or word.startswith("-")
        or any(char.isspace() or char in "~^:?*[\\" for char in word)
    ):
        message = f"{text!r} is no git tag"
        raise BadInputError(message)
    return word


def version_of_source(source: Source) -> Version | None:
    """Return the version that a pin or a tag (``v1.2``, ``release-1.2``) says; None for others."""
    if isinstance(source, PyPISource):
        return source.version
    if isinstance(source, PathSource) or source.is_commit:
        return None
    match = _TAG_VERSION.fullmatch(source.ref)
    if match is None:
        return None
    try:
        return Version(match[1])
    except InvalidVersion:
        return None
