"""The command line as a whole: verbs, exit codes, streams, and what the user side imports."""

import argparse
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from wheelfarm import errors
from wheelfarm.cli import EXTRA_MODULES, main, whole_parser
from wheelfarm.cli.output import (
    clean,
    print_error_json,
    print_json,
    print_json_rows,
    print_table,
)
from wheelfarm.cli.verbs import VERBS, module_of
from wheelfarm.reading import parse_toml

USER_VERBS = ("host", "resolve", "bundle", "doctor", "toolkit")


def wheelfarm(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "wheelfarm", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def all_errors(base: type[errors.WheelfarmError]) -> list[type[errors.WheelfarmError]]:
    return [base, *(deep for kind in base.__subclasses__() for deep in all_errors(kind))]


def test_an_exit_code_is_a_class() -> None:
    own = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    codes = [
        kind.__dict__["exit_code"]
        for kind in own
        if issubclass(kind, errors.WheelfarmError)
        and "exit_code" in kind.__dict__
        and kind is not errors.WheelfarmError
    ]
    assert sorted(codes) == [1, 2, 3, 4, 64, 130]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([verb, "--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    assert "--json" in text
    assert VERBS[verb].split()[0] in text


def test_every_verb_is_registered() -> None:
    folder = Path(sys.modules["wheelfarm.cli"].__path__[0])
    modules = {
        path.stem
        for path in folder.glob("*.py")
        if "def execute(" in path.read_text(encoding="utf-8")
    }
    assert {module_of(verb) for verb in VERBS} == modules
    assert whole_parser().prog == "wheelfarm"


def test_help_and_complaints_name_arguments_as_the_pages_do() -> None:
    for words, parser in leaves(whole_parser()):
        for action in parser._actions:
            if not action.option_strings and action.choices is None:
                assert isinstance(action.metavar, str), words
                assert action.metavar.isupper(), words
    done = wheelfarm("init")
    assert "the following arguments are required: NAME" in done.stderr


def test_an_unknown_verb_is_a_usage_error() -> None:
    done = wheelfarm("bulid")
    assert done.returncode == 64
    assert "invalid choice" in done.stderr
    assert done.stdout == ""


def test_bad_input_has_no_traceback(tmp_path: Path) -> None:
    done = wheelfarm("verify", str(tmp_path / "none.whl"))
    assert done.returncode in {2, 4}
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("wheelfarm: ")


@pytest.mark.parametrize("verb", VERBS)
def test_a_failure_is_one_json_document_too(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [verb, "--no-such-option", "--json"]
    monkeypatch.setattr(sys, "argv", ["wheelfarm", *argv])
    monkeypatch.setattr("wheelfarm.cli.output._printed", [])
    with pytest.raises(SystemExit) as stopped:
        main(argv)
    assert stopped.value.code == 64
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "wheelfarm.error/1"
    assert document["exit_status"] == 64
    assert document["what"]


@pytest.mark.parametrize(
    ("words", "status", "what"),
    [
        (["verify", "none.whl"], 4, "none.whl"),
        (["plan", "--farm", "nowhere"], 4, "nowhere"),
        (["index", "check", "http://127.0.0.1:1/"], 2, "127.0.0.1"),
        (["grid", "--farm", "faulty"], 4, "3 faults"),
        (["bulid"], 64, "bulid"),
        ([], 64, "no verb"),
    ],
)
def test_an_error_in_json_says_what_its_text_says(
    words: list[str], status: int, what: str, tmp_path: Path
) -> None:
    (tmp_path / "faulty").mkdir()
    (tmp_path / "faulty" / "farm.yml").write_text("platforms: no\npython_min: 3.1\n")
    command = [sys.executable, "-m", "wheelfarm", *words, "--json"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60
    )
    document = json.loads(done.stdout)
    assert done.returncode == document["exit_status"] == status
    assert document["schema"] == "wheelfarm.error/1"
    assert what in document["what"]
    assert document["what"].split("\n")[0] in done.stderr
    assert all(fault["message"] in done.stderr for fault in document["faults"])


def test_an_error_behind_a_document_adds_no_second_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wheelfarm.cli.output._printed", [])
    print_json("wheelfarm.test/1", {"rows": []})
    print_error_json(errors.BadInputError("too late"))
    assert json.loads(capsys.readouterr().out) == {"schema": "wheelfarm.test/1", "rows": []}


def test_common_options_stand_before_and_behind_the_verb() -> None:
    before = wheelfarm("--json", "toolkit", "show", "--python", sys.executable)
    behind = wheelfarm("toolkit", "show", "--python", sys.executable, "--json")
    assert before.returncode == behind.returncode
    assert before.stdout == behind.stdout


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = f"{sys.executable} -m wheelfarm completion bash | head -c 10"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode in {0, 141}


def test_completion_knows_the_verbs() -> None:
    done = wheelfarm("completion", "bash", "--json")
    document = json.loads(done.stdout)
    assert document["schema"] == "wheelfarm.completion/1"
    assert all(verb in document["script"] for verb in VERBS)


@pytest.mark.parametrize("verb", [verb for verb in USER_VERBS if verb in VERBS])
def test_the_user_side_starts_light(verb: str) -> None:
    code = (
        "import sys\nfrom wheelfarm.cli import main\n"
        f"try:\n    main([{verb!r}, '--help'])\nexcept SystemExit:\n    pass\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stderr.split())
    heavy = {"torch", "yaml", "rich", "jinja2", "auditwheel", "urllib3", "elftools", "asyncio"}
    assert not heavy & loaded
    farm = {"recipes", "grid", "plan", "survey", "build", "verify", "store", "engines"}
    assert not {f"wheelfarm.{room}" for room in farm} & loaded


def test_an_index_in_a_folder_needs_nothing_of_the_network(tmp_path: Path) -> None:
    (tmp_path / "diso").mkdir()
    (tmp_path / "diso" / "index.html").write_text("<!DOCTYPE html>")
    code = (
        "import sys\nfrom wheelfarm.cli import main\n"
        f"status = main(['resolve', 'diso', '--no-cache', '--index', {str(tmp_path)!r}])\n"
        "print(status, *sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    status, *loaded = done.stderr.split()
    assert status == "1"
    assert not {"http.client", "email", "ssl"} & set(loaded)


def test_a_short_verb_that_cannot_write_its_answer_says_so() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "wheelfarm", "host", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == 2
    assert "No space left" in done.stderr


def test_foreign_text_cannot_steer_a_terminal() -> None:
    assert clean("a\x1b[2Jb\rc\u202ed") == "a�[2Jb�c�d"


def test_foreign_text_in_an_error_cannot_steer_a_terminal(tmp_path: Path) -> None:
    done = wheelfarm("verify", str(tmp_path / "a\x1b[2J\x9b31m.whl"))
    assert done.returncode == 4
    assert not {"\x1b", "\x9b"} & set(done.stderr)


def test_a_table_has_one_line_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("what", "why"), [("a", "first\n  second\n"), ("b", "c")])
    assert capsys.readouterr().out == "what  why\na     first; second\nb     c\n"


def test_a_name_that_is_no_text_is_printed_escaped(tmp_path: Path) -> None:
    tree = tmp_path / os.fsdecode(b"\xff\xe9")
    tree.mkdir()
    text = "from setuptools import setup\nfrom torch.utils.cpp_extension import CUDAExtension\n"
    text += "setup(ext_modules=[CUDAExtension('a', ['a.cu'])])\n"
    (tree / "setup.py").write_text(text)
    command = [sys.executable, "-m", "wheelfarm", "survey", str(tree), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["torch_axis"] == "linked"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_is_json_in_every_encoding(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    stream = io.BytesIO()
    out = io.TextIOWrapper(stream, encoding=encoding, errors="backslashreplace")
    monkeypatch.setattr(sys, "stdout", out)
    document: dict[str, Any] = {"name": "ö → \udcff", "rows": [{"name": "ö → \udcff"}]}
    print_json("wheelfarm.test/1", document)
    print_json_rows("wheelfarm.test/1", {"name": document["name"]}, {"rows": document["rows"]})
    out.flush()
    text, read = stream.getvalue().decode(encoding), json.JSONDecoder()
    first, end = read.raw_decode(text)
    second, _ = read.raw_decode(text[end:].lstrip())
    assert first == second == {"schema": "wheelfarm.test/1", **document}


@pytest.mark.parametrize(
    ("raised", "status", "words"),
    [
        ("ModuleNotFoundError('no', name='yaml')", 2, "pip install 'wheelfarm[farm]'"),
        ("ModuleNotFoundError('no', name='obstore.store')", 2, "'wheelfarm[objects]'"),
        ("ModuleNotFoundError('no', name='wheelfarm.gone')", 70, "a fault of wheelfarm"),
        ("KeyError('x')", 70, "a fault of wheelfarm"),
        ("PermissionError(13, 'Permission denied', '/the/place')", 2, "/the/place: Permission"),
        ("OSError(28, 'No space left on device')", 2, "next:  free some disk space and run again"),
        ("OSError(122, 'Disk quota exceeded', '/a')", 2, "free some of your quota and run again"),
        ("PermissionError(13, 'Permission denied', '/a', None, '/b')", 2, "/a: /b: Permission"),
        (
            "shutil.Error([('/a', '/b', \"[Errno 28] No space left on device: '/a' -> '/b'\"), 2])",
            2,
            "wheelfarm: /b: No space left on device (and 1 more)\n  next:  free some disk space",
        ),
        ("shutil.Error('what it is')", 2, "wheelfarm: what it is"),
        ("BrokenPipeError(32, 'Broken pipe', '/the/socket')", 2, "/the/socket: Broken pipe"),
    ],
)
def test_a_crash_never_ends_with_the_status_of_a_verdict(
    raised: str, status: int, words: str
) -> None:
    code = f"""
import shutil, sys, wheelfarm.cli as cli
def fail(argv): raise {raised}
cli.main = fail
cli.entry_point()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == status, done.stderr
    assert words in done.stderr
    assert ("Traceback" in done.stderr) == (status == 70)


#: Writes more than a pipe holds, then does its work, then answers with a verdict.
TALKS_AND_WORKS = """
import sys, pathlib, wheelfarm.cli as cli
from wheelfarm.cli.output import print_json
def talk(argv):
    for number in range(5000):
        print("a line of a long table", number)
    print_json("wheelfarm.test/1", {})
    pathlib.Path(sys.argv[1]).write_text("done")
    print("the last line", file=sys.stderr)
    return 1
cli.main = talk
cli.entry_point()
"""


@pytest.mark.parametrize(
    ("redirection", "status", "said"),
    [
        ("| head -n 1", 1, "the last line"),
        (">&-", 1, "the last line"),
        ("2>&1 | head -n 1", 1, ""),
        ("2>&-", 1, ""),
        ("2>/dev/full", 1, ""),
        ("<&- >/dev/null", 1, "the last line"),
    ],
)
def test_who_reads_the_output_changes_neither_work_nor_status(
    tmp_path: Path, redirection: str, status: int, said: str
) -> None:
    work = tmp_path / "work"
    line = f'set -o pipefail; "$@" {redirection}'
    done = subprocess.run(
        ["bash", "-c", line, "bash", sys.executable, "-c", TALKS_AND_WORKS, str(work)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    assert work.read_text() == "done"
    assert done.stderr.strip() == said


def test_a_full_disk_behind_the_output_is_told() -> None:
    command = [sys.executable, "-m", "wheelfarm", "host", "--json"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60
        )
    assert done.returncode == 2
    assert done.stderr == (
        "wheelfarm: standard output: No space left on device\n"
        "  next:  free some disk space and run again\n"
    )


def test_the_extras_modules_are_those_of_the_project() -> None:
    # Modules that only an extra brings: the sentence that names the extra must be true of them.
    project = Path(__file__).parents[2] / "pyproject.toml"
    extras = parse_toml(project.read_text(encoding="utf-8"), "it")["project"][
        "optional-dependencies"
    ]
    distributions = {"yaml": "pyyaml", "dask": "distributed"}
    for module, extra in EXTRA_MODULES.items():
        wanted = distributions.get(module, module)
        assert any(Requirement(text).name == wanted for text in extras[extra]), module


@pytest.mark.parametrize(
    "words",
    [
        ("cache", "gc"),
        ("ci", "render"),
        ("index", "check"),
        ("toolkit", "home"),
        ("upstream", "show"),
        ("plan",),
    ],
)
def test_every_level_takes_the_common_options(words: tuple[str, ...]) -> None:
    done = wheelfarm(*words, "--help")
    assert done.returncode == 0
    assert all(f"--{option}" in done.stdout for option in ("json", "verbose", "quiet"))


def leaves(
    parser: argparse.ArgumentParser, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """Return every verb and sub-verb that takes no further one, with its parser."""
    deeper = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    if not deeper:
        yield words, parser
    for action in deeper:
        for word, child in action.choices.items():
            yield from leaves(child, (*words, word))


def test_an_empty_path_is_a_usage_error_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    # An unset variable in a script; Path("") would be the current folder.
    tried = 0
    for words, parser in leaves(whole_parser()):
        for action in parser._actions:
            option = [*action.option_strings][:1]
            if option and action.type is not Path and action.dest != "store":
                continue
            tried += 1
            with pytest.raises(SystemExit) as stopped:
                main([*words, *option, ""])
            assert stopped.value.code == 64, (words, action.dest)
            text = capsys.readouterr().err
            assert "it is empty; give a value" in text or "invalid choice" in text, (words, text)
    assert tried > 50


def test_quiet_stands_behind_a_sub_verb_too() -> None:
    done = wheelfarm("upstream", "show", "-q", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["schema"] == "wheelfarm.upstream-show/1"


@pytest.mark.parametrize("words", [("verify", "x.whl", "--jobs"), ("logs", "x", "--tail")])
@pytest.mark.parametrize("number", ["0", "-1", "x", "1.5", "", "²"])
def test_a_count_is_one_or_more(words: tuple[str, ...], number: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*words, number])
    assert stopped.value.code == 64
