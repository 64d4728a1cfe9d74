"""A recipe's source in, the exact bytes or commit it names now out: what ``lock`` records."""

import os

from wheelfarm import files
from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.http import Client
from wheelfarm.recipes import pypi
from wheelfarm.recipes.lock import (
    LockedArchive,
    LockedCommit,
    LockedFolder,
    LockedSource,
    LockEntry,
)
from wheelfarm.recipes.model import GitSource, PathSource, PyPISource, Recipe
from wheelfarm.run import ProgramFailedError, run

#: No prompt for a password may hang a job; a private repository's key comes from the agent.
_GIT_ENVIRONMENT = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "LC_ALL": "C"}


def resolve_source(recipe: Recipe, *, client: Client, index: str) -> LockEntry:
    """Return what a recipe's source is now.

    Raises BadInputError where it names nothing (or a branch), CouldNotLookError where the index or
    the repository does not answer.
    """
    source: LockedSource
    match recipe.source:
        case PyPISource(project=project, version=version):
            sdist = pypi.find_sdist(project, version, client=client, index=index)
            if sdist.sha256 is None:
                message = f"the index gives no sha256 for {sdist.file_name}"
                raise CouldNotLookError(message, hint="use an index that does, such as PyPI's")
            source = LockedArchive(url=sdist.url, file_name=sdist.file_name, sha256=sdist.sha256)
        case GitSource() as git:
            commit = git.ref if git.is_commit else _commit_of_tag(git)
            source = LockedCommit(url=git.url, commit=commit, submodules=git.submodules)
        case PathSource() as local:
            source = _resolve_path(local)
    return LockEntry(spec=str(recipe.source), source=source, version=recipe.version)


def _resolve_path(source: PathSource) -> LockedSource:
    path = source.path
    if path.is_dir():
        return LockedFolder(path=source.written)
    if not path.is_file():
        message = f"there is no folder or archive {path}"
        raise BadInputError(message)
    return LockedArchive(url=source.written, file_name=path.name, sha256=files.sha256(path))


def _commit_of_tag(source: GitSource) -> str:
    """Return the commit that a tag names; an annotated tag is followed to its commit."""
    refs = _remote_refs(source)
    tag = f"refs/tags/{source.ref}"
    for name in (f"{tag}^{{}}", tag):
        if name in refs:
            return refs[name]
    if f"refs/heads/{source.ref}" in refs:
        message = f"{source.ref!r} is a branch of {source.url}: a floating ref"
        raise BadInputError(message, hint="give a tag or a whole commit")
    message = f"{source.url} has no tag {source.ref!r}"
    raise BadInputError(message, hint=f"`git ls-remote --tags {source.url}` lists them")


def _remote_refs(source: GitSource) -> dict[str, str]:
    patterns = [f"refs/tags/{source.ref}", f"refs/tags/{source.ref}^{{}}"]
    argv = ["git", "ls-remote", "--", source.url, *patterns, f"refs/heads/{source.ref}"]
    try:
        answer = run(argv, env={**os.environ, **_GIT_ENVIRONMENT}, timeout=120)
    except ProgramFailedError as error:
        message = f"the repository {source.url} could not be read"
        raise CouldNotLookError(message, cause=str(error.completed.stderr.strip())) from error
    rows = (line.split("\t", 1) for line in answer.stdout.splitlines() if "\t" in line)
    return {name: commit for commit, name in rows}
