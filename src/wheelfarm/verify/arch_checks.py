"""Check of GPU coverage: every planned architecture in each CUDA module, suffix kept, none extra.

A union over the wheel would hide a module that lacks one, which fails on the user's GPU with
"no kernel image is available".
"""

from collections.abc import Iterable, Iterator

from wheelfarm.facts.coverage import KNOWN_GPUS, wheel_runs_on
from wheelfarm.facts.model import BinaryFacts
from wheelfarm.model.arch import Arch, ArchList
from wheelfarm.verify.report import Check
from wheelfarm.verify.subject import Expected, Subject, judged, matches
from wheelfarm.wording import counted


def check_architectures(subject: Subject) -> Check | None:
    """Check each CUDA module's machine code and PTX against the planned list."""
    modules, expected = subject.modules, subject.expected
    listed = (*_gpus(modules), *(f"{module.path}: {coverage(module)}" for module in modules))
    if expected is None or (expected.archs is None and not expected.module_archs):
        return judged("architectures", fine=_summary(modules), evidence=listed) if modules else None
    if expected.skip_arch:
        reason = expected.reason("skip_arch")
        return judged(
            "architectures",
            warnings=[f"not held against the plan: {reason}"],
            fine="",
            evidence=listed,
        )
    fails = [line for module in modules for line in _module(module, expected)]
    if not modules and not expected.pure:
        fails.append("the plan names architectures, but no module holds device code")
    fine = f"{counted(len(modules), 'CUDA module')} with exactly {expected.archs}"
    return judged("architectures", fails=fails, fine=fine, evidence=listed)


def _gpus(modules: tuple[BinaryFacts, ...]) -> tuple[str, ...]:
    """Return on which GPUs the whole wheel runs, as lines of evidence."""
    found = {gpu: wheel_runs_on(modules, gpu) for gpu in KNOWN_GPUS}
    lines = []
    for how in ("machine code", "PTX"):
        gpus = [str(gpu) for gpu, answer in found.items() if answer == how]
        if gpus:
            lines.append(f"every module has {how} for GPUs {', '.join(gpus)}")
    return tuple(lines)


def _summary(modules: tuple[BinaryFacts, ...]) -> str:
    found = sorted({coverage(module) for module in modules})
    if len(found) == 1:
        return f"{counted(len(modules), 'CUDA module')}: {found[0]}"
    return f"{len(modules)} CUDA modules with {len(found)} different sets of architectures"


def coverage(module: BinaryFacts) -> str:
    """Return a module's architectures as an arch list: ``8.0;9.0a;9.0+PTX``."""
    sass, ptx = held(module, "sass"), held(module, "ptx")
    words = [str(arch) for arch in sorted(sass)] + [f"{arch}+PTX" for arch in sorted(ptx)]
    return ";".join(words) or "link-time code alone"


def held(module: BinaryFacts, kind: str) -> frozenset[Arch]:
    """Return the architectures of which a module holds machine code (``sass``) or ``ptx``."""
    return frozenset(code.arch for code in module.device_code if code.kind == kind)


def _planned(module: BinaryFacts, expected: Expected) -> ArchList | None:
    for pattern, archs in expected.module_archs:
        if matches(module.path, (pattern,)):
            return archs
    return expected.archs


def _module(module: BinaryFacts, expected: Expected) -> Iterator[str]:
    planned = _planned(module, expected)
    if planned is None:
        return
    sass, ptx = held(module, "sass"), held(module, "ptx")
    yield from _differences(module.path, "machine code", planned.archs, sass)
    yield from _differences(module.path, "PTX", planned.ptx, ptx)


def _differences(
    path: str, what: str, planned: Iterable[Arch], found: frozenset[Arch]
) -> Iterator[str]:
    wanted = frozenset(planned)
    for arch in sorted(wanted - found):
        near = sorted(one for one in found - wanted if one.plain == arch.plain)
        instead = f" (it has {near[0]} instead)" if near else ""
        yield f"{path} lacks {what} for {arch}{instead}"
    for arch in sorted(found - wanted):
        yield f"{path} has {what} for {arch}, which was not planned"
