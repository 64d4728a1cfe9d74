"""Real pip and uv install from the site when any static server serves it."""

import hashlib
from pathlib import Path

import pytest

from tests.index.conftest import TAGS, Client, Farm
from tests.loopback import serving

LINKED = f"demo_linked-1.0+cu130torch2.10-{TAGS}.whl"
OTHER_TORCH = f"demo_linked-1.0+cu130torch2.14-{TAGS}.whl"
OTHER_CUDA = f"demo_linked-1.0+cu128torch2.10-{TAGS}.whl"
FREE = f"demo_free-2.0+cu130torch2.14-{TAGS}.whl"


@pytest.fixture
def site(farm: Farm) -> Farm:
    for filename in (LINKED, OTHER_TORCH, OTHER_CUDA):
        farm.publish(filename)
    farm.publish(FREE, axis="free")
    farm.build()
    return farm


def test_full_pin_from_the_root(site: Farm, client: Client) -> None:
    with serving(site.site) as server:
        done = client.install(
            "--index-url", f"{server.url}simple/", "demo-linked==1.0+cu130torch2.10"
        )
        assert done.returncode == 0, done.stderr
        assert client.version("demo-linked") == "1.0+cu130torch2.10"
        done = client.install(
            "--index-url", f"{server.url}simple/", "demo-free==2.0+cu130torch2.14"
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("torch", ["2.10", "2.14"])
def test_unpinned_from_a_channel(site: Farm, client: Client, torch: str) -> None:
    with serving(site.site) as server:
        index = f"{server.url}cu130/torch{torch}/simple/"
        done = client.install("--index-url", index, "Demo_Linked", "demo.free")
        assert done.returncode == 0, done.stderr
        # What the wheel requires was read from its metadata file, not from the wheel.
        assert any(path.endswith(".whl.metadata") for path in server.paths())
    assert client.version("demo-linked") == f"1.0+cu130torch{torch}"
    # The torch-free wheel is one file, whatever its own label says.
    assert client.version("demo-free") == "2.0+cu130torch2.14"


def test_installed_with_hashes(site: Farm, client: Client, tmp_path: Path) -> None:
    wheel = site.folder / "wheels" / LINKED
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    file = tmp_path / "requirements.txt"
    file.write_text(f"demo-linked==1.0+cu130torch2.10 --hash=sha256:{digest}\n")
    with serving(site.site) as server:
        index = f"{server.url}simple/"
        done = client.install("--index-url", index, "--require-hashes", "-r", str(file))
        assert done.returncode == 0, done.stderr


def test_a_wrong_hash_is_refused(site: Farm, client: Client, tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(f"demo-linked==1.0+cu130torch2.10 --hash=sha256:{'0' * 64}\n")
    with serving(site.site) as server:
        index = f"{server.url}simple/"
        done = client.install("--index-url", index, "--require-hashes", "-r", str(file))
    assert done.returncode != 0
