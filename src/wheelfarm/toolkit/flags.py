"""A toolkit in, the compiler's and linker's arguments for a host extension out.

Libraries are linked by soname (``-l:libcudart.so.13``), since wheels have no unversioned names;
that also keeps the development links of another CUDA, which may lie in a folder that stands
earlier on the line, from being picked.
"""

import logging
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wheelfarm.errors import BadInputError
from wheelfarm.facts.installed_torch import InstalledTorch
from wheelfarm.model.platform import System
from wheelfarm.toolkit.driver import Driver, driver_folders, driver_or_stand_in
from wheelfarm.toolkit.environment import Environment
from wheelfarm.toolkit.find import find_toolkit, torch_cuda
from wheelfarm.toolkit.layout import Machine
from wheelfarm.toolkit.model import Candidate, NoToolkitError, Root, Toolkit
from wheelfarm.toolkit.roots import torch_places

logger = logging.getLogger(__name__)

Mode = Literal["auto", "1", "0"]

#: Folders that compilers and linkers search by themselves; naming them changes their order.
_BUILT_IN = frozenset({Path("/usr/include"), Path("/usr/lib"), Path("/lib"), Path("/usr/lib64")})


@dataclass(frozen=True, kw_only=True, slots=True)
class Variables:
    """The names of the variables that steer this; a package may pass its own names."""

    mode: str = "WHEELFARM_CUDA_FROM_WHEELS"
    driver_dir: str = "WHEELFARM_CUDA_DRIVER_DIR"


DEFAULT_VARIABLES = Variables()


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildFlags:
    """What a compiler and a linker need to build against one toolkit.

    ``include_dirs`` are for ``-I``; ``link_args`` are the linker's arguments in their order, one
    word each, unquoted. ``runtime_dirs`` are what the result's RPATH names (Linux), or what
    ``os.add_dll_directory`` must be given (Windows).
    """

    toolkit: Toolkit
    include_dirs: tuple[str, ...]
    link_args: tuple[str, ...]
    runtime_dirs: tuple[Path, ...]
    driver: Driver | None = None

    @property
    def ldflags(self) -> list[str]:
        """``link_args`` quoted for a shell, as torch's ``extra_ldflags`` must be."""
        return [shlex.quote(argument) for argument in self.link_args]


def read_mode(environ: Mapping[str, str], variable: str) -> Mode:
    """Return the mode that a variable holds, ``auto`` where it is not set."""
    value = environ.get(variable, "").strip().lower()
    if value in {"", "auto"}:
        return "auto"
    if value in {"0", "1"}:
        return "1" if value == "1" else "0"
    message = f"{variable}={value} is invalid: it must be auto, 1 or 0"
    raise BadInputError(message)


def build_flags(
    libraries: Sequence[str] = ("cudart", "nvrtc", "cublas"),
    driver: bool = True,  # noqa: FBT001, FBT002 - the documented second argument
    *,
    variables: Variables = DEFAULT_VARIABLES,
    environment: Environment | None = None,
    machine: Machine | None = None,
) -> BuildFlags | None:
    """Return the arguments that build a host extension from NVIDIA's wheels, or None.

    None means: build as without this. That is so in mode ``0``, for a torch of HIP or SYCL, and
    in mode ``auto`` where a toolkit is installed or the wheels are absent or incomplete (the
    reason is logged). In mode ``1`` the wheels are always taken, and NoToolkitError says what they
    lack. Raises CpuOnlyTorchError where torch was built without CUDA.
    """
    machine = machine or Machine.here()
    mode = read_mode(machine.environ, variables.mode)
    if mode == "0":
        return None
    environment = environment or Environment.here()
    torch = environment.torch()
    if torch is not None and torch.foreign:
        return None
    torch = torch_cuda(environment)
    if mode == "auto" and (installed := installed_toolkit(machine, torch)) is not None:
        logger.info("the toolkit %s is used; set %s=1 to use wheels", installed, variables.mode)
        return None
    try:
        toolkit = find_toolkit(
            source="wheels", environment=environment, machine=machine, libraries=libraries
        )
    except NoToolkitError as error:
        if mode == "1":
            raise
        logger.warning("CUDA is not taken from wheels: %s", error)
        return None
    return flags_of(toolkit, libraries, driver=driver, variables=variables, machine=machine)


