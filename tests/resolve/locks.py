"""What the tests of locks share: the installers, host files, a user's own files, pixi's schema."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fake_environment import site_packages
from wheelfarm.cli import main
from wheelfarm.reading import parse_toml

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"
CELL = f"{TAG}-{TAG}-linux_x86_64.whl"
UV = Path(sys.executable).parent / "uv"

Writer = Callable[..., str]


def uv(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    argv = [str(UV), *map(str, words), "--no-cache"]
    return subprocess.run(argv, check=False, capture_output=True, text=True, cwd=cwd)


def pip(python: Path, *words: object) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "pip", "--python", str(python), *map(str, words)]
    return subprocess.run(argv, check=False, capture_output=True, text=True)


def installed(python: Path) -> list[str]:
    return sorted(path.name for path in site_packages(python).glob("*.dist-info"))


def validate(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    import jsonschema

    document = parse_toml(text, "pixi.toml")
    validator = jsonschema.validators.validator_for(schema)(schema)
    faults = [error.message for error in validator.iter_errors(document)]
    assert faults == []
    return document


def host_file(path: Path, *words: str, capsys: pytest.CaptureFixture[str]) -> Path:
    capsys.readouterr()
    main(["host", "--json", "--platform", "linux_x86_64", "--python-version", PYTHON, *words])
    path.write_text(capsys.readouterr().out, encoding="utf-8")
    return path


PROJECT = f"""\
# my project
[project]
name = "mine"
version = "1"
requires-python = "=={PYTHON}.*"
dependencies = [
    "diso>=0.1", # the mesh extractor
]

[tool.other]
kept = true # as it is
"""


PIXI = """\
# the user's own words
[workspace]
name = "mine"
channels = ["conda-forge"]
platforms = ["linux-64"] # one machine

[pypi-dependencies]
numpy = "*" # kept
"""
