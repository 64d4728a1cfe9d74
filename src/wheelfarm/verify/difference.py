"""Two wheels' facts side by side: what differs, and whether they are one and the same binary.

For the claim that one binary serves every torch or Python: build it twice and compare.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from wheelfarm.facts.model import BinaryFacts, Linkage, WheelFacts
from wheelfarm.verify.arch_checks import coverage


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One thing that differs: where, what, and its two values (empty: absent)."""

    place: str
    what: str
    first: str
    second: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """The differences of two wheels; ``same_binaries`` where every binary has the same bytes."""

    differences: tuple[Difference, ...]
    same_binaries: bool

    @property
    def identical(self) -> bool:
        """Whether nothing at all differs, name and version included."""
        return not self.differences


def compare(first: WheelFacts, second: WheelFacts) -> Comparison:
    """Return what differs between two wheels.

    Members are matched by their path, those of dist-info and ``.data`` without the version in the
    folder's name.
    """
    found = (
        *_wheels(first, second),
        *_linkages(first.linkage, second.linkage),
        *_members(first, second),
        *_binaries(first, second),
    )
    return Comparison(
        differences=found, same_binaries=_binary_bytes(first) == _binary_bytes(second)
    )


def _wheels(first: WheelFacts, second: WheelFacts) -> Iterator[Difference]:
    yield from _field("wheel", "project", first.project, second.project)
    yield from _field("wheel", "version", first.version, second.version)
    yield from _sets("wheel", "tag", first.tags, second.tags)
    yield from _sets("wheel", "requirement", first.requires_dist, second.requires_dist)
    yield from _field("wheel", "requires-python", first.requires_python, second.requires_python)


def _linkages(first: Linkage, second: Linkage) -> Iterator[Difference]:
    for name in (
        "torch",
        "stable_torch",
        "cxx_abi",
        "cuda_major",
        "toolkit",
        "glibc",
        "glibcxx",
        "needs_driver",
        "python",
        "python_floor",
    ):
        yield from _field("derived", name, getattr(first, name), getattr(second, name))


def _members(first: WheelFacts, second: WheelFacts) -> Iterator[Difference]:
    ours, theirs = _hashes(first), _hashes(second)
    for path in sorted({*ours, *theirs}):
        one, other = ours.get(path, ""), theirs.get(path, "")
        if one != other:
            yield Difference(place=path, what="bytes", first=one[:16], second=other[:16])


def _hashes(facts: WheelFacts) -> dict[str, str]:
    return {_common(member.name): member.sha256 for member in facts.members}


def _common(path: str) -> str:
    top, slash, rest = path.partition("/")
    for suffix in (".dist-info", ".data"):
        if slash and top.endswith(suffix):
            return f"*{suffix}/{rest}"
    return path


def _binaries(first: WheelFacts, second: WheelFacts) -> Iterator[Difference]:
    ours = {_common(binary.path): binary for binary in first.binaries}
    theirs = {_common(binary.path): binary for binary in second.binaries}
    for path in sorted({*ours} & {*theirs}):
        yield from _binary(path, ours[path], theirs[path])


def _binary(path: str, one: BinaryFacts, other: BinaryFacts) -> Iterator[Difference]:
    yield from _field(path, "size", one.size, other.size)
    yield from _field(path, "soname", one.soname, other.soname)
    yield from _sets(path, "needs", one.needed + one.delayed, other.needed + other.delayed)
    yield from _sets(path, "search path", one.rpath + one.runpath, other.rpath + other.runpath)
    versions = [sorted({need.version for need in side.version_needs}) for side in (one, other)]
    yield from _sets(path, "version need", versions[0], versions[1])
    yield from _sets(path, "takes", one.undefined, other.undefined)
    yield from _sets(path, "gives", one.defined, other.defined)
    if one.device_code or other.device_code:
        yield from _field(path, "architectures", coverage(one), coverage(other))


def _binary_bytes(facts: WheelFacts) -> dict[str, str]:
    hashes = _hashes(facts)
    paths = (_common(binary.path) for binary in facts.binaries)
    return {path: hashes.get(path, "") for path in paths}


def _field(place: str, what: str, one: object, other: object) -> Iterator[Difference]:
    if one != other:
        yield Difference(place=place, what=what, first=_text(one), second=_text(other))


def _sets(place: str, what: str, one: Iterable[str], other: Iterable[str]) -> Iterator[Difference]:
    ours, theirs = set(one), set(other)
    for item in sorted(ours - theirs):
        yield Difference(place=place, what=what, first=item, second="")
    for item in sorted(theirs - ours):
        yield Difference(place=place, what=what, first="", second=item)


def _text(value: object) -> str:
    return "" if value is None else str(value)
