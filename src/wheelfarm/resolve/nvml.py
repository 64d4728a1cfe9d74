"""GPUs and driver through NVML, the driver's own library, loaded with ctypes.

NVML API reference: nvmlInit_v2, nvmlSystemGetDriverVersion, nvmlSystemGetCudaDriverVersion_v2,
nvmlDeviceGetCudaComputeCapability. Strings are bytes here, whatever a binding makes of them.
"""

import os
from typing import TYPE_CHECKING

from wheelfarm.model.arch import Arch
from wheelfarm.model.versions import Minor
from wheelfarm.resolve.host import Gpu
from wheelfarm.values import value

if TYPE_CHECKING:
    import ctypes

#: nvmlReturn_t values that say more than "failed".
_DRIVER_NOT_LOADED = 9
_LIBRARY_MISMATCH = 18
_REASONS = {
    _DRIVER_NOT_LOADED: "the NVIDIA kernel driver is not loaded",
    _LIBRARY_MISMATCH: "the driver was updated and the old one still runs: reboot needed",
    15: "the GPU has fallen off the bus",
    4: "no permission to talk to the driver",
}
_TEXT = 96


@value
class Answer:
    """What a look at the devices told: GPUs, driver and its CUDA, or why it failed.

    ``mismatch`` marks a driver that was updated without a reboot.
    """

    gpus: tuple[Gpu, ...] = ()
    driver: str = ""
    cuda: Minor | None = None
    problem: str = ""
    mismatch: bool = False


def library_names() -> tuple[str, ...]:
    """Return the names under which NVML may be found, the first one first."""
    override = os.environ.get("WHEELFARM_NVML")
    if override:
        return (override,)
    if os.name == "nt":
        return ("nvml.dll",)
    return ("libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1")


def look() -> Answer | None:
    """Return NVML's answer; None where there is no NVML to ask."""
    import ctypes

    for name in library_names():
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        return _ask(library)
    return None


def _ask(library: "ctypes.CDLL") -> Answer:
    try:
        status = library.nvmlInit_v2()
        if status != 0:
            why = _REASONS.get(status, f"NVML error {status}")
            return Answer(problem=why, mismatch=status == _LIBRARY_MISMATCH)
        try:
            return Answer(gpus=_gpus(library), driver=_driver(library), cuda=_cuda(library))
        finally:
            library.nvmlShutdown()
    except AttributeError as error:
        return Answer(problem=f"this NVML has no {error}")


def _driver(library: "ctypes.CDLL") -> str:
    import ctypes

    buffer = ctypes.create_string_buffer(_TEXT)
    if library.nvmlSystemGetDriverVersion(buffer, _TEXT) != 0:
        return ""
    return buffer.value.decode("ascii", "replace")


def _cuda(library: "ctypes.CDLL") -> Minor | None:
    import ctypes

    number = ctypes.c_int()
    if library.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(number)) != 0:
        return None
    return Minor(number.value // 1000, number.value % 1000 // 10)


def _gpus(library: "ctypes.CDLL") -> tuple[Gpu, ...]:
    import ctypes

    count = ctypes.c_uint()
    if library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
        return ()
    return tuple(_gpu(library, index) for index in range(count.value))


def _gpu(library: "ctypes.CDLL", index: int) -> Gpu:
    import ctypes

    handle = ctypes.c_void_p()
    if library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) != 0:
        return Gpu(index=index)
    major, minor = ctypes.c_int(), ctypes.c_int()
    status = library.nvmlDeviceGetCudaComputeCapability(
        handle, ctypes.byref(major), ctypes.byref(minor)
    )
    return Gpu(
        index=index,
        name=_device_text(library.nvmlDeviceGetName, handle),
        capability=Arch(major.value, minor.value) if status == 0 else None,
        uuid=_device_text(library.nvmlDeviceGetUUID, handle),
    )


def _device_text(function: "ctypes._NamedFuncPointer", handle: "ctypes.c_void_p") -> str:
    import ctypes

    buffer = ctypes.create_string_buffer(_TEXT)
    if function(handle, buffer, _TEXT) != 0:
        return ""
    return buffer.value.decode("utf-8", "replace")
