"""A site is never shorter than yesterday's by accident: today's files against the live ones."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from wheelfarm.errors import CouldNotLookError, NegativeVerdictError
from wheelfarm.http import Client, NotFoundError
from wheelfarm.index.change import Change
from wheelfarm.index.common import Summaries
from wheelfarm.index.model import Manifest
from wheelfarm.index.tree import SiteTree
from wheelfarm.reading import Reader, parse_json

_INDEX = "manifest/index.json"
_SHOWN = 40


class ShorterIndexError(NegativeVerdictError):
    """The new site would lack what the live one has; ``lost`` are packages and file names."""

    def __init__(self, lost: tuple[str, ...]) -> None:
        self.lost = lost
        shown = "\n".join(f"    {name}" for name in lost[:_SHOWN])
        more = f"\n    and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
        super().__init__(
            f"the new index would lack {len(lost)} of the live site's names:\n{shown}{more}",
            cause="the store lost them, or another store was named",
            hint="nothing was written; where it is meant, add --allow-removal NAME",
        )


class LiveSite(Protocol):
    """Yesterday's site."""

    def read(self, path: str) -> bytes | None:
        """Return a page's bytes, None where the site has no such page."""


class LocalSite:
    """The site as it stands in its folder."""

    def __init__(self, tree: SiteTree) -> None:
        self.tree = tree

    def read(self, path: str) -> bytes | None:
        """Return a page's bytes, None where there is no such page."""
        try:
            return (self.tree.root / path).read_bytes()
        except FileNotFoundError:
            return None


class RemoteSite:
    """A live site. One that does not answer is never taken for an empty one.

    ``new`` says that there is none yet; then, and only then, a missing manifest is none.
    """

    def __init__(self, url: str, client: Client, *, new: bool = False) -> None:
        self.url = url.rstrip("/") + "/"
        self.client = client
        self.new = new

    def read(self, path: str) -> bytes | None:
        """Return a page's bytes; raises UnreachableError where the site cannot be read."""
        try:
            return self.client.get(self.url + path).body
        except NotFoundError as error:
            if self.new:
                return None
            message = f"the live site has no {path}, so nobody can say what it would lose"
            hint = "check the address; for the very first publish add --new-site"
            raise CouldNotLookError(message, cause=str(error), hint=hint) from error


class Guard:
    """Stops a build that would lose names of ``live``; ``allowed`` are packages or file names."""

    def __init__(self, live: LiveSite, allowed: Iterable[str] = ()) -> None:
        self.live = live
        self.allowed = frozenset(allowed)

    def __call__(self, change: Change, summaries: Summaries) -> None:
        """Raise ShorterIndexError where the change loses a name that may not go."""
        data = self.live.read(_INDEX)
        if data is None:
            return
        manifest = Manifest.read(_table(data, _INDEX), "the live site's manifest")
        lost: list[str] = []
        for name, part in sorted(manifest.packages.items()):
            summary = summaries.get(name)
            if summary is not None and summary["part"] == part.sha256:
                continue
            path = f"manifest/packages/{name}.json"
            had = filenames(self.live.read(path) or b"", path)
            if summary is None:
                lost += [] if name in self.allowed else [name]
                has: frozenset[str] = frozenset()
            else:
                has = filenames(change.read(path), path)
            if name not in self.allowed:
                lost += sorted(had - has - self.allowed)
        if lost:
            raise ShorterIndexError(tuple(lost))


def filenames(part: bytes, context: str) -> frozenset[str]:
    """Return the file names that a package's part of the manifest lists."""
    if not part:
        return frozenset()
    reader = Reader(_table(part, context), context)
    names = frozenset(table.string("filename") for table in reader.tables("wheels"))
    reader.finish()
    return names


def _table(data: bytes, context: str) -> Mapping[str, Any]:
    document = parse_json(data, context)
    return document if isinstance(document, dict) else {}
