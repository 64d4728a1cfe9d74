"""A package's page, from any kind of index, as candidates: a manifest's part, PEP 691 or PEP 503.

Foreign text becomes candidates here; what cannot be read is kept with its reason, never dropped.
"""

import contextlib
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any
from urllib.parse import quote, unquote, urljoin, urlsplit

from wheelfarm.errors import BadInputError
from wheelfarm.http import redacted
from wheelfarm.index.model import WheelEntry
from wheelfarm.model.axis import TORCH_AXES, TorchAxis
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.reading import Reader
from wheelfarm.resolve import tags
from wheelfarm.resolve.candidate import Candidate
from wheelfarm.resolve.host import Host
from wheelfarm.values import NOTHING, replace, value

_AXES: Mapping[str, TorchAxis] = {axis: axis for axis in TORCH_AXES}
_SHA256 = r"(?:^|&)sha256=([0-9a-fA-F]{64})(?:&|$)"


def _no_offers() -> "Iterable[Offer]":
    return ()


#: Names, each with why it is no wheel that could serve (an sdist, a name that cannot be read).
Unread = tuple[tuple[str, str], ...]


@value
class Group:
    """The files of a page that share a version's text and a torch axis, and so some rules' no.

    ``source`` reads them, and what of them cannot be read, once none of those rules says no.
    """

    version_text: str
    torch_axis: TorchAxis | None
    source: Callable[[], tuple[tuple[Candidate, ...], Unread]]

    @cached_property
    def read(self) -> tuple[tuple[Candidate, ...], Unread]:
        """The candidates, and what cannot be read."""
        return self.source()


@value
class Page:
    """What an index offers of one package.

    ``groups`` are of files whose name fits the host's Python and platform; ``others`` those whose
    name does not, and ``rest`` reads more of that kind, which only a report asks for; ``refused``
    is what is known to be no wheel from the first.
    """

    package: str
    url: str
    groups: tuple[Group, ...] = ()
    others: tuple["Offer", ...] = ()
    rest: "Callable[[], Iterable[Offer]]" = _no_offers
    refused: Unread = ()
    missing: bool = False

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Every wheel whose name fits the host."""
        return tuple(each for group in self.groups for each in group.read[0])

    @property
    def unread(self) -> Unread:
        """What cannot be read of all that fits or is no wheel, with the reasons."""
        return (*self.refused, *(each for group in self.groups for each in group.read[1]))

    def all_candidates(self) -> tuple[Candidate, ...]:
        """Return every wheel of the page that can be read, those that its tags rule out too."""
        found = []
        offers: tuple[Candidate | Offer, ...] = (*self.candidates, *self.others, *self.rest())
        for offer in offers:
            with contextlib.suppress(BadInputError):
                candidate = offer if isinstance(offer, Candidate) else offer.candidate()
                # Read to the end here, so that no faulty one is met later.
                found.append(candidate.with_entry(candidate.entry))
        return tuple(found)


@value
class Offer:
    """One file as a page lists it, its name read and the rest not yet.

    ``address`` is as the page at ``page`` writes it, perhaps relative.
    """

    name: WheelName
    serves: WheelName
    address: str
    page: str
    raw: Mapping[str, Any] = NOTHING
    proven: bool = False

    def candidate(self) -> Candidate:
        """Return the candidate; the rest of its entry is read when it is asked for."""
        return Candidate(
            name=self.name,
            serves=self.serves,
            proven=self.proven,
            torch_axis=known_axis(self.raw.get("torch_axis")),
            source=self._from_manifest if self.proven else self._from_name,
        )

    @property
    def url(self) -> str:
        """The whole address; BadInputError for one that no page may name, such as our disk's."""
        try:
            url = safe_address(urljoin(self.page, self.address))
            _ = urlsplit(url).port
        except ValueError as error:
            message = f"{self.name} stands at what is no address ({error})"
            raise BadInputError(message) from error
        scheme = url.partition(":")[0]
        if scheme in {"http", "https"} or (scheme == "file" and self.page.startswith("file:")):
            return url
        message = f"{self.name} stands at an address that no page may name ({scheme})"
        raise BadInputError(message)

    def _from_manifest(self) -> WheelEntry:
        reader = Reader(self.raw, f"manifest entry {self.name}")
        entry = WheelEntry.read(reader)
        reader.finish()
        if entry is None:
            message = f"the manifest's entry of {self.name} cannot be read"
            raise BadInputError(message)
        return replace(entry, url=self.url)

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


