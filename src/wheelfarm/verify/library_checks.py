"""Checks of libraries: whose each needed one is, what was packed, search paths, version needs."""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from wheelfarm.facts.libraries import (
    is_driver_library,
    is_torch_library,
    lies_beside_torch,
    nvidia_library,
    owner_of,
)
from wheelfarm.facts.model import BinaryFacts
from wheelfarm.verify.report import Check
from wheelfarm.verify.requirement_checks import requirements_of
from wheelfarm.verify.subject import Subject, judged, matches
from wheelfarm.wording import counted

_ORIGIN = re.compile(r"^\$(?:ORIGIN|\{ORIGIN\})(?:/|$)")
#: A repair tool's mark in a grafted library's name: eight hexadecimal digits.
_GRAFT_MARK = re.compile(r"-[0-9a-f]{8}(?=[.\-])")
#: Folders of site-packages in which torch and NVIDIA's wheels keep their libraries.
_NEIGHBOURS = ("torch/lib/", "nvidia/")


def check_libraries(subject: Subject) -> Check:
    """Class every needed library; an unexplained one fails."""
    fails: list[str] = []
    warnings: list[str] = []
    classes: dict[str, set[str]] = {}
    around = _Around.of(subject)
    for binary in subject.binaries:
        for name in binary.needed + binary.delayed:
            word, finding = _classify(subject, around, name)
            classes.setdefault(word, set()).add(name)
            if not finding:
                continue
            line = f"{binary.path} needs {name}: {finding}"
            (warnings if word == "undeclared" and subject.expected is None else fails).append(line)
    listed = tuple(f"{word}: {', '.join(sorted(classes[word]))}" for word in sorted(classes))
    count = sum(map(len, classes.values()))
    return judged(
        "libraries",
        fails=fails,
        warnings=warnings,
        fine=f"{counted(count, 'needed library', 'needed libraries')}, all explained",
        evidence=listed,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Around:
    """What is there beside a binary: the wheel's own libraries, and what it requires."""

    inside: frozenset[str]
    required: frozenset[str]
    with_torch: bool

    @classmethod
    def of(cls, subject: Subject) -> "_Around":
        required = frozenset(
            canonicalize_name(requirement.name)
            for requirement in requirements_of(subject.facts.requires_dist)
            if requirement.marker is None or "extra" not in str(requirement.marker)
        )
        inside = subject.inside
        return cls(
            # Windows does not mind the case of a DLL's name.
            inside=inside | {name.lower() for name in inside if name.lower().endswith(".dll")},
            required=required,
            with_torch=subject.facts.linkage.torch != "none" or "torch" in required,
        )


def _classify(subject: Subject, around: _Around, name: str) -> tuple[str, str]:
    """Return a needed library's class, and what is wrong with it (empty: nothing)."""
    base = name.rsplit("/", 1)[-1]
    expected = subject.expected
    if base in around.inside or base.lower() in around.inside:
        return "in the wheel", ""
    if expected is not None and matches(base, expected.allowed_needed):
        return "allowed", ""
    owner = "torch" if around.with_torch and lies_beside_torch(base) else owner_of(base)
    if owner == "nvidia":
        return _nvidia(subject, around, base)
    return _outside(owner, base)


def _outside(owner: str | None, base: str) -> tuple[str, str]:
    if owner == "python":
        windows = base.lower().endswith(".dll")
        found = "" if windows else "a module must not link libpython, which may be absent"
        return "Python", found
    if owner is None:
        return "unexplained", "nothing known provides it"
    return owner, ""


def _nvidia(subject: Subject, around: _Around, name: str) -> tuple[str, str]:
    library = nvidia_library(name)
    if library is None:
        return "unexplained", "nothing known provides it"
    if around.with_torch and library.preloaded:
        return "NVIDIA, loaded by torch", ""
    wanted = library.distributions(subject.facts.linkage.cuda_major)
    if around.required.intersection((*wanted, "cuda-toolkit")):
        return "NVIDIA, required", ""
    return "undeclared", f"the wheel should require {wanted[0] if wanted else 'its NVIDIA wheel'}"


def check_driver(subject: Subject) -> Check:
    """Check that no part of the GPU driver was packed into the wheel."""
    fails = [
        f"{member.name} is part of the GPU driver, which must be the user's machine's"
        for member in subject.facts.members
        if is_driver_library(member.name.rsplit("/", 1)[-1])
    ]
    needs = subject.facts.linkage.needs_driver
    fine = "needs a driver to import" if needs else "no part of the driver is inside or linked"
    lines = [f"{entry.path}: {entry.detail}" for entry in subject.evidence("needs_driver")]
    return judged("driver", fails=fails, fine=fine, evidence=lines)


def check_grafted(subject: Subject) -> Check:
    """Check that what a repair tool packed is what was listed, and no CUDA or torch library."""
    grafted = list(_grafted(subject))
    expected = subject.expected
    allowed = () if expected is None else expected.grafted
    fails: list[str] = []
    warnings: list[str] = []
    for path in grafted:
        base = _GRAFT_MARK.sub("", path.rsplit("/", 1)[-1])
        if matches(base, allowed):
            continue
        if is_torch_library(base) or nvidia_library(base) is not None:
            fails.append(f"{path} is a library that torch or an NVIDIA wheel provides")
        elif expected is not None:
            fails.append(f"{path} was packed, but is not in the list of grafted libraries")
    # Strangers lay NVIDIA's libraries into their packages; a farm's wheels are to require them.
    for path, owner in _copied(subject, frozenset(grafted)):
        if matches(path.rsplit("/", 1)[-1], allowed):
            continue
        line = f"{path} is a library that {owner} provides, copied into the package"
        (warnings if owner != "torch" and expected is None else fails).append(line)
    names = [_GRAFT_MARK.sub("", path.rsplit("/", 1)[-1]) for path in grafted]
    warnings += [
        f"the pattern {pattern!r} of grafted libraries matches nothing"
        for pattern in allowed
        if not any(matches(name, (pattern,)) for name in names)
    ]
    return judged(
        "grafted",
        fails=fails,
        warnings=warnings,
        fine=f"{counted(len(grafted), 'library', 'libraries')} packed"
        if grafted
        else "nothing packed",
        evidence=grafted,
    )


def _copied(subject: Subject, grafted: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield libraries of torch's or NVIDIA's that lie in the package, each with its provider."""
    project = canonicalize_name(subject.facts.project or "")
    for binary in subject.binaries:
        base = _GRAFT_MARK.sub("", binary.path.rsplit("/", 1)[-1])
        if binary.path in grafted:
            continue
        if is_torch_library(base) or is_torch_library(binary.soname):
            if project != "torch":
                yield binary.path, "torch"
        elif nvidia_library(base) is not None and not project.startswith(("nvidia-", "torch")):
            yield binary.path, "an NVIDIA wheel"


def _grafted(subject: Subject) -> Iterator[str]:
    for member in subject.facts.members:
        folder, _, base = member.name.rpartition("/")
        is_library = ".so" in base or base.lower().endswith(".dll")
        marked = folder.endswith(".libs") or _GRAFT_MARK.search(base) is not None
        if is_library and marked and not is_driver_library(base):
            yield member.name


def check_search_paths(subject: Subject) -> Check:
    """Check that every search path is relative to the file, exists, and is no build host's."""
    folders = {posixpath.dirname(member.name) for member in subject.facts.members}
    fails: list[str] = []
    warnings: list[str] = []
    count = 0
    for binary in subject.binaries:
        for path in (*binary.rpath, *binary.runpath):
            count += 1
            finding, wrong = _search_path(path, binary, folders)
            if finding:
                (fails if wrong else warnings).append(f"{binary.path}: {finding}")
    return judged(
        "search-paths",
        fails=fails,
        warnings=warnings,
        fine=f"{counted(count, 'search path')}, none of the build host",
    )


def is_relative(path: str) -> bool:
    """Return whether a search path is relative to the file that has it."""
    return _ORIGIN.match(path) is not None


def _search_path(path: str, binary: BinaryFacts, folders: set[str]) -> tuple[str, bool]:
    match = _ORIGIN.match(path)
    if match is None:
        kind = "leads to the build host" if path.startswith("/") else "is the working directory's"
        return f"the search path {path!r} {kind}", True
    target = posixpath.normpath(
        posixpath.join(posixpath.dirname(binary.path), path[match.end() :] or ".")
    )
    if target.startswith(".."):
        return f"the search path {path!r} leaves site-packages", True
    if target in folders or any(folder.startswith(f"{target}/") for folder in folders):
        return "", False
    if target == "." or f"{target}/".startswith(_NEIGHBOURS):
        return "", False
    return f"the search path {path!r} leads to {target}, which is not in the wheel", False


def check_version_needs(subject: Subject) -> Check:
    """Check that each version need is of a needed library: a half rewritten ELF aborts the loader.

    glibc stops with an assertion where DT_VERNEED names a library that DT_NEEDED does not.
    """
    fails = [
        f"{binary.path} needs versions of {library}, which is not among its needed libraries"
        for binary in subject.binaries
        for library in dict.fromkeys(need.library for need in binary.version_needs)
        if library not in binary.needed
    ]
    return judged("version-needs", fails=fails, fine="version needs and needed libraries agree")
