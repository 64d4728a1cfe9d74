"""A toolkit in, the variables that point any build system at it out."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from wheelfarm.toolkit.environment import Environment
from wheelfarm.toolkit.find import find_toolkit
from wheelfarm.toolkit.jit_build import cached_view
from wheelfarm.toolkit.layout import Machine
from wheelfarm.toolkit.model import Toolkit

#: Variables that are lists of folders: ours goes first, what was there stays.
_LISTS = frozenset({"PATH", "CPATH", "LIBRARY_PATH", "LD_RUN_PATH", "CMAKE_PREFIX_PATH"})


def cuda_home(toolkit: Toolkit, machine: Machine) -> Path:
    """Return a folder that works as CUDA_HOME: the toolkit's own, or a view where it is wheels."""
    return cached_view(toolkit, machine) if toolkit.source == "wheels" else toolkit.path


def cmake_prefix(
    toolkit: Toolkit | None = None,
    *,
    environment: Environment | None = None,
    machine: Machine | None = None,
) -> Path:
    """Return the folder for CMAKE_PREFIX_PATH and CUDAToolkit_ROOT.

    ``find_package(CUDAToolkit)`` finds it there; for ``enable_language(CUDA)`` give
    ``<folder>/bin/nvcc`` as CMAKE_CUDA_COMPILER or CUDACXX. Raises NoToolkitError.
    """
    machine = machine or Machine.here()
    if toolkit is None:
        toolkit = find_toolkit(environment=environment, machine=machine)
    return cuda_home(toolkit, machine)


def build_variables(toolkit: Toolkit, home: Path, *, cmake: bool = False) -> dict[str, str]:
    """Return the variables for a build; lists hold our entry alone.

    LD_RUN_PATH makes the linker name the libraries' real folders, so that what is built runs
    without LD_LIBRARY_PATH (where the build gives no ``-rpath`` of its own).
    """
    runtime = [str(library.folder.resolve()) for library in toolkit.libraries.values()]
    nvcc = {} if toolkit.nvcc is None else {"CUDACXX": str(home / "bin" / "nvcc")}
    if cmake:
        return {"CMAKE_PREFIX_PATH": str(home), "CUDAToolkit_ROOT": str(home), **nvcc}
    return {
        "CUDA_HOME": str(home),
        "CUDA_PATH": str(home),
        **nvcc,
        **({"PATH": str(home / "bin")} if nvcc else {}),
        "CPATH": f"{home}/include:{home}/include/cccl",
        "LIBRARY_PATH": f"{home}/lib64:{home}/lib64/stubs",
        "LD_RUN_PATH": ":".join(dict.fromkeys(runtime)),
    }


def shell_exports(variables: Mapping[str, str]) -> str:
    """Return POSIX shell lines that set the variables; lists keep what they held."""
    lines = []
    for name, value in variables.items():
        rest = f'"${{{name}:+:${name}}}"' if name in _LISTS else ""
        lines.append(f"export {name}={shlex.quote(value)}{rest}")
    return "\n".join(lines)
