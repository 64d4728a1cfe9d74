"""What a user asks for, from a file: requirements, ``pyproject.toml`` or ``comfy-env.toml``."""

import re
from collections.abc import Mapping
from pathlib import Path

from wheelfarm.errors import BadInputError
from wheelfarm.reading import Reader, read_text, read_toml
from wheelfarm.resolve.asking import Asking
from wheelfarm.resolve.backends import read_indexes
from wheelfarm.resolve.candidate import Wanted
from wheelfarm.resolve.choose import parse_wanted
from wheelfarm.values import replace

#: Tables of a comfy-env.toml that are pixi's own and go into a pixi.toml as they stand.
_PIXI_TABLES = (
    "dependencies",
    "pypi-dependencies",
    "pypi-options",
    "target",
    "tasks",
    "activation",
    "system-requirements",
    "feature",
    "environments",
    "workspace",
)
_OPTION = re.compile(r"\s--(?:hash|config-settings?|global-option)\b.*$")
_COMMENT = re.compile(r"(?:^|\s)#.*$")


def read_input(path: Path) -> Asking:
    """Read a file by its name; BadInputError where it is none of those that are known."""
    if path.name == "comfy-env.toml" or path.name.startswith("comfy-env"):
        return _comfy_env(path)
    if path.suffix == ".toml":
        return _pyproject(path)
    if path.suffix in {".txt", ".in"}:
        return Asking(wanted=_requirements(path))
    message = f"{path} is no requirements file, pyproject.toml or comfy-env.toml"
    raise BadInputError(message)


def _requirements(path: Path, seen: frozenset[Path] = frozenset()) -> tuple[Wanted, ...]:
    """Read a requirements file; what the index does not serve is left to the installer."""
    wanted: list[Wanted] = []
    text = read_text(path).replace("\\\n", " ")
    for line in text.splitlines():
        word = _OPTION.sub("", _COMMENT.sub("", line)).strip()
        nested = re.match(r"(?:-r|--requirement)[ =]?\s*(\S+)", word)
        if nested is not None:
            other = path.parent / nested[1]
            if other.resolve() not in seen:
                wanted += _requirements(other, seen | {path.resolve()})
        elif word and not word.startswith("-") and " @ " not in word and "://" not in word:
            wanted.append(replace(parse_wanted(word), optional=True))
    return tuple(wanted)


def _pyproject(path: Path) -> Asking:
    tool = read_toml(path).get("tool", {})
    data = tool.get("wheelfarm") if isinstance(tool, Mapping) else None
    if data is None:
        message = f"{path} has no [tool.wheelfarm]"
        raise BadInputError(message, hint='write: [tool.wheelfarm] packages = ["diso"]')
    reader = Reader(data, f"{path} [tool.wheelfarm]")
    reader.raw("lock")
    asking = Asking(
        wanted=reader.each("packages", parse_wanted),
        indexes=read_indexes(reader),
        releases=reader.string("releases", ""),
        choose_torch=reader.boolean("choose-torch", default=False),
        prereleases=reader.boolean("pre", default=False),
    )
    reader.done()
    reader.finish()
    return asking


def _comfy_env(path: Path) -> Asking:
    data = read_toml(path)
    reader = Reader(data, str(path))
    cuda = reader.table("cuda")
    if cuda is None:
        message = f"{path} has no [cuda] packages"
        raise BadInputError(message)
    wanted = cuda.each("packages", parse_wanted)
    reader.finish()
    carried = {name: data[name] for name in _PIXI_TABLES if name in data}
    return Asking(wanted=wanted, carried=carried)
