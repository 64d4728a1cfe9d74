"""Shared by the resolver's tests: a site, its server, a quiet environment, a command runner."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_environment import install_torch, make_environment
from tests.farm_site import FarmSite
from tests.loopback import Loopback, serving
from tests.resolve.locks import CELL, TAG, Writer
from wheelfarm.cli import main


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Take away every setting and device of the machine that runs the tests."""
    for name in list(os.environ):
        if name.startswith(("WHEELFARM_", "CUDA_", "PIP_", "UV_")) or name == "VIRTUAL_ENV":
            if name.startswith(("PIP_INDEX", "PIP_CONFIG", "UV_INDEX", "UV_DEFAULT_INDEX")):
                continue
            if name.startswith("WHEELFARM_TEST_"):
                continue
            monkeypatch.delenv(name)
    root = tmp_path / "machine"
    (root / "sys/bus/pci/devices").mkdir(parents=True)
    monkeypatch.setenv("WHEELFARM_ROOT", str(root))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def site(tmp_path: Path) -> FarmSite:
    """An empty site."""
    folder = tmp_path / "site"
    folder.mkdir()
    return FarmSite(folder)


@pytest.fixture
def server(site: FarmSite) -> Iterator[Loopback]:
    """The site's server."""
    with serving(site.folder) as loopback:
        yield loopback


@pytest.fixture
def python(tmp_path: Path) -> Path:
    found = make_environment(tmp_path / "environment")
    install_torch(found, "2.14.1+cu130", metadata="2.14.1")
    return found


@pytest.fixture
def write(site: FarmSite, server: Loopback, python: Path, tmp_path: Path) -> Writer:
    """Return a function that writes a lock of two packages and returns its text."""
    site.add(f"diso-0.1.4+cu130torch2.14-{CELL}", requires=("torch==2.14.*",))
    site.add(
        f"gsplat-1.5.3+cu130torch2.14-{TAG}-{TAG}-manylinux_2_31_x86_64.whl",
        requires=("torch",),
        runtime_jit=True,
    )
    site.write()

    def run(name: str, *words: str, packages: tuple[str, ...] = ("diso", "gsplat")) -> str:
        target = tmp_path / name
        arguments = ["--index", server.url, "--output", str(target), "-q"]
        if "--profile" not in words:
            arguments += ["--python", str(python)]
        assert main(["resolve", *packages, *arguments, *words]) == 0
        return target.read_text(encoding="utf-8")

    return run


@pytest.fixture
def schema(shared_reference: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (shared_reference / "pixi.schema.json").read_text(encoding="utf-8")
    )
    return found