def installed_toolkit(machine: Machine, torch: InstalledTorch | None) -> Root | None:
    """Return the toolkit that torch would build with by itself; None where there is none.

    A variable that names no toolkit is named in the log and counts for nothing.
    """
    for item in torch_places(machine):
        if isinstance(item, Candidate):
            logger.warning("%s", item)
            continue
        major = None if torch is None or torch.cuda is None else torch.cuda.major
        if major is not None and item.major not in {None, major}:
            logger.warning("the toolkit %s is not of torch's CUDA %s", item, torch and torch.cuda)
        return item
    return None


def flags_of(
    toolkit: Toolkit,
    libraries: Sequence[str],
    *,
    driver: bool,
    variables: Variables = DEFAULT_VARIABLES,
    machine: Machine | None = None,
) -> BuildFlags:
    """Return the arguments that build against a toolkit which offers all ``libraries``."""
    machine = machine or Machine.here()
    includes = [folder.resolve() for folder in toolkit.include_dirs]
    found = [toolkit.libraries[name] for name in libraries]
    folders = tuple(dict.fromkeys(library.folder.resolve() for library in found))
    linked = None
    if driver and machine.system == "linux":
        linked = driver_or_stand_in(toolkit, machine, variable=variables.driver_dir)
    names = [library.file_name for library in found]
    if machine.system == "windows":
        names += ["cuda.lib"] if driver else []
        runtime = tuple(folder.resolve() for folder in toolkit.root.bin_dirs)
        link = _windows_link(folders, names)
    else:
        runtime = _runtime_folders(folders, linked, machine)
        link = _linux_link(folders, names, runtime, linked)
    return BuildFlags(
        toolkit=toolkit,
        include_dirs=tuple(str(folder) for folder in includes if folder not in _BUILT_IN),
        link_args=link,
        runtime_dirs=runtime,
        driver=linked,
    )


def rpath_argument(folder: Path, system: System = "linux") -> tuple[str, ...]:
    """Return the linker's argument that puts one folder into the RPATH; none on Windows."""
    if system == "windows":
        return ()
    if "," in str(folder):
        # -Wl splits at commas; -Xlinker hands one word on as it is.
        return ("-Xlinker", "-rpath", "-Xlinker", str(folder))
    return (f"-Wl,-rpath,{folder}",)


def _runtime_folders(
    folders: tuple[Path, ...], driver: Driver | None, machine: Machine
) -> tuple[Path, ...]:
    runtime = [folder for folder in folders if folder not in _BUILT_IN]
    if driver is not None and driver.stand_in:
        # An RPATH comes before the loader's own folders, so those are named ahead of the stand-in:
        # a driver that is installed later must win.
        runtime += [folder for folder, _ in driver_folders(machine)]
    if driver is not None and not driver.in_search_path:
        runtime.append(driver.folder.resolve())
    return tuple(dict.fromkeys(runtime))


def _linux_link(
    folders: tuple[Path, ...], names: list[str], runtime: tuple[Path, ...], driver: Driver | None
) -> tuple[str, ...]:
    # DT_RPATH, other than DT_RUNPATH, also serves what the wheels' own libraries need, and no
    # LD_LIBRARY_PATH with another CUDA comes before it.
    link = ["-Wl,--disable-new-dtags"]
    link += [f"-L{folder}" for folder in folders if folder not in _BUILT_IN]
    link += [f"-l:{name}" for name in names]
    for folder in runtime:
        link += rpath_argument(folder)
    if driver is not None:
        # Last: a system's folder also holds development links of the system's own CUDA.
        link += [f"-L{driver.folder.resolve()}", f"-l:{driver.file_name}"]
    return tuple(link)


def _windows_link(folders: tuple[Path, ...], names: list[str]) -> tuple[str, ...]:
    return (*(f"/LIBPATH:{folder}" for folder in folders), *names)
