"""Runs at the start of every Python of a build: a setup.py that asks the GPU gets the arch list.

Some build scripts ignore TORCH_CUDA_ARCH_LIST and ask ``torch.cuda`` for the capability of the
machine's GPUs, of which a builder has none (SageAttention#157). Where they ask, each requested
architecture stands for one device. What the wheel then holds is still compared with the request.
This file is no part of the package: it is alone on the build's PYTHONPATH.
"""

import importlib.abc
import importlib.machinery
import os
import sys
from types import ModuleType


def requested() -> list[tuple[int, int]]:
    """Return the capabilities of TORCH_CUDA_ARCH_LIST."""
    found = []
    for word in os.environ.get("TORCH_CUDA_ARCH_LIST", "").split(";"):
        major, dot, minor = word.partition("+")[0].rstrip("af").partition(".")
        if dot and major.isdigit() and minor.isdigit():
            found.append((int(major), int(minor)))
    return found


class _Loader(importlib.abc.Loader):
    """Loads ``torch.cuda`` as it is, then lets the arch list answer for the devices."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        archs = requested()

        def get_device_capability(device: object = None) -> tuple[int, int]:
            index = getattr(device, "index", device)
            return archs[index if isinstance(index, int) and index < len(archs) else -1]

        answers = {
            "is_available": lambda: True,
            "device_count": lambda: len(archs),
            "get_device_capability": get_device_capability,
        }
        if archs:
            module.__dict__.update(answers)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds ``torch.cuda`` with the finders behind it."""

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "torch.cuda":
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)  # type: ignore[arg-type] # as given to us
            if spec is not None and spec.loader is not None:
                spec.loader = _Loader(spec.loader)
                return spec
        return None


sys.meta_path.insert(0, _Finder())
