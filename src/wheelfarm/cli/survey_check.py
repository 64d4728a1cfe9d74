"""``wheelfarm survey --check FARM``: recipes against their sources, after the patches."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from wheelfarm.cli.output import clean, print_json, print_table
from wheelfarm.cli.survey_result import as_document

if TYPE_CHECKING:
    from wheelfarm.build.survey_check import Comparison


def execute_check(arguments: argparse.Namespace) -> int:
    """Print how each recipe's torch axis stands to its source; 1 where one is wrong."""
    import tempfile

    from wheelfarm.build.survey_check import compare_recipe
    from wheelfarm.cli.farm_option import chosen_recipes
    from wheelfarm.errors import CouldNotLookError, NegativeVerdictError
    from wheelfarm.http import Client
    from wheelfarm.recipes.load import load_farm
    from wheelfarm.recipes.lock import load_lock
    from wheelfarm.recipes.pypi import index_url

    farm = load_farm(Path(arguments.source))
    lock = load_lock(farm)
    found: list[Comparison] = []
    for recipe in chosen_recipes(farm, arguments.package):
        with tempfile.TemporaryDirectory(prefix="wheelfarm-survey-") as name:
            found.append(
                compare_recipe(recipe, lock, Path(name), client=Client(), index=index_url())
            )
    _print(found, as_json=arguments.json)
    if any(item.status == "wrong" for item in found):
        return NegativeVerdictError.exit_code
    unseen = any(item.status == "could not look" for item in found)
    return CouldNotLookError.exit_code if unseen else 0


def _print(found: "list[Comparison]", *, as_json: bool) -> None:
    if as_json:
        document = [
            {
                "package": item.package,
                "stated": item.stated if item.is_stated else None,
                "status": item.status,
                "sentence": item.sentence,
                "by_patches": item.by_patches,
                "before": None if item.before is None else as_document(item.before),
                "after": None if item.after is None else as_document(item.after),
            }
            for item in found
        ]
        print_json("wheelfarm.survey-check/1", {"recipes": document})
        return
    rows = [
        (
            item.package,
            item.stated if item.is_stated else f"({item.stated})",
            "-" if item.after is None else item.after.torch_axis,
            item.status,
            item.sentence,
        )
        for item in found
    ]
    print_table(("package", "recipe", "source", "status", ""), rows)
    for item in found:
        for evidence in () if item.after is None else item.after.evidence[:3]:
            print(f"  {item.package}: {clean(str(evidence))}")
