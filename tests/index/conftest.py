"""A store, a site over it, and clients in environments of their own."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.store_wheels import WHEN, Made, make_wheel
from wheelfarm.index.build import Built, Guard, build_site
from wheelfarm.index.change import FilesMode
from wheelfarm.index.render import SiteConfig
from wheelfarm.index.shipped import ShippedTorch
from wheelfarm.index.tree import SiteTree
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor
from wheelfarm.store.directory import DirectoryStore
from wheelfarm.store.evidence import Declared
from wheelfarm.store.publish import publish

if TYPE_CHECKING:
    from wheelfarm.model.axis import CxxAbi

HERE = f"cp{sys.version_info.major}{sys.version_info.minor}"
PLATFORM = "manylinux_2_17_x86_64"
TAGS = f"{HERE}-{HERE}-{PLATFORM}"


def shipped(rows: dict[str, str], pythons: str = "3.10 3.11 3.12 3.13 3.14") -> ShippedTorch:
    """Return a small world: ``{"cu130": "2.9 2.10"}`` on x86_64 Linux; all have ABI 1."""
    table: dict[tuple[Accelerator, Minor, str], frozenset[PythonTag]] = {}
    abis: dict[tuple[Accelerator, Minor, str], CxxAbi] = {}
    for accelerator, torches in rows.items():
        for torch in torches.split():
            key = (Accelerator.parse(accelerator), Minor.parse(torch), "linux_x86_64")
            table[key] = frozenset(map(PythonTag.of_version, pythons.split()))
            abis[key] = 1
    return ShippedTorch(table, abis)


WORLD = shipped({"cu128": "2.8 2.9 2.10", "cu130": "2.9 2.10 2.14"})


@dataclass
class Farm:
    """A store and a site under construction."""

    folder: Path
    world: ShippedTorch = WORLD
    config: SiteConfig = field(default_factory=SiteConfig)
    files: FilesMode = "link"

    @property
    def store(self) -> DirectoryStore:
        return DirectoryStore(self.folder / "store")

    @property
    def site(self) -> Path:
        return self.folder / "site"

    @property
    def tree(self) -> SiteTree:
        return SiteTree(self.site)

    def publish(
        self,
        filename: str,
        *,
        axis: str = "linked",
        from_torch: str | None = None,
        requires_python: str = ">=3.8",
        summary: str = "A test package",
    ) -> Made:
        """Make a wheel of a torch axis and publish it."""
        declared = Declared(
            torch_axis="abi_flag" if axis == "abi_flag" else None,
            from_torch=None if from_torch is None else Minor.parse(from_torch),
        )
        made = make_wheel(
            self.folder / "wheels",
            filename,
            torch="linked"
            if axis == "linked"
            else "stable_abi"
            if axis == "stable_abi"
            else "none",
            declared=declared,
            requires_python=requires_python,
            summary=summary,
        )
        publish(self.store, made.path, made.proof, clock=lambda: WHEN)
        return made

    def build(self, *, full: bool = False, guards: tuple[Guard, ...] = ()) -> Built:
        """Build the site."""
        return build_site(
            self.store,
            self.tree,
            self.config,
            self.world,
            files=self.files,
            full=full,
            guards=guards,
        )

    def text(self, path: str) -> str:
        """Return a page of the site."""
        return (self.site / path).read_text()


@pytest.fixture
def farm(tmp_path: Path) -> Farm:
    """An empty farm."""
    return Farm(tmp_path)


@dataclass(frozen=True)
class Client:
    """An installer in an environment of its own."""

    name: str
    python: Path
    install: Callable[..., subprocess.CompletedProcess[str]]

    def version(self, package: str) -> str:
        """Return the installed version of a package."""
        code = f"import importlib.metadata as m; print(m.version({package!r}))"
        return subprocess.run(
            [self.python, "-c", code], check=True, capture_output=True, text=True
        ).stdout.strip()


@pytest.fixture(params=["pip", "uv"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Client:
    """Pip and uv, each with an empty environment and no cache."""
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run(["uv", "venv", "-q", "--python", sys.executable, tmp_path / "env"], check=True)
    if request.param == "pip":
        start = [sys.executable, "-m", "pip", "--isolated", "--python", str(python), "install"]
        start += ["--no-cache-dir", "--disable-pip-version-check"]
    else:
        start = ["uv", "pip", "install", "--no-config", "--no-cache", "--python", str(python)]

    def install(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*start, *words], check=False, capture_output=True, text=True)

    return Client(request.param, python, install)
