"""Which torch to choose, where none is fixed: what PyTorch published, newest first, and why not.

A combination is judged on its own first: PyTorch published it for this Python and platform, the
driver runs it, and torch's own libraries have code for every GPU. Then the packages decide.
"""

from collections.abc import Iterable

from packaging.version import Version

from wheelfarm.errors import BadInputError
from wheelfarm.index.model import Combination
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.arch import Arch, ArchList
from wheelfarm.model.decision import Decision
from wheelfarm.model.platform import Platform
from wheelfarm.model.versions import Minor
from wheelfarm.resolve.backends import BACKENDS
from wheelfarm.resolve.drivers import runs_machine_code, translates_ptx
from wheelfarm.resolve.host import Host
from wheelfarm.upstream.model import UpstreamFacts
from wheelfarm.values import value

#: Combinations that are known to work widely, per processor: for a machine that decides nothing.
_KNOWN_GOOD = {
    "x86_64": Combination(Accelerator("cuda", 12, 8), Minor(2, 8)),
    "amd64": Combination(Accelerator("cuda", 12, 8), Minor(2, 8)),
    "aarch64": Combination(Accelerator("cuda", 13, 0), Minor(2, 10)),
}


@value
class TorchOption:
    """One torch that could be installed: its newest patch release of a minor, its accelerator."""

    torch: Version
    accelerator: Accelerator

    @property
    def combination(self) -> Combination:
        """The channel that serves it."""
        return Combination(self.accelerator, Minor.of(self.torch))

    def __str__(self) -> str:
        return f"torch {self.torch} for {self.accelerator}"


def options(host: Host, facts: UpstreamFacts) -> tuple[Decision[TorchOption], ...]:
    """Return every published torch of the host's backend with its decision, the newest first.

    Of each minor and accelerator the newest patch release stands that ships for the host.
    """
    kind = _kind(host)
    newest: dict[Combination, TorchOption] = {}
    for release in facts.releases:
        option = TorchOption(torch=release.torch, accelerator=release.accelerator)
        known = newest.get(option.combination)
        better = known is None or (
            (_ships(option, host, facts), option.torch) > (_ships(known, host, facts), known.torch)
        )
        if release.accelerator.kind == kind and better:
            newest[option.combination] = option
    ordered = sorted(
        newest.values(), key=lambda each: (Minor.of(each.torch), each.accelerator), reverse=True
    )
    return tuple(Decision(option, refusal(option, host, facts)) for option in ordered)


def _kind(host: Host) -> str:
    backend = BACKENDS.get(host.backend.value or "cuda")
    kind = "cuda" if backend is None else backend.kind
    return "cuda" if kind == "cpu" else kind


def refusal(option: TorchOption, host: Host, facts: UpstreamFacts) -> str:
    """Return why a torch does not suit the machine; empty where nothing known speaks against it."""
    if not _ships(option, host, facts):
        python = host.python.value
        what = "this Python" if python is None else f"Python {python.dotted}"
        where = host.platform.value or "a platform that is not known"
        return f"PyTorch published none for {what} on {where}"
    version = option.accelerator.version
    driver = host.driver_cuda.value
    if version is not None and driver is not None and not runs_machine_code(driver, version):
        return f"this driver runs CUDA {driver.major}.x, it needs {version.major}"
    if not host.capabilities:
        return ""
    platform = _platform(host)
    archs = None
    if platform is not None:
        archs = facts.torch_arch_list(option.accelerator, Minor.of(option.torch), platform)
    if archs is None:
        return "it is not known for which GPUs this torch has code"
    missed = [str(gpu) for gpu in host.capabilities if not _covers(archs, gpu, driver, version)]
    if missed:
        return f"this torch has no code for GPU {', '.join(missed)} (it has {archs})"
    return ""


def _ships(option: TorchOption, host: Host, facts: UpstreamFacts) -> bool:
    release = facts.release(option.accelerator, option.torch)
    platform, python = _platform(host), host.python.value
    if release is None or platform is None:
        return False
    if python is None:
        return bool(release.pythons.get(platform))
    return release.ships(python, platform)


def _platform(host: Host) -> Platform | None:
    try:
        return Platform.parse(host.platform.value or "")
    except BadInputError:
        return None


def _covers(archs: ArchList, gpu: Arch, driver: Minor | None, toolkit: Minor | None) -> bool:
    if any(arch.sass_runs_on(gpu) for arch in archs.archs):
        return True
    if driver is not None and toolkit is not None and not translates_ptx(driver, toolkit):
        return False
    return any(arch.ptx_runs_on(gpu) for arch in archs.ptx)


def machine_decides(host: Host) -> bool:
    """Return whether driver and GPUs are known well enough to choose a torch by them."""
    gpus = host.gpus.value
    return (
        host.devices.value == "present"
        and bool(gpus)
        and all(gpu.capability is not None for gpu in gpus or ())
        and host.driver_cuda.value is not None
    )


def fallbacks(
    host: Host, of_index: Combination | None, decided: Iterable[Decision[TorchOption]]
) -> tuple[TorchOption, ...]:
    """Return the known-good combinations to fall back on, the index's own first.

    One that PyTorch did not publish for this host, or that what is known of the machine speaks
    against, is none.
    """
    machine = (host.platform.value or "").partition("_")[2]
    wanted = [each for each in (of_index, _KNOWN_GOOD.get(machine)) if each is not None]
    suitable = {each.candidate.combination: each.candidate for each in decided if each.accepted}
    return tuple(suitable[each] for each in dict.fromkeys(wanted) if each in suitable)
