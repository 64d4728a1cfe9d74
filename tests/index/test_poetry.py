"""Poetry locks and installs from a channel: an installer with a resolver of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.index.conftest import TAGS, Farm
from tests.loopback import serving

LINKED = f"demo_linked-1.0+cu130torch2.10-{TAGS}.whl"
FREE = f"demo_free-2.0+cu130torch2.14-{TAGS}.whl"


@pytest.fixture(scope="session")
def poetry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Poetry from PyPI in an environment of its own."""
    folder = tmp_path_factory.mktemp("poetry")
    subprocess.run(["uv", "venv", "-q", "--python", sys.executable, folder / "env"], check=True)
    done = subprocess.run(
        ["uv", "pip", "install", "-q", "--python", folder / "env/bin/python", "poetry==2.5.1"],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        pytest.skip(f"poetry cannot be fetched: {done.stderr.strip().splitlines()[-1]}")
    return folder / "env/bin/poetry"


@pytest.mark.full
@pytest.mark.network
def test_poetry_locks_and_installs(farm: Farm, poetry: Path, tmp_path: Path) -> None:
    made = farm.publish(LINKED)
    farm.publish(FREE, axis="free")
    farm.build()
    project = tmp_path / "project"
    project.mkdir()
    subprocess.run(["uv", "venv", "-q", "--python", sys.executable, project / ".venv"], check=True)
    low = f"{sys.version_info.major}.{sys.version_info.minor}"
    with serving(farm.site) as server:
        (project / "pyproject.toml").write_text(
            "[project]\n"
            'name = "client"\nversion = "1"\n'
            f'requires-python = ">={low},<{sys.version_info.major}.{sys.version_info.minor + 1}"\n'
            'dependencies = ["demo-linked (==1.0+cu130torch2.10)", "demo-free"]\n'
            "[tool.poetry]\npackage-mode = false\n"
            f'[[tool.poetry.source]]\nname = "farm"\nurl = "{server.url}cu130/torch2.10/simple/"\n'
            'priority = "primary"\n'
        )
        environment = {
            **{name: value for name, value in os.environ.items() if "VIRTUAL_ENV" not in name},
            "POETRY_CACHE_DIR": str(tmp_path / "cache"),
            "POETRY_VIRTUALENVS_IN_PROJECT": "true",
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        }
        for words in (["lock"], ["install", "--no-interaction"]):
            done = subprocess.run(
                [poetry, "--no-ansi", *words],
                cwd=project,
                env=environment,
                check=False,
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stdout + done.stderr
    assert f"sha256:{made.proof.facts.sha256}" in (project / "poetry.lock").read_text()
    installed = {path.name for path in (project / ".venv").rglob("*.dist-info")}
    assert "demo_linked-1.0+cu130torch2.10.dist-info" in installed
    assert "demo_free-2.0+cu130torch2.14.dist-info" in installed
