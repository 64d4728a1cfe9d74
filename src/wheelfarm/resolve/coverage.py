"""Which device code a wheel has, and whether it runs on a GPU under a driver."""

import re

from wheelfarm.index.model import Module
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.arch import Arch
from wheelfarm.model.versions import Minor
from wheelfarm.resolve.candidate import Candidate, Target
from wheelfarm.resolve.drivers import translates_ptx

#: A module of this name is one of several from which its package picks by GPU.
_NAMES_ARCH = r"(?:^|[_.\W])(?:sm|compute)_?\d{2,3}[af]?(?=$|[_.\W])"


def built_for(candidate: Candidate) -> Accelerator | None:
    """Return the accelerator that a wheel was built for: its label's, else its toolkit's."""
    if candidate.label.accelerator is not None:
        return candidate.label.accelerator
    toolkit = candidate.entry.toolkit
    return None if toolkit is None else Accelerator.cuda(toolkit)


def is_pure(candidate: Candidate) -> bool:
    """Return whether a wheel is proven to hold no device code and to need no CUDA library."""
    entry = candidate.entry
    return candidate.proven and entry.modules == () and not entry.libraries


def toolkit_of(candidate: Candidate) -> Minor | None:
    """Return the CUDA that compiled a wheel, None where nothing tells it."""
    if candidate.entry.toolkit is not None:
        return candidate.entry.toolkit
    line = candidate.label.accelerator
    return line.version if line is not None and line.kind == "cuda" else None


def uncovered(candidate: Candidate, gpu: Arch, driver: Minor | None) -> str:
    """Return what of a wheel has no code for a GPU; empty where all that is needed has."""
    modules = [module for module in candidate.entry.modules or () if module.sass or module.ptx]
    toolkit = toolkit_of(candidate)
    bare = [module for module in modules if not module_covers(module, gpu, toolkit, driver)]
    required = [module for module in bare if not names_arch(module.path)]
    if modules and (required or len(bare) == len(modules)):
        return lacks((required or bare)[0], gpu, toolkit, driver)
    return ""


def module_covers(module: Module, gpu: Arch, toolkit: Minor | None, driver: Minor | None) -> bool:
    """Return whether a module has machine code for a GPU, or PTX that the driver translates."""
    if any(arch.sass_runs_on(gpu) for arch in module.sass):
        return True
    if not any(arch.ptx_runs_on(gpu) for arch in module.ptx):
        return False
    return driver is None or toolkit is None or translates_ptx(driver, toolkit)


def names_arch(path: str) -> bool:
    """Return whether a module's name says that it is one of several, picked by GPU."""
    return re.search(_NAMES_ARCH, path) is not None


def lacks(module: Module, gpu: Arch, toolkit: Minor | None, driver: Minor | None) -> str:
    """Return the sentence that says what a module has instead of code for a GPU."""
    has = " ".join([*map(str, module.sass), *(f"{arch}+PTX" for arch in module.ptx)])
    why = f"{module.path} has no code for GPU {gpu} (it has {has})"
    if any(arch.ptx_runs_on(gpu) for arch in module.ptx):
        why += f"; its PTX is of CUDA {toolkit}, newer than this driver's {driver}"
    return why


def by_ptx(candidate: Candidate, target: Target) -> bool:
    """Return whether some GPU in use is served by PTX alone, which the driver translates."""
    return any(
        any(arch.ptx_runs_on(gpu) for arch in module.ptx)
        and not any(arch.sass_runs_on(gpu) for arch in module.sass)
        for gpu in target.host.capabilities
        for module in candidate.entry.modules or ()
        if not names_arch(module.path)
    )
