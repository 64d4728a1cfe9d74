"""Where candidates come from: an index with a manifest, or a plain PEP 503/691 index.

An index is a trust boundary: its owner chooses the bytes that run. Hashes bind those bytes to the
pages, and pages to the address that the user configured; nothing more.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urljoin

from wheelfarm.errors import CouldNotLookError
from wheelfarm.http import (
    Client,
    HashMismatchError,
    NotFoundError,
    RefusedError,
    Response,
    redacted,
)
from wheelfarm.http.credentials import without_login
from wheelfarm.index.model import Combination, Manifest
from wheelfarm.model.project_name import normalized
from wheelfarm.reading import parse_json
from wheelfarm.resolve.connect import (
    AT_ONCE,
    JSON,
    index_root,
    manifest_address,
    part_address,
)
from wheelfarm.resolve.host import Host
from wheelfarm.resolve.manifest_part import manifest_page
from wheelfarm.resolve.pages import Fits, Page, html_page, json_page

#: What text of an encoding may begin with.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SIMPLE = (
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2,"
    " text/html;q=0.1"
)

_FORBIDDEN = 403


class Index(Protocol):
    """An index of wheels, however it answers."""

    @property
    def address(self) -> str:
        """The address that answers."""

    @property
    def transport(self) -> str:
        """How the answer came, for the report; empty for the usual way."""

    def packages(self) -> frozenset[str] | None:
        """Return the names that it serves; None where it does not tell."""

    def pages(self, names: Iterable[str], host: Host) -> Mapping[str, Page]:
        """Return a page for each name; one that is not served has ``missing`` set."""

    def fallback(self) -> Combination | None:
        """Return its known-good combination; None where it names none."""


class ManifestIndex:
    """A site with ``/manifest/``: proven facts of every wheel."""

    transport = ""

    def __init__(self, client: Client, address: str, url: str, manifest: Manifest) -> None:
        self.address = address
        self.manifest = manifest
        self._client = client
        self._url = url

    def packages(self) -> frozenset[str] | None:
        """Return the names that it serves."""
        return frozenset(self.manifest.packages)

    def fallback(self) -> Combination | None:
        """Return its known-good combination."""
        return self.manifest.fallback

    def pages(self, names: Iterable[str], host: Host) -> Mapping[str, Page]:
        """Return a page for each name, each part's bytes checked against the manifest's hash."""
        parts = {name: self.manifest.packages.get(name) for name in map(normalized, names)}
        known = {name: part for name, part in parts.items() if part is not None}
        addresses = {name: part_address(self._url, part.url) for name, part in known.items()}
        fits = Fits(host)

        def read(name: str, answer: Response) -> Page:
            url, promised = addresses[name], known[name].sha256
            if answer.sha256 != promised:
                raise HashMismatchError(redacted(url), promised, answer.sha256)
            return manifest_page(name, answer.body, url, fits)

        absent = set(parts) - set(known)
        return _read_each(self._client, addresses, JSON, read) | {
            name: Page(package=name, url=self._url, missing=True) for name in absent
        }


class SimpleIndex:
    """A PEP 503/691 index: what its names and pages say, and nothing proven."""

    transport = ""

    def __init__(self, client: Client, address: str, *, barred: RefusedError | None = None) -> None:
        """``barred`` is how the index answered that it may not be asked for a manifest."""
        self.address = address
        self._client = client
        self._barred = barred

    def packages(self) -> frozenset[str] | None:
        """Return None: the list of all projects is not asked for."""
        return None

    def fallback(self) -> Combination | None:
        """Return None: a plain index names none."""
        return None

    def pages(self, names: Iterable[str], host: Host) -> Mapping[str, Page]:
        """Return a page for each name; RefusedError where the index is barred, and shows none."""
        addresses = {name: urljoin(self.address, f"{name}/") for name in map(normalized, names)}

        def absent(name: str) -> Page:
            if self._barred is not None:
                raise self._barred
            return Page(package=name, url=addresses[name], missing=True)

        return _read_each(
            self._client,
            addresses,
            _SIMPLE,
            lambda name, answer: _simple_page(name, answer, host),
            absent,
        )


def _simple_page(name: str, answer: Response, host: Host) -> Page:
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind.endswith("json"):
        document = parse_json(answer.body, redacted(answer.url))
        return json_page(name, document, answer.url, host)
    return html_page(name, _text_of(answer), answer.url, host)


def _text_of(answer: Response) -> str:
    """Return a page's text: by the mark it begins with, else what the server says, else UTF-8.

    Raises CouldNotLookError for what is no text, which would read as a page without links.
    """
    kind = answer.headers.get("content-type", "")
    # In all others ASCII is ASCII, and names are; nor may a server choose any codec of Python's.
    stated = re.search(r"charset=[\"']?(utf-?(?:16|32)(?:[lb]e)?)\b", kind.lower())
    marked = next((name for mark, name in _MARKS if answer.body.startswith(mark)), None)
    text = answer.body.decode(marked or (stated[1] if stated else "utf-8"), "replace")
    if "\0" in text:
        message = f"{redacted(answer.url)} is no page of text"
        cause = "it holds zero bytes, as text of an encoding does that the server does not name"
        raise CouldNotLookError(message, cause=cause)
    return text


def open_index(address: str, client: Client) -> Index:
    """Return the index at an address: a site's root, or the root of its simple pages.

    A login in the address is learnt by the client, for that host's pages and files, and stands in
    no address from here on. Raises BadInputError where the address is none, CouldNotLookError
    where a folder holds no index, UnreachableError where nothing answers.
    """
    address = client.learn_login(index_root(address))
    url = manifest_address(address)
    try:
        body = client.get(url, accept=JSON).body
    except NotFoundError:
        if address.startswith("file:"):
            _check_folder(address)
        return SimpleIndex(client, address)
    except RefusedError as error:
        # Object stores answer so for what is not there; a plain index's pages may well be.
        if error.status != _FORBIDDEN:
            raise
        return SimpleIndex(client, address, barred=error)
    if body.lstrip()[:1] == b"<":
        # A host that has a page for people at every address.
        return SimpleIndex(client, address)
    return ManifestIndex(client, address, url, read_manifest(body, url))


def read_manifest(body: bytes, url: str) -> Manifest:
    """Read a manifest's bytes; BadInputError where they are none."""
    document: Any = parse_json(body, redacted(url))
    return Manifest.read(document, redacted(url))


