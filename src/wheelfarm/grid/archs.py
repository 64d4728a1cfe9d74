"""GPU architectures of a cell: chosen from recipe and policy, normalised, and checked.

Nothing compiles for an architecture that the cell's nvcc or torch does not know: a build would
fail hours later, or quietly build for another.
"""

from wheelfarm.model.arch import Arch, ArchList, ArchRequest
from wheelfarm.model.axis import TorchAxis
from wheelfarm.model.platform import LINUX_AARCH64, Platform
from wheelfarm.model.versions import Minor
from wheelfarm.recipes.model import FarmPolicy, Recipe
from wheelfarm.upstream.model import UpstreamFacts

#: CUDA 13 gave Thor another number (CUDA 13.0 release notes): both names mean one GPU.
_RENAMED = {Arch(10, 1): Arch(11, 0)}
_RENAMED_BACK = {new: old for old, new in _RENAMED.items()}
_RENAMED_IN = Minor(13, 0)


def policy_archs(
    policy: FarmPolicy, cuda: Minor, torch: Minor, platform: Platform
) -> ArchList | None:
    """Return the policy's architectures, normalised; None where the farm deliberately has none.

    An exception of this (CUDA, torch) comes before the CUDA line's row. aarch64 has tables of its
    own.
    """
    aarch64 = platform == LINUX_AARCH64
    table = policy.arch_policy_aarch64 if aarch64 else policy.arch_policy
    exceptions = policy.arch_exceptions_aarch64 if aarch64 else policy.arch_exceptions
    if cuda not in table:
        return None
    return normalised(exceptions.get((cuda, torch), table[cuda]))


def recipe_archs(recipe: Recipe, cuda: Minor, torch: Minor, platform: Platform) -> ArchList | None:
    """Return the recipe's own architectures, normalised; None where it leaves them to the policy.

    The order is: its combination, its CUDA line, the package. aarch64 has fields of its own.
    """
    combinations = recipe.arch_list_by_combination
    aarch64 = platform == LINUX_AARCH64
    if combinations:
        own = combinations.get(f"{cuda}/{torch}/{platform}")
        if own is None and not aarch64:
            own = combinations.get(f"{cuda}/{torch}")
        if own is not None:
            return normalised(own)
    by_cuda = recipe.arch_list_by_cuda_aarch64 if aarch64 else recipe.arch_list_by_cuda
    package = recipe.arch_list_aarch64 if aarch64 else recipe.arch_list
    own = by_cuda.get(cuda, package)
    return None if own is None else normalised(own)


def normalised(archs: ArchList) -> ArchList:
    """Return a list whose highest plain architecture carries PTX, so that later GPUs are served.

    A list of only ``a`` and ``f`` entries gets none: their PTX serves no later GPU.
    """
    plain = [arch for arch in archs.archs if not arch.suffix]
    if not plain or max(plain) in archs.ptx:
        return archs
    top = max(plain)
    return ArchList(
        tuple(ArchRequest(entry.arch, entry.ptx or entry.arch == top) for entry in archs.entries)
    )


def check_archs(
    archs: ArchList, facts: UpstreamFacts, cuda: Minor, torch: Minor, axis: TorchAxis
) -> str:
    """Return why a list cannot be built with this CUDA and torch; empty where it can."""
    compiler = facts.known_to_compiler(cuda)
    if compiler is None:
        return f"no nvcc of CUDA {cuda} is known, so its architectures cannot be checked"
    for arch in archs.archs:
        if arch not in compiler:
            return _not_compiled(arch, facts, cuda)
    if axis == "free":
        # Nothing of torch's takes part in the build, so only the compiler's word counts.
        return ""
    known = facts.known_to_torch(torch)
    for arch in archs.archs:
        if known is None:
            return f"torch {torch} is older than any whose architectures are known"
        if arch not in known:
            return _not_known(arch, known, torch)
    return ""


def _not_compiled(arch: Arch, facts: UpstreamFacts, cuda: Minor) -> str:
    other = _RENAMED.get(arch.plain) if cuda >= _RENAMED_IN else _RENAMED_BACK.get(arch.plain)
    if other is not None:
        renamed = Arch(other.major, other.minor, arch.suffix)
        return f"{arch} is not known to CUDA {cuda}: use {renamed} for CUDA {cuda.major}"
    having = facts.compilers_with(arch)
    if not having:
        return f"{arch} is an architecture of no known CUDA"
    if max(having) < cuda:
        last = max(having)
        return f"{arch} is gone in CUDA {cuda.major}: the last with it is CUDA {last.major}.x"
    needed = min(version for version in having if version > cuda)
    return f"{arch} needs CUDA {needed} or later, not {cuda}"


def _not_known(arch: Arch, known: frozenset[Arch], torch: Minor) -> str:
    if arch.suffix == "f":
        flag = f"-gencode=arch=compute_{arch.target},code=sm_{arch.target}"
        return (
            f"torch's arch list has no family targets such as {arch}: take it out of the list and "
            f"give nvcc_flags: {flag}"
        )
    other = _RENAMED.get(arch.plain) or _RENAMED_BACK.get(arch.plain)
    if other is not None and other in known:
        return f"torch {torch} does not know {arch}: it knows {other}"
    return f"torch {torch} does not know the architecture {arch}"
