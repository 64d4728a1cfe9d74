"""A ``pyproject.toml`` that is pixi's manifest: its part at ``tool.pixi``, by pixi's own rules."""

from pathlib import Path
from typing import Any

import pytest

from tests.resolve.locks import PROJECT, PYTHON, Writer, validate
from wheelfarm.cli import main
from wheelfarm.errors import BadInputError, UsageError
from wheelfarm.reading import parse_toml

MINE = f"""\
# my project
[project]
name = "mine"
version = "1"
requires-python = ">={PYTHON}"
dependencies = ["numpy"] # kept

[tool.pixi.workspace]
channels = ["conda-forge"]
platforms = ["linux-64"] # one machine

[tool.pixi.pypi-dependencies]
mine = {{ path = ".", editable = true }}
"""


def manifest(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return pixi's part of a project, held to pixi's schema with the name that pixi gives it."""
    document = parse_toml(text, "pyproject.toml")
    pixi: dict[str, Any] = document["tool"]["pixi"]
    import tomlkit

    named = {**pixi, "workspace": {"name": document["project"]["name"], **pixi["workspace"]}}
    validate(tomlkit.dumps(named), schema)
    return pixi


def test_a_manifest_of_pixi_is_written_as_one(
    write: Writer, schema: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(MINE, encoding="utf-8")
    text = write("pyproject.toml")
    pixi = manifest(text, schema)
    assert set(pixi["pypi-dependencies"]) == {"mine", "torch", "diso", "gsplat", "cuda-toolkit"}
    assert pixi["dependencies"]["python"] == f"{PYTHON}.*"
    assert pixi["workspace"]["platforms"] == [
        {"platform": "linux-64", "glibc": "2.31", "cuda": "13"}
    ]
    assert parse_toml(text, "p")["project"] == parse_toml(MINE, "p")["project"]
    assert "# my project" in text
    assert "# one machine" in text
    assert main(["resolve", "--check", str(path)]) == 0
    assert write("pyproject.toml") == text


def test_a_feature_of_a_project(write: Writer, schema: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(MINE, encoding="utf-8")
    pixi = manifest(write("pyproject.toml", "--feature", "cuda"), schema)
    assert "diso" in pixi["feature"]["cuda"]["pypi-dependencies"]
    assert pixi["environments"]["cuda"] == {"features": ["cuda"]}
    assert set(pixi["pypi-dependencies"]) == {"mine"}


def test_a_project_without_pixi_is_given_its_part(
    write: Writer, schema: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "pyproject.toml"
    mine = PROJECT.replace('    "diso>=0.1", # the mesh extractor\n', "")
    path.write_text(mine, encoding="utf-8")
    text = write("pyproject.toml", "--format", "pixi")
    assert text.startswith(mine)
    # pixi looks for these very letters before it reads the file.
    assert "\n[tool.pixi.workspace]\n" in text
    assert "name" not in manifest(text, schema)["workspace"]


@pytest.mark.parametrize(
    ("lines", "words", "place"),
    [
        ('dependencies = ["Diso>=0.1"]\n', (), "project.dependencies"),
        (
            '[project.optional-dependencies]\ncuda = ["diso"]\n',
            ("--feature", "cuda"),
            "project.optional-dependencies.cuda",
        ),
        (
            'dependencies = ["diso"]\n[dependency-groups]\ncuda = ["torch>=2"]\n',
            ("--feature", "cuda"),
            "dependency-groups.cuda",
        ),
    ],
)
def test_what_pixi_would_find_twice_is_refused(
    write: Writer, tmp_path: Path, lines: str, words: tuple[str, ...], place: str
) -> None:
    path = tmp_path / "pyproject.toml"
    mine = MINE.replace('dependencies = ["numpy"] # kept\n', lines)
    path.write_text(mine, encoding="utf-8")
    with pytest.raises(BadInputError, match=f"{place} names"):
        write("pyproject.toml", *words)
    assert path.read_text(encoding="utf-8") == mine


def test_a_manifest_of_two_tools_asks_for_a_format(write: Writer, tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(MINE + "\n[tool.uv]\npackage = true\n", encoding="utf-8")
    with pytest.raises(UsageError, match="of pixi and of uv"):
        write("pyproject.toml")
    assert (
        "diso"
        in parse_toml(write("pyproject.toml", "--format", "pixi"), "p")["tool"]["pixi"][
            "pypi-dependencies"
        ]
    )
    path.write_text(MINE + "\n[tool.uv]\npackage = true\n", encoding="utf-8")
    text = write("pyproject.toml", "--format", "uv")
    assert "diso" not in parse_toml(text, "p")["tool"]["pixi"]["pypi-dependencies"]


def test_other_tables_of_a_comfy_file_go_into_pixis_part(write: Writer, tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(MINE, encoding="utf-8")
    comfy = tmp_path / "comfy-env.toml"
    comfy.write_text(
        '[cuda]\npackages = ["diso"]\n[dependencies]\nffmpeg = "*"\n', encoding="utf-8"
    )
    document = parse_toml(write("pyproject.toml", "--from", str(comfy), packages=()), "p")
    assert document["tool"]["pixi"]["dependencies"]["ffmpeg"] == "*"
    assert "dependencies" not in document
