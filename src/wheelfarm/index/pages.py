"""Simple-API pages as bytes: HTML (PEP 503, 592, 629, 658, 714) and JSON (PEP 691, 700). Pure."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape

from wheelfarm.index.rows import Row
from wheelfarm.model.versions import parse_version

#: The file names of a page in its folder. ``index.v1_json`` is bandersnatch's name for the JSON.
HTML_NAME = "index.html"
JSON_NAME = "index.json"
JSON_ALIAS = "index.v1_json"

_HEAD = (
    "<!DOCTYPE html>\n"
    '<html lang="en"><head><meta charset="utf-8">'
    '<meta name="pypi:repository-version" content="1.1">'
    "<title>{title}</title></head><body>\n"
)
_FOOT = "</body></html>\n"

_escape = lru_cache(maxsize=65536)(escape)


@dataclass(frozen=True, slots=True)
class Line:
    """One file of a page, rendered but for the way from the page to the site's root.

    ``where`` is absolute, or a quoted path under the root; ``tail`` holds the attributes, ``texts``
    the names under which the root page lists it (the file's own first), ``document`` the JSON
    members behind the address.
    """

    version: str
    where: str
    tail: str
    texts: tuple[str, ...]
    document: str


def line_of(row: Row, where: str, texts: tuple[str, ...]) -> Line:
    """Return the rendered line of a wheel whose file stands at ``where`` (quoted)."""
    # As text: json.dumps on a table for each of 30,000 wheels costs a tenth of a whole build. A
    # file name holds nothing that HTML or JSON would have to escape: WheelName sees to it.
    tail = f'#sha256={row.sha256}"'
    document = (
        f'"filename": "{row.filename}", "hashes": {{"sha256": "{row.sha256}"}},'
        f' "size": {row.document["size"]:d}, "upload-time": {json.dumps(row.uploaded)}'
    )
    if row.requires_python:
        tail += f' data-requires-python="{_escape(row.requires_python)}"'
        document += f', "requires-python": {json.dumps(row.requires_python)}'
    if row.metadata_sha256:
        metadata = f'"sha256={row.metadata_sha256}"'
        tail += f" data-core-metadata={metadata} data-dist-info-metadata={metadata}"
        # pip 23.0.1 ends in a traceback on a "dist-info-metadata" that is a table (PEP 714).
        document += f', "core-metadata": {{"sha256": "{row.metadata_sha256}"}}'
    if row.yanked is not None:
        tail += f' data-yanked="{_escape(row.yanked)}"'
        # An empty reason is still a yank; JSON says that with true (PEP 691).
        document += f', "yanked": {json.dumps(row.yanked or True)}'
    return Line(row.name.version_text, where, tail, texts, document + "}")


def project_html(name: str, lines: Iterable[Line], *, up: str, aliases: bool) -> bytes:
    """Return a project's page; with ``aliases`` each file stands under all of its names."""
    title = escape(f"Links for {name}")
    out = [_HEAD.format(title=title), f"<h1>{title}</h1>\n"]
    for line in lines:
        start = f'<a href="{_address(line, up)}{line.tail}>'
        texts = line.texts if aliases else line.texts[:1]
        out.extend([f"{start}{text}</a><br>\n" for text in texts])
    out.append(_FOOT)
    return "".join(out).encode()


def project_json(name: str, lines: Sequence[Line], *, up: str) -> bytes:
    """Return a project's page in JSON: real files alone."""
    versions = sorted({line.version for line in lines}, key=parse_version)
    head = json.dumps({"meta": {"api-version": "1.1"}, "name": name, "versions": versions})[:-1]
    files = ",\n".join([f'{{"url": "{_address(line, up)}", {line.document}' for line in lines])
    return f'{head}, "files": [\n{files}\n]}}\n'.encode()


def root_html(title: str, packages: Iterable[str]) -> bytes:
    """Return the page that lists the projects."""
    links = "".join(f'<a href="{name}/">{name}</a><br>\n' for name in map(escape, packages))
    return f"{_HEAD.format(title=escape(title))}{links}{_FOOT}".encode()


def root_json(packages: Iterable[str]) -> bytes:
    """Return the list of projects in JSON."""
    projects = [{"name": name} for name in packages]
    return (json.dumps({"meta": {"api-version": "1.1"}, "projects": projects}) + "\n").encode()


def quoted(key: str) -> str:
    """Return a store's key as it stands in links: ``+`` as ``%2B``, which some read as a blank.

    Keys hold letters, digits, ``-_.+!`` and ``/`` alone.
    """
    return key.replace("+", "%2B").replace("!", "%21")


def safe_address(url: str) -> str:
    """Return an absolute address with everything percent-encoded that HTML or JSON would quote."""
    return "".join(char if char in _SAFE else _percent(char) for char in url)


_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/?@!$*,;=%")


def _percent(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode())


def _address(line: Line, up: str) -> str:
    return line.where if "://" in line.where else up + line.where
