"""What a Python says of itself: to its own process, to a child's, and where it says nothing."""

import sys
import sysconfig
from pathlib import Path

import pytest

from wheelfarm import interpreter
from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.run import run
from wheelfarm.values import replace


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """The interpreter of an environment that is not this process's."""
    run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"])
    return interpreter.python_of(tmp_path / "bare")


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_a_child_says_of_itself_what_this_process_does(bare: Path) -> None:
    here, child = interpreter.here(), interpreter.ask(bare)
    assert child.executable == bare
    assert child.prefix == bare.parents[1]
    own = replace(here, executable=child.executable, prefix=child.prefix, path=child.path)
    users = child.user_site, child.disabled_user_site
    assert replace(own, user_site=users[0], disabled_user_site=users[1]) == child
    assert str(here.version) == ".".join(map(str, sys.version_info[:3]))
    assert child == interpreter.ask(bare.parents[1])  # the environment's folder


def test_a_build_is_told_the_folders_of_headers_and_packages(bare: Path) -> None:
    asked = interpreter.ask(bare, isolated=True, folders=True)
    assert asked.include == Path(sysconfig.get_path("include"))
    assert asked.site_packages in asked.path
    assert asked.site_packages.is_relative_to(bare.parents[1])


def test_what_lies_in_the_working_folder_is_not_imported(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "site", "sysconfig"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(7)", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    asked = interpreter.ask(bare, folders=True)
    assert tmp_path not in asked.path


@pytest.mark.skipif(sys.version_info < (3, 11), reason="PYTHONSAFEPATH is new in 3.11")
def test_a_search_path_without_the_working_folder_stays_whole(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = interpreter.ask(bare).path
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    assert interpreter.ask(bare).path == usual


def test_only_an_isolated_question_ignores_the_users_own_path(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "own"))
    assert tmp_path / "own" in interpreter.ask(bare).path
    assert tmp_path / "own" not in interpreter.ask(bare, isolated=True).path


def test_a_site_that_talks_does_not_hide_the_answer(bare: Path) -> None:
    site = interpreter.ask(bare, folders=True).site_packages
    (site / "talk.pth").write_text("import sys; print('hello')\n", encoding="utf-8")
    assert interpreter.ask(bare).tag == interpreter.here().tag


def test_what_is_no_python_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=f"there is no Python interpreter at {tmp_path}/none"):
        interpreter.ask(tmp_path / "none")
    with pytest.raises(BadInputError, match="there is no Python interpreter at"):
        interpreter.ask(tmp_path)
    broken = script(tmp_path / "broken", "echo 'no libpython' >&2; exit 127")
    with pytest.raises(CouldNotLookError, match="did not answer as a Python 3 would") as caught:
        interpreter.ask(broken)
    assert caught.value.cause == "no libpython"
    silent = script(tmp_path / "silent", "exit 0")
    with pytest.raises(CouldNotLookError, match="did not answer"):
        interpreter.ask(silent)
    babbling = script(tmp_path / "babbling", "echo '{\"version\": 3}'")
    with pytest.raises(BadInputError, match="version: expected a string"):
        interpreter.ask(babbling)


def test_another_python_than_cpython_is_refused(tmp_path: Path) -> None:
    changed = f'exec {sys.executable} -c \'import sys; sys.implementation.name = "pypy"\n\'"$2" x'
    with pytest.raises(BadInputError, match="is pypy; compiled wheels are for CPython"):
        interpreter.ask(script(tmp_path / "pypy", changed))


def test_versions_of_what_is_installed_are_read_from_names(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, names in {
        first: ("Torch_Ext-1.0.dist-info", "old-2.0-py3.11.egg-info", "nothing"),
        second: ("torch_ext-0.9.dist-info", "other-1.dist-info"),
    }.items():
        for name in names:
            (folder / name).mkdir(parents=True)
    asked = replace(interpreter.here(), path=(tmp_path / "absent", first, second))
    assert asked.installed() == {"torch-ext": "1.0", "old": "2.0", "other": "1"}
    assert asked.metadata_folder("torch-ext") == first / "Torch_Ext-1.0.dist-info"
    assert asked.metadata_folder("absent") is None


@pytest.mark.parametrize(
    ("said", "word"),
    [
        (("linux", "x86_64", 64), "linux_x86_64"),
        (("linux", "x86_64", 32), "linux_i686"),
        (("linux", "arm64", 64), "linux_aarch64"),
        (("win32", "AMD64", 64), "windows_amd64"),
        (("win32", "AMD64", 32), "windows_x86"),
        (("darwin", "arm64", 64), "macosx_arm64"),
        (("freebsd14", "amd64", 64), "freebsd14_amd64"),
    ],
)
def test_a_platforms_word(said: tuple[str, str, int], word: str) -> None:
    assert interpreter.platform_word(*said) == word
