"""The command line as a whole: verbs, exit codes, streams, and what the user side imports."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from wheelfarm import errors
from wheelfarm.cli import main, whole_parser
from wheelfarm.cli.output import clean
from wheelfarm.cli.verbs import VERBS, module_of

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


def test_foreign_text_cannot_steer_a_terminal() -> None:
    assert clean("a\x1b[2Jb\rc\u202ed") == "a�[2Jb�c�d"
