"""Readers of the parts that recipes and farm policies have in common."""

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import TypeVar

from packaging.version import Version

from wheelfarm.errors import BadInputError
from wheelfarm.model.arch import ArchList
from wheelfarm.model.platform import Platform
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor, is_release, parse_version
from wheelfarm.reading import Reader

#: Linux takes no longer name (bytes); no farm has a longer path.
_LONGEST_NAME = 255
_LONGEST_PATH = 1000

K = TypeVar("K")
T = TypeVar("T")

_PAIR = re.compile(r"(\d+\.\d+)/(\d+\.\d+)", re.ASCII)


def torch_minor(text: str) -> Minor:
    """Read ``2.10`` or a release's ``2.11.0`` as a torch minor."""
    return torch_row(text)[0]


def torch_row(text: str) -> tuple[Minor, Version | None]:
    """Read a torch as a row names it: its minor, and the release where a patch is given."""
    version = parse_version(text, "torch version")
    if not is_release(version) or version.local or not 2 <= len(version.release) <= 3:  # noqa: PLR2004
        message = f"expected a torch release such as '2.9' or '2.9.1', found {text!r}"
        raise BadInputError(message)
    release = version if len(version.release) == 3 else None  # noqa: PLR2004 - with a patch
    return Minor.of(version), release


def python_minor(text: str) -> Minor:
    """Read a Python of two numbers."""
    return Minor.parse(text)


def glibc_floor(text: str) -> Minor:
    """Read a version of glibc, whose first number has been 2 since 1997."""
    found = Minor.parse(text)
    if found.major != 2:  # noqa: PLR2004 - as the docstring says
        message = f"{text} is no version of glibc; these are 2.17, 2.28 and so on"
        raise BadInputError(message)
    return found


def cuda_pair(text: str) -> tuple[Minor, Minor]:
    """Read ``12.8/2.9``: a CUDA line and a torch minor."""
    match = _PAIR.fullmatch(text)
    if match is None:
        message = f"expected CUDA and torch such as '12.8/2.9', found {text!r}"
        raise BadInputError(message)
    return Minor.parse(match[1]), Minor.parse(match[2])


def combination_key(text: str) -> str:
    """Check ``12.8/2.9`` or ``12.8/2.9/linux_aarch64`` and return it in one spelling."""
    pair, _, platform = text.rpartition("/")
    if _PAIR.fullmatch(text):
        pair, platform = text, ""
    cuda, torch = cuda_pair(pair)
    return f"{cuda}/{torch}" + (f"/{Platform.parse(platform)}" if platform else "")


def parsed_list(reader: Reader, key: str, parse: Callable[[str], T]) -> tuple[T, ...]:
    """Read a list of strings, each by ``parse``; a value twice is a fault."""
    found: list[T] = []
    for index, text in enumerate(reader.strings(key)):
        value = reader.attempt(_calling(parse, text), key, index)
        if value is None:
            continue
        if value in found:
            reader.fault(f"{text!r} stands here twice", key, index)
            continue
        found.append(value)
    return tuple(found)


def parsed_map(
    reader: Reader, key: str, parse_key: Callable[[str], K], parse: Callable[[str], T]
) -> dict[K, T]:
    """Read a table of strings, its keys and its values each by a function."""
    table = reader.table(key)
    found: dict[K, T] = {}
    for name in table or ():
        if table is None:
            break
        name_value = table.attempt(_calling(parse_key, name), name)
        value = table.parsed(name, parse)
        if name_value is not None and value is not None:
            found[name_value] = value
    return found


def platforms(reader: Reader, key: str) -> tuple[Platform, ...]:
    """Read a list of platforms, by identifier or by the recipe's word."""
    return parsed_list(reader, key, Platform.parse)


def pythons(reader: Reader, key: str) -> tuple[PythonTag, ...]:
    """Read a list of Python versions."""
    return parsed_list(reader, key, PythonTag.of_version)


def arch_map(reader: Reader, key: str) -> dict[Minor, ArchList]:
    """Read architectures per CUDA line."""
    return parsed_map(reader, key, Minor.parse, ArchList.parse)


def usable_path(text: str) -> str:
    """Return why a text cannot be a path; empty where it can."""
    if not text or not text.isprintable():
        return f"{text!r} is no path"
    longest = max(len(part.encode()) for part in PurePosixPath(text).parts or ("",))
    return "the path is too long" if len(text) > _LONGEST_PATH or longest > _LONGEST_NAME else ""


def why_not_inside(text: str) -> str:
    """Return why a path does not lie inside the folder it starts from; empty where it does."""
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts or "\\" in text:
        return f"{text!r} does not lie inside its folder"
    return usable_path(text)


def _calling(parse: Callable[[str], T], text: str) -> Callable[[], T]:
    return lambda: parse(text)
