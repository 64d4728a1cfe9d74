"""A site's folder over HTTP, with the content negotiation that a plain static server lacks.

The same address gives HTML or JSON as the client asks (PEP 691, "Version + Format Selection");
names that are not normalised are sent to the page that exists (PEP 503).
"""

import http.server
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from packaging.utils import canonicalize_name

JSON_TYPE = "application/vnd.pypi.simple.v1+json"
HTML_TYPE = "application/vnd.pypi.simple.v1+html"
_PROJECT = re.compile(r"(?P<root>(?:/[a-z0-9.]+/torch[0-9.]+)?/simple/)(?P<name>[^/]+)/?")
_SIMPLE = re.compile(r"(?:/[a-z0-9.]+/torch[0-9.]+)?/simple(?:/[^/]+)?/")
_JSON_NAMES = frozenset({JSON_TYPE, "application/vnd.pypi.simple.latest+json"})
_HTML_NAMES = frozenset({HTML_TYPE, "application/vnd.pypi.simple.latest+html", "text/html"})


def preferred(accept: str) -> str:
    """Return which of our two types an Accept header prefers; HTML where it does not care."""
    best = {"json": 0.0, "html": 0.0, "any": 0.0}
    for part in accept.split(","):
        name, *parameters = (word.strip().lower() for word in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                weight = _number(parameter[2:])
        kind = "json" if name in _JSON_NAMES else "html" if name in _HTML_NAMES else ""
        if name in {"*/*", "text/*"}:
            kind = "any"
        if kind:
            best[kind] = max(best[kind], weight)
    return JSON_TYPE if best["json"] > max(best["html"], 0.0) else "text/html"


class SiteHandler(http.server.SimpleHTTPRequestHandler):
    """Serves one site; quiet, and safe to put on a network of friends."""

    protocol_version = "HTTP/1.1"
    server_version = "wheelfarm"
    extensions_map = {  # noqa: RUF012 - the base class's own form
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".whl": "application/octet-stream",
        ".metadata": "text/plain; charset=utf-8",
        ".v1_json": JSON_TYPE,
        ".js": "text/javascript; charset=utf-8",
        ".html": "text/html; charset=utf-8",
    }

    def send_head(self) -> Any:
        """Answer with a redirect, the JSON beside a page, or what the base class does."""
        parts = urlsplit(self.path)
        project = _PROJECT.fullmatch(parts.path)
        if project is not None and not project["name"].startswith("index."):
            wanted = f"{project['root']}{canonicalize_name(unquote(project['name']))}/"
            if wanted != parts.path:
                return self._redirect(wanted, parts.query)
        self._negotiated = ""
        if _SIMPLE.fullmatch(parts.path):
            asked = parse_qs(parts.query).get("format", [self.headers.get("Accept", "")])[0]
            self._negotiated = preferred(asked)
            if self._negotiated == JSON_TYPE:
                self.path = f"{parts.path}index.json"
        return super().send_head()

    def guess_type(self, path: Any) -> str:
        """Return the negotiated type of a simple page, else what the file's name says."""
        if getattr(self, "_negotiated", "") == JSON_TYPE:
            return JSON_TYPE
        return str(super().guess_type(path))

    def end_headers(self) -> None:
        """Add what keeps caches and browsers honest."""
        if getattr(self, "_negotiated", ""):
            self.send_header("Vary", "Accept")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def list_directory(self, path: Any) -> None:  # noqa: ARG002
        """Show no folder: a page that is not there is not there."""
        self.send_error(404, "nothing here")

    def _redirect(self, path: str, query: str) -> None:
        self._negotiated = ""
        self.send_response(301)
        self.send_header("Location", path + (f"?{query}" if query else ""))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *words: Any) -> None:  # noqa: A002 - the base class's
        """Hand a request's line to the server's log, without control characters."""
        log = getattr(self.server, "log", None)
        if log is not None:
            line = format % words
            log("".join(char if char.isprintable() else "?" for char in line))


class SiteServer(http.server.ThreadingHTTPServer):
    """A server of one folder; ``log`` gets each request's line."""

    daemon_threads = True

    def __init__(
        self, address: tuple[str, int], folder: Path, log: Callable[[str], None] | None = None
    ) -> None:
        self.log = log
        root = str(folder)

        def handler(*words: Any, **named: Any) -> SiteHandler:
            return SiteHandler(*words, directory=root, **named)

        super().__init__(address, handler)


def _number(text: str) -> float:
    try:
        return max(0.0, min(1.0, float(text)))
    except ValueError:
        return 0.0
