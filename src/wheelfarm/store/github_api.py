"""The part of GitHub's REST API that a store needs: releases and their assets.

Source: docs.github.com, "REST API endpoints for releases" and "for release assets". Tokens go to
the API's host and to the host of ``upload_url`` alone, never to where a download redirects.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from wheelfarm.http import Client, NotFoundError, RefusedError, Response, UnreachableError
from wheelfarm.reading import Reader, parse_json
from wheelfarm.store.protocol import StoreError

_ACCEPT = "application/vnd.github+json"
_BINARY = "application/octet-stream"
_NEXT = re.compile(r'<([^>]+)>;\s*rel="next"')
_PER_PAGE = 100
_LIMITED = frozenset({403, 429})
_CREATED = 201
_UNPROCESSABLE = 422
_DELETED = frozenset({204, 404})
_SERVER_ERROR = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Asset:
    """One file of a release. ``sha256`` is empty where GitHub did not compute a digest.

    An upload that broke off leaves an asset that is not ``complete``.
    """

    id: int
    name: str
    size: int
    sha256: str
    complete: bool
    url: str
    modified: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Release:
    """One release: where its assets are uploaded to."""

    id: int
    tag: str
    upload_url: str


class AlreadyExistsError(StoreError):
    """GitHub has an asset or a tag of this name already."""


class TooManyAssetsError(StoreError):
    """A release takes no more assets (1,000)."""


class GithubApi:
    """Releases of one repository. ``pause`` (seconds, doubled each time) is for tests."""

    def __init__(
        self, owner: str, repository: str, *, api: str, token: str, pause: float = 1.0
    ) -> None:
        self._base = f"{api.rstrip('/')}/repos/{quote(owner)}/{quote(repository)}"
        self._pause = pause
        self._token = token
        self._client = self._client_for(api)

    def releases(self) -> Iterator[Release]:
        """Return every release, to the last page."""
        for table in self._pages(f"{self._base}/releases?per_page={_PER_PAGE}"):
            yield _release(table)

    def release(self, tag: str) -> Release | None:
        """Return the release of a tag, None where there is none."""
        try:
            body = self._get(f"{self._base}/releases/tags/{quote(tag, safe='')}").body
        except NotFoundError:
            return None
        return _release(parse_json(body, "GitHub's answer"))

    def create(self, tag: str, text: str) -> Release:
        """Make a release; one that another host has just made is returned as it is."""
        document = {"tag_name": tag, "name": tag, "body": text, "make_latest": "false"}
        answer = self._change("POST", f"{self._base}/releases", json.dumps(document).encode())
        if answer.status == _UNPROCESSABLE:
            found = self.release(tag)
            if found is not None:
                return found
        if answer.status != _CREATED:
            raise _error(answer, f"the release {tag} could not be made")
        return _release(parse_json(answer.body, "GitHub's answer"))

    def assets(self, release: Release) -> list[Asset]:
        """Return every asset of a release, to the last page."""
        url = f"{self._base}/releases/{release.id}/assets?per_page={_PER_PAGE}"
        return [_asset(table) for table in self._pages(url)]

    def asset(self, identifier: int) -> Asset:
        """Return an asset as GitHub sees it now."""
        body = self._get(f"{self._base}/releases/assets/{identifier}").body
        return _asset(parse_json(body, "GitHub's answer"))

    def upload(self, release: Release, name: str, source: Path) -> Asset:
        """Upload a file once.

        Raises AlreadyExistsError and TooManyAssetsError as GitHub says so, StoreError otherwise.
        """
        url = f"{release.upload_url}?name={quote(name, safe='')}"
        try:
            answer = self._uploads(url).send(
                "POST", url, body=source, content_type=_BINARY, accept=_ACCEPT
            )
        except UnreachableError as error:
            message = f"{name} could not be uploaded: the connection broke"
            raise StoreError(message, cause=error.what) from error
        if answer.status == _CREATED:
            return _asset(parse_json(answer.body, "GitHub's answer"))
        raise _error(answer, f"{name} could not be uploaded")

    def download(self, asset: Asset, target: Path) -> str:
        """Write an asset's bytes to ``target``; return their SHA-256."""
        url = f"{self._base}/releases/assets/{asset.id}"
        return self._client.download(url, target, accept=_BINARY)

    def read(self, asset: Asset) -> bytes:
        """Return a small asset's bytes."""
        url = f"{self._base}/releases/assets/{asset.id}"
        return self._limited(lambda: self._client.get(url, accept=_BINARY)).body

    def delete(self, identifier: int) -> None:
        """Delete an asset; one that is gone already is fine."""
        answer = self._change("DELETE", f"{self._base}/releases/assets/{identifier}", b"")
        if answer.status not in _DELETED:
            raise _error(answer, f"the asset {identifier} could not be deleted")

    def wait(self, attempt: int) -> None:
        """Pause before another attempt (from 1)."""
        time.sleep(self._pause * 2 ** (attempt - 1))

    def _client_for(self, address: str) -> Client:
        tokens = {address: self._token} if self._token else {}
        return Client(tokens=tokens, pause=self._pause, timeout=60)

    def _uploads(self, url: str) -> Client:
        """Return a client whose token belongs to the host that the API named for uploads."""
        parts = urlsplit(url)
        if parts.scheme != urlsplit(self._base).scheme:
            message = "GitHub names an upload address of another scheme"
            raise StoreError(message)
        api, uploads = urlsplit(self._base).hostname or "", parts.hostname or ""
        related = api == uploads or uploads.partition(".")[2] == api.partition(".")[2]
        if not related:
            message = f"the API at {api} names uploads at {uploads}; the token stays here"
            raise StoreError(message)
        return self._client_for(f"{parts.scheme}://{parts.netloc}")

    def _get(self, url: str) -> Response:
        return self._limited(lambda: self._client.get(url, accept=_ACCEPT))

    def _limited(self, ask: Callable[[], Response]) -> Response:
        """Ask again after a rate limit (403 or 429), a few times."""
        for attempt in (1, 2, 3):
            try:
                return ask()
            except RefusedError as error:
                if error.status not in _LIMITED:
                    raise
                self.wait(attempt)
        return ask()

    def _pages(self, url: str) -> Iterator[dict[str, Any]]:
        while url:
            answer = self._get(url)
            page = parse_json(answer.body, "GitHub's answer")
            if not isinstance(page, list):
                message = "GitHub answered with something that is no list"
                raise StoreError(message)
            yield from page
            found = _NEXT.search(answer.headers.get("link", ""))
            url = found[1] if found else ""
            if url and urlsplit(url).netloc != urlsplit(self._base).netloc:
                message = "GitHub's next page lies on another host"
                raise StoreError(message)

    def _change(self, method: str, url: str, body: bytes) -> Response:
        """Send a change that is safe to send twice, again after a server's error."""
        attempt = 0
        while True:
            attempt += 1
            try:
                answer = self._client.send(method, url, body=body, accept=_ACCEPT)
            except UnreachableError:
                if attempt > 3:  # noqa: PLR2004 - attempts
                    raise
            else:
                limited = answer.status in _LIMITED or answer.status >= _SERVER_ERROR
                if not limited or attempt > 3:  # noqa: PLR2004 - attempts
                    return answer
            self.wait(attempt)


