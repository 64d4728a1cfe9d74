"""CUDA from pip's wheels or a system: find it, and make of it what a build needs.

Importing this costs next to nothing; each name brings its module on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wheelfarm.toolkit.environment import Environment
    from wheelfarm.toolkit.find import find_toolkit
    from wheelfarm.toolkit.model import CpuOnlyTorchError, NoToolkitError, Toolkit
    from wheelfarm.toolkit.stub import make_driver_stub
    from wheelfarm.toolkit.view import make_view

__all__ = [
    "CpuOnlyTorchError",
    "Environment",
    "NoToolkitError",
    "Toolkit",
    "find_toolkit",
    "make_driver_stub",
    "make_view",
]

_HOMES = {
    "CpuOnlyTorchError": "model",
    "Environment": "environment",
    "NoToolkitError": "model",
    "Toolkit": "model",
    "find_toolkit": "find",
    "make_driver_stub": "stub",
    "make_view": "view",
}


def __getattr__(name: str) -> Any:
    """Import a public name's module on first use (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
