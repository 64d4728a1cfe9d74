"""What the survey is pointed at: folders, archives, git tags; and the verb's output."""

import json
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from wheelfarm.cli import main
from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.survey.source import GitReference, git_reference, opened

SETUP = """\
from setuptools import setup
from torch.utils.cpp_extension import CUDAExtension
setup(ext_modules=[CUDAExtension("k", ["k.cu"])])
"""


def _tree(folder: Path) -> Path:
    (folder / "sub").mkdir(parents=True)
    (folder / "setup.py").write_text("raise SystemExit('never run')\n" + SETUP)
    (folder / "sub" / "setup.py").write_text("from setuptools import setup\nsetup()\n")
    return folder


def _git(folder: Path, *words: str) -> str:
    argv = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run([*argv, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_nothing_of_the_tree_is_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    mark = tmp_path / "ran"
    (tree / "setup.py").write_text(
        f"import os, pathlib\npathlib.Path({str(mark)!r}).write_text('x')\n"
        f"os.system('touch {mark}')\n{SETUP}"
    )
    assert main(["survey", str(tree)]) == 0
    assert capsys.readouterr().out.startswith("linked  (setuptools)\n")
    assert not mark.exists()


def test_the_json_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "setup.py").write_text(SETUP)
    assert main(["survey", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "wheelfarm.survey/1"
    assert (document["torch_axis"], document["build_system"]) == ("linked", "setuptools")
    first = document["evidence"][0]
    assert (first["file"], first["line"], first["shows"]) == ("setup.py", 3, "linked")


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_an_sdist(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k-1").mkdir()
    (tmp_path / "k-1" / "setup.py").write_text(SETUP)
    archive = tmp_path / f"k-1.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as out:
            out.write(tmp_path / "k-1" / "setup.py", "k-1/setup.py")
    else:
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(tmp_path / "k-1", "k-1")
    assert main(["survey", str(archive)]) == 0
    assert "setup.py:3" in capsys.readouterr().out


def test_a_git_tag_and_a_folder_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    repository = _tree(tmp_path / "repository")
    _git(repository, "init", "--quiet", "--initial-branch", "main")
    _git(repository, "config", "uploadpack.allowAnySHA1InWant", "true")
    _git(repository, "add", "--all")
    _git(repository, "commit", "--quiet", "--message", "first")
    _git(repository, "tag", "v1.0")
    url = repository.as_uri()
    assert main(["survey", f"{url}@v1.0", "--subdir", "sub"]) == 0
    assert capsys.readouterr().out.startswith("free")
    commit = _git(repository, "rev-parse", "HEAD")
    with opened(f"{url}@{commit}") as root:
        assert (root / "setup.py").is_file()
    assert not root.exists()
    with pytest.raises(BadInputError, match="could not be fetched"), opened(f"{url}@v9"):
        pass
    with pytest.raises(BadInputError, match="could not be fetched"), opened(f"{url}@main"):
        pass
    with pytest.raises(CouldNotLookError), opened(f"{tmp_path.as_uri()}/none@v1"):
        pass


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://h/o/n@v1.2", GitReference(url="https://h/o/n", ref="v1.2")),
        ("https://h/o/n.git@release/1", GitReference(url="https://h/o/n.git", ref="release/1")),
        ("ssh://git@h/o/n@v1", GitReference(url="ssh://git@h/o/n", ref="v1")),
        ("git@h:o/n@v1", GitReference(url="git@h:o/n", ref="v1")),
        ("./folder@v1", None),
        ("https://h/o/n", None),
    ],
)
def test_git_reference(text: str, expected: GitReference | None) -> None:
    assert git_reference(text) == expected


@pytest.mark.parametrize("text", ["no-such-folder", "https://h/o/n", ""])
def test_what_names_nothing_is_bad_input(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if text:
        with pytest.raises(BadInputError, match="no folder, no archive"), opened(text):
            pass


def test_a_file_that_is_no_archive(tmp_path: Path) -> None:
    path = tmp_path / "k.tar.gz"
    path.write_bytes(b"not an archive")
    with pytest.raises(BadInputError, match="no readable archive"), opened(str(path)):
        pass


def test_links_that_leave_the_tree_are_not_followed(tmp_path: Path) -> None:
    from wheelfarm.survey import survey_tree

    (tmp_path / "secret.py").write_text(SETUP)
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "setup.py").symlink_to(tmp_path / "secret.py")
    assert survey_tree(tree).torch_axis == "unknown"
    with pytest.raises(BadInputError, match="no folder"):
        survey_tree(tree, subdir="../tree")
