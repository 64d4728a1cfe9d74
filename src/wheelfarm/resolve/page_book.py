"""The pages of one index for one host: fetched as they are needed, each once."""

from collections.abc import Iterable

from wheelfarm.http import Client
from wheelfarm.resolve.candidate import Candidate
from wheelfarm.resolve.host import Host
from wheelfarm.resolve.pages import Page, groups_of
from wheelfarm.resolve.sources import Index
from wheelfarm.values import replace


class PageBook:
    """The pages of one index for one host, each fetched once."""

    def __init__(self, index: Index, host: Host, client: Client) -> None:
        self._index = index
        self._host = host
        self._client = client
        self._served = index.packages()
        self._pages: dict[str, Page] = {}

    def prefetch(self, names: Iterable[str]) -> None:
        """Fetch the pages of several packages at once."""
        missing = [name for name in names if name not in self._pages and self._may_serve(name)]
        if missing:
            self._pages.update(self._index.pages(missing, self._host))

    def _may_serve(self, name: str) -> bool:
        return self._served is None or name in self._served

    def __call__(self, name: str) -> Page | None:
        """Return a package's page; None where this index has none of a compiled package."""
        if not self._may_serve(name):
            return None
        self.prefetch([name])
        return self._pages[name]

    def as_dependency(self, name: str) -> Page | None:
        """Return the page of a package that another requires.

        An index without a manifest may be a mirror of everything; there only packages whose names
        state an accelerator or a torch are this index's to serve, the rest is the installer's.
        """
        page = self(name)
        if page is None or self._served is not None:
            return page
        labels = [each.label for each in page.candidates]
        return page if any(each.accelerator or each.torch for each in labels) else None

    def learn(self, candidates: Iterable[Candidate]) -> bool:
        """Read the metadata of wheels of which only the name is known; whether that was news."""
        news = False
        for candidate in candidates:
            if candidate.entry.requires_dist is not None or candidate.entry.metadata_sha256 is None:
                continue
            from wheelfarm.resolve.metadata import with_metadata

            page = self._pages[candidate.package]
            known = with_metadata(candidate, self._client)
            kept = [known if each is candidate else each for each in page.candidates]
            changed = replace(page, groups=groups_of(kept), refused=page.unread)
            self._pages[candidate.package] = changed
            news = True
        return news
