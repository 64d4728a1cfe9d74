"""Upstream facts and PyTorch's pages in, newer facts and the difference out. Nothing is removed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelfarm.errors import CouldNotLookError
from wheelfarm.http import Client, NotFoundError, RefusedError, redacted
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.platform import PLATFORMS, Platform
from wheelfarm.model.versions import Minor
from wheelfarm.upstream.model import Release, UpstreamFacts
from wheelfarm.upstream.pages import PartialPageError, TorchPage, cuda_folders, torch_page
from wheelfarm.values import replace

if TYPE_CHECKING:
    from packaging.version import Version

    from wheelfarm.model.python import PythonTag

BASE_URL = "https://download.pytorch.org/whl"

#: PyTorch's server answers so, and not with 404, where it has nothing.
_FORBIDDEN = 403


class MissingPageError(CouldNotLookError):
    """A folder or package that the facts have is not there: an outage, never a removal."""

    def __init__(self, url: str, accelerator: Accelerator, status: int) -> None:
        super().__init__(
            f"{redacted(url)} answered HTTP {status}, but the facts have {accelerator} releases",
            cause="PyTorch removes nothing; the server or the address is at fault",
            hint="nothing was changed; try again later",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Refreshed:
    """Newer facts, and what is new in them; ``kept`` are facts that no page shows any more."""

    facts: UpstreamFacts
    added: tuple[str, ...]
    kept: tuple[str, ...]
    not_published: tuple[str, ...]
    passed_over: tuple[tuple[str, str], ...]


def refresh(
    facts: UpstreamFacts,
    *,
    client: Client,
    base_url: str = BASE_URL,
    also: Iterable[Accelerator] = (),
) -> Refreshed:
    """Read PyTorch's pages and return the facts with all that is new.

    The folders read are those that the root page links to, those of the facts, and ``also``; CUDA
    lines older than the facts' oldest are passed over. Raises CouldNotLookError where the root
    page, or a page of a line that the facts have, cannot be read whole.
    """
    base = base_url.rstrip("/")
    root = _root(client, f"{base}/")
    oldest = min(facts.accelerators)
    listed = [item for item in root if item >= oldest]
    passed = [(str(item), "older than every line of the facts") for item in root if item < oldest]
    absent: list[str] = []
    pages: list[TorchPage] = []
    for accelerator in sorted({*listed, *facts.accelerators, *also}):
        page = _torch(client, f"{base}/{accelerator}/torch/", accelerator, facts)
        if page is None:
            absent.append(str(accelerator))
        else:
            pages.append(page)
            passed += page.passed_over
    merged, added = _merged(facts, pages)
    return Refreshed(
        facts=replace(facts, releases=merged),
        added=tuple(added),
        kept=tuple(_kept(facts, pages)),
        not_published=tuple(absent),
        passed_over=tuple(passed),
    )


def _root(client: Client, url: str) -> tuple[Accelerator, ...]:
    try:
        answer = client.get(url)
    except (NotFoundError, RefusedError) as error:
        message = f"{redacted(url)} could not be read: HTTP {error.status}"
        raise CouldNotLookError(message, hint="check the address (--base-url)") from error
    return cuda_folders(answer.body.decode("utf-8", "replace"), url)


def _torch(
    client: Client, url: str, accelerator: Accelerator, facts: UpstreamFacts
) -> TorchPage | None:
    """Return a folder's page; None where PyTorch publishes nothing there."""
    known = bool(facts.releases_of(accelerator))
    try:
        answer = client.get(url)
    except (NotFoundError, RefusedError) as error:
        absent = isinstance(error, NotFoundError) or error.status == _FORBIDDEN
        if known or not absent:
            raise MissingPageError(url, accelerator, error.status) from error
        return None
    lowest = min(
        tag.version
        for release in facts.releases
        for tags in release.pythons.values()
        for tag in tags
        if tag.version is not None
    )
    html = answer.body.decode("utf-8", "replace")
    page = torch_page(html, url, accelerator, lowest)
    if not page.wheels and known:
        raise PartialPageError(url, f"lists no torch wheel, but the facts have {accelerator}")
    return page if page.wheels else None


def _merged(
    facts: UpstreamFacts, pages: Iterable[TorchPage]
) -> tuple[tuple[Release, ...], list[str]]:
    rows: dict[tuple[Accelerator, Version], dict[Platform, set[PythonTag]]] = {}
    for release in facts.releases:
        rows[release.accelerator, release.torch] = {
            platform: set(tags) for platform, tags in release.pythons.items()
        }
    oldest = min(release.minor for release in facts.releases)
    added: list[str] = []
    for page in pages:
        for wheel in page.wheels:
            if Minor.of(wheel.torch) < oldest:
                continue
            row = rows.setdefault((page.accelerator, wheel.torch), {})
            tags = row.setdefault(wheel.platform, set())
            if wheel.python not in tags:
                tags.add(wheel.python)
                added.append(
                    f"{page.accelerator} torch {wheel.torch} {wheel.python} {wheel.platform}"
                )
    releases = tuple(
        Release(
            accelerator=accelerator,
            torch=torch,
            pythons={
                platform: tuple(sorted(row[platform])) for platform in PLATFORMS if platform in row
            },
        )
        for (accelerator, torch), row in sorted(rows.items())
    )
    return releases, sorted(added)


def _kept(facts: UpstreamFacts, pages: Iterable[TorchPage]) -> list[str]:
    shown = {
        (page.accelerator, wheel.torch, wheel.python, wheel.platform)
        for page in pages
        for wheel in page.wheels
    }
    return [
        f"{release.accelerator} torch {release.torch} {tag} {platform}"
        for release in facts.releases
        for platform, tags in release.pythons.items()
        for tag in tags
        if (release.accelerator, release.torch, tag, platform) not in shown
    ]
