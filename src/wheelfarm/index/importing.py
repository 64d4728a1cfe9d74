"""From another index to a store: a flat page, a GitHub release list, a PEP 503 index, or a file.

Every wheel is downloaded, hashed, compared with the hash that the source gave, read and judged as a
stranger's; what the gate refuses stays out, with the reason. A link that cannot be read is told and
the others go on; each wheel is in the store whole or not at all, so a second run takes the rest.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from packaging.utils import canonicalize_name

from wheelfarm.errors import BadInputError, NegativeVerdictError, WheelfarmError
from wheelfarm.http import (
    Client,
    NotFoundError,
    RefusedError,
    UnreachableError,
    redacted,
)
from wheelfarm.index.listing import (
    Link,
    links_of_html,
    links_of_json,
    links_of_releases,
    looks_like_json,
    projects_of_html,
)
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.store.model import Record, Records
from wheelfarm.store.proof import proof_of
from wheelfarm.store.protocol import Store
from wheelfarm.store.publish import publish
from wheelfarm.values import replace
from wheelfarm.verify.gate import verify_wheel

#: ``missing``: what the link leads to could not be read, so nothing is known of it.
Outcome = Literal["published", "unchanged", "restored", "skipped", "refused", "missing"]

#: A host that is silent so often in a row (each time after all attempts) is asked no more.
SILENCES = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """What became of one link. ``package`` is "" where the link's name does not tell it.

    A project page of a simple index that could not be read is such a link too, without a file name.
    """

    link: Link
    outcome: Outcome
    package: str = ""
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """The wheels that a source lists, each once, and its project pages that could not be read."""

    links: tuple[Link, ...]
    unread: tuple[Imported, ...] = ()


def read_source(source: str, client: Client, *, packages: frozenset[str] = frozenset()) -> Listing:
    """Return what a source lists; of a simple index, with ``packages``, these projects alone.

    ``source`` is an address or a file. Raises BadInputError where it lists nothing at all, so that
    an empty page is never taken for an empty index, and what the client raises where the source
    itself cannot be read.
    """
    if "://" in source:
        answer = client.get(source, accept="text/html, application/json;q=0.9, */*;q=0.1")
        listing = _listing(answer.body, answer.url, client, packages)
    else:
        path = Path(source)
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "does not exist"
            message = f"{source} {what}; an import reads an address or a file"
            hint = (
                "wheels that lie in a folder go in with `wheelfarm verify --report` and `publish`"
            )
            raise BadInputError(message, hint=hint)
        data = path.read_bytes()
        listing = _listing(data, path.absolute().as_uri(), client, packages)
        if not listing.links and b".whl" in data:
            message = f"{source} lists no wheel that has an address"
            hint = "relative links need the page's own address; `wheelfarm serve` serves a folder"
            raise BadInputError(message, hint=hint)
    wheels = {link.url: link for link in listing.links if link.filename.endswith(".whl")}
    if not wheels and not listing.unread:
        message = f"{source} lists no wheel"
        raise BadInputError(message, hint="give a page of links, a release list or a simple index")
    return replace(listing, links=tuple(wheels.values()))


def import_links(
    store: Store, links: Iterable[Link], client: Client, *, packages: frozenset[str] = frozenset()
) -> Iterator[Imported]:
    """Publish every wheel of the links, one after another, and yield what became of each.

    With ``packages`` those of these projects alone. Raises StoreError where the store does not
    answer; what was yielded before is in it.
    """
    importer = _Importer(store, client)
    for link in links:
        yield importer.take(link, packages)


def _listing(data: bytes, url: str, client: Client, packages: frozenset[str]) -> Listing:
    document = looks_like_json(data)
    if isinstance(document, list):
        return Listing(links=links_of_releases(document, url))
    if isinstance(document, dict):
        return Listing(links=links_of_json(document, url))
    text = data.decode(errors="replace")
    projects = projects_of_html(text, url)
    if not projects:
        return Listing(links=links_of_html(text, url))
    links: list[Link] = []
    unread: list[Imported] = []
    for project in projects:
        name = canonicalize_name(urlsplit(project).path.rstrip("/").rpartition("/")[2])
        if packages and name not in packages:
            continue
        try:
            answer = client.get(project, accept="text/html")
        except (NotFoundError, RefusedError, UnreachableError) as error:
            page = Link(filename="", url=project)
            unread.append(_missing(page, name, _sentence(error)))
        else:
            links += links_of_html(answer.body.decode(errors="replace"), answer.url)
    return Listing(links=tuple(links), unread=tuple(unread))


class _Importer:
    """One import: what the store had before, and which hosts are silent."""

    def __init__(self, store: Store, client: Client) -> None:
        self._store = store
        self._client = client
        self._known: dict[str, Records] = {}
        self._silences: Counter[str] = Counter()

    def take(self, link: Link, packages: frozenset[str]) -> Imported:
        try:
            name = WheelName.parse(link.filename)
        except BadInputError as error:
            return Imported(link=link, outcome="refused", reason=error.what)
        package = name.package
        if packages and package not in packages:
            reason = "another package"
            return Imported(link=link, outcome="skipped", package=package, reason=reason)
        try:
            outcome = self._publish(link, package)
        except _MissingError as error:
            return _missing(link, package, str(error))
        except (BadInputError, NegativeVerdictError) as error:
            reason = _sentence(error)
            return Imported(link=link, outcome="refused", package=package, reason=reason)
        return Imported(link=link, outcome=outcome, package=package)

    def _publish(self, link: Link, package: str) -> Outcome:
        if package not in self._known:
            self._known[package] = self._store.catalogue(package).records
        found = self._known[package].get(link.filename)
        if found is not None and not found.removed and self._is_that(found, link):
            return "unchanged"
        with tempfile.TemporaryDirectory(prefix="wheelfarm-import-") as folder:
            wheel = Path(folder) / link.filename
            self._fetch(link, wheel)
            report = verify_wheel(wheel)
            proof = proof_of(report, json.dumps(report.to_dict()).encode())
            proof = replace(proof, warnings=(*proof.warnings, _note(link)))
            return publish(self._store, wheel, proof).outcome

    def _is_that(self, record: Record, link: Link) -> bool:
        """Return whether a wheel in the store is the link's, without a download.

        Where the source tells no hash, one that came from this very address counts as long as the
        file there is as large as it was.
        """
        if link.sha256:
            return record.sha256 == link.sha256
        if _note(link) not in record.warnings:
            return False
        try:
            size = self._client.head(link.url).headers.get("content-length", "")
        except (NotFoundError, RefusedError, UnreachableError):
            # Some hosts refuse this question alone: the download tells.
            return False
        return size == str(record.entry.size)

    def _fetch(self, link: Link, wheel: Path) -> None:
        host = urlsplit(link.url).netloc
        if self._silences[host] >= SILENCES:
            message = f"not asked: {_host(link.url)} did not answer {SILENCES} times in a row"
            raise _MissingError(message)
        try:
            self._client.download(link.url, wheel, sha256=link.sha256 or None)
        except UnreachableError as error:
            self._silences[host] += 1
            raise _MissingError(_sentence(error)) from error
        except (NotFoundError, RefusedError) as error:
            self._silences[host] = 0
            raise _MissingError(_sentence(error)) from error
        self._silences[host] = 0


class _MissingError(Exception):
    """What a link leads to could not be read; the text is the reason."""


def _missing(link: Link, package: str, reason: str) -> Imported:
    return Imported(link=link, outcome="missing", package=package, reason=reason)


def _note(link: Link) -> str:
    """Return what a record says of where its wheel came from; addresses may hold secrets."""
    return f"import: from {redacted(link.url)}"


def _host(url: str) -> str:
    """Return an address's host without a user name and password."""
    return urlsplit(url).netloc.rpartition("@")[2]


def _sentence(error: WheelfarmError) -> str:
    return f"{error.what} ({error.cause})" if error.cause else error.what
