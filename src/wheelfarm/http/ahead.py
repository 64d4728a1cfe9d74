"""An answer that is asked for before it is needed, in a thread of its own."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Ahead(Generic[T]):
    """A call that has begun; ``result`` waits for what it returns or raises."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._answers: list[T] = []
        self._error: BaseException | None = None
        # A daemon: a run that fails before the answer is needed must not wait for it.
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self._answers.append(self._call())
        except BaseException as error:  # noqa: BLE001 - raised to the one who asks for the result
            self._error = error

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the call has ended, well or not; return whether it has."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def result(self) -> T:
        """Return what the call returned, or raise what it raised."""
        self.wait()
        if self._error is not None:
            raise self._error
        return self._answers[0]
