"""What a survey found, as JSON and for people."""

from typing import TYPE_CHECKING, Any

from wheelfarm.cli.output import clean

if TYPE_CHECKING:
    from wheelfarm.survey.model import SurveyResult


def as_document(result: "SurveyResult") -> dict[str, Any]:
    """Return a result as the JSON document shows it."""
    return {
        "torch_axis": result.torch_axis,
        "recipe_axis": result.recipe_axis,
        "condition": result.condition,
        "build_system": result.build_system,
        "evidence": [
            {
                "file": item.file,
                "line": item.line,
                "shows": item.shows,
                "sentence": item.sentence,
                "condition": item.condition,
            }
            for item in result.evidence
        ],
    }


def print_result(result: "SurveyResult") -> None:
    """Print a result for people."""
    print(f"{result.torch_axis}  ({result.build_system or 'no build files'})")
    if result.condition:
        print(f"  if {clean(result.condition)}")
    for item in result.evidence:
        print(f"  {item.shows:<10}  {clean(str(item))}")
