"""PyTorch's wheel pages in, the releases they list out. What was cut short is refused."""

import re
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag

from packaging.version import Version

from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.http import redacted
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.platform import Platform
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor, is_release
from wheelfarm.model.wheel_name import WheelName

_FOLDER = re.compile(r"cu\d{2,4}", re.ASCII)
#: Every page that PyTorch's tool writes ends so; one that does not was cut short on the way.
_END = "</html>"


class PartialPageError(CouldNotLookError):
    """A page is empty or was cut short; nothing may be concluded from it."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"{redacted(url)} {why}", hint="nothing was taken from it; try again")


@dataclass(frozen=True, slots=True)
class PublishedWheel:
    """One torch wheel of a page."""

    torch: Version
    python: PythonTag
    platform: Platform


@dataclass(frozen=True, kw_only=True, slots=True)
class TorchPage:
    """What one folder's page lists: wheels, and names that were passed over, with the reason."""

    accelerator: Accelerator
    wheels: tuple[PublishedWheel, ...]
    passed_over: tuple[tuple[str, str], ...]


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if tag == "a" and href:
            self.found.append(unquote(urldefrag(href)[0]))


def links_of(html: str, url: str) -> tuple[str, ...]:
    """Return a page's links, decoded, without fragments.

    Raises PartialPageError where the page has none, or no end.
    """
    if _END not in html.lower():
        raise PartialPageError(url, "has no end: it was cut short")
    parser = _Links()
    parser.feed(html)
    if not parser.found:
        raise PartialPageError(url, "has no link at all")
    return tuple(parser.found)


def cuda_folders(html: str, url: str) -> tuple[Accelerator, ...]:
    """Return the CUDA folders that the root page links to, sorted."""
    names = (link.rstrip("/").rpartition("/")[2] for link in links_of(html, url))
    return tuple(sorted({Accelerator.parse(name) for name in names if _FOLDER.fullmatch(name)}))


def torch_page(html: str, url: str, accelerator: Accelerator, python_min: Minor) -> TorchPage:
    """Return the final releases that a folder's torch page lists.

    A file without a local tag is of the folder's own CUDA. Pre-releases, other accelerators,
    other systems and Pythons below ``python_min`` are passed over, and so are names that are no
    wheel's. Raises PartialPageError.
    """
    wheels: dict[PublishedWheel, None] = {}
    passed: dict[str, str] = {}
    for link in links_of(html, url):
        name = link.rpartition("/")[2]
        if not name.endswith(".whl"):
            continue
        try:
            found = _wheel(WheelName.parse(name), accelerator, python_min)
        except BadInputError as error:
            found = error.what
        if isinstance(found, str):
            passed[name] = found
        else:
            wheels[found] = None
    return TorchPage(
        accelerator=accelerator, wheels=tuple(wheels), passed_over=tuple(passed.items())
    )


def _wheel(name: WheelName, accelerator: Accelerator, python_min: Minor) -> PublishedWheel | str:
    """Return what a wheel's name says, or why it is passed over."""
    label = name.label.accelerator
    version = name.version
    platform = name.platform
    python = name.python
    if name.package != "torch":
        return "another package"
    if label is not None and label != accelerator:
        return f"built for {label}"
    if not is_release(version):
        return "a pre-release"
    if platform is None:
        return "another system"
    if python.version is None or python.axis != "exact" or python.version < python_min:
        return f"for {python}"
    return PublishedWheel(Version(version.public), python, platform)
