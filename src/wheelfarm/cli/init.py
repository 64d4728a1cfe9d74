"""``wheelfarm init NAME``: a recipe from a project's name on PyPI, in a new or existing farm."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from wheelfarm.cli.farm_option import add_farm_option
from wheelfarm.cli.output import print_json

if TYPE_CHECKING:
    from wheelfarm.http import Client
    from wheelfarm.recipes.new import AxisFinding
    from wheelfarm.recipes.pypi import Sdist


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    add_farm_option(parser)
    parser.add_argument(
        "name", metavar="NAME", help="NAME, or NAME==VERSION, of a project with an sdist"
    )
    parser.add_argument(
        "--links-torch",
        choices=("true", "false"),
        help="state whether the binaries link torch (default: what the survey finds)",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Write the recipe (and a policy where there is none), lock it, and print what was written."""
    from wheelfarm import files
    from wheelfarm.cli.farm_option import chosen_recipes, farm_of
    from wheelfarm.errors import BadInputError
    from wheelfarm.http import Client
    from wheelfarm.recipes.load import POLICY_FILE, recipe_path
    from wheelfarm.recipes.lock import load_lock
    from wheelfarm.recipes.lock_file import save_lock
    from wheelfarm.recipes.new import policy_text, recipe_text
    from wheelfarm.recipes.patch_digest import patch_digest
    from wheelfarm.recipes.pypi import index_url
    from wheelfarm.recipes.resolve_source import resolve_source
    from wheelfarm.upstream.facts import committed_facts
    from wheelfarm.values import replace

    client, index = Client(), index_url()
    name, sdist = _find(arguments.name, client, index)
    path = recipe_path(arguments.farm, name)
    if path.exists():
        message = f"there is a recipe of {name} already: {path}"
        raise BadInputError(message, hint="edit it, or remove it first")
    finding = _finding(arguments.links_torch, sdist)
    written = [path]
    if not (arguments.farm / POLICY_FILE).exists():
        written.insert(0, arguments.farm / POLICY_FILE)
        files.write_text(arguments.farm / POLICY_FILE, policy_text(committed_facts()))
    files.write_text(path, recipe_text(name, sdist, finding))
    farm = farm_of(arguments)
    recipe = chosen_recipes(farm, [name])[0]
    entry = resolve_source(recipe, client=client, index=index)
    if finding.survey:
        entry = replace(
            entry,
            survey=finding.survey,
            evidence=finding.evidence,
            patches=patch_digest(recipe),
        )
    save_lock(farm, load_lock(farm).with_entries({recipe.package: entry}))
    written.append(arguments.farm / farm.lock_path.name)
    _report(arguments, written, sdist, finding)
    return 0


def _find(text: str, client: "Client", index: str) -> "tuple[str, Sdist]":
    from packaging.utils import InvalidName, canonicalize_name

    from wheelfarm.errors import BadInputError
    from wheelfarm.recipes.pypi import find_sdist, newest_sdist
    from wheelfarm.recipes.source import pypi_pin

    if "==" in text:
        pin = pypi_pin(text)
        return pin.project, find_sdist(pin.project, pin.version, client=client, index=index)
    try:
        name = canonicalize_name(text, validate=True)
    except InvalidName as error:
        message = f"{text!r} is no project's name"
        raise BadInputError(message, hint="give NAME or NAME==VERSION as on PyPI") from error
    return name, newest_sdist(name, client=client, index=index)


def _finding(stated: str | None, sdist: "Sdist") -> "AxisFinding":
    """Return what is known of the torch axis: stated, surveyed, or open. Nothing is guessed."""
    import tempfile

    from wheelfarm.engines.read_source import first_evidence
    from wheelfarm.engines.source_tree import fetch_tree
    from wheelfarm.errors import BadInputError
    from wheelfarm.recipes.lock import LockedArchive
    from wheelfarm.recipes.new import AxisFinding, surveyed
    from wheelfarm.survey import survey_tree

    if stated is not None:
        return AxisFinding(
            line=f"links_torch: {stated}", verdict="Stated", evidence="by the one who ran init"
        )
    if sdist.sha256 is None:
        message = f"the index gives no sha256 for {sdist.file_name}"
        raise BadInputError(message)
    source = LockedArchive(url=sdist.url, file_name=sdist.file_name, sha256=sdist.sha256)
    with tempfile.TemporaryDirectory(prefix="wheelfarm-init-") as name:
        result = survey_tree(fetch_tree(source, Path(name)))
    return surveyed(result, first_evidence(result))


def _report(
    arguments: argparse.Namespace, written: list[Path], sdist: "Sdist", finding: "AxisFinding"
) -> None:
    if arguments.json:
        document = {
            "written": [str(path) for path in written],
            "sdist": sdist.file_name,
            "sha256": sdist.sha256,
            "links_torch_stated": bool(finding.line),
        }
        print_json("wheelfarm.init/1", document)
        return
    print(f"{sdist.file_name}  sha256 {sdist.sha256}")
    for path in written:
        print(f"wrote {path}")
    if not finding.line:
        print("decide links_torch in the recipe, then: wheelfarm lint")
