"""The rules: each says why a candidate does not serve a target, or that it has nothing against it.

A failure names its aspect, so that a report can tell the one change that would help. Rules are
pure: facts in, sentence out.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from wheelfarm.errors import BadInputError
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.axis import TorchAxis
from wheelfarm.model.versions import parse_version
from wheelfarm.resolve import tags
from wheelfarm.resolve.backends import BACKENDS
from wheelfarm.resolve.candidate import Candidate, Failure, Target, Wanted, label_of
from wheelfarm.resolve.coverage import built_for, is_pure, toolkit_of, uncovered
from wheelfarm.resolve.drivers import runs_machine_code
from wheelfarm.resolve.torch_rules import abi_serves, is_other_torch, torch_allowed, torch_serves

Rule = Callable[[Candidate, Wanted, Target], "Failure | None"]


def asked_version(candidate: Candidate, wanted: Wanted, target: Target) -> Failure | None:
    """Hold the version asked for (PEP 440); pre-releases only where they were asked for."""
    return _version_failure(candidate.version, wanted, target)


def _version_failure(version: Version, wanted: Wanted, target: Target) -> Failure | None:
    pre = target.prereleases or bool(wanted.specifier.prereleases)
    if wanted.specifier and not wanted.specifier.contains(version, prereleases=True):
        asks = f"{wanted.because} needs" if wanted.because else "asked for"
        reason = f"is {version}, {asks} {wanted.specifier}"
        return Failure(aspect="version", reason=reason, change="another version of it")
    if version.is_prerelease and not pre:
        return Failure(
            aspect="version",
            reason=f"{version} is a pre-release",
            change="ask for pre-releases with --pre",
        )
    return None


def not_yanked(candidate: Candidate, wanted: Wanted, target: Target) -> Failure | None:
    """Refuse a yanked file (PEP 592), unless its very version is pinned."""
    del target
    yanked = candidate.entry.yanked
    if yanked is None or _pins(wanted.specifier, candidate.version):
        return None
    why = f": {yanked}" if yanked else ""
    return Failure(aspect="yanked", reason=f"was yanked{why}", change="pin it with == or ===")


def _pins(specifier: SpecifierSet, version: Version) -> bool:
    return any(
        each.operator in {"==", "==="}
        and not each.version.endswith(".*")
        and Version(each.version).public == version.public
        for each in specifier
    )


def python_serves(candidate: Candidate, wanted: Wanted, target: Target) -> Failure | None:
    """Hold the python and ABI tags."""
    del wanted
    name = candidate.serves
    reason = tags.python_refusal(name.pythons, name.abis, target.host)
    if not reason:
        return None
    return Failure(aspect="python", reason=reason, change=f"Python {_pythons(candidate)}")


def python_allowed(candidate: Candidate, wanted: Wanted, target: Target) -> Failure | None:
    """Hold Requires-Python; one that is not valid refuses nothing, as with pip."""
    del wanted
    version = target.host.python_version.value
    if version is None or not candidate.entry.requires_python:
        return None
    allowed = required_python(candidate.entry.requires_python)
    if allowed is None or allowed.contains(version.base_version, prereleases=True):
        return None
    reason = f"needs Python {allowed}, this is {version}"
    return Failure(aspect="python", reason=reason, change=f"Python {allowed}")


@lru_cache(maxsize=1024)
def required_python(text: str) -> SpecifierSet | None:
    """Read a Requires-Python; an index's wheels have a handful of such texts.

    None for one that is not valid, such as the ``>=3.6.*`` of older metadata.
    """
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        return None


def _pythons(candidate: Candidate) -> str:
    name = candidate.serves
    return f"{'.'.join(name.pythons)}-{'.'.join(name.abis)}"


def platform_serves(candidate: Candidate, wanted: Wanted, target: Target) -> Failure | None:
    """Hold the platform tags: system, processor, glibc or musl."""
    del wanted
    reason = tags.platform_refusal(candidate.serves.platforms, target.host)
    if not reason:
        return None
    if "needs glibc" in reason or "needs musl" in reason:
        return Failure(aspect="glibc", reason=reason, change="a newer system")
    return Failure(aspect="platform", reason=reason, change="another platform")


def glibc_serves(candidate: Candidate, wanted: Wanted, target: Target) -> Failure | None:
    """Hold the glibc that the binaries were found to need, whatever the tag promises."""
    del wanted
    needed, libc = candidate.entry.glibc, target.host.libc.value
    if needed is None or libc is None:
        return None
    if libc.kind != "glibc":
        return Failure(
            aspect="glibc", reason=f"needs glibc, this system has {libc}", change="a glibc system"
        )
    if libc.version < needed:
        reason = f"needs glibc {needed}, this system has {libc.version}"
        return Failure(aspect="glibc", reason=reason, change=f"a system with glibc {needed}")
    return None


def accelerator_serves(candidate: Candidate, wanted: Wanted, target: Target) -> Failure | None:
    """Hold the accelerator's line: exact, or an earlier minor that torch's libraries serve."""
    del wanted
    line, ours = built_for(candidate), target.accelerator
    if line is None or ours is None:
        return None
    change = f"a torch for {line}"
    if line.kind != ours.kind or line.major != ours.major:
        what = "a CPU build" if ours.kind == "cpu" else f"for {ours}"
        if is_pure(candidate):
            return None
        return Failure(
            aspect="accelerator",
            reason=f"is for {line}, this torch is {what}{_across_majors(candidate, line, ours)}",
            change=change,
        )
    if line.minor is None or line == ours:
        return None
    backend = next((each for each in BACKENDS.values() if each.kind == ours.kind), None)
    if target.exact or backend is None or not backend.minor_compatible:
        return Failure(aspect="accelerator", reason=f"is for {line}, not {ours}", change=change)
    return _earlier_minor(candidate, line, ours, change)


def _across_majors(candidate: Candidate, line: Accelerator, ours: Accelerator) -> str:
    """Return why one CUDA major does not serve another, whatever links a wheel to torch."""
    if line.kind != "cuda" or ours.kind != "cuda":
        return ""
    why = "; libraries of two CUDA majors never mix"
    if candidate.torch_axis == "stable_abi":
        why += ", and torch's stable ABI does not reach across them"
    return why


def _earlier_minor(
    candidate: Candidate, line: Accelerator, ours: Accelerator, change: str
) -> Failure | None:
    if ours.minor is None or line.minor is None or line.minor > ours.minor:
        reason = f"is for {line}, newer than this torch's {ours}"
        return Failure(aspect="accelerator", reason=reason, change=change)
    if not candidate.proven:
        reason = f"is for {line}, this torch for {ours}; its needs are not proven"
        return Failure(aspect="accelerator", reason=reason, change=change)
    foreign = [name for name in candidate.entry.libraries if not _torch_has(name, ours)]
    if foreign:
        reason = f"is for {line} and needs {', '.join(foreign)}, which torch for {ours} lacks"
        return Failure(aspect="accelerator", reason=reason, change=change)
    return None


def _torch_has(soname: str, accelerator: Accelerator) -> bool:
    """Return whether torch itself brings a CUDA library, and of its own major."""
    from wheelfarm.facts.libraries import is_driver_library, nvidia_library

    library = nvidia_library(soname)
    if library is None:
        return is_driver_library(soname)
    return library.preloaded and accelerator.major in library.majors


def driver_serves(candidate: Candidate, wanted: Wanted, target: Target) -> Failure | None:
    """Ask for a driver of the toolkit's CUDA major or a later one (minor-version compatibility)."""
    del wanted
    toolkit, driver = toolkit_of(candidate), target.host.driver_cuda.value
    if toolkit is None or driver is None or is_pure(candidate):
        return None
    if runs_machine_code(driver, toolkit):
        return None
    reason = f"is compiled by CUDA {toolkit}, this driver runs CUDA {driver.major}.x"
    return Failure(aspect="driver", reason=reason, change=f"a driver for CUDA {toolkit.major}")


