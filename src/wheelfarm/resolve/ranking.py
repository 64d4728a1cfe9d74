"""How good an accepted wheel is, and what a user should know of it."""

from packaging.version import Version

from wheelfarm.model.versions import parse_version
from wheelfarm.resolve import tags
from wheelfarm.resolve.candidate import Candidate, Target
from wheelfarm.resolve.coverage import built_for, by_ptx, is_pure
from wheelfarm.resolve.rules import required_python


def remarks(candidate: Candidate, target: Target) -> tuple[str, ...]:
    """Return what a user should know of an accepted wheel."""
    said = []
    line, ours = built_for(candidate), target.accelerator
    if line is not None and ours is not None and line != ours and not is_pure(candidate):
        what = "states only its CUDA major" if line.minor is None else "its libraries are torch's"
        said.append(f"built for {line}, torch is for {ours}: same major, {what}")
    if line is None and ours is not None and ours.kind == "cuda" and not candidate.proven:
        said.append("nothing says for which CUDA it is")
    if candidate.entry.modules is None and ours is not None and ours.kind == "cuda":
        said.append("the index does not say for which GPUs it has code")
    if candidate.entry.torch_axis is None and candidate.label.torch is None:
        said.append("nothing says for which torch it is")
    if candidate.entry.runtime_jit:
        said.append("compiles kernels at run time: it needs nvcc or a C++ compiler there")
    if candidate.entry.glibc is None and tags.promises_nothing(candidate.serves.platforms):
        said.append("its platform tag promises nothing of glibc")
    stated = candidate.entry.requires_python
    if stated and required_python(stated) is None:
        said.append(f"its Requires-Python is not valid, and counts for nothing: {stated}")
    if candidate.entry.yanked is not None:
        said.append("it was yanked, and is taken as its version is pinned")
    if by_ptx(candidate, target):
        said.append("for this GPU it has PTX only, which the driver translates at first use")
    return tuple(said)


def coarse_rank(candidate: Candidate, target: Target) -> tuple[bool, Version]:
    """Return what ranks first: the exact line, then the version."""
    line = built_for(candidate)
    exact = line is None or line == target.accelerator or is_pure(candidate)
    return exact, parse_version(candidate.serves.version_text.partition("+")[0])


def rank(candidate: Candidate, target: Target) -> tuple[object, ...]:
    """Return how good an accepted wheel is; the greatest wins, and no two files are equal.

    One that a lock holds stays; else the exact line first, then the newest version, then proven
    facts, machine code over PTX, the latest build. What is left is decided by the name, so that
    the order of pages never matters.
    """
    return (
        candidate.entry.sha256 in target.preferred,
        *coarse_rank(candidate, target),
        candidate.entry.yanked is None,
        candidate.proven,
        not by_ptx(candidate, target),
        not tags.promises_nothing(candidate.serves.platforms),
        candidate.name.build_number,
        candidate.version,
        str(candidate.name),
        candidate.entry.url,
    )
