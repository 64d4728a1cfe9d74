"""torch's own ``load`` and ``load_inline``, fed with a toolkit from wheels and a cache of contents.

torch is imported when one of these is called, never before. A result that is in the cache is loaded
without torch's build machinery.
"""

import contextlib
import importlib
import importlib.machinery
import importlib.util
import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from wheelfarm import files
from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.places import cache_root, make_folder
from wheelfarm.toolkit.diagnose import load_failure
from wheelfarm.toolkit.digests import Digests
from wheelfarm.toolkit.driver import compiler_words, host_compiler
from wheelfarm.toolkit.environment import Environment
from wheelfarm.toolkit.find import find_toolkit, torch_cuda
from wheelfarm.toolkit.flags import (
    DEFAULT_VARIABLES,
    BuildFlags,
    Variables,
    flags_of,
    installed_toolkit,
    read_mode,
)
from wheelfarm.toolkit.jit_build import Build, build
from wheelfarm.toolkit.jit_key import Sources, jit_key, words
from wheelfarm.toolkit.jit_store import JitStore
from wheelfarm.toolkit.layout import Machine
from wheelfarm.toolkit.model import NoToolkitError, Step, Toolkit

logger = logging.getLogger(__name__)

_DEVICE_SUFFIXES = frozenset({".cu", ".cuh"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
#: Libraries loaded by this process, by path: a module's code must not be run twice.
_LOADED: dict[Path, "ModuleType | str"] = {}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Extras:
    """What is linked beside the sources, and whose variables steer it."""

    with_cuda: bool | None
    libraries: tuple[str, ...]
    driver: bool
    variables: Variables


def load(
    name: str,
    sources: "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]",
    *,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    is_python_module: bool = True,
    libraries: Sequence[str] = ("cudart",),
    driver: bool = False,
    variables: Variables = DEFAULT_VARIABLES,
) -> "ModuleType | str":
    """Build and load an extension as ``torch.utils.cpp_extension.load`` does, without CUDA_HOME.

    Host sources need no nvcc; for ``.cu`` sources nvcc comes from the CUDA 13 wheels. ``libraries``
    are linked by soname, and the driver's where ``driver`` is set. Returns the module, or the
    library's path where ``is_python_module`` is false. ``with_cuda=False`` adds nothing of CUDA.

    In mode ``0`` and for torch of HIP or SYCL the call goes to torch untouched. Raises
    NoToolkitError, CpuOnlyTorchError, BuildError (the compiler's own lines), LibraryLoadError.
    """
    listed = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    paths = tuple(Path(source).absolute() for source in listed)
    arguments: dict[str, Any] = {
        "name": name,
        "sources": [str(path) for path in paths],
        "extra_cflags": words(extra_cflags),
        "extra_cuda_cflags": words(extra_cuda_cflags),
        "extra_ldflags": words(extra_ldflags),
        "extra_include_paths": words(extra_include_paths),
        "verbose": verbose,
        "is_python_module": is_python_module,
    }
    described = Sources(
        name=_checked(name),
        files=paths,
        include_paths=tuple(map(Path, arguments["extra_include_paths"])),
        has_device_code=any(path.suffix in _DEVICE_SUFFIXES for path in paths),
    )
    extras = _Extras(
        with_cuda=with_cuda, libraries=tuple(libraries), driver=driver, variables=variables
    )
    return _run("load", described, arguments, extras)


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    cuda_sources: str | Sequence[str] | None = None,
    *,
    functions: "str | Sequence[str] | Mapping[str, str] | None" = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    is_python_module: bool = True,
    no_implicit_headers: bool = False,
    libraries: Sequence[str] = ("cudart",),
    driver: bool = False,
    variables: Variables = DEFAULT_VARIABLES,
) -> "ModuleType | str":
    """Build and load sources given as text, as ``torch.utils.cpp_extension.load_inline`` does.

    Everything else is as with ``load``.
    """
    cpp = [cpp_sources] if isinstance(cpp_sources, str) else list(cpp_sources)
    cuda = [cuda_sources] if isinstance(cuda_sources, str) else list(cuda_sources or ())
    bindings = dict(functions) if isinstance(functions, Mapping) else functions
    if isinstance(bindings, Sequence) and not isinstance(bindings, str):
        bindings = list(bindings)
    arguments: dict[str, Any] = {
        "name": name,
        "cpp_sources": cpp,
        "cuda_sources": cuda,
        "functions": bindings,
        "extra_cflags": words(extra_cflags),
        "extra_cuda_cflags": words(extra_cuda_cflags),
        "extra_ldflags": words(extra_ldflags),
        "extra_include_paths": words(extra_include_paths),
        "verbose": verbose,
        "is_python_module": is_python_module,
    }
    if no_implicit_headers:
        arguments["no_implicit_headers"] = True
    described = Sources(
        name=_checked(name),
        texts={"cpp": "\0".join(cpp), "cuda": "\0".join(cuda), "functions": repr(bindings)},
        include_paths=tuple(map(Path, arguments["extra_include_paths"])),
        has_device_code=bool(cuda),
    )
    extras = _Extras(
        with_cuda=with_cuda, libraries=tuple(libraries), driver=driver, variables=variables
    )
    return _run("load_inline", described, arguments, extras)


def _run(
    function: str, sources: Sources, arguments: Mapping[str, Any], extras: _Extras
) -> "ModuleType | str":
    machine, environment = Machine.here(), Environment.here()
    torch = environment.torch()
    if torch is None:
        message = f"torch is not installed for {environment.python}"
        raise CouldNotLookError(message)
    mode = read_mode(machine.environ, extras.variables.mode)
    if mode == "0" or torch.foreign:
        cpp_extension = importlib.import_module("torch.utils.cpp_extension")
        done: ModuleType | str = getattr(cpp_extension, function)(
            **arguments, with_cuda=extras.with_cuda
        )
        return done
    flags = None
    if extras.with_cuda is not False or sources.has_device_code:
        flags = _flags(mode, environment, machine, sources, extras)
    digests = Digests(make_folder(cache_root(machine.environ) / "digests"))
    key = jit_key(
        Sources(
            name=sources.name,
            files=sources.files,
            texts=sources.texts,
            include_paths=sources.include_paths,
            has_device_code=sources.has_device_code,
            arguments={
                **_key_arguments(function, arguments),
                "compiler": compiler_words(machine)[1:],
            },
        ),
        flags,
        torch=torch,
        torch_abi=_torch().compiled_with_cxx11_abi(),
        archs=_archs(machine, arguments) if sources.has_device_code else "",
        compiler=host_compiler(machine),
        digests=digests,
        environ=machine.environ,
    )
    folder = make_folder(cache_root(machine.environ) / "jit" / "v1" / sources.name / key)
    store = JitStore(folder, digests)
    is_module = bool(arguments["is_python_module"])
    if (library := store.find()) is not None:
        return _enter(library, is_python_module=is_module)
    with files.locked(store.lock):
        if (library := store.find()) is not None:
            return _enter(library, is_python_module=is_module)
        if flags is not None:
            _tell(sources, flags.toolkit, environment, machine, extras)
        job = Build(function=function, arguments=arguments, flags=flags, torch=torch)
        library, loaded = build(
            job, store, has_device_code=sources.has_device_code, machine=machine
        )
    _LOADED[library] = loaded
    return loaded


def _flags(
    mode: str, environment: Environment, machine: Machine, sources: Sources, extras: _Extras
) -> BuildFlags:
    """Return the flags of the toolkit that this mode takes: an installed one first in ``auto``."""
    torch = torch_cuda(environment)
    needs = _needs(sources)
    order: tuple[Any, ...] = ("wheels",)
    if mode == "auto":
        installed = installed_toolkit(machine, torch)
        order = ("wheels", "conda", "system") if installed is None else ("system", "wheels")
    candidates: list[Any] = []
    hint = ""
    for source in order:
        try:
            toolkit = find_toolkit(
                source=source,
                environment=environment,
                machine=machine,
                needs=needs,
                libraries=extras.libraries,
            )
        except NoToolkitError as error:
            candidates += error.candidates
            hint = hint or error.hint
            continue
        return flags_of(
            toolkit,
            extras.libraries,
            driver=extras.driver,
            variables=extras.variables,
            machine=machine,
        )
    wanted = f"what {sources.name!r} needs ({', '.join((*needs, *extras.libraries))})"
    raise NoToolkitError(wanted, tuple(candidates), hint=hint)


def _needs(sources: Sources) -> tuple[Step, ...]:
    return ("device", "link") if sources.has_device_code else ("host", "link")


def _tell(
    sources: Sources,
    toolkit: Toolkit,
    environment: Environment,
    machine: Machine,
    extras: _Extras,
) -> None:
    """Log which CUDA a build takes; a warning where one of the system wins over whole wheels."""
    logger.info("%r is built with %s", sources.name, toolkit.root)
    if toolkit.source != "system":
        return
    with contextlib.suppress(NoToolkitError):
        wheels = find_toolkit(
            source="wheels",
            environment=environment,
            machine=machine,
            needs=_needs(sources),
            libraries=extras.libraries,
        )
        logger.warning(
            "%r is built with %s, as that is installed; %s=1 takes the wheels of %s",
            sources.name,
            toolkit.root,
            extras.variables.mode,
            wheels.path,
        )


def _key_arguments(function: str, arguments: Mapping[str, Any]) -> Mapping[str, object]:
    """Return the arguments that change the result and are not described by contents already."""
    described = {"name", "sources", "cpp_sources", "cuda_sources", "functions", "verbose"}
    described |= {"extra_include_paths"}
    kept = {name: value for name, value in arguments.items() if name not in described}
    return {"function": function, **kept}


def _archs(machine: Machine, arguments: Mapping[str, Any]) -> str:
    """Return what device code is built for, as torch decides it."""
    stated = [flag for flag in arguments["extra_cuda_cflags"] if "arch" in flag]
    if stated:
        return " ".join(stated)
    listed = machine.environ.get("TORCH_CUDA_ARCH_LIST", "").strip()
    if listed and listed != "native":
        return listed
    cuda = _torch().cuda
    devices = {cuda.get_device_capability(index) for index in range(cuda.device_count())}
    if not devices:
        message = "no GPU is visible, so nothing tells what the device code is for"
        raise BadInputError(message, hint="set TORCH_CUDA_ARCH_LIST, such as 8.0;9.0+PTX")
    return ";".join(f"{major}.{minor}" for major, minor in sorted(devices))


def _enter(library: Path, *, is_python_module: bool) -> "ModuleType | str":
    """Load a built library into this process, once."""
    known = _LOADED.get(library)
    if known is not None:
        return known
    torch = _torch()
    try:
        loaded: ModuleType | str
        if is_python_module:
            loaded = _import(library)
        else:
            torch.ops.load_library(str(library))
            loaded = str(library)
    except (ImportError, OSError) as error:
        raise load_failure(library, error) from error
    _LOADED[library] = loaded
    return loaded


def _import(library: Path) -> ModuleType:
    name = library.name.split(".")[0]
    loader = importlib.machinery.ExtensionFileLoader(name, str(library))
    spec = importlib.util.spec_from_file_location(name, library, loader=loader)
    if spec is None:
        message = f"{library} is no extension module"
        raise ImportError(message)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _checked(name: str) -> str:
    """Return a module's name; it becomes a folder's and a C symbol's part."""
    if _NAME.fullmatch(name) is None:
        message = f"{name!r} is no name of an extension module"
        raise BadInputError(message, hint="use letters, digits and underscores")
    return name


def _torch() -> Any:
    return importlib.import_module("torch")
