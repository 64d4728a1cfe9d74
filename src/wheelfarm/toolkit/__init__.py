"""CUDA from pip's wheels or a system: find it, and make of it what a build needs.

Importing this costs next to nothing; each name brings its module on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wheelfarm.toolkit.diagnose import LibraryLoadError, load_library
    from wheelfarm.toolkit.environment import Environment
    from wheelfarm.toolkit.find import find_toolkit
    from wheelfarm.toolkit.flags import BuildFlags, Variables, build_flags
    from wheelfarm.toolkit.jit import load, load_inline
    from wheelfarm.toolkit.model import CpuOnlyTorchError, NoToolkitError, Toolkit
    from wheelfarm.toolkit.shell import cmake_prefix
    from wheelfarm.toolkit.stub import make_driver_stub
    from wheelfarm.toolkit.view import make_view

__all__ = [
    "BuildFlags",
    "CpuOnlyTorchError",
    "Environment",
    "LibraryLoadError",
    "NoToolkitError",
    "Toolkit",
    "Variables",
    "build_flags",
    "cmake_prefix",
    "find_toolkit",
    "load",
    "load_inline",
    "load_library",
    "make_driver_stub",
    "make_view",
]

_HOMES = {
    "BuildFlags": "flags",
    "CpuOnlyTorchError": "model",
    "Environment": "environment",
    "LibraryLoadError": "diagnose",
    "NoToolkitError": "model",
    "Toolkit": "model",
    "Variables": "flags",
    "build_flags": "flags",
    "cmake_prefix": "shell",
    "find_toolkit": "find",
    "load": "jit",
    "load_inline": "jit",
    "load_library": "diagnose",
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
