"""The plus sign of local versions: hosts that read it as a blank, and hosts that do not."""

import http.server
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import unquote, unquote_plus

import pytest

from tests.index.conftest import TAGS, Client, Farm

NAME = f"vllm-0.11.2.dev428+g36db0a35e-{TAGS}.whl"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A plain static host that decodes paths as it is told."""

    decode: Callable[[str], str] = staticmethod(unquote)

    def translate_path(self, path: str) -> str:
        plain = self.decode(path.partition("?")[0])
        return super().translate_path(plain.replace("%", "%25"))

    def log_message(self, *words: Any) -> None:
        """Say nothing."""


class Blank(Quiet):
    """An object store's habit: a plus in a path is a blank."""

    decode: Callable[[str], str] = staticmethod(unquote_plus)


@pytest.fixture(params=[Quiet, Blank])
def host(request: pytest.FixtureRequest, farm: Farm) -> Iterator[str]:
    farm.publish(NAME)
    farm.build()
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(request.param, directory=str(farm.site))
    )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/simple/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_clients_install_from_both_kinds_of_host(host: str, client: Client) -> None:
    done = client.install("--index-url", host, "vllm==0.11.2.dev428+g36db0a35e")
    assert done.returncode == 0, done.stderr
    assert client.version("vllm") == "0.11.2.dev428+g36db0a35e"
