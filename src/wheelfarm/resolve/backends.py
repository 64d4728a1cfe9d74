"""The register of accelerators: one entry each, and nothing else knows their names.

An entry says how torch's label and the machine show the backend, and where its wheels' index is
configured. To serve another accelerator from its own index is to set that index's address.
"""

import os
from collections.abc import Mapping

from wheelfarm.model.accelerator import Accelerator
from wheelfarm.reading import Reader
from wheelfarm.values import value


@value
class Backend:
    """One backend: its word, the accelerator kind of its wheels' labels, its index setting.

    ``variable`` is the environment variable of its own index; where it is unset the general one
    (``WHEELFARM_INDEX``) serves. ``minor_compatible`` says that a wheel of an earlier minor of
    the same major may run.
    """

    name: str
    kind: str
    variable: str
    minor_compatible: bool = False


BACKENDS: Mapping[str, Backend] = {
    backend.name: backend
    for backend in (
        Backend(name="cuda", kind="cuda", variable="WHEELFARM_INDEX_CUDA", minor_compatible=True),
        Backend(name="rocm", kind="rocm", variable="WHEELFARM_INDEX_ROCM"),
        Backend(name="xpu", kind="xpu", variable="WHEELFARM_INDEX_XPU"),
        Backend(name="mps", kind="cpu", variable="WHEELFARM_INDEX_MPS"),
        Backend(name="cpu", kind="cpu", variable="WHEELFARM_INDEX_CPU"),
    )
}


def backend_of(accelerator: Accelerator, platform: str) -> str:
    """Return the backend's word for torch's accelerator on a platform."""
    if accelerator.kind == "cpu" and platform.startswith("macosx_arm64"):
        return "mps"
    for backend in BACKENDS.values():
        if backend.kind == accelerator.kind and backend.name != "mps":
            return backend.name
    return "cpu"


def read_indexes(reader: Reader) -> dict[str, str]:
    """Read ``index`` and ``indexes``: addresses by backend, "" for all; others are faults."""
    found = reader.string_map("indexes")
    for name in found.keys() - BACKENDS.keys():
        reader.fault(f"unknown backend {name!r}, expected one of {', '.join(BACKENDS)}", "indexes")
    general = reader.optional_string("index")
    return found if general is None else {**found, "": general}


def index_for_all(option: str | None, configured: Mapping[str, str] | None = None) -> str | None:
    """Return the index that is asked whatever the backend is; None where the backend decides."""
    found = {index_address(name, option, configured) for name in ("", *BACKENDS)}
    only = found.pop()
    return None if found or only is None else only[0]


def index_address(
    backend: str, option: str | None, configured: Mapping[str, str] | None = None
) -> tuple[str, str] | None:
    """Return the index for a backend and where it was set; None where nobody set one.

    ``option`` is the command line's; ``configured`` maps backends (and "" for all) to addresses.
    """
    if option:
        return option, "--index"
    entry = BACKENDS.get(backend)
    if entry is not None and os.environ.get(entry.variable):
        return os.environ[entry.variable], entry.variable
    if os.environ.get("WHEELFARM_INDEX"):
        return os.environ["WHEELFARM_INDEX"], "WHEELFARM_INDEX"
    settings = configured or {}
    for key in (backend, ""):
        if settings.get(key):
            return settings[key], "configuration"
    return None
