"""Build requirements of one source tree, in a folder of their own over the shared environment.

Build isolation would put them under a random path, which ends up in every compiler call and makes
each build a stranger to the compiler cache (cuda-python#2220); here the path is the cell's own.
"""

import logging
import re
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from wheelfarm.build.environment import BASE_REQUIREMENTS, Environment, install_or_fail
from wheelfarm.errors import BadInputError
from wheelfarm.reading import Reader, read_toml

logger = logging.getLogger(__name__)

#: What the environment itself decides; a source tree never chooses its own torch or CUDA.
_DECIDED = re.compile(r"torch|nvidia-.*|cuda-.*|triton")


def build_requirements(tree: Path, extra: tuple[str, ...]) -> tuple[str, ...]:
    """Return what the tree's build needs beside the environment: pyproject's list and the recipe's.

    Requirements on torch or CUDA are left out, since the cell decides them. Raises BadInputError
    for what is no requirement.
    """
    declared: tuple[str, ...] = ()
    pyproject = tree / "pyproject.toml"
    if pyproject.is_file():
        system = Reader(read_toml(pyproject), str(pyproject)).table("build-system")
        declared = () if system is None else system.strings("requires")
    wanted: dict[str, str] = {}
    for text in (*declared, *extra):
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            message = f"{text!r} is no requirement: {error}"
            raise BadInputError(message, hint="extra_deps takes PEP 508 requirements") from error
        name = canonicalize_name(requirement.name)
        if _DECIDED.fullmatch(name) or (requirement.marker and not requirement.marker.evaluate()):
            continue
        if name in BASE_REQUIREMENTS and not requirement.specifier:
            continue
        wanted[f"{name}{requirement.specifier}"] = text
    return tuple(wanted.values())


def install_requirements(
    environment: Environment, requirements: tuple[str, ...], folder: Path, *, log: Path
) -> None:
    """Install requirements into ``folder``; BuildError where pip cannot."""
    if not requirements:
        folder.mkdir(parents=True, exist_ok=True)
        return
    words = ("--prefer-binary", "--target", str(folder), *requirements)
    what = f"the build requirements {', '.join(requirements)}"
    install_or_fail(environment.python, words, what, log=log)
