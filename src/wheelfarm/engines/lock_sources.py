"""Recipes and an old lock in, new entries out; one bad source does not lose the others."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from wheelfarm.engines.read_source import read_source
from wheelfarm.errors import BadInputError, CouldNotLookError, Fault, FaultsError
from wheelfarm.http import Client
from wheelfarm.recipes.lock import FarmLock, LockEntry
from wheelfarm.recipes.model import Recipe
from wheelfarm.recipes.resolve_source import resolve_source


@dataclass(slots=True)
class LockOutcome:
    """New entries by package, what is wrong with the others, and what could not be looked at."""

    entries: dict[str, LockEntry] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    unread: list[Fault] = field(default_factory=list)

    def require_all(self) -> None:
        """Raise FaultsError for sources that are wrong, else CouldNotLookError for those unread."""
        count = len(self.faults) + len(self.unread)
        title = f"{count} source{'s were' if count > 1 else ' was'} not locked"
        if self.faults:
            raise FaultsError(title, [*self.faults, *self.unread])
        if self.unread:
            text = "\n".join([title, *(f"  {fault}" for fault in self.unread)])
            raise CouldNotLookError(text, hint="run again when they can be read")


def lock_sources(
    recipes: Iterable[Recipe],
    old: FarmLock,
    *,
    client: Client,
    index: str,
    update: bool = False,
    survey: bool = True,
) -> LockOutcome:
    """Return what each recipe's source is now.

    A source that changed under its name is a fault unless ``update`` is set. With ``survey`` new
    and changed sources are fetched, to read their version and torch axis.
    """
    outcome = LockOutcome()
    for recipe in recipes:
        name = recipe.package
        before = old.entries.get(name)
        try:
            entry = resolve_source(recipe, client=client, index=index)
            if before is not None and not update:
                _require_unchanged(before, entry)
            outcome.entries[name] = read_source(recipe, entry, before) if survey else entry
        except CouldNotLookError as error:
            outcome.unread.append(Fault(name, _line(error)))
        except BadInputError as error:
            outcome.faults.append(Fault(name, _line(error)))
    return outcome


def _require_unchanged(before: LockEntry, now: LockEntry) -> None:
    """Raise BadInputError where one spec now names another source than it did."""
    if before.spec == now.spec and before.source.identity != now.source.identity:
        message = (
            f"the source changed under its name: {now.spec} was {before.source.identity} and is "
            f"now {now.source.identity}"
        )
        raise BadInputError(message, hint="find out why; `wheelfarm lock --update` takes it")


def _line(error: BadInputError | CouldNotLookError) -> str:
    parts = (error.what, error.cause, error.hint)
    return "; ".join(" ".join(part.split()) for part in parts if part)