class Fits:
    """Whether tags fit a host, each combination judged once."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._known: dict[tuple[str, ...], bool] = {}
        self._ends: dict[str, bool] = {}

    def names(self, texts: Sequence[str]) -> list[bool]:
        """Judge file names by their last three parts; one that has none is to be read further."""
        # A page's thousands of names share a few ends: what follows name and version.
        ends = [text.split("-", 2)[-1] for text in texts]
        for end, text in dict(zip(ends, texts, strict=True)).items():
            if end not in self._ends:
                self._ends[end] = self._end_fits(text)
        return [self._ends[end] for end in ends]

    def _end_fits(self, text: str) -> bool:
        key = text.removesuffix(".whl").rsplit("-", 3)[1:]
        complete = len(key) == 3  # noqa: PLR2004 - python, ABI, platform
        return not complete or self._fit(*(part.split(".") for part in key))

    def parsed(self, name: WheelName) -> bool:
        """Judge a name that was read."""
        tags_of = (name.pythons, name.abis, name.platforms)
        key = tuple(map(".".join, tags_of))
        fit = self._known.get(key)
        if fit is None:
            fit = self._known[key] = self._fit(*tags_of)
        return fit

    def _fit(self, pythons: Sequence[str], abis: Sequence[str], platforms: Sequence[str]) -> bool:
        return not (
            tags.platform_refusal(tuple(platforms), self._host)
            or tags.python_refusal(tuple(pythons), tuple(abis), self._host)
        )


def json_page(package: str, document: Any, url: str, host: Host) -> Page:
    """Read a PEP 691 page."""
    reader = Reader(document, url)
    meta = reader.raw("meta")
    if isinstance(meta, Mapping):
        _check_version(meta.get("api-version"), url)
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
        _offer((name, name, address, url), raw, offers, unread)
    reader.finish()
    return _page_of(package, url, offers, unread, host)


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
        found = re.search(_SHA256, digest.replace("sha256:", "sha256=", 1))
        size = asset.get("size")
        raw = {
            "sha256": None if found is None else found[1].lower(),
            "size": size if isinstance(size, int) else None,
        }
        # GitHub turns characters that it does not like into dots; "+" stays.
        _offer((name, name, address, url), raw, offers, unread)
    return _page_of(package, url, offers, unread, host)


def _check_version(stated: object, url: str) -> None:
    """Raise BadInputError for a page of a later kind of simple API, as its sense is not known.

    PyPA specification, "Simple repository API", versioning.
    """
    if isinstance(stated, str) and re.match(r"(?!1(\.|$))\d+(\.|$)", stated):
        message = f"{redacted(url)} is a page of version {stated} of the simple API, and 1 is read"
        raise BadInputError(message)


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
    _check_version(parser.version, url)
    base = url
    with contextlib.suppress(ValueError):
        base = urljoin(url, parser.base)
    offers: list[Offer] = []
    unread: list[tuple[str, str]] = []
    for href, attributes, content in parser.anchors:
        try:
            address = urljoin(base, href)
            parts = urlsplit(address)
        except ValueError as error:
            unread.append((content.strip() or href, f"its link is no address ({error})"))
            continue
        name = unquote(posixpath.basename(parts.path))
        if not name.endswith((".whl", ".tar.gz", ".zip")):
            continue
        found = re.search(_SHA256, parts.fragment)
        metadata = attributes.get("data-core-metadata", attributes.get("data-dist-info-metadata"))
        raw = {
            "sha256": None if found is None else found[1].lower(),
            "requires-python": attributes.get("data-requires-python"),
            "yanked": attributes.get("data-yanked"),
            "core-metadata": _html_metadata(metadata),
        }
        address = parts._replace(fragment="").geturl()
        _offer((name, content.strip(), address, url), raw, offers, unread)
    return _page_of(package, url, offers, unread, host)


def _html_metadata(value: str | None) -> Any:
    if value is None or value == "false":
        return None
    return value.removeprefix("sha256=") if value.startswith("sha256=") else True


def _offer(
    file: tuple[str, str, str, str],
    raw: Mapping[str, Any],
    offers: list[Offer],
    unread: list[tuple[str, str]],
) -> None:
    name, content, address, page = file
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
    offers.append(Offer(name=parsed, serves=serves, address=address, page=page, raw=raw))


def known_axis(found: object) -> TorchAxis | None:
    """Return a torch axis as an index names it; None where it names none that is known."""
    return _AXES.get(found) if isinstance(found, str) else None


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


def foreign_package(offer: Offer, package: str) -> str:
    """Return why an offer is none of a page's package; empty where it is."""
    own = offer.name.package == package
    return "" if own else f"belongs to another package than {package}"


def groups_of(candidates: Iterable[Candidate]) -> tuple[Group, ...]:
    """Return candidates that were read already in their groups."""
    found: dict[tuple[str, TorchAxis | None], list[Candidate]] = {}
    for each in candidates:
        found.setdefault((each.serves.version_text, each.torch_axis), []).append(each)
    return tuple(
        Group(version_text=text, torch_axis=axis, source=partial(_as_read, tuple(kept)))
        for (text, axis), kept in found.items()
    )


def _as_read(candidates: tuple[Candidate, ...]) -> tuple[tuple[Candidate, ...], Unread]:
    return candidates, ()


def _page_of(
    package: str,
    url: str,
    offers: Iterable[Offer],
    unread: Iterable[tuple[str, str]],
    host: Host,
) -> Page:
    """Return a page of what was read of it; a wheel of another package is refused."""
    fits = Fits(host)
    kept: list[Candidate] = []
    others: list[Offer] = []
    refused = list(unread)
    for offer in offers:
        why = foreign_package(offer, package)
        if why:
            refused.append((str(offer.name), why))
        elif fits.parsed(offer.serves):
            kept.append(offer.candidate())
        else:
            others.append(offer)
    return Page(
        package=package,
        url=url,
        groups=groups_of(kept),
        others=tuple(others),
        refused=tuple(refused),
    )
