"""Measured costs in a store: a package in, what all hosts measured of its units out, and back."""

import contextlib
from collections.abc import Callable

from wheelfarm.build.costs import Costs
from wheelfarm.store.protocol import CostState, Store, StoreConflictError, attempts


class StoredCosts:
    """The costs of a farm's packages in its store; ``package`` is written as cells do.

    ``open_store`` is called for each use: a job is a forked process, and no client outlives that.
    """

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open = open_store

    def read(self, package: str) -> Costs:
        """Return what all hosts measured; raises StoreError, BadInputError for other documents."""
        store = self._open()
        return _merged(package, store.costs(_normalised(package)), store.location)

    def add(self, package: str, costs: Costs) -> None:
        """Add what is new in costs, whoever else does so at once.

        Nothing is written where all is much as before: builds of one package differ little, and a
        store counts its writes. Raises as ``read``, and StoreConflictError.
        """
        name, store = _normalised(package), self._open()
        for _ in attempts(f"the costs of {package} in {store.location}"):
            state = store.costs(name)
            known = _merged(package, state, store.location)
            merged = known.merged(costs.news_over(known))
            if merged.measured == known.measured:
                return
            with contextlib.suppress(StoreConflictError):
                store.replace_costs(name, merged.to_bytes(), state.token)
                return


def _merged(package: str, state: CostState, location: str) -> Costs:
    merged = Costs()
    for document in state.documents:
        merged = merged.merged(Costs.of_bytes(document, f"{location}: costs of {package}"))
    return merged


def _normalised(package: str) -> str:
    return package.replace("_", "-")
