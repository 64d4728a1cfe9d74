"""A decision about one candidate: accepted, or rejected with a reason. Every candidate gets one."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from wheelfarm.values import value

T = TypeVar("T")

#: A rule returns the reason why it refuses a candidate, or None where it has nothing against it.
Rule = Callable[[T], "str | None"]


@value(kw_only=False)
class Decision(Generic[T]):
    """What was decided of ``candidate``; ``reason`` is empty where it is accepted."""

    candidate: T
    reason: str = ""

    @property
    def accepted(self) -> bool:
        """Whether the candidate may go on."""
        return not self.reason


def decide(candidate: T, rules: Iterable[Rule[T]]) -> Decision[T]:
    """Return the decision of the first rule that refuses, or acceptance."""
    for rule in rules:
        reason = rule(candidate)
        if reason:
            return Decision(candidate, reason)
    return Decision(candidate)
