"""Whatever stands in a tree: the survey answers, says where, and never takes silence for free."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.survey.cmake_cases import SCIKIT, SCIKIT_CASES
from tests.survey.condition_cases import CONDITIONS
from tests.survey.decoy_cases import DECOYS
from tests.survey.idiom_cases import IDIOMS
from wheelfarm.survey import SURVEY_VERDICTS, SurveyResult, survey_tree
from wheelfarm.survey.cmake_lexer import statements

BUILD_FILES = (
    "setup.py", "setup.cfg", "pyproject.toml", "CMakeLists.txt", "meson.build", "build.toml",
    "BUILD.bazel", "setup.py.in", ".gitmodules",
)  # fmt: skip
RELAXED = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
SCRIPTS = [
    text for case in (*IDIOMS, *DECOYS, *CONDITIONS) for name, text in case.files.items()
    if name == "setup.py"
]  # fmt: skip
LISTS = [case.files.get("CMakeLists.txt", "") for case in SCIKIT_CASES]


def _survey(files: dict[str, bytes]) -> SurveyResult:
    with TemporaryDirectory() as name:
        root = Path(name)
        for file, data in files.items():
            (root / file).write_bytes(data)
        result = survey_tree(root)
    assert result.torch_axis in SURVEY_VERDICTS
    assert result.evidence
    assert bool(result.condition) == (result.torch_axis == "optional")
    return result


@RELAXED
@given(st.dictionaries(st.sampled_from(BUILD_FILES), st.binary(max_size=400), max_size=4))
def test_any_bytes_are_answered(files: dict[str, bytes]) -> None:
    _survey(files)


@RELAXED
@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,6}\.(py|cu|cpp|md|txt)", fullmatch=True).filter(
            lambda name: name not in BUILD_FILES and name != "setup.py"
        ),
        st.binary(max_size=60),
        max_size=4,
    )
)
def test_a_tree_without_build_files_is_never_free(files: dict[str, bytes]) -> None:
    result = _survey(files)
    assert (result.torch_axis, result.build_system) == ("unknown", "")


@RELAXED
@given(st.sampled_from(SCRIPTS), st.data())
def test_a_damaged_script_is_answered(script: str, data: st.DataObject) -> None:
    lines = script.splitlines()
    kept = data.draw(st.lists(st.sampled_from(lines), max_size=len(lines)))
    _survey({"setup.py": "\n".join(kept).encode()})


@RELAXED
@given(st.sampled_from(LISTS), st.data())
def test_a_damaged_cmake_project_is_answered(text: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(text)))
    lines = data.draw(st.permutations(text[:cut].splitlines()))
    _survey({"CMakeLists.txt": "\n".join(lines).encode(), "pyproject.toml": SCIKIT.encode()})


def test_parentheses_without_a_name_are_no_command() -> None:
    found = statements("a(1)\n(2)\n()\nb(3)", "CMakeLists.txt")
    assert [(item.name, item.line) for item in found] == [("a", 1), ("b", 4)]


@given(st.text(max_size=200))
def test_the_cmake_lexer_takes_any_text(text: str) -> None:
    for statement in statements(text, "CMakeLists.txt"):
        assert 1 <= statement.line <= text.count("\n") + 1


@pytest.mark.parametrize(
    "script",
    [
        "x = 'a' * 10 ** 9\nfrom setuptools import setup\nsetup()\n",
        "x = [1]\nfor _ in range(99): x = x + x\nfrom setuptools import setup\nsetup()\n",
        "def f(n):\n    return f(n + 1)\nf(0)\nfrom setuptools import setup\nsetup()\n",
        "while True:\n    pass\nfrom setuptools import setup\nsetup()\n",
        "import setup\nfrom setuptools import setup\nsetup()\n",
        "x = " + "(" * 300 + "1" + ")" * 300 + "\n",
        "x = " + "not " * 5000 + "1\n",
        "class A(A): pass\nfrom setuptools import setup\nsetup()\n",
        "import os\nos.environ['X'] = 'y'\nexec('exec(open(__file__).read())')\n",
    ],
    ids=["big", "doubling", "recursion", "endless", "itself", "nested", "nots", "own base", "exec"],
)
def test_hostile_scripts_end(script: str, tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text(script)
    assert survey_tree(tmp_path).torch_axis in {"free", "unknown"}
