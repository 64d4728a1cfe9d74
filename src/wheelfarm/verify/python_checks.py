"""Checks of the Python ABI: modules against the wheel's tags, by file name and by symbols."""

import re
from collections.abc import Iterator

from wheelfarm.errors import BadInputError
from wheelfarm.facts.model import BinaryFacts
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor
from wheelfarm.verify.report import Check
from wheelfarm.verify.subject import Subject, judged
from wheelfarm.wording import counted

#: The tag that CPython puts in a module's file name: ``.cpython-311-…``, ``.cp311-win_amd64``.
_SUFFIX = re.compile(r"\.(?:cpython-|cp)(\d)(\d+)(t?)-?([\w-]*)\.(?:so|pyd)$")
#: The end of that tag -> the kind and machine of the modules which that Python imports.
_TRIPLETS = {
    "x86_64-linux-gnu": ("elf", "x86_64"),
    "x86_64-linux-musl": ("elf", "x86_64"),
    "aarch64-linux-gnu": ("elf", "aarch64"),
    "aarch64-linux-musl": ("elf", "aarch64"),
    "darwin": ("macho", ""),
    "win_amd64": ("pe", "x86_64"),
    "win_arm64": ("pe", "aarch64"),
    "win32": ("pe", "i386"),
}
_EXACT_DLL = re.compile(r"python3\d+t?\.dll", re.IGNORECASE)


def check_python_abi(subject: Subject) -> Check | None:
    """Check that each module's real ABI is the one that the wheel's tags promise."""
    tag = _tag(subject)
    modules = [binary for binary in subject.binaries if binary.python is not None]
    if tag is None or not modules:
        return None
    fails = [line for binary in modules for line in _module(binary, tag)]
    linkage = subject.facts.linkage
    if linkage.python == "stable" and linkage.python_floor is not None:
        found = f"uses the stable ABI, from Python {linkage.python_floor}"
    else:
        found = "uses the stable ABI" if linkage.python == "stable" else "uses the full ABI"
    return judged(
        "python-abi", fails=fails, fine=f"{counted(len(modules), 'module')} for {tag}: {found}"
    )


def _tag(subject: Subject) -> PythonTag | None:
    name = subject.facts.name
    if name is None:
        return None
    try:
        return name.python
    except BadInputError:
        return None


def _module(binary: BinaryFacts, tag: PythonTag) -> Iterator[str]:
    use = binary.python
    if use is None:
        return
    match = _SUFFIX.search(binary.path)
    if match is not None:
        own = PythonTag("exact", Minor(int(match[1]), int(match[2])), bool(match[3]))
        if tag.axis != "exact" or own != tag:
            yield f"{binary.path} is named for {own} alone, the wheel for {tag}"
            return
        named = _TRIPLETS.get(match[4])
        if named is not None and named != (binary.kind, binary.machine):
            yield (
                f"{binary.path} is named for {match[4]} and made for {binary.machine}: "
                "no Python imports it"
            )
            return
    if tag.axis == "exact":
        return
    if use.unstable:
        yield f"{binary.path} takes {use.unstable[0]}, which is not in the stable ABI"
    elif tag.version is not None and use.floor is not None and use.floor > tag.version:
        yield (
            f"{binary.path} takes {use.floor_symbol}, in the stable ABI since Python {use.floor}; "
            f"the wheel claims {tag.version}"
        )
    for name in filter(_EXACT_DLL.fullmatch, binary.needed):
        yield f"{binary.path} needs {name}, which ties it to one Python; the wheel claims {tag}"


def check_free_threaded(subject: Subject) -> Check | None:
    """Check that modules were built for the CPython (with or without the lock) of the tag."""
    tag = _tag(subject)
    known = [
        binary
        for binary in subject.binaries
        if binary.python is not None and binary.python.free_threaded is not None
    ]
    if tag is None or not known:
        return None
    words = {True: "free-threaded Python", False: "Python with the lock"}
    fails = [
        f"{binary.path} was built for {words[bool(binary.python.free_threaded)]}, "
        f"the wheel is for {tag}"
        for binary in known
        if binary.python is not None and binary.python.free_threaded != tag.free_threaded
    ]
    return judged("free-threaded", fails=fails, fine=f"built for {words[tag.free_threaded]}")
