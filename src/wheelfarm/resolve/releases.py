"""The second transport: the farm's GitHub Releases, when the index cannot be reached.

GitHub REST API, "Releases" and "Release assets": pages of 100, followed by the ``Link`` header; an
asset's ``digest`` is ``sha256:...`` for files uploaded since mid-2025. Facts come from names alone.
"""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from wheelfarm.errors import BadInputError
from wheelfarm.http import Client, UnreachableError, redacted
from wheelfarm.index.model import Combination
from wheelfarm.model.project_name import normalized
from wheelfarm.reading import parse_json
from wheelfarm.resolve.host import Host
from wheelfarm.resolve.pages import Page, assets_page
from wheelfarm.resolve.sources import Index

_API = "https://api.github.com"
_ACCEPT = "application/vnd.github+json"
_NEXT = re.compile(r'<([^>]+)>\s*;\s*rel="next"')
_PER_PAGE = 100
_MOST_PAGES = 100


class ReleasesIndex:
    """The wheels among a repository's release assets."""

    def __init__(self, client: Client, repository: str, transport: str) -> None:
        self.address = releases_address(repository)
        self.transport = transport
        self._client = client
        self._assets: dict[str, list[dict[str, Any]]] | None = None

    def packages(self) -> frozenset[str] | None:
        """Return the names of the packages that have a wheel there."""
        return frozenset(self._by_package())

    def fallback(self) -> Combination | None:
        """Return None: releases name none."""
        return None

    def pages(self, names: Iterable[str], host: Host) -> Mapping[str, Page]:
        """Return a page for each name."""
        known = self._by_package()
        return {
            name: assets_page(name, known[name], self.address, host)
            if name in known
            else Page(package=name, url=self.address, missing=True)
            for name in map(normalized, names)
        }

    def _by_package(self) -> dict[str, list[dict[str, Any]]]:
        if self._assets is None:
            self._assets = {}
            for asset in self._all_assets():
                name = str(asset.get("name"))
                if name.endswith(".whl") and asset.get("state", "uploaded") == "uploaded":
                    package = normalized(name.partition("-")[0])
                    self._assets.setdefault(package, []).append(asset)
        return self._assets

    def _all_assets(self) -> Iterable[dict[str, Any]]:
        for release in self._listed(f"{self.address}?per_page={_PER_PAGE}"):
            if release.get("draft"):
                continue
            assets = release.get("assets")
            url = release.get("assets_url")
            if isinstance(assets, list) and len(assets) < _PER_PAGE:
                yield from (asset for asset in assets if isinstance(asset, dict))
            elif isinstance(url, str):
                yield from self._listed(f"{url}?per_page={_PER_PAGE}")

    def _listed(self, url: str) -> Iterable[dict[str, Any]]:
        address: str | None = url
        for _ in range(_MOST_PAGES):
            if address is None:
                return
            answer = self._client.get(address, accept=_ACCEPT)
            listed = parse_json(answer.body, redacted(address))
            if not isinstance(listed, list):
                message = f"{redacted(address)} is no list of releases"
                raise BadInputError(message)
            yield from (entry for entry in listed if isinstance(entry, dict))
            found = _NEXT.search(answer.headers.get("link", ""))
            address = None if found is None else found[1]


def releases_address(repository: str) -> str:
    """Return the API's address for ``owner/name``; a whole address is taken as it is.

    ``GITHUB_API_URL`` names another API than GitHub's own, as on its runners (GitHub Enterprise).
    """
    if repository.startswith(("https://", "http://")):
        return repository.rstrip("/")
    if not is_repository(repository):
        message = f"{repository!r} is no repository; expected owner/name"
        raise BadInputError(message)
    api = (os.environ.get("GITHUB_API_URL") or _API).rstrip("/")
    return f"{api}/repos/{repository}/releases"


def is_repository(text: str) -> bool:
    """Return whether a text is a repository's ``owner/name``."""
    return re.fullmatch(r"[\w.-]+/[\w.-]+", text, re.ASCII) is not None


class TwoTransports:
    """An index, and the releases that answer instead once it cannot be reached.

    Only that switches: an index that answers "nothing here" has answered.
    """

    def __init__(self, first: Index, client: Client, repository: str) -> None:
        self._used = first
        self._client = client
        self._repository = repository

    @property
    def address(self) -> str:
        """The address that answers."""
        return self._used.address

    @property
    def transport(self) -> str:
        """How the answer came."""
        return self._used.transport

    def packages(self) -> frozenset[str] | None:
        """Return the names that are served."""
        return self._used.packages()

    def fallback(self) -> Combination | None:
        """Return the known-good combination."""
        return self._used.fallback()

    def pages(self, names: Iterable[str], host: Host) -> Mapping[str, Page]:
        """Return a page for each name, all of them by one transport."""
        asked = list(names)
        try:
            return self._used.pages(asked, host)
        except UnreachableError as error:
            if self.transport:
                raise
            self._used = second_transport(error, self._client, self._repository)
            return self._used.pages(asked, host)


def second_transport(error: UnreachableError, client: Client, repository: str) -> ReleasesIndex:
    """Return the releases that answer for an index out of reach; it says why they do."""
    where = redacted(releases_address(repository))
    transport = (
        f"{error.what}; answered by the second transport, {where},"
        " where facts come from file names alone"
    )
    return ReleasesIndex(client, repository, transport)
