"""The GPUs in use and their driver: NVML, then nvidia-smi, then the kernel's files.

"No GPU", "the driver is broken" and "could not look" are three answers.
"""

import os
import re
from pathlib import Path

from wheelfarm.model.versions import Minor
from wheelfarm.resolve import kernel_files, nvml
from wheelfarm.resolve.drivers import cuda_of_driver
from wheelfarm.resolve.host import DeviceState, Fact, Gpu, nothing
from wheelfarm.values import replace, value

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_GPU, _MIG = "GPU-", "MIG-"


@value
class Devices:
    """The facts of the accelerators of a machine."""

    state: Fact[DeviceState]
    gpus: Fact[tuple[Gpu, ...]]
    driver: Fact[str]
    driver_cuda: Fact[Minor]
    visible: Fact[str]
    amd: bool = False


def look(platform: str) -> Devices:
    """Return what this machine's devices are; ``WHEELFARM_ROOT`` moves /proc and /sys."""
    root = Path(os.environ.get("WHEELFARM_ROOT") or "/")
    kernel = kernel_files.look(root)
    # A driver's library may lie on a machine without a device, and would only say that it fails.
    answer, source = _ask(nvml_too=root == Path("/") and not kernel.rules_out_nvidia)
    if answer is None:
        found = _without_tools(kernel)
    elif answer.problem:
        found = _broken(answer, source, kernel)
    else:
        found = _working(answer, source, kernel)
    if found.driver_cuda.value is None and found.driver.value:
        by_table = cuda_of_driver(found.driver.value, platform)
        found = replace(found, driver_cuda=by_table)
    return replace(_visible(found), amd=kernel.amd)


def _ask(*, nvml_too: bool) -> tuple[nvml.Answer | None, str]:
    """Ask NVML, where it may know of this machine or is named, then nvidia-smi."""
    first = None
    if nvml_too or os.environ.get("WHEELFARM_NVML"):
        first = nvml.look()
        if first is not None and not first.problem:
            return first, "NVML"
    from wheelfarm.resolve import smi

    second = smi.look()
    if second is not None and (first is None or not second.problem):
        return second, "nvidia-smi"
    return (first, "NVML") if first is not None else (None, "")


def _working(answer: nvml.Answer, source: str, kernel: kernel_files.KernelFiles) -> Devices:
    gpus = answer.gpus
    if not gpus and kernel.gpus and kernel.gpus[0].capability is not None:
        gpus = kernel.gpus
    unknown = [str(gpu) for gpu in gpus if gpu.capability is None]
    problem = f"{source} does not tell the capability of {', '.join(unknown)}" if unknown else ""
    state: DeviceState = "present" if gpus else "none"
    return Devices(
        state=Fact(state, source, "" if gpus else "the driver runs and lists no GPU"),
        gpus=Fact(gpus, source, problem),
        driver=Fact(answer.driver, source)
        if answer.driver
        else _kernel_driver(kernel, f"{source} names no driver version"),
        driver_cuda=nothing(source) if answer.cuda is None else Fact(answer.cuda, source),
        visible=nothing(),
    )


def _broken(answer: nvml.Answer, source: str, kernel: kernel_files.KernelFiles) -> Devices:
    why = answer.problem
    if answer.mismatch:
        why = f"the driver was updated, reboot needed ({source}: {answer.problem})"
    return Devices(
        state=Fact("broken", source, why),
        gpus=Fact(kernel.gpus, "the kernel's files", why) if kernel.gpus else nothing(source, why),
        driver=_kernel_driver(kernel, why),
        driver_cuda=nothing(source, why),
        visible=nothing(),
    )


