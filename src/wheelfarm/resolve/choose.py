"""The choice: one wheel per package, all for one torch and accelerator, dependencies included."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from wheelfarm.model.decision import Decision
from wheelfarm.resolve.candidate import Candidate, Target, Wanted
from wheelfarm.resolve.markers import applies
from wheelfarm.resolve.needs import Need, read_need
from wheelfarm.resolve.pages import Page
from wheelfarm.resolve.ranking import coarse_rank, rank, remarks
from wheelfarm.resolve.rules import failures, refused_by_name, refused_by_version
from wheelfarm.values import replace, value

if TYPE_CHECKING:
    from packaging.version import Version


#: After so many tries of candidates a search is given up; a farm's packages need a handful.
_MAX_STEPS = 5_000


class Pages(Protocol):
    """The pages of an index: of packages that are asked for, and of those that others require."""

    def __call__(self, name: str) -> Page | None:
        """Return a package's page; None where the index does not serve that name."""

    def as_dependency(self, name: str) -> Page | None:
        """Return the page of a required package; None where it is not this index's to serve."""


@value
class Choice:
    """One chosen wheel: who asked for it, what a user should know, what it needs besides.

    ``outside`` are its requirements that this index does not serve and torch is not: the
    installer's business.
    """

    wanted: Wanted
    candidate: Candidate
    remarks: tuple[str, ...] = ()
    outside: tuple[Need, ...] = ()


@value
class Miss:
    """A package for which no wheel serves; ``page`` None where the index has no such package."""

    wanted: Wanted
    page: Page | None
    decisions: tuple[Decision[Candidate], ...] = ()


