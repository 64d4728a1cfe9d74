"""A site over stores elsewhere: GitHub's own addresses, a base address for buckets."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.index.conftest import TAGS, WORLD, Client
from tests.store.github_server import TOKEN, Github, github_server
from tests.store_wheels import make_wheel
from wheelfarm.errors import BadInputError
from wheelfarm.http import Client as HttpClient
from wheelfarm.index.build import build_site
from wheelfarm.index.check import Checker
from wheelfarm.index.render import SiteConfig
from wheelfarm.index.server import SiteServer
from wheelfarm.index.tree import SiteTree
from wheelfarm.store.directory import DirectoryStore
from wheelfarm.store.github import GithubStore
from wheelfarm.store.github_api import GithubApi
from wheelfarm.store.publish import publish, yank

NAME = f"demo-1.0+cu130torch2.10-{TAGS}.whl"


@pytest.fixture
def github() -> Iterator[Github]:
    with github_server() as server:
        yield server


@contextmanager
def served(folder: Path) -> Iterator[str]:
    server = SiteServer(("127.0.0.1", 0), folder)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_wheels_in_releases_are_linked_where_they_are(
    github: Github, tmp_path: Path, client: Client
) -> None:
    store = GithubStore(
        GithubApi("owner", "farm", api=github.url, token=TOKEN, pause=0.001), github.location
    )
    made = make_wheel(tmp_path / "wheels", NAME, torch="linked")
    publish(store, made.path, made.proof)
    tree = SiteTree(tmp_path / "site")
    build_site(store, tree, SiteConfig(), WORLD)
    assert not (tree.root / "files").exists()
    with served(tree.root) as url:
        checked = Checker(url, HttpClient(attempts=1)).run()
        assert checked.findings == []
        assert checked.files == 1
        done = client.install("--index-url", f"{url}cu130/torch2.10/simple/", "demo")
        assert done.returncode == 0, done.stderr
        wheel = github.release("demo-latest").assets[0]
        wheel.data += b"x"
        kinds = {each.kind for each in Checker(url, HttpClient(attempts=1)).run().findings}
        assert kinds == {"size", "hash"}
        wheel.data = wheel.data[:-1]
    # Nothing changed: nothing but lists is asked for, and nothing is written.
    yank(store, [NAME], "bad")
    assert build_site(store, tree, SiteConfig(), WORLD).rendered == ("demo",)
    assert build_site(store, tree, SiteConfig(), WORLD).written == 0


class Elsewhere(DirectoryStore):
    """A store whose files do not lie on this machine."""

    def folder(self) -> Path | None:
        return None


def test_files_elsewhere_need_an_address(tmp_path: Path) -> None:
    store = Elsewhere(tmp_path / "store")
    made = make_wheel(tmp_path / "wheels", NAME, torch="linked")
    publish(store, made.path, made.proof)
    tree = SiteTree(tmp_path / "site")
    with pytest.raises(BadInputError, match="not on this machine"):
        build_site(store, tree, SiteConfig(), WORLD)
    assert not tree.root.exists()
    config = SiteConfig(files_url="https://files.example/")
    assert build_site(store, tree, config, WORLD).wheels == 1
