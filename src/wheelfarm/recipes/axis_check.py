"""Whether a stated torch axis fits the one that a source shows."""

from typing import Literal

from wheelfarm.model.axis import TorchAxis

#: ``wrong``: the wheels would serve torches that they do not work with. ``wasteful``: they are
#: right, and more of them are built than needed. ``undecided``: the source does not tell.
Fit = Literal["agrees", "wrong", "wasteful", "undecided"]

#: Stated axis -> found axes under which its wheels are right, though more than needed.
_WASTEFUL: dict[TorchAxis, frozenset[TorchAxis]] = {
    "linked": frozenset({"stable_abi", "abi_flag", "free"}),
    "stable_abi": frozenset({"free"}),
    "abi_flag": frozenset({"free"}),
    "free": frozenset(),
}


def axis_fit(stated: TorchAxis, found: TorchAxis | None) -> Fit:
    """Return how a stated axis stands to what was found; None is "does not tell"."""
    if found is None:
        return "undecided"
    if found == stated:
        return "agrees"
    return "wasteful" if found in _WASTEFUL[stated] else "wrong"
