"""Shared by the resolver's tests: a site, its server, a quiet environment, a command runner."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.farm_site import FarmSite
from tests.loopback import Loopback, serving


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
