"""Facts that were read once, kept by the wheel's hash: the second look at a wheel is cheap."""

import json
import logging
from pathlib import Path

from wheelfarm import files
from wheelfarm.errors import BadInputError
from wheelfarm.facts.document import facts_from_dict, facts_to_dict
from wheelfarm.facts.model import Problem, WheelFacts
from wheelfarm.facts.wheel import read_wheel
from wheelfarm.identity import code_identity
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.places import cache_root
from wheelfarm.reading import read_json
from wheelfarm.values import replace

logger = logging.getLogger(__name__)


def facts_folder() -> Path:
    """Return the folder of the cache, under the user's: one for each state of the readers' code."""
    return cache_root() / "facts" / code_identity("facts", "model")


def cached_facts(wheel: Path, folder: Path) -> WheelFacts:
    """Return a wheel's facts, from the cache where its bytes were read before.

    A broken entry is read anew; a cache that cannot be written is no failure. Raises as
    ``read_wheel`` does.
    """
    if not wheel.is_file():
        return read_wheel(wheel)
    digest = files.sha256(wheel)
    entry = folder / digest[:2] / f"{digest}.json"
    if entry.is_file():
        try:
            return _named(facts_from_dict(read_json(entry), str(entry)), wheel)
        except BadInputError as error:
            logger.info("the cached facts of %s are not usable: %s", wheel.name, error)
    facts = read_wheel(wheel)
    try:
        files.write_text(entry, json.dumps(facts_to_dict(facts), separators=(",", ":")))
    except OSError as error:
        logger.info("the facts of %s could not be kept: %s", wheel.name, error)
    return facts


def _named(facts: WheelFacts, wheel: Path) -> WheelFacts:
    """Return cached facts under the file's present name: the bytes are the same, it need not be."""
    problems = [problem for problem in facts.problems if problem.kind != "name"]
    name = None
    try:
        name = WheelName.parse(wheel.name)
    except BadInputError as error:
        problems.insert(0, Problem(kind="name", message=error.what))
    return replace(facts, file_name=wheel.name, name=name, problems=tuple(problems))
