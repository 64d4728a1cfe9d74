"""Requirements as the resolver compares them; the common short form is read without a grammar.

``packaging.requirements`` costs 50 ms to import, and almost every line of a wheel's metadata is a
name with versions. Anything else (markers, extras, addresses) goes through it.
"""

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from wheelfarm.model.project_name import normalized
from wheelfarm.values import value

if TYPE_CHECKING:
    from packaging.markers import Marker

_SHORT = re.compile(
    r"\s*(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*"
    r"\(?(?P<versions>(?:(?:===?|[<>~!]=|<|>)\s*[\w.*+!-]+\s*,?\s*)*)\)?\s*",
    re.ASCII,
)


@value
class Need:
    """One requirement: normalised name, versions, extras, and an address or a marker if any."""

    name: str
    text: str
    specifier: SpecifierSet
    extras: frozenset[str] = frozenset()
    url: str = ""
    marker: "Marker | None" = None

    def __str__(self) -> str:
        return self.text

    @property
    def unconditional(self) -> str:
        """The requirement without its marker, as an installer takes it."""
        extras = f"[{','.join(sorted(self.extras))}]" if self.extras else ""
        address = f" @ {self.url}" if self.url else ""
        return f"{self.name}{extras}{self.specifier}{address}"


@lru_cache(maxsize=4096)
def read_need(text: str) -> Need | None:
    """Return a requirement (PEP 508); None where the text is none. An index repeats a few."""
    match = _SHORT.fullmatch(text)
    if match is not None:
        try:
            specifier = SpecifierSet(match["versions"].strip().rstrip(","))
        except InvalidSpecifier:
            return None
        return Need(name=normalized(match["name"]), text=text.strip(), specifier=specifier)
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        parsed = Requirement(text)
    except InvalidRequirement:
        return None
    return Need(
        name=normalized(parsed.name),
        text=str(parsed),
        specifier=parsed.specifier,
        extras=frozenset(parsed.extras),
        url=parsed.url or "",
        marker=parsed.marker,
    )
