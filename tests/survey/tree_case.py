"""One small source tree with the verdict that it must get: the row of the survey's tables."""

from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from wheelfarm.survey import SurveyVerdict, survey_tree


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeCase:
    """A tree as file -> text, the folder to survey, and what must come out.

    ``shows`` are ``file:line`` places that must stand in the evidence and show the verdict (or, for
    ``mixed`` and ``optional``, a torch extension). ``condition`` is a part of the condition.
    """

    name: str
    files: dict[str, str]
    verdict: SurveyVerdict
    subdir: str = ""
    shows: tuple[str, ...] = ()
    build_system: str = "setuptools"
    condition: str = ""
    says: str = ""

    def write(self, root: Path) -> Path:
        """Write the tree under ``root``."""
        for name, text in self.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text).lstrip("\n"))
        return root


def check(case: TreeCase, root: Path) -> None:
    """Survey a written tree and compare verdict, places, condition and build system."""
    result = survey_tree(case.write(root), subdir=case.subdir)
    story = "\n".join([result.torch_axis, result.condition, *map(str, result.evidence)])
    assert result.torch_axis == case.verdict, story
    assert result.build_system == case.build_system, story
    kinds = {case.verdict} - {"mixed", "optional"} or {"linked", "stable_abi", "abi_flag"}
    places = {f"{item.file}:{item.line}" for item in result.evidence if item.shows in kinds}
    assert set(case.shows) <= places, story
    assert case.condition in result.condition, story
    assert bool(result.condition) == (case.verdict == "optional"), story
    assert case.says in story
    assert result.evidence, "a verdict without evidence"
    for item in result.evidence:
        _check_place(root, item.file, item.line)


def _check_place(root: Path, file: str, line: int) -> None:
    """Check that a place of the evidence exists in the tree."""
    if line:
        text = (root / file).read_text()
        assert line <= len(text.splitlines()), f"{file}:{line}"