def gpu_serves(candidate: Candidate, wanted: Wanted, target: Target) -> Failure | None:
    """Ask for code for every GPU in use in every module that is not one of a choice by GPU."""
    del wanted
    if target.accelerator is None or target.accelerator.kind != "cuda":
        return None
    for gpu in target.host.capabilities:
        reason = uncovered(candidate, gpu, target.host.driver_cuda.value)
        if reason:
            return Failure(aspect="gpu", reason=reason, change=f"another GPU than {gpu}")
    return None


#: Every rule; those that need a name alone come first, since most wheels are out by them. Order
#: decides only which reason is told first.
_BY_NAME: tuple[Rule, ...] = (
    asked_version,
    platform_serves,
    python_serves,
    torch_serves,
    accelerator_serves,
)
RULES: tuple[Rule, ...] = (
    *_BY_NAME,
    python_allowed,
    not_yanked,
    torch_allowed,
    abi_serves,
    glibc_serves,
    driver_serves,
    gpu_serves,
)


def refused_by_version(text: str, axis: TorchAxis | None, wanted: Wanted, target: Target) -> bool:
    """Return whether a rule refuses every file of a version, as its text is, and torch axis."""
    if is_other_torch(label_of(text), axis, target):
        return True
    try:
        return _version_failure(parse_version(text), wanted, target) is not None
    except BadInputError:
        # What is no version is said where the file is read.
        return False


def refused_by_name(candidate: Candidate, wanted: Wanted, target: Target) -> bool:
    """Return whether a rule refuses that mostly needs a name; a faulty entry is refused too.

    Pages have left out what the tags refuse. Of the rest a label is read sooner than a version,
    and an earlier CUDA line alone makes a rule read the whole entry.
    """
    quick = (torch_serves, asked_version, accelerator_serves)
    try:
        return any(rule(candidate, wanted, target) is not None for rule in quick)
    except BadInputError:
        return True


def failures(candidate: Candidate, wanted: Wanted, target: Target) -> Iterator[Failure]:
    """Yield every rule's no."""
    try:
        for rule in RULES:
            failure = rule(candidate, wanted, target)
            if failure is not None:
                yield failure
    except BadInputError as error:
        yield Failure(aspect="version", reason=f"its entry in the index is faulty: {error.what}")
