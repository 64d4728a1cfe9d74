"""What a survey says of a tree: the verdict, the evidence for it, and the condition it rests on."""

from dataclasses import dataclass
from typing import Literal, get_args

from wheelfarm.model.axis import TorchAxis

#: The answers of a survey. The first four are torch axes of a recipe. ``mixed``: the tree ships
#: binaries of several of these kinds. ``optional``: whether a torch extension is built hangs on the
#: condition. ``unknown``: the build files do not say, or cannot be followed.
SurveyVerdict = Literal["linked", "stable_abi", "abi_flag", "free", "mixed", "optional", "unknown"]
SURVEY_VERDICTS: tuple[SurveyVerdict, ...] = get_args(SurveyVerdict)

#: What one piece of evidence shows. ``none`` is context: it decides nothing by itself.
Shows = Literal["linked", "stable_abi", "abi_flag", "free", "unknown", "none"]


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Evidence:
    """One place of a build file and what it shows.

    ``file`` is relative to the tree's root, with ``/``; ``line`` counts from 1 and is 0 where the
    evidence is the file as a whole. ``sentence`` is for people. ``condition`` is the source text
    of what must hold for this place to take effect, empty where nothing must.
    """

    file: str
    line: int
    sentence: str
    shows: Shows
    condition: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        suffix = f" [if {self.condition}]" if self.condition else ""
        return f"{place}: {self.sentence}{suffix}"


@dataclass(frozen=True, kw_only=True, slots=True)
class SurveyResult:
    """The verdict of one tree.

    ``build_system`` names what a plain build runs (``setuptools``, ``scikit-build-core``, ...), and
    is empty where there are no build files. ``condition`` is filled for ``optional`` alone.
    """

    torch_axis: SurveyVerdict
    evidence: tuple[Evidence, ...]
    build_system: str
    condition: str = ""

    @property
    def recipe_axis(self) -> TorchAxis | None:
        """The torch axis that a recipe of this tree should state; None where people must decide.

        A tree that ships several kinds needs as many wheels as its neediest one.
        """
        match self.torch_axis:
            case "linked" | "stable_abi" | "abi_flag" | "free":
                return self.torch_axis
            case "mixed":
                kinds = {item.shows for item in self.evidence}
                return "linked" if "linked" in kinds else None
            case "optional" | "unknown":
                return None

    def __str__(self) -> str:
        return self.torch_axis