@value
class Answer:
    """What came of one target: choices by package, or the packages that nothing serves."""

    target: Target
    choices: tuple[Choice, ...] = ()
    misses: tuple[Miss, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every package has its wheel."""
        return not self.misses


#: What is wanted in the end, dependencies included, and the wheel of each.
_Solution = tuple[dict[str, Wanted], dict[str, Candidate]]


class _Search:
    def __init__(self, target: Target, pages: Pages) -> None:
        self.target = target
        self.pages = pages
        self.steps = 0
        self.misses: dict[str, Miss] = {}

    def solve(
        self, wanted: Mapping[str, Wanted], chosen: Mapping[str, Candidate]
    ) -> "_Solution | None":
        """Give each wanted package its best wheel whose own requirements can be met too."""
        open_names = sorted(set(wanted) - set(chosen))
        if not open_names:
            return dict(wanted), dict(chosen)
        name = open_names[0]
        for candidate in self.accepted(wanted[name]):
            self.steps += 1
            if self.steps > _MAX_STEPS:
                return None
            extended = self._with_requirements(wanted, candidate, name)
            changed = {key for key in chosen if extended[key] is not wanted[key]}
            if not self._still_fit(extended, chosen, changed):
                continue
            found = self.solve(extended, {**chosen, name: candidate})
            if found is not None:
                return found
        return None

    def accepted(self, wanted: Wanted) -> Iterator[Candidate]:
        """Yield the candidates that no rule refuses, the best first; none at all is a miss."""
        page = self.pages(wanted.name)
        if page is None or page.missing:
            self.misses.setdefault(wanted.name, Miss(wanted=wanted, page=None))
            return
        found = False
        for group in self._groups(page, wanted):
            serve = [
                candidate
                for candidate in group
                if next(failures(candidate, wanted, self.target), None) is None
            ]
            found = found or bool(serve)
            yield from sorted(serve, key=lambda each: rank(each, self.target), reverse=True)
        if not found:
            self.misses.setdefault(
                wanted.name,
                Miss(wanted=wanted, page=page, decisions=decisions(page, wanted, self.target)),
            )

    def _groups(self, page: Page, wanted: Wanted) -> Iterable[Iterable[Candidate]]:
        """Return what the names leave, in groups of one coarse rank, the best group first.

        Entries of a group are read only if the groups before it do not serve.
        """
        possible = self._possible(page, wanted)
        if self.target.preferred:
            return [possible]
        groups: dict[tuple[bool, Version], list[Candidate]] = {}
        for candidate in possible:
            groups.setdefault(coarse_rank(candidate, self.target), []).append(candidate)
        return [groups[key] for key in sorted(groups, reverse=True)]

    def _possible(self, page: Page, wanted: Wanted) -> list[Candidate]:
        """Return what the names leave; a no to a version and its torch is said once for all."""
        return [
            candidate
            for group in page.groups
            if not refused_by_version(group.version_text, group.torch_axis, wanted, self.target)
            for candidate in group.read[0]
            if not refused_by_name(candidate, wanted, self.target)
        ]

    def _with_requirements(
        self, wanted: Mapping[str, Wanted], candidate: Candidate, name: str
    ) -> dict[str, Wanted]:
        extended = dict(wanted)
        for requirement in served(candidate, wanted[name], self.target, self.pages):
            key = requirement.name
            asked = Wanted(
                name=key,
                specifier=requirement.specifier,
                extras=requirement.extras,
                because=name,
            )
            extended[key] = _merged(extended.get(key), asked)
        return extended

    def _still_fit(
        self, wanted: Mapping[str, Wanted], chosen: Mapping[str, Candidate], names: Iterable[str]
    ) -> bool:
        """Return whether chosen wheels serve what is wanted of them by now."""
        return all(
            next(failures(chosen[name], wanted[name], self.target), None) is None for name in names
        )


def _merged(one: Wanted | None, other: Wanted) -> Wanted:
    if one is None:
        return other
    return replace(one, specifier=one.specifier & other.specifier, extras=one.extras | other.extras)


def requirements_of(candidate: Candidate, wanted: Wanted, target: Target) -> list[Need]:
    """Return a wheel's requirements that hold on the target; those that cannot be read too late."""
    found = []
    for text in candidate.entry.requires_dist or ():
        requirement = read_need(text)
        if requirement is not None and applies(requirement, wanted, target):
            found.append(requirement)
    return found


def served(candidate: Candidate, wanted: Wanted, target: Target, pages: Pages) -> Iterable[Need]:
    """Yield the requirements of a wheel that the same index serves."""
    for requirement in requirements_of(candidate, wanted, target):
        name = requirement.name
        if name == "torch":
            continue
        page = pages.as_dependency(name)
        if page is not None and not page.missing:
            yield requirement


def decisions(page: Page, wanted: Wanted, target: Target) -> tuple[Decision[Candidate], ...]:
    """Return the decision on every wheel of a page, accepted ones first, the best on top."""
    found = []
    for candidate in page.all_candidates():
        first = next(failures(candidate, wanted, target), None)
        found.append(Decision(candidate, "" if first is None else first.reason))
    found.sort(key=lambda each: (each.accepted, rank(each.candidate, target)), reverse=True)
    return tuple(found)


def choose(wanted: Iterable[Wanted], target: Target, pages: Pages) -> Answer:
    """Return the best set of wheels for a target, or which packages nothing serves.

    The answer does not depend on the order of pages or of what is asked.
    """
    asked: dict[str, Wanted] = {}
    for each in wanted:
        asked[each.name] = _merged(asked.get(each.name), each)
    search = _Search(target, pages)
    found = search.solve(asked, {})
    if found is None:
        for each in asked.values():
            next(search.accepted(each), None)
        return Answer(target=target, misses=_misses(search, asked))
    final, chosen = found
    choices = tuple(
        _choice(final[name], candidate, target, pages) for name, candidate in sorted(chosen.items())
    )
    return Answer(target=target, choices=choices)


def _misses(search: _Search, asked: Mapping[str, Wanted]) -> tuple[Miss, ...]:
    if search.misses:
        return tuple(miss for _, miss in sorted(search.misses.items()))
    # Each package has wheels, and no set of them agrees: all that were asked for are shown.
    return tuple(Miss(wanted=each, page=search.pages(each.name)) for each in asked.values())


def _choice(wanted: Wanted, candidate: Candidate, target: Target, pages: Pages) -> Choice:
    inside = {each.name for each in served(candidate, wanted, target, pages)}
    outside = tuple(
        requirement
        for requirement in requirements_of(candidate, wanted, target)
        if requirement.name not in {*inside, "torch"}
    )
    return Choice(
        wanted=wanted,
        candidate=candidate,
        remarks=remarks(candidate, target),
        outside=outside,
    )


def parse_wanted(text: str) -> Wanted:
    """Read what a user asks for: ``diso``, ``flash-attn>=2.8``, ``gsplat[dev]==1.5``.

    Raises BadInputError for anything else; addresses are not taken.
    """
    from wheelfarm.errors import BadInputError

    requirement = read_need(text)
    if requirement is None:
        message = f"{text!r} is no requirement"
        raise BadInputError(message, hint="write diso, or flash-attn>=2.8")
    if requirement.url:
        message = f"{text!r} names an address; wheels are chosen from the index"
        raise BadInputError(message)
    return Wanted(
        name=requirement.name,
        specifier=requirement.specifier,
        extras=requirement.extras,
        marker=requirement.marker,
    )