def _release(table: Any) -> Release:
    reader = Reader(table, "GitHub's release")
    release = Release(
        id=reader.integer("id"),
        tag=reader.string("tag_name"),
        upload_url=reader.string("upload_url").partition("{")[0],
    )
    reader.finish()
    return release


def _asset(table: Any) -> Asset:
    reader = Reader(table, "GitHub's asset")
    modified = reader.parsed("updated_at", _time)
    asset = Asset(
        id=reader.integer("id"),
        name=reader.string("name"),
        size=reader.integer("size"),
        sha256=reader.string("digest", "").removeprefix("sha256:"),
        complete=reader.string("state", "uploaded") == "uploaded",
        url=reader.string("browser_download_url"),
        modified=modified or datetime.fromisoformat("1970-01-01T00:00:00+00:00"),
    )
    reader.finish()
    return asset


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _error(answer: Response, what: str) -> StoreError:
    """Return the error that an answer stands for; GitHub's message, never our headers."""
    try:
        document = json.loads(answer.body)
    except ValueError:
        document = {}
    table = document if isinstance(document, dict) else {}
    faults = table.get("errors")
    codes = {str(each.get("code")) for each in faults or [] if isinstance(each, dict)}
    text = json.dumps(faults) if faults else ""
    cause = f"GitHub answered HTTP {answer.status}: {table.get('message', '')} {text}".strip()
    if answer.status == _UNPROCESSABLE and "already_exists" in codes:
        return AlreadyExistsError(what, cause=cause)
    if answer.status == _UNPROCESSABLE and "1000" in text.replace(",", ""):
        return TooManyAssetsError(what, cause=cause)
    return StoreError(what, cause=cause)
