"""Answers that a forked process asks for, while this one imports the resolver.

Threads of one interpreter take turns, and importing ``http.client`` alone is a sixth of a short
run. Where the system can fork, that and the network's work go to another core. The helper tells
each answer through a pipe, as a line of JSON and the body; whatever it does not tell, this process
asks for itself.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from wheelfarm.http.response import Response

if TYPE_CHECKING:
    from wheelfarm.http.ahead import Ahead

#: An address and the form in which it is asked for.
Key = tuple[str, str]
#: Begins to ask; what it returns may grow until every answer in it has come.
Work = Callable[[], "Mapping[Key, Ahead[Response]]"]
#: How often a helper looks whether its parent is still there (seconds).
_LOOK = 0.2


class Helper:
    """The forked process as its parent sees it: which answers it owes, and those that came."""

    def __init__(self, pid: int, answers: int, first: Key) -> None:
        self._pid = pid
        self._answers = os.fdopen(answers, "rb")
        self._owed = {first}
        self._come: dict[Key, Response | Exception] = {}

    @classmethod
    def fork(cls, work: Work, first: Key) -> "Helper | None":
        """Fork a process that does ``work``, which begins with ``first``; None where none can be.

        Other threads would be gone in it, with locks that they hold; macOS' own libraries do not
        bear a fork at all.
        """
        if sys.platform != "linux" or not _alone():
            return None
        answers, writing = os.pipe()
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            os.close(answers)
            os.close(writing)
            return None
        if pid == 0:
            _serve(work, writing, parent)
        os.close(writing)
        return cls(pid, answers, first)

    def brings(self, key: Key) -> bool:
        """Return whether this answer is on its way, or here already."""
        return key in self._come or key in self._owed

    def take(self, key: Key) -> Response | None:
        """Return an answer, or raise what came of asking; None where the helper does not tell."""
        while key in self._owed:
            self._receive()
        answer = self._come.pop(key, None)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        """End the helper, whatever it is doing."""
        self._owed.clear()
        self._answers.close()
        if self._pid == 0:
            return
        import signal

        pid, self._pid = self._pid, 0
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            return

    def _receive(self) -> None:
        """Take in the next answer; where the helper has ended, nothing is owed any more."""
        line = self._answers.readline()
        head: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {}
        body = self._answers.read(head["size"]) if head else b""
        if not head or len(body) != head["size"]:
            self._owed.clear()
            return
        key = (head["url"], head["accept"])
        self._owed.discard(key)
        self._owed.update((url, accept) for url, accept in head["coming"])
        self._come[key] = _answer(head, body)


def _alone() -> bool:
    """Return whether this process has no thread but this one, those of libraries included."""
    try:
        return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208 - a part of every start
    except OSError:
        return False


def _answer(head: Mapping[str, Any], body: bytes) -> Response | Exception:
    if "status" in head:
        return Response(
            url=head["final"], status=head["status"], headers=head["headers"], body=body
        )
    import pickle

    error: Exception = pickle.loads(body)  # noqa: S301 - written by our own fork
    return error


def _serve(work: Work, pipe: int, parent: int) -> NoReturn:
    """Be the helper: ask, tell the answers, end."""
    try:
        _stand_alone()
        _tell_all(work(), pipe, parent)
    finally:
        # Nothing of the parent's own is to happen twice: no buffers, no handlers of its end.
        os._exit(0)


def _tell_all(asked: "Mapping[Key, Ahead[Response]]", pipe: int, parent: int) -> None:
    told: set[Key] = set()
    with os.fdopen(pipe, "wb") as stream:
        while (key := next((key for key in asked if key not in told), None)) is not None:
            while not asked[key].wait(_LOOK):
                if os.getppid() != parent:
                    return
            _tell(stream, key, asked, told)


def _stand_alone() -> None:
    """Leave the parent's input and output, which end with it, and take signals as they come."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)


def _tell(stream: Any, key: Key, asked: "Mapping[Key, Ahead[Response]]", told: set[Key]) -> None:
    """Write one answer, and which others are asked for by now."""
    head: dict[str, Any] = {}
    try:
        answer = asked[key].result()
        body = answer.body
        head = {"final": answer.url, "status": answer.status, "headers": dict(answer.headers)}
    except Exception as error:  # noqa: BLE001 - raised again in the parent
        import pickle

        body = pickle.dumps(error)
    told.add(key)
    coming = [other for other in tuple(asked) if other not in told]
    head |= {"url": key[0], "accept": key[1], "coming": coming, "size": len(body)}
    stream.write(json.dumps(head).encode() + b"\n")
    stream.write(body)
    stream.flush()
