"""Pages that a forked process asks for: the same answers and errors, and nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import loopback
from tests.loopback import Loopback, serving

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks here")

#: A process that asks through a helper; ``url`` and ``client`` are there, and ``modules`` tells
#: what of the network this process itself has loaded.
START = """
import json, os, sys
from wheelfarm.http import Client
url = sys.argv[1]
client = Client(attempts=2, pause=0.001)
second = url + "second"
client.ahead_apart(url + "first", then=lambda answer: client.ahead(second))
def modules():
    return sorted({"http.client", "ssl", "threading"} & set(sys.modules))
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Loopback]:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "first").write_bytes(b"one")
    # More than a pipe holds at once.
    (folder / "second").write_bytes(bytes(range(256)) * 4096)
    with serving(folder) as found:
        yield found


def process(server: Loopback, code: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", START + code, server.url], stdout=subprocess.PIPE, text=True
    )


def told(server: Loopback, code: str) -> list[Any]:
    """Return what a process printed, a JSON value a line."""
    out, _ = process(server, code).communicate(timeout=60)
    return [json.loads(line) for line in out.splitlines()]


def living(pid: int) -> bool:
    """Return whether a process runs; a dead one that nobody reaped yet does not."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] not in {"Z", "X"}


def ends(pid: int) -> bool:
    """Return whether a process ends in a while."""
    for _ in range(200):
        if not living(pid):
            return True
        time.sleep(0.05)
    return False


def test_answers_come_whole_and_each_is_asked_for_once(server: Loopback) -> None:
    code = """
one, two = client.get(url + "first"), client.get(second)
print(json.dumps([one.body.decode(), one.url, one.status, one.headers["content-length"]]))
print(json.dumps([len(two.body), two.body == bytes(range(256)) * 4096, modules()]))
client.close()
"""
    first, second = told(server, code)
    assert first == ["one", f"{server.url}first", 200, "3"]
    assert second == [1 << 20, True, []]
    assert server.paths() == ["/first", "/second"]


def test_a_second_question_is_asked_here(server: Loopback) -> None:
    code = """
client.get(url + "first"), client.get(second)
client.ahead(second)
print(json.dumps([len(client.get(second).body), client.get(url + "first").body.decode()]))
"""
    assert told(server, code) == [[1 << 20, "one"]]
    assert server.paths() == ["/first", "/second", "/second", "/first"]


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (loopback.status(404), "NotFoundError", "HTTP 404"),
        (loopback.status(403), "RefusedError", "give credentials for this host"),
        (loopback.reset, "UnreachableError", "(2 attempts)"),
        (loopback.half, "UnreachableError", "the answer was cut short"),
    ],
)
def test_errors_are_raised_as_they_would_be_here(
    server: Loopback, answer: loopback.Action, kind: str, words: str
) -> None:
    server.plan("/first", answer, answer)
    code = """
try:
    client.get(url + "first")
except Exception as error:
    print(json.dumps([type(error).__name__, error.exit_code, str(error), modules()]))
"""
    ((name, status, text, loaded),) = told(server, code)
    assert (name, status, loaded) == (kind, 2, [])
    assert words in text
    assert len(server.requests) == (2 if kind == "UnreachableError" else 1)


def test_where_the_helper_is_killed_this_process_asks(server: Loopback) -> None:
    server.plan("/second", loopback.stall)
    code = """
import signal
one = client.get(url + "first")
os.kill(client._helper._pid, signal.SIGKILL)
print(json.dumps([one.body.decode(), len(client.get(second).body)]))
client.close()
"""
    assert told(server, code) == [["one", 1 << 20]]
    assert server.paths().count("/second") == 2


def test_nothing_is_forked_beside_a_thread(server: Loopback) -> None:
    code = """
import threading
client.close()
wait = threading.Event()
threading.Thread(target=wait.wait, daemon=True).start()
client = Client()
client.ahead_apart(url + "first")
print(json.dumps([client.get(url + "first").body.decode(), client._helper]))
"""
    assert told(server, code) == [["one", None]]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_the_helper_ends_with_its_parent(server: Loopback, how: signal.Signals) -> None:
    server.plan("/first", loopback.stall)
    code = """
print(json.dumps(client._helper._pid), flush=True)
client.get(url + "first")
"""
    running = process(server, code)
    assert running.stdout is not None
    with running.stdout as stream:
        helper = int(stream.readline())
        assert living(helper)
        running.send_signal(how)
        running.wait(timeout=30)
        assert ends(helper)


def test_a_closed_client_leaves_no_process(server: Loopback) -> None:
    server.plan("/first", loopback.stall)
    code = """
pid = client._helper._pid
client.close()
try:
    os.kill(pid, 0)
except ProcessLookupError:
    print(json.dumps("gone"))
"""
    assert told(server, code) == ["gone"]


def test_a_failed_run_waits_for_no_helper(server: Loopback, tmp_path: Path) -> None:
    """Whoever reads a run's output reads its end when the run has ended."""
    server.plan("/manifest/index.json", loopback.stall)
    argv = ["resolve", "diso", "--index", server.url, "--from", str(tmp_path / "none.toml")]
    done = subprocess.run(
        [sys.executable, "-m", "wheelfarm", *argv[:2], "--no-cache", *argv[2:]],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        env={**os.environ, "WHEELFARM_INDEX": server.url},
    )
    assert done.returncode == 4
    assert "does not exist" in done.stderr
