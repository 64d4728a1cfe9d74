"""A decision about one candidate: accepted, or rejected with a reason. Every candidate gets one."""

from typing import Generic, TypeVar

from wheelfarm.values import value

T = TypeVar("T")


@value(kw_only=False)
class Decision(Generic[T]):
    """What was decided of ``candidate``; ``reason`` is empty where it is accepted."""

    candidate: T
    reason: str = ""

    @property
    def accepted(self) -> bool:
        """Whether the candidate may go on."""
        return not self.reason
