"""A project's sdists, from a package index's simple API (PEP 691 JSON, or PEP 503 HTML)."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from packaging.utils import InvalidSdistFilename, canonicalize_name, parse_sdist_filename
from packaging.version import Version

from wheelfarm.errors import BadInputError
from wheelfarm.http import Client, NotFoundError, Response, redacted
from wheelfarm.model.versions import is_release
from wheelfarm.reading import Reader, parse_json

DEFAULT_INDEX = "https://pypi.org/simple"
_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
_HEX_DIGITS = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Sdist:
    """One sdist of an index: its file, address and SHA-256 (None where the index gives none)."""

    file_name: str
    url: str
    version: Version
    sha256: str | None
    yanked: bool = False


def index_url(environment: Mapping[str, str] | None = None) -> str:
    """Return the package index in use: uv's or pip's setting, else PyPI."""
    values = os.environ if environment is None else environment
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"):
        if value := values.get(name, "").strip():
            return value.rstrip("/")
    return DEFAULT_INDEX


def list_sdists(project: str, *, client: Client, index: str) -> tuple[Sdist, ...]:
    """Return a project's sdists, oldest first.

    Raises BadInputError where the index has no such project, UnreachableError where it cannot be
    read.
    """
    url = f"{index}/{canonicalize_name(project)}/"
    try:
        answer = client.get(url, accept=_ACCEPT)
    except NotFoundError as error:
        message = f"there is no project {project!r} on {redacted(index)}"
        raise BadInputError(message, hint="check the name's spelling") from error
    files = _json_files(answer) if "json" in answer.headers.get("content-type", "") else None
    found = _html_files(answer) if files is None else files
    return tuple(sorted(found, key=lambda sdist: (sdist.version, sdist.file_name)))


def find_sdist(project: str, version: Version, *, client: Client, index: str) -> Sdist:
    """Return the sdist of one version; BadInputError names what there is where it is absent."""
    sdists = list_sdists(project, client=client, index=index)
    found = [sdist for sdist in sdists if sdist.version == version]
    if not found:
        known = ", ".join(str(sdist.version) for sdist in sdists[-8:]) or "none at all"
        message = f"{project} {version} has no sdist on {redacted(index)}; sdists: {known}"
        hint = "give the repository as the source: {git: https://…, tag: …}"
        raise BadInputError(message, hint=hint)
    return found[0]


def newest_sdist(project: str, *, client: Client, index: str) -> Sdist:
    """Return the newest final release's sdist that was not yanked."""
    sdists = list_sdists(project, client=client, index=index)
    usable = [sdist for sdist in sdists if not sdist.yanked]
    final = [sdist for sdist in usable if is_release(sdist.version)]
    if not usable:
        message = f"{project} has no sdist on {redacted(index)}"
        hint = "give the repository as the source: {git: https://…, tag: …}"
        raise BadInputError(message, hint=hint)
    return (final or usable)[-1]


def _sdist(name: str, url: str, sha256: str | None, *, yanked: bool) -> Sdist | None:
    try:
        version = parse_sdist_filename(name)[1]
    except InvalidSdistFilename:
        return None
    good = sha256 is not None and len(sha256) == _HEX_DIGITS
    return Sdist(
        file_name=name, url=url, version=version, sha256=sha256 if good else None, yanked=yanked
    )


def _json_files(answer: Response) -> list[Sdist]:
    reader = Reader(parse_json(answer.body, redacted(answer.url)), redacted(answer.url))
    found: list[Sdist | None] = []
    for entry in reader.tables("files"):
        name = entry.string("filename")
        if not name.endswith((".tar.gz", ".zip")):
            continue
        hashes = entry.table("hashes")
        sha256 = None if hashes is None else hashes.optional_string("sha256")
        yanked = entry.raw("yanked") not in {None, False}
        found.append(_sdist(name, urljoin(answer.url, entry.string("url")), sha256, yanked=yanked))
    reader.finish()
    return [sdist for sdist in found if sdist is not None]


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, Any]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a" and (attributes := dict(attrs)).get("href"):
            self.found.append(attributes)


def _html_files(answer: Response) -> list[Sdist]:
    parser = _Anchors()
    parser.feed(answer.body.decode("utf-8", "replace"))
    found: list[Sdist | None] = []
    for anchor in parser.found:
        url, fragment = urldefrag(urljoin(answer.url, str(anchor["href"])))
        name = unquote(url.partition("?")[0].rpartition("/")[2])
        sha256 = fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else None
        if name.endswith((".tar.gz", ".zip")):
            found.append(_sdist(name, url, sha256, yanked="data-yanked" in anchor))
    return [sdist for sdist in found if sdist is not None]