def _without_tools(kernel: kernel_files.KernelFiles) -> Devices:
    """Judge by the kernel's files alone."""
    source = "the kernel's files"
    if not kernel.rules_out_nvidia:
        source += "; there is neither NVML nor nvidia-smi"
    state: DeviceState
    problem = ""
    if kernel.gpus and (kernel.driver or kernel.gpus[0].capability is not None):
        state = "present"
    elif kernel.gpus:
        state, problem = "broken", "an NVIDIA GPU is there, and no driver for it"
    elif kernel.readable:
        state = "none"
    else:
        state, problem = (
            "unknown",
            "there is no way to look for a GPU here; give --gpu and --driver",
        )
    unknown = any(gpu.capability is None for gpu in kernel.gpus)
    return Devices(
        state=Fact(state, source, problem),
        gpus=nothing(source, problem)
        if state == "unknown"
        else Fact(
            kernel.gpus, source, "give --gpu: only a driver tells it" if unknown else problem
        ),
        driver=_kernel_driver(kernel, problem),
        driver_cuda=nothing(source, problem),
        visible=nothing(),
    )


def _kernel_driver(kernel: kernel_files.KernelFiles, problem: str) -> Fact[str]:
    if kernel.driver:
        return Fact(kernel.driver, kernel.driver_source)
    return nothing("the kernel's files", problem)


def _visible(found: Devices) -> Devices:
    """Keep the GPUs that ``CUDA_VISIBLE_DEVICES`` leaves in use, and say so."""
    text = os.environ.get(_VISIBLE)
    if text is None:
        return replace(found, visible=nothing("the variable is not set"))
    visible: Fact[str] = Fact(text, _VISIBLE)
    gpus = found.gpus.value
    if not gpus:
        return replace(found, visible=visible)
    chosen = visible_gpus(gpus, text)
    problem = f"{_VISIBLE}={text} leaves {len(chosen)} of {len(gpus)} GPUs in use"
    if chosen and len({gpu.capability for gpu in gpus}) > 1:
        problem += _doubt(text, chosen)
    return replace(
        found,
        visible=Fact(text, _VISIBLE, problem),
        gpus=Fact(chosen, f"{found.gpus.source}, {_VISIBLE}", found.gpus.problem),
        state=found.state
        if chosen
        else Fact("none", _VISIBLE, f"{_VISIBLE}={text!r} hides every GPU"),
    )


def _doubt(text: str, chosen: tuple[Gpu, ...]) -> str:
    """Return what is not sure of a choice among GPUs of several kinds."""
    if text.startswith(_MIG):
        return "; a MIG slice may be of any of them" if len(chosen) > 1 else ""
    if text.startswith(_GPU) or os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
        return ""
    return "; numbered in nvidia-smi's order (CUDA_DEVICE_ORDER=PCI_BUS_ID makes it so)"


def visible_gpus(gpus: tuple[Gpu, ...], text: str) -> tuple[Gpu, ...]:
    """Return the GPUs that a value of ``CUDA_VISIBLE_DEVICES`` names, in its order.

    As the CUDA runtime does: numbers with whatever stands behind their digits, or prefixes of
    UUIDs, by what the value begins with. The first word that names no GPU ends the list, and one
    that is named twice empties it (CUDA C++ Programming Guide, "CUDA Environment Variables";
    torch.cuda's own reading). A MIG slice (``MIG-...``) is a part of a GPU: of the one that its
    older spelling names, else of any that is here.
    """
    prefix = next((each for each in (_GPU, _MIG) if text.startswith(each)), "")
    chosen: list[Gpu] = []
    for word in text.split(","):
        named = _named(word.strip(), prefix, gpus)
        if not named:
            break
        if prefix != _MIG and named[0] in chosen:
            return ()
        chosen += [gpu for gpu in named if gpu not in chosen]
    return tuple(chosen)


def _named(word: str, prefix: str, gpus: tuple[Gpu, ...]) -> list[Gpu]:
    """Return the GPUs that one word may mean; empty where it means none."""
    if prefix == _MIG:
        if not word.startswith(_MIG):
            return []
        parent = word.removeprefix(_MIG).partition("/")[0]
        return [gpu for gpu in gpus if gpu.uuid == parent] or list(gpus)
    if prefix == _GPU:
        named = [gpu for gpu in gpus if word.startswith(_GPU) and gpu.uuid.startswith(word)]
        return named if len(named) == 1 else []
    number = re.match(r"\+?([0-9]+)", word)
    return [] if number is None else [gpu for gpu in gpus if gpu.index == int(number[1])]
