"""Checks of where a wheel's files go: into its own place, and nothing that runs unasked."""

import fnmatch
import re
from collections.abc import Iterator

from packaging.utils import canonicalize_name

from wheelfarm.verify.report import Check
from wheelfarm.verify.subject import Subject, judged
from wheelfarm.wording import counted

#: Top-level names of site-packages whose files another wheel must not bring, with the projects
#: (patterns) that may. A file there replaces theirs without a word: installers do not look.
_OWNERS = {
    "torch": ("torch", "pytorch"),
    "torchgen": ("torch", "pytorch"),
    "functorch": ("torch", "pytorch", "functorch"),
    "triton": ("*triton*",),
    "nvidia": ("nvidia*", "cuda*"),
    "numpy": ("numpy",),
    "pip": ("pip",),
    "setuptools": ("setuptools",),
    "pkg_resources": ("setuptools",),
    "_distutils_hack": ("setuptools",),
}
#: Modules that every start of Python imports, where they are there.
_AT_START = frozenset({"sitecustomize", "usercustomize"})
_DATA_SITE = re.compile(r"lib/python[\d.]+t?/(?:site|dist)-packages/|Lib/site-packages/")


def check_places(subject: Subject) -> Check:
    """Check that no file goes where another project's is, and what Python would run unasked."""
    fails: list[str] = []
    warnings: list[str] = []
    project = canonicalize_name(subject.facts.project or "")
    for member in subject.facts.members:
        place = _placed(member.name)
        top, _, rest = place.partition("/")
        owners = _OWNERS.get(top.removesuffix(".py") if not rest else top, ())
        if owners and not any(fnmatch.fnmatchcase(project, pattern) for pattern in owners):
            fails.append(f"{member.name} goes where {top.removesuffix('.py')}'s own files are")
        elif top.partition(".")[0] in _AT_START:
            fails.append(f"{member.name} would run whenever Python starts")
        elif not rest and top.endswith(".pth"):
            warnings.append(f"{member.name} is read whenever Python starts, and may run code")
    fails += _one_on_windows(subject)
    return judged(
        "places",
        fails=fails,
        warnings=warnings,
        fine=f"{counted(len(subject.facts.members), 'member')}, all in the wheel's own place",
    )


def _placed(name: str) -> str:
    """Return where a member goes below site-packages; empty for what goes elsewhere."""
    top, _, rest = name.partition("/")
    if not top.endswith(".data"):
        return name
    kind, _, place = rest.partition("/")
    if kind in {"purelib", "platlib"}:
        return place
    match = _DATA_SITE.match(place) if kind == "data" else None
    return "" if match is None else place[match.end() :]


def _one_on_windows(subject: Subject) -> Iterator[str]:
    """Yield names that differ in case alone, where the wheel is for Windows too."""
    name = subject.facts.name
    if name is None or not any(tag == "any" or tag.startswith("win") for tag in name.platforms):
        return
    seen: dict[str, str] = {}
    for path in dict.fromkeys(member.name for member in subject.facts.members):
        first = seen.setdefault(path.casefold(), path)
        if first != path:
            yield f"{first} and {path} are one file on Windows"
