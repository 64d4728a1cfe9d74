"""One farm of three packages that every engine builds: torch-free, torch-linked, sharded."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from wheelfarm.build.environment import Environment

DATA = Path(__file__).parents[1] / "data"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
EXACT = PYTHON.replace(".", "")

POLICY = """\
platforms: [linux_x86_64]
python_min: "3.10"
supported_cudas: ["13.0"]
min_pytorch: "2.14"
arch_policy: {"13.0": "8.0+PTX"}
floor: native
"""
MATRIX = f'build_matrix: {{python_versions: ["{PYTHON}"]}}\n'
RECIPES = {
    "tiny_cuda": f'links_torch: false\npython_axis: abi3\nfrom_python: "{PYTHON}"\n',
    "tiny_linked": "links_torch: true\n" + MATRIX,
    "tiny_sharded": "links_torch: false\nsharding: 2\n" + MATRIX,
}
CELLS = {
    "tiny_cuda": f"tiny_cuda-1.0-cu130-torch2.14-cp{EXACT}.abi3-linux_x86_64",
    "tiny_linked": f"tiny_linked-1.0-cu130-torch2.14-cp{EXACT}-linux_x86_64",
    "tiny_sharded": f"tiny_sharded-1.0-cu130-torch2.14-cp{EXACT}-linux_x86_64",
}


@dataclass
class Farm:
    """A farm's folder, and the command line in it."""

    root: Path

    def command(self, *words: str | Path) -> list[str]:
        return [sys.executable, "-m", "wheelfarm", *map(str, words)]

    def call(
        self, *words: str | Path, status: int | None = 0, **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            self.command(*words),
            cwd=self.root,
            env={**os.environ, **variables},
            check=False,
            text=True,
            capture_output=True,
        )
        assert status is None or done.returncode == status, done.stdout + done.stderr
        return done

    def json(self, *words: str | Path, status: int | None = 0) -> Any:
        return json.loads(self.call(*words, "--json", status=status).stdout)

    def plan(self, *words: str | Path) -> Path:
        path = self.root / "plan.json"
        path.write_text(self.call("plan", "--json", *words).stdout, encoding="utf-8")
        return path


def write_farm(root: Path, packages: tuple[str, ...] = tuple(RECIPES)) -> Farm:
    """Write a farm whose sources lie in its own folder."""
    root.mkdir(parents=True)
    (root / "farm.yml").write_text(POLICY, encoding="utf-8")
    for package in packages:
        folder = root / "recipes" / package
        folder.mkdir(parents=True)
        shutil.copytree(
            DATA / package,
            root / "sources" / package,
            ignore=shutil.ignore_patterns("build", "*.egg-info"),
        )
        setup = root / "sources" / package / "setup.py"
        # The floor of the abi3 package is the Python whose environment is there anyway.
        floor = setup.read_text().replace("cp39", f"cp{EXACT}")
        setup.write_text(floor.replace("0x03090000", f"0x03{sys.version_info.minor:02x}0000"))
        text = f'name: {package}\nversion: "1.0"\nsource: {{path: ../../sources/{package}}}\n'
        (folder / "recipe.yml").write_text(text + RECIPES[package], encoding="utf-8")
    farm = Farm(root)
    farm.call("lock")
    return farm


def wheels_of(folder: Path) -> dict[str, bytes]:
    """Return the wheels of a folder by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.whl"))}


@pytest.fixture(scope="session")
def compilers(torch_environment: Environment) -> Environment:
    """The environment that all engines' jobs build in, made before any of them needs it."""
    return torch_environment


@pytest.fixture(scope="session")
def shims(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of a runner's image: this very wheelfarm, and a pipx that has installed it."""
    folder = tmp_path_factory.mktemp("bin")
    for name, line in (
        ("wheelfarm", f'exec {sys.executable} -m wheelfarm "$@"'),
        ("pipx", 'test "$1" = install && case "$2" in wheelfarm*) ;; *) exit 1 ;; esac'),
    ):
        program = folder / name
        program.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        program.chmod(0o755)
    return folder


@pytest.fixture
def farm(tmp_path: Path) -> Farm:
    """The farm of three packages."""
    return write_farm(tmp_path / "farm")


@pytest.fixture
def small_farm(tmp_path: Path) -> Farm:
    """A farm of one package."""
    return write_farm(tmp_path / "farm", ("tiny_cuda",))
