"""What a user asks for, from a file: requirements, ``pyproject.toml`` or ``comfy-env.toml``."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from wheelfarm.errors import BadInputError
from wheelfarm.reading import Reader, read_text, read_toml
from wheelfarm.resolve.asking import Asking
from wheelfarm.resolve.backends import read_indexes
from wheelfarm.resolve.choose import parse_wanted
from wheelfarm.values import replace

if TYPE_CHECKING:
    from packaging.markers import Marker

    from wheelfarm.resolve.candidate import Wanted

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
_NESTED = re.compile(r"(-r|--requirement|-c|--constraint)[ =]?\s*(\S+)")
#: A path or an address, and no name, as pip tells them apart.
_PLACE = re.compile(r"[/\\]|://|\.(?:whl|zip|tar\.gz)$|^\.{1,2}$")
_LOGIN = re.compile(r"://[^/\s]*@")
_COMMENT = re.compile(r"(?:^|\s)#.*$")


def read_input(path: Path) -> Asking:
    """Read a file by its name; BadInputError where it is none of those that are known."""
    if path.name == "comfy-env.toml" or path.name.startswith("comfy-env"):
        return _comfy_env(path)
    if path.suffix == ".toml":
        return _pyproject(path)
    if path.suffix in {".txt", ".in"}:
        return _requirements(path)
    message = f"{path} is no requirements file, pyproject.toml or comfy-env.toml"
    raise BadInputError(message)


def _requirements(path: Path) -> Asking:
    """Read a requirements file with the files that it names.

    What the index does not serve is left to the installer; constraints narrow what is asked for.
    """
    found = _Requirements()
    found.read(path)
    wanted = list(found.wanted)
    for each in found.wanted:
        wanted += [
            replace(
                each, specifier=other.specifier, marker=_both_markers(each.marker, other.marker)
            )
            for other in found.constraints
            if other.name == each.name
        ]
    notes = []
    if found.left:
        notes.append(f"left to the installer, of {path}: {', '.join(found.left)}")
    if found.hashed:
        notes.append(f"the hashes in {path} are of other files, and do not count here")
    if found.options:
        options = ", ".join(dict.fromkeys(found.options))
        notes.append(f"{options} of {path} is for an installer, and does not count here")
    return Asking(wanted=tuple(wanted), notes=tuple(notes), prereleases=found.prereleases)


class _Requirements:
    """What a requirements file and those that it names ask for."""

    def __init__(self) -> None:
        self.wanted: list[Wanted] = []
        self.constraints: list[Wanted] = []
        self.left: list[str] = []
        self.options: list[str] = []
        self.hashed = False
        self.prereleases = False
        self._seen: set[Path] = set()

    def read(self, path: Path, *, constraint: bool = False) -> None:
        """Read a file; one that was read before is passed over."""
        if path.resolve() in self._seen:
            return
        self._seen.add(path.resolve())
        for line in read_text(path).replace("\\\n", " ").splitlines():
            text = _COMMENT.sub("", line)
            word = _OPTION.sub("", text).strip()
            nested = _NESTED.match(word)
            if nested is not None:
                if "://" in nested[2]:
                    address = _LOGIN.sub("://", nested[2])
                    message = f"{path} names {address}, and only files on this disk are read"
                    raise BadInputError(message, hint="download it, and name the file")
                other = path.parent / nested[2]
                self.read(other, constraint=constraint or nested[1] in {"-c", "--constraint"})
            elif word.startswith("-") and not word.startswith(("-e", "--editable")):
                self._option(word)
            elif word.startswith("-") or " @ " in word or _PLACE.search(word.partition(";")[0]):
                self.left += [] if constraint else [_LOGIN.sub("://", word)]
            elif word:
                self.hashed = self.hashed or "--hash" in text
                wanted = replace(parse_wanted(word), optional=True)
                (self.constraints if constraint else self.wanted).append(wanted)

    def _option(self, word: str) -> None:
        """Take an option of pip's that stands on a line of its own, or note that it counts not."""
        if word == "--pre":
            self.prereleases = True
        else:
            self.options.append(re.split(r"[ =]", word, maxsplit=1)[0])


def _both_markers(one: "Marker | None", other: "Marker | None") -> "Marker | None":
    from packaging.markers import Marker

    if one is None or other is None:
        return one or other
    return Marker(f"({one}) and ({other})")


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
