"""A foreign index page as a list of files: HTML (PEP 503 or a flat page) or JSON (PEP 691)."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from wheelfarm.reading import Reader

_SHA256 = re.compile(r"(?:^|&)sha256=([0-9a-fA-F]{64})(?:&|$)")
_METADATA = ("data-core-metadata", "data-dist-info-metadata")
#: Addresses that a page may lead to; no other scheme is ever opened.
_SCHEMES = frozenset({"http", "https"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """One file of a page. ``metadata`` is the hash of its metadata file, "" where none is told."""

    filename: str
    url: str
    text: str = ""
    sha256: str = ""
    size: int | None = None
    requires_python: str = ""
    yanked: str | None = None
    metadata: str = ""

    @property
    def facts(self) -> tuple[str, str, str, bool, str]:
        """What HTML and JSON must agree on."""
        return (
            self.filename,
            self.sha256,
            self.requires_python,
            self.yanked is not None,
            self.metadata,
        )


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.anchors: list[tuple[dict[str, str], str]] = []
        self._open: dict[str, str] | None = None
        self._text: list[str] = []
        self.base = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "a":
            self._open, self._text = found, []
        elif tag == "base" and not self.base:
            self.base = found.get("href", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._open is not None:
            self.anchors.append((self._open, "".join(self._text).strip()))
            self._open = None

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self._text.append(data)


def links_of_html(text: str, url: str) -> tuple[Link, ...]:
    """Return the links of a page that stands at ``url``; those of no web address are left out."""
    parser = _Anchors()
    parser.feed(text)
    parser.close()
    try:
        base = urljoin(url, parser.base) if parser.base else url
    except ValueError:
        base = url
    links = []
    for attributes, shown in parser.anchors:
        try:
            target = urlsplit(urljoin(base, attributes.get("href", "")))
        except ValueError:
            # Such as an IPv6 address that is none: it leads nowhere.
            continue
        if target.scheme not in _SCHEMES:
            continue
        found = _SHA256.search(target.fragment)
        metadata = next((attributes[name] for name in _METADATA if name in attributes), "")
        links.append(
            Link(
                filename=unquote(target.path.rstrip("/").rpartition("/")[2]),
                url=target._replace(fragment="").geturl(),
                text=shown,
                sha256=found[1].lower() if found else "",
                requires_python=attributes.get("data-requires-python", ""),
                yanked=attributes.get("data-yanked"),
                metadata=metadata.removeprefix("sha256="),
            )
        )
    return tuple(links)


def links_of_json(data: Mapping[str, Any], url: str) -> tuple[Link, ...]:
    """Return the files of a PEP 691 page; those of no web address are left out.

    Raises FaultsError where it is no such page.
    """
    reader = Reader(data, url)
    links = []
    for table in reader.tables("files"):
        hashes = table.table("hashes")
        core = table.raw("core-metadata")
        yanked = table.raw("yanked")
        links.append(
            Link(
                filename=table.string("filename"),
                url=urljoin(url, table.string("url")),
                sha256="" if hashes is None else hashes.string("sha256", ""),
                size=table.integer("size") if table.has("size") else None,
                requires_python=table.string("requires-python", ""),
                yanked=None if not yanked else yanked if isinstance(yanked, str) else "",
                metadata=str(core.get("sha256", "")) if isinstance(core, dict) else "",
            )
        )
    reader.finish()
    return _of_the_web(links)


def projects_of_html(text: str, url: str) -> tuple[str, ...]:
    """Return the addresses of the project pages of a PEP 503 root, in order."""
    root = url if url.endswith("/") else url + "/"
    return tuple(
        dict.fromkeys(
            link.url
            for link in links_of_html(text, root)
            if link.url.endswith("/") and link.url.startswith(root) and link.url != root
        )
    )


def links_of_releases(releases: object, context: str) -> tuple[Link, ...]:
    """Return the wheels of a GitHub release list (the answer of ``/repos/…/releases``).

    Those of no web address are left out; raises FaultsError where it is no such list.
    """
    reader = Reader({"releases": releases}, context)
    links = []
    for release in reader.tables("releases"):
        for asset in release.tables("assets"):
            digest = asset.string("digest", "")
            links.append(
                Link(
                    filename=asset.string("name"),
                    url=asset.string("browser_download_url"),
                    sha256=digest.removeprefix("sha256:"),
                    size=asset.integer("size") if asset.has("size") else None,
                )
            )
    reader.finish()
    return _of_the_web(links)


def _of_the_web(links: list[Link]) -> tuple[Link, ...]:
    return tuple(link for link in links if urlsplit(link.url).scheme in _SCHEMES)


def looks_like_json(data: bytes) -> Any:
    """Return the JSON value of a document, None where it is none."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
