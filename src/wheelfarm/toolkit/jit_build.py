"""One cold JIT build by torch's own machinery: flags and a store in, a loaded library out."""

import contextlib
import importlib
import logging
import os
import re
import shlex
import shutil
import sys
import sysconfig
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelfarm import files
from wheelfarm.errors import BuildError, CouldNotLookError
from wheelfarm.facts.installed_torch import InstalledTorch
from wheelfarm.places import cache_root, make_folder
from wheelfarm.run import run
from wheelfarm.toolkit.diagnose import load_failure
from wheelfarm.toolkit.driver import compiler_words, stand_in
from wheelfarm.toolkit.flags import BuildFlags, rpath_argument
from wheelfarm.toolkit.jit_store import JitStore
from wheelfarm.toolkit.layout import Machine
from wheelfarm.toolkit.model import Toolkit
from wheelfarm.toolkit.view import make_view

if TYPE_CHECKING:
    from types import ModuleType

logger = logging.getLogger(__name__)

#: torch keeps the toolkit's place in a module's global; one build of this process at a time.
_TORCH_GLOBALS = threading.Lock()
_ERROR = re.compile(r"(?:error|undefined reference|cannot find|No such file)\b", re.IGNORECASE)
_SHOWN_LINES = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Build:
    """What is built: torch's function with its arguments, and the toolkit's flags (None: none)."""

    function: str
    arguments: Mapping[str, Any]
    flags: BuildFlags | None
    torch: InstalledTorch


def build(
    job: Build, store: JitStore, *, has_device_code: bool, machine: Machine
) -> "tuple[Path, ModuleType | str]":
    """Build, load and enter the result into the store; the caller holds the store's lock.

    Raises BuildError with the compiler's own lines, LibraryLoadError where the result was built
    and does not load.
    """
    folder = store.new_folder()
    home = _cuda_home(job.flags, machine) if has_device_code else None
    arguments = {**job.arguments, **_added(job, machine), "build_directory": str(folder)}
    # Without device code torch would ask for GPUs and a CUDA_HOME that host sources do not need.
    arguments["with_cuda"] = has_device_code
    ninja = find_ninja(machine)
    try:
        with _TORCH_GLOBALS, _torch_settings(ninja, home, machine) as cpp_extension:
            loaded = getattr(cpp_extension, job.function)(**arguments)
    except (RuntimeError, ValueError, ImportError, OSError) as error:
        library = next(folder.glob("*.so"), None)
        if library is not None:
            raise load_failure(library, error) from error
        files.write_text(store.failure_log, str(error))
        shutil.rmtree(folder, ignore_errors=True)
        raise _compile_failure(job, str(error), store.failure_log) from error
    library = next(iter(sorted((*folder.glob("*.so"), *folder.glob("*.pyd")))))
    store.add(library, _dependencies(folder, ninja, job))
    return library, loaded


def find_ninja(machine: Machine) -> Path:
    """Return ninja: on PATH, else beside this interpreter, where pip puts it."""
    found = shutil.which("ninja", path=machine.environ.get("PATH"))
    for place in (sysconfig.get_path("scripts"), str(Path(sys.executable).parent)):
        found = found or shutil.which("ninja", path=place)
    if found is None:
        message = "ninja is not installed"
        raise CouldNotLookError(message, hint="pip install ninja")
    return Path(found)


def _added(job: Build, machine: Machine) -> dict[str, list[str]]:
    """Return torch's arguments with the flags of the toolkit behind the caller's own."""
    given = job.arguments
    always = list(map(shlex.quote, compiler_words(machine)[1:]))
    link = [*always, *given["extra_ldflags"]]
    includes = [*given["extra_include_paths"]]
    library_folder = job.torch.folder / "lib"
    if job.flags is not None:
        includes += job.flags.include_dirs
        link += job.flags.ldflags
        link += [shlex.quote(f"-L{library_folder}"), "-lc10_cuda", "-ltorch_cuda"]
    link += map(shlex.quote, rpath_argument(library_folder.resolve()))
    return {
        "extra_cflags": [*always, *given["extra_cflags"]],
        "extra_ldflags": link,
        "extra_include_paths": includes,
    }


def _cuda_home(flags: BuildFlags | None, machine: Machine) -> Path | None:
    if flags is None:
        return None
    toolkit = flags.toolkit
    if toolkit.source == "system":
        return toolkit.path
    return cached_view(toolkit, machine)


def cached_view(toolkit: Toolkit, machine: Machine) -> Path:
    """Return the view of a toolkit in the cache, made on first use."""
    import hashlib

    stub = stand_in(toolkit, machine) if machine.system == "linux" else None
    name = hashlib.sha256(os.path.realpath(toolkit.path).encode()).hexdigest()[:16]
    folder = make_folder(cache_root(machine.environ) / "view")
    return make_view(toolkit, folder / f"cuda-{toolkit.version}-{name}", stub=stub)


@contextlib.contextmanager
def _torch_settings(ninja: Path, cuda_home: Path | None, machine: Machine) -> Iterator[Any]:
    """Yield torch's extension module with ninja in reach, no cache before compilers, our CUDA."""
    cpp_extension: Any = importlib.import_module("torch.utils.cpp_extension")
    # ccache, used plainly, hands out stale objects for nvcc and behind -isystem.
    changed = {
        "PATH": f"{ninja.parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "TORCH_NO_COMPILER_WRAPPER": "1",
    }
    if os.environ.get("CXX", "").strip():
        # torch takes CXX as one word; what stands behind the compiler is among the flags.
        changed["CXX"] = compiler_words(machine)[0]
    before = {name: os.environ.get(name) for name in changed}
    known = cpp_extension.CUDA_HOME
    os.environ.update(changed)
    if cuda_home is not None:
        cpp_extension.CUDA_HOME = str(cuda_home)
    try:
        yield cpp_extension
    finally:
        cpp_extension.CUDA_HOME = known
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _dependencies(folder: Path, ninja: Path, job: Build) -> tuple[Path, ...]:
    """Return the files that the build read and its key does not describe as a whole."""
    described = [job.torch.folder / "include", folder, Path(sysconfig.get_path("include"))]
    if job.flags is not None:
        described += job.flags.toolkit.include_dirs
    tops = [os.path.realpath(path) + os.sep for path in described]
    sources = {os.path.realpath(path) for path in job.arguments.get("sources", ())}
    listing = run([ninja, "-t", "deps"], cwd=folder).stdout
    found = set()
    for line in listing.splitlines():
        if line.startswith("    "):
            real = os.path.realpath(folder / line.strip())
            if real not in sources and not real.startswith(tuple(tops)):
                found.add(Path(real))
    return tuple(sorted(found))


def _compile_failure(job: Build, output: str, log: Path) -> BuildError:
    lines = output.splitlines()
    errors = [line for line in lines if _ERROR.search(line)] or lines
    shown = "\n".join(f"    {line}" for line in errors[:_SHOWN_LINES])
    cuda = "" if job.flags is None else f"  CUDA: {job.flags.toolkit.root}\n"
    name = job.arguments["name"]
    return BuildError(f"the extension {name!r} does not build\n{shown}\n{cuda}  log: {log}")
