"""What a user points the survey at: a folder, an archive or a git tag in, a folder of files out."""

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wheelfarm import files
from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.run import ProgramFailedError, run

_GIT = re.compile(r"(?P<url>(?:https?|ssh|git|file)://[^@\s]+(?:@[^@\s]*/[^@\s]+)?)@(?P<ref>\S+)")
_SCP = re.compile(r"(?P<url>git@[\w.-]+:[^@\s]+)@(?P<ref>\S+)")
_COMMIT = re.compile(r"[0-9a-f]{40}")

#: Seconds that one git command may take.
GIT_TIMEOUT = 600

#: No prompt for a password may hang a survey; hooks and foreign transports never run.
_GIT_ENVIRONMENT = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "LC_ALL": "C"}


@dataclass(frozen=True, kw_only=True, slots=True)
class GitReference:
    """A repository and a tag or whole commit of it."""

    url: str
    ref: str


def git_reference(text: str) -> GitReference | None:
    """Return the repository and ref of ``URL@TAG``, None where the text is none."""
    match = _GIT.fullmatch(text) or _SCP.fullmatch(text)
    return None if match is None else GitReference(url=match["url"], ref=match["ref"])


@contextlib.contextmanager
def opened(text: str) -> Iterator[Path]:
    """Yield the folder that holds the tree of a folder, an archive or ``GIT-URL@TAG``.

    What is unpacked or fetched lies in a temporary folder and goes away. Raises BadInputError where
    the text names nothing that can be read, CouldNotLookError where a repository does not answer.
    """
    path = Path(text)
    if path.is_dir():
        yield path
        return
    reference = git_reference(text)
    if reference is None and not path.is_file():
        message = f"{text} is no folder, no archive and no GIT-URL@TAG"
        raise BadInputError(message, hint="git sources are written https://host/owner/name@v1.2")
    with tempfile.TemporaryDirectory(prefix="wheelfarm-survey-") as name:
        folder = Path(name)
        if reference is None:
            files.unpack(path, folder)
            yield single_top(folder)
        else:
            yield _fetched(reference, folder)


def single_top(folder: Path) -> Path:
    """Return the one folder that an archive unpacked to, else ``folder`` itself."""
    entries = [path for path in folder.iterdir() if path.name != "pax_global_header"]
    return entries[0] if len(entries) == 1 and entries[0].is_dir() else folder


def _fetched(reference: GitReference, folder: Path) -> Path:
    environment = {**os.environ, **_GIT_ENVIRONMENT}
    git = ["git", "-C", str(folder), "-c", "protocol.ext.allow=never", "-c", "core.hooksPath="]
    commit = _COMMIT.fullmatch(reference.ref) is not None
    wanted = reference.ref if commit else f"refs/tags/{reference.ref}"
    try:
        run([*git, "init", "--quiet"], env=environment)
        run(
            [*git, "fetch", "--quiet", "--depth", "1", "--", reference.url, wanted],
            env=environment,
            timeout=GIT_TIMEOUT,
        )
        run([*git, "checkout", "--quiet", "--detach", "FETCH_HEAD"], env=environment)
    except ProgramFailedError as error:
        reason = error.completed.stderr.strip()
        message = f"{reference.ref} of {reference.url} could not be fetched"
        if "couldn't find remote ref" in reason:
            raise BadInputError(
                message, cause=reason, hint="give a tag or a whole commit"
            ) from error
        raise CouldNotLookError(message, cause=reason) from error
    return folder
