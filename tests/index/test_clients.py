"""Clients of other kinds: one that matches on the local tag, and an old pip."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.index.conftest import TAGS, Farm
from tests.loopback import serving

LINKED = f"demo_linked-1.0+cu130torch2.10-{TAGS}.whl"
FREE = f"demo_free-2.0+cu130torch2.14-{TAGS}.whl"
UNIVERSAL = "demo_py3-2.0+cu130torch2.14-py3-none-manylinux_2_17_x86_64.whl"
PIP = [sys.executable, "-W", "ignore", "-m", "pip", "install", "--no-deps"]


def fetched(folder: Path, *requirements: str) -> Path:
    """Unpack what PyPI has into a folder, without dependencies; the test is skipped without it."""
    words = [*PIP, "-q", "--disable-pip-version-check", "--target", str(folder), *requirements]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{requirements[0]} cannot be fetched: {done.stderr.strip().splitlines()[-1]}")
    return folder


@pytest.fixture(scope="session")
def comfy_env(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real client from PyPI, unpacked without its dependencies."""
    return fetched(tmp_path_factory.mktemp("comfy-env"), "comfy-env==0.4.46", "tomli")


LOOK_UP = """
import importlib, json, sys, types
sys.path.insert(0, sys.argv[1])
import os
root = os.path.join(sys.argv[1], "comfy_env")
for name in ("comfy_env", "comfy_env.packages", "comfy_env.detection"):
    module = types.ModuleType(name)
    module.__path__ = [os.path.join(sys.argv[1], *name.split("."))]
    sys.modules[name] = module
client = importlib.import_module("comfy_env.packages.cuda_wheels")
print(json.dumps([client.get_wheel_url(*words) for words in json.loads(sys.argv[2])]))
"""


@pytest.mark.network
def test_a_client_that_matches_on_link_texts(farm: Farm, comfy_env: Path) -> None:
    made = {
        "demo_linked": farm.publish(LINKED),
        "demo_free": farm.publish(FREE, axis="free"),
        "demo-py3": farm.publish(UNIVERSAL, axis="free"),
    }
    farm.build()
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    asked = [
        ["demo_linked", "2.10.0", "13.0", python],
        ["demo_free", "2.14.1", "13.0", python],
        ["demo_free", "2.9.1", "13.0", python],
        ["demo-py3", "2.10.0", "13.0", python],
    ]
    with serving(farm.site) as server:
        done = subprocess.run(
            [sys.executable, "-c", LOOK_UP, comfy_env, json.dumps(asked)],
            check=True,
            capture_output=True,
            text=True,
            env={"COMFY_ENV_CUDA_WHEELS_INDEX": f"{server.url}simple/", "PATH": "/usr/bin:/bin"},
        )
        urls = json.loads(done.stdout)
        for (package, *_), url in zip(asked, urls, strict=True):
            assert url, f"{package} was not found"
            address, _, digest = url.partition("#sha256=")
            assert digest == made[package].proof.facts.sha256
            target = subprocess.run(
                [
                    sys.executable,
                    "-c",
                    (
                        "import sys,urllib.request as u;"
                        "sys.stdout.buffer.write(u.urlopen(sys.argv[1]).read())"
                    ),
                    address,
                ],
                check=True,
                capture_output=True,
            )
            assert target.stdout == made[package].path.read_bytes()


@pytest.fixture(scope="session")
def old_pip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pip that ends in a traceback where JSON metadata hashes have the older name."""
    return fetched(tmp_path_factory.mktemp("old-pip"), "pip==23.0.1")


@pytest.mark.network
@pytest.mark.parametrize("negotiated", [False, True])
def test_an_old_pip_installs(farm: Farm, old_pip: Path, tmp_path: Path, negotiated: bool) -> None:
    import threading

    from wheelfarm.index.server import SiteServer

    made = farm.publish(LINKED)
    farm.publish(FREE, axis="free")
    farm.build()
    target = tmp_path / "target"
    lock = tmp_path / "requirements.txt"
    lock.write_text(f"demo-linked==1.0+cu130torch2.10 --hash=sha256:{made.proof.facts.sha256}\n")

    def install(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                sys.executable,
                "-W",
                "ignore",
                "-m",
                "pip",
                "--isolated",
                "install",
                "--target",
                str(target),
                "--no-cache-dir",
                "--no-deps",
                *words,
            ],
            check=False,
            capture_output=True,
            text=True,
            env={"PYTHONPATH": str(old_pip), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        )

    def check(url: str) -> None:
        done = install("--index-url", f"{url}simple/", "--require-hashes", "-r", str(lock))
        assert done.returncode == 0, done.stderr
        # This pip compares the name in the metadata with the one asked for letter by letter.
        done = install("--index-url", f"{url}cu130/torch2.10/simple/", "demo_free")
        assert done.returncode == 0, done.stderr
        assert (target / "demo_free-2.0+cu130torch2.14.dist-info").is_dir()

    if not negotiated:
        with serving(farm.site) as server:
            check(server.url)
        return
    server_json = SiteServer(("127.0.0.1", 0), farm.site)
    thread = threading.Thread(target=server_json.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        check(f"http://127.0.0.1:{server_json.server_address[1]}/")
    finally:
        server_json.shutdown()
        thread.join()
        server_json.server_close()
