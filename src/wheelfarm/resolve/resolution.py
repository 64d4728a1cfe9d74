"""The way from names to an answer: pages are fetched as they are needed, and read once."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from wheelfarm.errors import BadInputError, NegativeVerdictError
from wheelfarm.http import Client
from wheelfarm.resolve.candidate import Candidate, Target, Wanted
from wheelfarm.resolve.choose import Answer, Choice, choose
from wheelfarm.resolve.host import Host
from wheelfarm.resolve.metadata import with_metadata
from wheelfarm.resolve.pages import Page
from wheelfarm.resolve.sources import Index

#: After so many rounds of reading chosen wheels' metadata an answer stands as it is.
_ROUNDS = 8


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """An answer with what it was asked, of which index, and what should be said of it."""

    host: Host
    wanted: tuple[Wanted, ...]
    index: str
    answer: Answer
    notes: tuple[str, ...] = ()

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The chosen wheels, by name."""
        return self.answer.choices


class Pages:
    """The pages of one index for one host, each fetched once."""

    def __init__(self, index: Index, host: Host, client: Client) -> None:
        self._index = index
        self._host = host
        self._client = client
        self._served = index.packages()
        self._pages: dict[str, Page] = {}

    def prefetch(self, names: Iterable[str]) -> None:
        """Fetch the pages of several packages at once."""
        missing = [name for name in names if name not in self._pages]
        if missing:
            self._pages.update(self._index.pages(missing, self._host))

    def __call__(self, name: str) -> Page | None:
        """Return a package's page; None where this index has none of a compiled package."""
        if self._served is not None and name not in self._served:
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
            page = self._pages[candidate.package]
            known = with_metadata(candidate, self._client)
            kept = tuple(known if each is candidate else each for each in page.candidates)
            self._pages[candidate.package] = replace(page, candidates=kept)
            news = True
        return news


def target_of(host: Host, *, prereleases: bool = False) -> Target:
    """Return the target that the host's installed torch fixes."""
    return Target(
        host=host,
        torch=host.torch.value,
        accelerator=host.accelerator.value,
        prereleases=prereleases,
    )


def resolve(
    wanted: tuple[Wanted, ...],
    host: Host,
    index: Index,
    client: Client,
    *,
    prereleases: bool = False,
) -> Resolution:
    """Return the answer for the torch that is installed."""
    if not wanted:
        message = "no package is asked for"
        raise BadInputError(message, hint="name one: wheelfarm resolve diso")
    pages = Pages(index, host, client)
    pages.prefetch(each.name for each in wanted)
    target = target_of(host, prereleases=prereleases)
    answer = choose(wanted, target, pages)
    for _ in range(_ROUNDS):
        if not pages.learn(choice.candidate for choice in answer.choices):
            break
        answer = choose(wanted, target, pages)
    return Resolution(host=host, wanted=wanted, index=index.address, answer=answer)


class NoWheelServesError(NegativeVerdictError):
    """We looked, and there is no consistent set of wheels; the report says why."""
