"""The links of an HTML page: address, attributes, text; the page's base and its API's version."""

from html.parser import HTMLParser


class Anchors(HTMLParser):
    """Collect anchors, their attributes and texts, and the page's base address."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.base = ""
        self.version = ""
        self.anchors: list[tuple[str, dict[str, str], str]] = []
        self._open: tuple[str, dict[str, str]] | None = None
        self._text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a link, or take the page's base or the version of its API."""
        values = {name: value or "" for name, value in attrs}
        if tag == "base" and not self.base:
            self.base = values.get("href", "")
        elif tag == "meta" and values.get("name") == "pypi:repository-version":
            self.version = values.get("content", "")
        elif tag == "a" and values.get("href"):
            self._close()
            self._open = (values["href"].strip(), values)

    def handle_endtag(self, tag: str) -> None:
        """End a link."""
        if tag == "a":
            self._close()

    def handle_data(self, data: str) -> None:
        """Add to the open link's text."""
        if self._open is not None:
            self._text.append(data)

    def close(self) -> None:
        """End the page; a link that was left open counts."""
        super().close()
        self._close()

    def _close(self) -> None:
        if self._open is not None:
            self.anchors.append((*self._open, "".join(self._text)))
        self._open, self._text = None, []
