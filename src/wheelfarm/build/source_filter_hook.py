"""Part an extension's CUDA sources as its setup.py names them: variables in, a filter out.

Copied as ``sitecustomize.py`` into the build's search path, so it runs alone, with the standard
library, on every system and with every compiler. It waits for torch's ``cpp_extension`` and wraps
``CUDAExtension``; the project's own files are not touched.

``WHEELFARM_SOURCE_FILTER`` is ``shard`` (keep this shard's ``.cu`` files) or ``link`` (drop them
all, and link the objects in ``WHEELFARM_OBJECTS``). Host sources stay in every job.
"""

import importlib.abc
import importlib.machinery
import os
import sys
from types import ModuleType
from typing import Any

_MODULE = "torch.utils.cpp_extension"
_EMPTY = "wheelfarm_no_host_source.cpp"


def shares(sources: list[tuple[str, int]], count: int) -> dict[str, int]:
    """Return source -> shard (from 1): the largest file first, onto the shard with the least."""
    loads = [0] * count
    result = {}
    for name, size in sorted(sources, key=lambda source: (-source[1], source[0])):
        shard = loads.index(min(loads))
        loads[shard] += size + 1
        result[name] = shard + 1
    return result


def filtered(sources: list[str]) -> tuple[list[str], list[str]]:
    """Return the sources that this job compiles, and the objects that it links besides."""
    stage = os.environ["WHEELFARM_SOURCE_FILTER"]
    folder = os.environ["WHEELFARM_OBJECTS"]
    kernels = [source for source in sources if source.endswith(".cu")]
    kept = [source for source in sources if not source.endswith(".cu")]
    objects = []
    if stage == "shard":
        count = int(os.environ["WHEELFARM_SHARD_COUNT"])
        index = int(os.environ["WHEELFARM_SHARD_INDEX"])
        sized = [(name.replace(os.sep, "/"), os.path.getsize(name)) for name in kernels]
        owner = shares(sized, count)
        kept += [name for name in kernels if owner[name.replace(os.sep, "/")] == index]
    else:
        objects = [_object_of(folder, name) for name in kernels]
    if not kept:
        # setuptools refuses an extension without a source.
        open(_EMPTY, "w", encoding="ascii").close()
        kept = [_EMPTY]
    return kept, objects


def _object_of(folder: str, source: str) -> str:
    relative = os.path.relpath(source).replace(os.sep, "/")
    stem = os.path.join(folder, os.path.splitext(relative)[0])
    for suffix in (".o", ".obj"):
        if os.path.exists(stem + suffix):
            return stem + suffix
    message = f"no shard compiled {relative}: there is no {stem}.o or .obj"
    raise FileNotFoundError(message)


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: importlib.abc.Loader) -> None:
        self.loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> "ModuleType | None":
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        original = module.CUDAExtension

        def extension(name: str, sources: list[str], *args: Any, **more: Any) -> Any:
            kept, objects = filtered(list(map(str, sources)))
            given = list(more.pop("extra_objects", None) or [])
            return original(name, kept, *args, extra_objects=[*given, *objects], **more)

        module.CUDAExtension = extension  # type: ignore[attr-defined]  # torch's own function


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Any, target: "ModuleType | None" = None
    ) -> "importlib.machinery.ModuleSpec | None":
        if fullname != _MODULE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


if "WHEELFARM_SOURCE_FILTER" in os.environ:
    sys.meta_path.insert(0, _Finder())
