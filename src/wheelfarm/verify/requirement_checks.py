"""Checks of what the wheel requires: the curated list, and torch as policy says."""

from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from wheelfarm.model.versions import Minor
from wheelfarm.verify.report import Check
from wheelfarm.verify.subject import Subject, judged


def requirements_of(texts: tuple[str, ...]) -> tuple[Requirement, ...]:
    """Return the requirements that can be read."""
    found = []
    for text in texts:
        try:
            found.append(Requirement(text))
        except InvalidRequirement:
            continue
    return tuple(found)


def _normal(text: str) -> str:
    """Return a requirement in one spelling, so that lists compare by meaning."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return text
    extras = ",".join(sorted(map(canonicalize_name, requirement.extras)))
    specifiers = ",".join(sorted(map(str, requirement.specifier)))
    marker = "" if requirement.marker is None else str(requirement.marker)
    name = canonicalize_name(requirement.name)
    return f"{name}[{extras}]{specifiers}{requirement.url or ''};{marker}"


def check_requirements(subject: Subject) -> Check | None:
    """Check that the wheel requires exactly what was curated."""
    expected = subject.expected
    if expected is None or expected.requires_dist is None:
        return None
    wanted = {_normal(text): text for text in expected.requires_dist}
    found = {_normal(text): text for text in subject.facts.requires_dist}
    fails = [f"the wheel requires {found[key]!r}, which is not in the list" for key in found]
    fails = [line for key, line in zip(found, fails, strict=True) if key not in wanted]
    fails += [f"the wheel lacks {wanted[key]!r}" for key in wanted if key not in found]
    return judged("requirements", fails=fails, fine=f"requires the curated {len(wanted)} projects")


def check_torch_pin(subject: Subject) -> Check | None:
    """Check that the requirement of torch admits what the binary can run on, and no more."""
    facts, cell = subject.facts, subject.cell
    torch = [
        requirement
        for requirement in requirements_of(facts.requires_dist)
        if canonicalize_name(requirement.name) == "torch"
        and (requirement.marker is None or "extra" not in str(requirement.marker))
    ]
    fails = [f"{r} would put a torch of its own in the place of the user's" for r in torch if r.url]
    if fails:
        return judged("torch-pin", fails=fails, fine="")
    if cell is None:
        return _stranger(subject, torch)
    release = _release(subject)
    fails = [
        f"{r} excludes the cell's torch {release}" for r in torch if release not in r.specifier
    ]
    fails += _against_policy(subject, torch)
    words = ", ".join(map(str, torch)) or "no torch"
    return judged("torch-pin", fails=fails, fine=f"requires {words}")


def _release(subject: Subject) -> Version:
    expected, cell = subject.expected, subject.cell
    if expected is not None and expected.torch_release is not None:
        return Version(expected.torch_release.public)
    return Version("0" if cell is None else f"{cell.torch}.0")


def _stranger(subject: Subject, torch: list[Requirement]) -> Check | None:
    linkage = subject.facts.linkage
    words = ", ".join(map(str, torch)) or "no torch"
    if linkage.torch == "none":
        return None
    if linkage.torch == "stable_abi":
        floor = linkage.stable_torch
        low = [r for r in torch if floor is not None and _admits_below(r, floor)]
        warnings = [f"{r} admits torch before {floor}, which lacks its symbols" for r in low]
        return judged("torch-pin", warnings=warnings, fine=f"requires {words}")
    loose = not any(_one_minor(requirement) for requirement in torch)
    warnings = [f"linked to one torch minor, and yet requires {words}"] if loose else []
    return judged("torch-pin", warnings=warnings, fine=f"requires {words}")


def _one_minor(requirement: Requirement) -> bool:
    """Return whether a requirement admits releases of one torch minor alone."""
    minors = [minor for major in (1, 2) for minor in _probes(major)]
    return sum(_admits(requirement, minor) for minor in minors) <= 1


def _probes(major: int) -> Iterator[Minor]:
    yield from (Minor(major, minor) for minor in range(40))


def _admits(requirement: Requirement, minor: Minor) -> bool:
    return any(
        requirement.specifier.contains(f"{minor}.{patch}", prereleases=True) for patch in range(9)
    )


def _admits_below(requirement: Requirement, floor: Minor) -> bool:
    lower = (minor for minor in _probes(floor.major) if minor < floor)
    return any(_admits(requirement, minor) for minor in lower)


def _against_policy(subject: Subject, torch: list[Requirement]) -> Iterator[str]:
    expected, cell = subject.expected, subject.cell
    if expected is None or cell is None or expected.requirements is None:
        return
    if expected.requirements == "blank":
        if subject.facts.requires_dist:
            yield f"policy is blank, and yet the wheel requires {subject.facts.requires_dist[0]}"
        return
    if expected.requirements != "pinned":
        return
    if expected.torch_axis == "linked" and not any(map(_one_minor, torch)):
        yield f"linked to torch {cell.torch}, but no requirement pins that minor"
    if expected.torch_axis == "stable_abi":
        floor = expected.from_torch or subject.facts.linkage.stable_torch or cell.torch
        if not torch:
            yield f"needs torch from {floor} on, but requires no torch"
        for requirement in torch:
            if _admits_below(requirement, floor):
                yield f"{requirement} admits torch before {floor}"