def last_manifest(address: str, client: Client) -> Manifest | None:
    """Return an index's manifest as it was when it last answered; None where nobody kept it."""
    if client.cache is None:
        return None
    url = manifest_address(without_login(index_root(address)))
    kept = client.cache.get(url, JSON)
    return None if kept is None else read_manifest(kept.body, url)


def _check_folder(address: str) -> None:
    """Refuse a folder that is no index: there every package would merely seem to be absent."""
    from wheelfarm.http.local import file_path

    folder = Path(file_path(address))
    if (folder / "index.html").is_file() or any(folder.glob("*/index.html")):
        return
    message = f"{folder} holds no index: neither manifest/index.json nor pages of packages"
    hint = "give the folder of a bundle, of a site, or of its simple pages"
    raise CouldNotLookError(message, hint=hint)


def _read_each(
    client: Client,
    addresses: Mapping[str, str],
    accept: str,
    read: Callable[[str, Response], Page],
    absent: Callable[[str], Page] | None = None,
) -> dict[str, Page]:
    """Read each name's page, in order, while those of the next few names are on their way.

    One that is not there is what ``absent`` says, if anything. Reading is work and not waiting:
    threads would only take turns at it.
    """
    names = sorted(addresses)
    found: dict[str, Page] = {}
    try:
        for position, name in enumerate(names):
            for coming in names[position + 1 : position + AT_ONCE]:
                client.ahead(addresses[coming], accept=accept)
            try:
                found[name] = read(name, client.get(addresses[name], accept=accept))
            except NotFoundError:
                if absent is None:
                    raise
                found[name] = absent(name)
    finally:
        for name in set(names) - set(found):
            client.forget(addresses[name], accept=accept)
    return found
