"""A package's page, from any kind of index, as candidates: a manifest's part, PEP 691 or PEP 503.

Foreign text becomes candidates here; what cannot be read is kept with its reason, never dropped.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote, urljoin, urlsplit

from wheelfarm.errors import BadInputError
from wheelfarm.index.model import PACKAGE_SCHEMA, WheelEntry, manifest_reader
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.reading import Reader
from wheelfarm.resolve import tags
from wheelfarm.resolve.candidate import Candidate
from wheelfarm.resolve.host import Host

_SHA256 = re.compile(r"(?:^|&)sha256=([0-9a-fA-F]{64})(?:&|$)")


@dataclass(frozen=True, kw_only=True)
class Page:
    """What an index offers of one package.

    ``candidates`` are those whose name fits the host's Python and platform; ``others`` the raw
    remainder (file name, or a manifest's table), read only for a report; ``unread`` pairs a name
    with why it is no wheel that could serve (an sdist, a name that cannot be read).
    """

    package: str
    url: str
    candidates: tuple[Candidate, ...] = ()
    others: tuple["Offer", ...] = ()
    unread: tuple[tuple[str, str], ...] = ()
    missing: bool = False

    def all_candidates(self) -> tuple[Candidate, ...]:
        """Return every wheel of the page, those that the host's tags rule out too."""
        return (*self.candidates, *(offer.candidate() for offer in self.others))


@dataclass(frozen=True, kw_only=True)
class Offer:
    """One file as a page lists it, its name read and the rest not yet."""

    name: WheelName
    serves: WheelName
    url: str
    raw: Mapping[str, Any] = field(default_factory=dict)
    proven: bool = False

    def candidate(self) -> Candidate:
        """Read the rest; BadInputError where a manifest's entry is faulty."""
        if self.proven:
            reader = Reader(self.raw, f"manifest entry {self.name}")
            entry = WheelEntry.read(reader)
            reader.finish()
            if entry is not None:
                return Candidate(entry=_at(entry, self.url), serves=self.serves, proven=True)
        return Candidate(entry=self._from_name(), serves=self.serves, proven=False)

    def _from_name(self) -> WheelEntry:
        metadata = self.raw.get("core-metadata")
        return WheelEntry(
            name=self.name,
            url=self.url,
            sha256=self.raw.get("sha256"),
            size=self.raw.get("size"),
            metadata_sha256=metadata if isinstance(metadata, str) else "" if metadata else None,
            requires_python=self.raw.get("requires-python") or "",
            yanked=self.raw.get("yanked"),
        )


def _at(entry: WheelEntry, url: str) -> WheelEntry:
    from dataclasses import replace

    return replace(entry, url=url)


def manifest_page(package: str, document: Any, url: str, host: Host) -> Page:
    """Read a manifest's part; FaultsError where it is not one."""
    reader = manifest_reader(document, url, PACKAGE_SCHEMA)
    wheels = document.get("wheels")
    if not isinstance(wheels, list):
        reader.fault("expected a list of wheels", "wheels")
        reader.finish()
        wheels = []
    offers: list[Offer] = []
    unread: list[tuple[str, str]] = []
    for wheel in wheels:
        name = wheel.get("filename") if isinstance(wheel, dict) else None
        address = wheel.get("url") if isinstance(wheel, dict) else None
        if not isinstance(name, str) or not isinstance(address, str):
            unread.append((str(name), "the manifest's entry has no file name or address"))
            continue
        try:
            parsed = WheelName.parse(name)
        except BadInputError as error:
            unread.append((name, error.what))
            continue
        offers.append(
            Offer(
                name=parsed,
                serves=parsed,
                url=safe_address(urljoin(url, address)),
                raw=wheel,
                proven=True,
            )
        )
    return _page(package, url, offers, unread, host)


def json_page(package: str, document: Any, url: str, host: Host) -> Page:
    """Read a PEP 691 page."""
    reader = Reader(document, url)
    reader.raw("meta")
    offers: list[Offer] = []
    unread: list[tuple[str, str]] = []
    for file in reader.tables("files"):
        name, address = file.string("filename"), file.string("url")
        hashes = file.table("hashes")
        sha256 = None if hashes is None else hashes.optional_string("sha256")
        yanked = file.raw("yanked")
        metadata = file.raw("core-metadata")
        if metadata is None:
            metadata = file.raw("dist-info-metadata")
        raw = {
            "sha256": None if sha256 is None else sha256.lower(),
            "size": file.raw("size") if isinstance(file.raw("size"), int) else None,
            "requires-python": file.raw("requires-python"),
            "yanked": (yanked if isinstance(yanked, str) else "") if yanked else None,
            "core-metadata": _metadata_hash(metadata),
        }
        _offer((name, name, urljoin(url, address)), raw, offers, unread)
    reader.finish()
    return _page(package, url, offers, unread, host)


def assets_page(package: str, assets: Iterable[Mapping[str, Any]], url: str, host: Host) -> Page:
    """Read GitHub's release assets; one of a digest of another kind has no hash."""
    offers: list[Offer] = []
    unread: list[tuple[str, str]] = []
    for asset in assets:
        name, address = asset.get("name"), asset.get("browser_download_url")
        if not isinstance(name, str) or not isinstance(address, str):
            unread.append((str(name), "the asset has no name or address"))
            continue
        digest = str(asset.get("digest") or "")
        found = _SHA256.search(digest.replace("sha256:", "sha256=", 1))
        size = asset.get("size")
        raw = {
            "sha256": None if found is None else found[1].lower(),
            "size": size if isinstance(size, int) else None,
        }
        # GitHub turns characters that it does not like into dots; "+" stays.
        _offer((name, name, address), raw, offers, unread)
    return _page(package, url, offers, unread, host)


def _metadata_hash(value: Any) -> Any:
    if isinstance(value, dict):
        found = value.get("sha256")
        return found if isinstance(found, str) else True
    return bool(value)


def html_page(package: str, text: str, url: str, host: Host) -> Page:
    """Read a PEP 503 page. An anchor's text that is a wheel's name says what the file serves."""
    from wheelfarm.resolve.anchors import Anchors

    parser = Anchors()
    parser.feed(text)
    parser.close()
    base = urljoin(url, parser.base) if parser.base else url
    offers: list[Offer] = []
    unread: list[tuple[str, str]] = []
    for href, attributes, content in parser.anchors:
        address = urljoin(base, href)
        parts = urlsplit(address)
        name = unquote(posixpath.basename(parts.path))
        if not name.endswith((".whl", ".tar.gz", ".zip")):
            continue
        found = _SHA256.search(parts.fragment)
        metadata = attributes.get("data-core-metadata", attributes.get("data-dist-info-metadata"))
        raw = {
            "sha256": None if found is None else found[1].lower(),
            "requires-python": attributes.get("data-requires-python"),
            "yanked": attributes.get("data-yanked"),
            "core-metadata": _html_metadata(metadata),
        }
        address = parts._replace(fragment="").geturl()
        _offer((name, content.strip(), address), raw, offers, unread)
    return _page(package, url, offers, unread, host)


def _html_metadata(value: str | None) -> Any:
    if value is None or value == "false":
        return None
    return value.removeprefix("sha256=") if value.startswith("sha256=") else True


def _offer(
    file: tuple[str, str, str],
    raw: Mapping[str, Any],
    offers: list[Offer],
    unread: list[tuple[str, str]],
) -> None:
    name, content, address = file
    if not name.endswith(".whl"):
        unread.append((name, "is no wheel; a source build is never taken"))
        return
    try:
        parsed = WheelName.parse(name)
    except BadInputError as error:
        unread.append((name, error.what))
        return
    serves = parsed
    if content != name and content.endswith(".whl"):
        try:
            serves = WheelName.parse(content)
        except BadInputError:
            unread.append((content, "the link's text is no wheel name; the file's own is taken"))
        if serves.package != parsed.package:
            unread.append((content, f"its text names another package than its file {name}"))
            return
    offers.append(Offer(name=parsed, serves=serves, url=safe_address(address), raw=raw))


def safe_address(url: str) -> str:
    """Return an address that is safe in every lock format and on every store.

    ``+`` of its path is written ``%2B``, as some stores read a bare one as a blank; blanks, quotes
    and control characters are escaped, so that a foreign page cannot end a line or an address.
    """
    parts = urlsplit(url)
    return parts._replace(
        path=quote(parts.path, safe="/%:@!$&()*,;=~-._"),
        query=quote(parts.query, safe="/%:@!$&()*+,;=~-._?"),
        fragment="",
    ).geturl()


def _page(
    package: str,
    url: str,
    offers: Iterable[Offer],
    unread: Iterable[tuple[str, str]],
    host: Host,
) -> Page:
    refusals: dict[tuple[tuple[str, ...], ...], bool] = {}
    kept: list[Candidate] = []
    others: list[Offer] = []
    refused = list(unread)
    for offer in offers:
        refusal = _foreign(offer, package, url)
        if refusal:
            refused.append((str(offer.name), refusal))
            continue
        name = offer.serves
        key = (name.pythons, name.abis, name.platforms)
        if key not in refusals:
            refusals[key] = bool(
                tags.platform_refusal(name.platforms, host)
                or tags.python_refusal(name.pythons, name.abis, host)
            )
        if refusals[key]:
            others.append(offer)
        else:
            try:
                kept.append(offer.candidate())
            except BadInputError as error:
                refused.append((str(offer.name), error.what))
    return Page(
        package=package,
        url=url,
        candidates=tuple(kept),
        others=tuple(others),
        unread=tuple(refused),
    )


def _foreign(offer: Offer, package: str, page: str) -> str:
    """Return why a page may not offer a file: another package's, or at an address of our disk."""
    if offer.name.package != package:
        return f"belongs to another package than {package}"
    scheme = urlsplit(offer.url).scheme
    if scheme in {"http", "https"} or (scheme == "file" and page.startswith("file:")):
        return ""
    return f"stands at an address that no page may name ({scheme or 'none'})"
