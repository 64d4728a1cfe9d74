"""Follow every link of a live site and say what does not hold: nothing is assumed, all is read."""

import contextlib
import hashlib
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from packaging.utils import canonicalize_name

from wheelfarm.errors import WheelfarmError
from wheelfarm.http import Client, NotFoundError, Response
from wheelfarm.index.listing import Link, links_of_html, links_of_json, projects_of_html
from wheelfarm.index.model import Manifest, WheelEntry, read_part
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.reading import parse_json

_WORKERS = 8
T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True, order=True, slots=True)
class Finding:
    """One fault of a site: where, which kind, and in words."""

    url: str
    kind: str
    message: str


@dataclass(kw_only=True)
class Checked:
    """What was looked at, and what is wrong with it."""

    pages: int = 0
    files: int = 0
    findings: list[Finding] = field(default_factory=list)


class Checker:
    """Checks the site at ``url``. Without ``download`` wheels are asked for by HEAD alone."""

    def __init__(self, url: str, client: Client, *, download: bool = True) -> None:
        self.url = url.rstrip("/") + "/"
        self.client = client
        self.download = download
        self.checked = Checked()

    def run(self) -> Checked:
        """Return what was found; CouldNotLookError where the site does not answer at all."""
        # No answer is no verdict: only a page that a living server lacks is a fault of the site.
        with contextlib.suppress(NotFoundError):
            self.client.get(self.url + "manifest/index.json")
        manifest = self._manifest()
        entries = self._entries(manifest) if manifest is not None else {}
        listed = self._lists("simple/")
        if manifest is not None:
            self._compare_sets("simple/", "package", set(listed), set(manifest.packages))
        pages = self._each(self._project, [f"simple/{name}/" for name in listed])
        files: dict[str, Link] = {}
        for name, links in zip(listed, pages, strict=True):
            self._package(name, links, entries.get(name, {}))
            files.update({link.url: link for link in links})
        if manifest is not None:
            known = {link.facts for links in pages for link in links}
            for combination in manifest.combinations:
                self._channel(f"{combination.path}/simple/", known)
        sizes = {
            str(entry.name): entry.size for part in entries.values() for entry in part.values()
        }
        self._each(lambda link: self._file(link, sizes.get(link.filename)), list(files.values()))
        self.checked.findings.sort()
        return self.checked

    def _manifest(self) -> Manifest | None:
        data = self._json("manifest/index.json")
        if not data:
            return None
        return self._parsed("manifest/index.json", lambda: Manifest.read(data, "manifest"))

    def _entries(self, manifest: Manifest) -> dict[str, dict[str, WheelEntry]]:
        found: dict[str, dict[str, WheelEntry]] = {}
        for name, part in manifest.packages.items():
            path = f"manifest/{part.url}"
            answer = self._get(path)
            if answer is None:
                continue
            if hashlib.sha256(answer.body).hexdigest() != part.sha256:
                self._note(path, "hash", "the manifest's index names another hash of this part")
            entries = self._parsed(path, partial(_part, answer.body, path))
            found[name] = {str(entry.name): entry for entry in entries or ()}
        return found

    def _lists(self, path: str) -> list[str]:
        answer = self._get(path)
        if answer is None:
            return []
        text = answer.body.decode(errors="replace")
        names = [
            url.rstrip("/").rpartition("/")[2] for url in projects_of_html(text, self.url + path)
        ]
        for name in names:
            if canonicalize_name(name) != name:
                self._note(path, "name", f"{name} is no normalised name")
        document = self._json(f"{path}index.json")
        projects = document.get("projects", []) if isinstance(document, dict) else []
        self._compare_sets(
            path, "project", set(names), {str(each.get("name")) for each in projects}
        )
        return names

    def _project(self, path: str) -> list[Link]:
        answer = self._get(path)
        if answer is None:
            return []
        links = links_of_html(answer.body.decode(errors="replace"), self.url + path)
        document = self._json(f"{path}index.json")
        described: tuple[Link, ...] = ()
        if isinstance(document, dict):
            described = self._parsed(path, lambda: links_of_json(document, self.url + path)) or ()
        # Aliases give one file several texts in HTML; the files are the same.
        in_html = {(link.url, link.facts) for link in links}
        in_json = {(link.url, link.facts) for link in described}
        for url, facts in sorted(in_html ^ in_json):
            where = "HTML" if (url, facts) in in_html else "JSON"
            self._note(path, "differ", f"only the {where} says this of {facts[0]}")
        return list({link.url: link for link in links}.values())

    def _package(self, name: str, links: list[Link], entries: dict[str, WheelEntry]) -> None:
        path = f"simple/{name}/"
        self._compare_sets(path, "file", {link.filename for link in links}, set(entries))
        seen: set[str] = set()
        for link in links:
            if link.filename in seen:
                self._note(path, "twice", f"{link.filename} is two files")
            seen.add(link.filename)
            if not link.sha256:
                self._note(path, "hash", f"{link.filename} has no hash")
            parsed = self._parsed(path, partial(WheelName.parse, link.filename))
            if parsed is not None and parsed.package != name:
                self._note(path, "name", f"{link.filename} is of {parsed.package}")
            entry = entries.get(link.filename)
            if entry is not None and entry.sha256 != link.sha256:
                self._note(path, "hash", f"{link.filename} has another hash in the manifest")

    def _channel(self, path: str, known: set[tuple[str, str, str, bool, str]]) -> None:
        names = self._lists(path)
        for links in self._each(self._project, [f"{path}{name}/" for name in names]):
            for link in links:
                if link.facts not in known:
                    self._note(path, "differ", f"the root pages say otherwise of {link.filename}")

    def _file(self, link: Link, size: int | None) -> None:
        self.checked.files += 1
        head = self._asked(link.url, lambda: self.client.head(link.url))
        if head is None:
            return
        length = head.headers.get("content-length", "")
        if size is not None and length.isdigit() and int(length) != size:
            self._note(link.url, "size", f"{length} bytes, the manifest says {size}")
        if link.metadata:
            url = f"{link.url}.metadata"
            answer = self._asked(url, lambda: self.client.get(url))
            if answer is not None and hashlib.sha256(answer.body).hexdigest() != link.metadata:
                self._note(url, "hash", "the metadata file has other bytes than the page says")
        if self.download and link.sha256:
            self._bytes(link)

    def _bytes(self, link: Link) -> None:
        with tempfile.TemporaryDirectory(prefix="wheelfarm-check-") as folder:
            target = Path(folder) / "wheel"
            found = self._asked(link.url, lambda: self.client.download(link.url, target))
        if found is not None and found != link.sha256:
            self._note(link.url, "hash", f"the file has sha256 {found}, the page says otherwise")

    def _compare_sets(self, path: str, what: str, pages: set[str], others: set[str]) -> None:
        for name in sorted(pages - others):
            self._note(path, "missing", f"the {what} {name} stands here alone")
        for name in sorted(others - pages):
            self._note(path, "missing", f"the {what} {name} does not stand here")

    def _json(self, path: str) -> Any:
        answer = self._get(path)
        if answer is None:
            return {}
        return self._parsed(path, lambda: parse_json(answer.body, path)) or {}

    def _get(self, path: str) -> Response | None:
        self.checked.pages += 1
        return self._asked(self.url + path, lambda: self.client.get(self.url + path))

    def _asked(self, url: str, ask: Callable[[], T]) -> T | None:
        try:
            return ask()
        except WheelfarmError as error:
            self._note(url, "unreachable", error.what)
            return None

    def _parsed(self, path: str, parse: Callable[[], T]) -> T | None:
        try:
            return parse()
        except WheelfarmError as error:
            self._note(path, "unreadable", error.what)
            return None

    def _note(self, where: str, kind: str, message: str) -> None:
        url = where if "://" in where else self.url + where
        self.checked.findings.append(Finding(url, kind, message))

    def _each(self, do: Callable[[S], T], items: Iterable[S]) -> list[T]:
        with ThreadPoolExecutor(_WORKERS) as pool:
            return list(pool.map(do, items))


def _part(body: bytes, path: str) -> tuple[WheelEntry, ...]:
    return read_part(parse_json(body, path), path)
