"""What foreign names mean to a build script: settings, platform, torch, files, programs.

A plain build is one on a farm's Linux machine: torch and the CUDA toolkit are installed, FORCE_CUDA
and an arch list are set, there is no GPU, and every other setting has the script's own default.
"""

import posixpath
import re
from typing import TYPE_CHECKING

from wheelfarm.survey.logic import assume, joined
from wheelfarm.survey.paths import CUDA, os_path
from wheelfarm.survey.values import (
    Assumed,
    Bound,
    External,
    Items,
    PathValue,
    Table,
    Unknown,
    Value,
    Yes,
    external_origins,
    origins,
    render,
    strip,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from wheelfarm.survey.engine import Engine

_TOOLKIT = frozenset({"a CUDA toolkit is installed"})
_GPU = frozenset({"a GPU is present"})
_ROCM = frozenset({"torch is a ROCm build"})
_SYSTEM = frozenset({"platform"})

#: Settings that a farm makes for every build.
FARM_SETTINGS: dict[str, Value] = {
    "FORCE_CUDA": Yes("1"),
    "TORCH_CUDA_ARCH_LIST": "8.0 9.0+PTX",
    "CUDA_HOME": CUDA,
    "CUDA_PATH": CUDA,
    "CUDACXX": f"{CUDA}/bin/nvcc",
    "TORCH_NO_COMPILER_WRAPPER": "1",
}

#: A package's own word for the arch list, which a farm sets too.
_ARCH_LIST = re.compile(r"(?:.*_)?CUDA_?ARCH(?:S|ES|_LIST|ITECTURES?)?")

_YES, _NO = True, False
_EXTENSION = "torch.utils.cpp_extension."

_CONSTANTS: dict[str, Value] = {
    "sys.platform": Assumed("linux", _SYSTEM),
    "os.name": Assumed("posix", _SYSTEM),
    "os.sep": "/",
    "os.path.sep": "/",
    "os.pathsep": ":",
    "os.linesep": "\n",
    "sys.executable": "/farm/bin/python",
    "sys.maxsize": (1 << 63) - 1,
    "sys.byteorder": Assumed("little", _SYSTEM),
    "sys.version_info.major": 3,
    "sys.version_info.minor": Unknown(frozenset({"python"})),
    "torch.version.cuda": Assumed("13.0", frozenset({"torch is a CUDA build"})),
    "torch.version.hip": Assumed(None, _ROCM),
    "torch.version.xpu": Assumed(None, frozenset({"torch is an XPU build"})),
    "torch.__version__": Unknown(frozenset({"torch version"})),
    f"{_EXTENSION}CUDA_HOME": Assumed(CUDA, _TOOLKIT),
    f"{_EXTENSION}CUDNN_HOME": Unknown(),
    f"{_EXTENSION}ROCM_HOME": Assumed(None, _ROCM),
    f"{_EXTENSION}ROCM_VERSION": Assumed(None, _ROCM),
    f"{_EXTENSION}HIP_HOME": Assumed(None, _ROCM),
    f"{_EXTENSION}IS_HIP_EXTENSION": Assumed(_NO, _ROCM),
    f"{_EXTENSION}IS_WINDOWS": Assumed(_NO, _SYSTEM),
    f"{_EXTENSION}IS_MACOS": Assumed(_NO, _SYSTEM),
    f"{_EXTENSION}IS_LINUX": Assumed(_YES, _SYSTEM),
    "torch.utils.cpp_extension.SYCL_HOME": Assumed(None, frozenset({"a SYCL toolkit"})),
    "typing.TYPE_CHECKING": False,
}

#: Calls whose answer is assumed, whatever their arguments.
_ANSWERS: dict[str, Value] = {
    "torch.cuda.is_available": Assumed(_NO, _GPU),
    "torch.cuda.device_count": Assumed(0, _GPU),
    f"{_EXTENSION}_find_cuda_home": Assumed(CUDA, _TOOLKIT),
    "torch.backends.cuda.is_built": Assumed(_YES, _TOOLKIT),
    "torch.backends.mps.is_available": Assumed(_NO, _SYSTEM),
    "torch.backends.mps.is_built": Assumed(_NO, _SYSTEM),
    "torch.xpu.is_available": Assumed(_NO, frozenset({"an XPU is present"})),
    "platform.system": Assumed("Linux", _SYSTEM),
    "platform.machine": Assumed("x86_64", _SYSTEM),
    "platform.processor": Assumed("x86_64", _SYSTEM),
    "platform.architecture": Unknown(),
    "platform.python_implementation": "CPython",
    "sys.getrecursionlimit": 1000,
}


def attribute(name: str) -> Value:
    """Return a foreign name's value where it is a known constant, the name itself otherwise."""
    if name in _CONSTANTS:
        return _CONSTANTS[name]
    if name == "sys.argv":
        result = Items(origins=frozenset({"command line"}))
        result.add("setup.py")
        result.add("bdist_wheel")
        return result
    return External(name)


def version_info() -> Value:
    """Return the start of ``sys.version_info`` as far as a survey needs it."""
    return Unknown(frozenset({"python"}))


def environment(engine: "Engine", key: Value, default: Value, *, required: bool = False) -> Value:
    """Return what an environment variable holds in a plain build."""
    name = strip(key)
    if not isinstance(name, str):
        return Unknown(frozenset({"environment"}))
    if name in engine.environment:
        return engine.environment[name]
    farm = _farm_setting(name, default)
    if farm is not None:
        return Assumed(farm, frozenset({name}))
    if required or name in _UNTOLD:
        return Unknown(frozenset({"environment"}))
    return default if isinstance(default, (Items, Table)) else assume(default, frozenset({name}))


_UNTOLD = frozenset({"PATH", "HOME", "LD_LIBRARY_PATH", "CONDA_PREFIX", "VIRTUAL_ENV"})


def _farm_setting(name: str, default: Value) -> Value:
    """Return what a farm sets a variable to, None where it leaves it alone."""
    if name.endswith("_FORCE_CUDA"):
        return Yes("1")
    if _ARCH_LIST.fullmatch(name) and not strip(default) and name not in FARM_SETTINGS:
        return "8.0;9.0"
    return FARM_SETTINGS.get(name)


def path_attribute(engine: "Engine", path: PathValue, name: str) -> Value:  # noqa: PLR0911 - one return per kind
    """Return an attribute of a ``pathlib`` path."""
    match name:
        case "parent":
            full = posixpath.join(engine.paths.cwd, path.text)
            return PathValue(posixpath.dirname(posixpath.normpath(full)))
        case "name":
            return posixpath.basename(path.text)
        case "stem":
            return posixpath.splitext(posixpath.basename(path.text))[0]
        case "suffix":
            return posixpath.splitext(path.text)[1]
        case "parents":
            result = Items()
            current = posixpath.normpath(posixpath.join(engine.paths.cwd, path.text))
            while current != "/":
                current = posixpath.dirname(current)
                result.add(PathValue(current))
            return result
        case "parts":
            result = Items(kind="tuple")
            for part in path.text.split("/"):
                result.add(part)
            return result
        case _:
            return Bound(path, name)


def path_method(engine: "Engine", path: PathValue, name: str, arguments: list[Value]) -> Value:
    """Return what a method of a ``pathlib`` path gives."""
    full = posixpath.normpath(posixpath.join(engine.paths.cwd, path.text))
    result: Value = Unknown()
    match name:
        case "resolve" | "absolute" | "expanduser":
            result = PathValue(full)
        case "exists" | "is_file" | "is_dir":
            result = engine.paths.exists(path, name)
        case "joinpath":
            told = all(isinstance(each, (str, PathValue)) for each in arguments)
            text = posixpath.join(path.text, *(render(each) for each in arguments))
            result = PathValue(text) if told else Unknown(text=text)
        case "glob" | "rglob":
            pattern = arguments[0] if arguments else "*"
            if name == "rglob" and isinstance(pattern, str):
                pattern = f"**/{pattern}"
            result = _as_paths(engine.paths.glob(pattern, base=full))
        case "iterdir":
            names = engine.paths.listing(path)
            result = Items(open=names.open)
            for each in names.plain_values():
                result.add(PathValue(f"{path.text}/{each}"))
        case "read_text" | "open":
            result = engine.paths.text(path)
        case "as_posix" | "__str__" | "__fspath__":
            result = path.text
        case _:
            result = _derived(full, name, arguments)
    return result


def _derived(full: str, name: str, arguments: list[Value]) -> Value:
    if not arguments or not isinstance(arguments[0], (str, PathValue)):
        return Unknown()
    other = render(arguments[0])
    if name == "relative_to":
        return PathValue(posixpath.relpath(full, posixpath.join("/tree", other)))
    if name == "with_suffix":
        return PathValue(posixpath.splitext(full)[0] + other)
    if name == "with_name":
        return PathValue(posixpath.join(posixpath.dirname(full), other))
    return Unknown()


def _as_paths(found: Items) -> Items:
    result = Items(open=found.open, origins=found.origins)
    for each in found.plain_values():
        result.add(PathValue(each))
    return result


def known(engine: "Engine", name: str, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    """Return what a foreign function gives; NOT_KNOWN where nothing is known of it."""
    if name in _ANSWERS:
        return _ANSWERS[name]
    if name.startswith(("os.path.", "posixpath.")):
        if name.endswith("commonpath"):
            return Unknown()
        return os_path(name.rpartition(".")[2], [strip(each) for each in arguments], engine.paths)
    function = _FUNCTIONS.get(name)
    return NOT_KNOWN if function is None else function(engine, arguments, keywords)


#: Says that a foreign function is not known here.
NOT_KNOWN = Bound(None, "not known")


def _first(arguments: list[Value]) -> Value:
    return strip(arguments[0]) if arguments else Unknown()


def _getenv(engine: "Engine", arguments: list[Value], keywords: dict[str, Value]) -> Value:
    default = arguments[1] if len(arguments) > 1 else keywords.get("default")
    return environment(engine, _first(arguments), default)


def _glob(engine: "Engine", arguments: list[Value], keywords: dict[str, Value]) -> Value:
    base = keywords.get("root_dir")
    return engine.paths.glob(_first(arguments), base=render(base) if base is not None else "")


def _which(_engine: "Engine", arguments: list[Value], _keywords: dict[str, Value]) -> Value:
    name = _first(arguments)
    if not isinstance(name, str):
        return Unknown()
    if name == "nvcc":
        return Assumed(f"{CUDA}/bin/nvcc", _TOOLKIT)
    if name in {"hipcc", "rocminfo"}:
        return Assumed(None, _ROCM)
    if name == "nvidia-smi":
        return Assumed(None, _GPU)
    return Assumed(f"/farm/bin/{name}", frozenset({f"{name} is installed"}))


def _path(_engine: "Engine", arguments: list[Value], _keywords: dict[str, Value]) -> Value:
    told = [strip(each) for each in arguments] or ["."]
    text = posixpath.join(*(render(each) for each in told))
    if all(isinstance(each, (str, PathValue)) for each in told):
        return PathValue(text)
    return Unknown(frozenset().union(*(origins(each) for each in told)), text)


def _iter_modules(engine: "Engine", arguments: list[Value], _keywords: dict[str, Value]) -> Value:
    result = Items()
    folders = _first(arguments)
    for folder in folders.plain_values() if isinstance(folders, Items) else [Unknown()]:
        names = engine.paths.listing(folder)
        result.open = result.open or names.open
        for each in names.plain_values():
            module = each.removesuffix(".py")
            if module in {each, "__init__"}:
                continue
            row = Items(kind="tuple")
            for cell in (Unknown(), module, False):
                row.add(cell)
            result.add(row)
    return result


def _fspath(_engine: "Engine", arguments: list[Value], _keywords: dict[str, Value]) -> Value:
    value = _first(arguments)
    return render(value) if isinstance(value, (str, PathValue)) else Unknown(origins(value))


def _shell_join(_engine: "Engine", arguments: list[Value], _keywords: dict[str, Value]) -> Value:
    value = _first(arguments)
    return joined(*value.plain_values()) if isinstance(value, Items) else Unknown()


def _shell_split(_engine: "Engine", arguments: list[Value], _keywords: dict[str, Value]) -> Value:
    value = arguments[0] if arguments else None
    told = strip(value)
    if not isinstance(told, str):
        return Items(open=True, origins=origins(value))
    result = Items()
    for word in told.split():
        result.add(word)
    return result


_FUNCTIONS: "dict[str, Callable[[Engine, list[Value], dict[str, Value]], Value]]" = {
    "os.getenv": _getenv,
    "os.environ.get": _getenv,
    "os.environ.setdefault": _getenv,
    "os.environ.pop": _getenv,
    "glob.glob": _glob,
    "glob.iglob": _glob,
    "shutil.which": _which,
    "distutils.spawn.find_executable": _which,
    "setuptools._distutils.spawn.find_executable": _which,
    "pathlib.Path": _path,
    "pathlib.PurePath": _path,
    "pathlib.PosixPath": _path,
    "pathlib.Path.cwd": lambda engine, _arguments, _keywords: PathValue(engine.paths.cwd),
    "os.getcwd": lambda engine, _arguments, _keywords: engine.paths.cwd,
    "os.listdir": lambda engine, arguments, _keywords: engine.paths.listing(_first(arguments)),
    "os.walk": lambda engine, arguments, _keywords: engine.paths.walking(_first(arguments)),
    "os.fspath": _fspath,
    "pkgutil.iter_modules": _iter_modules,
    "shlex.split": _shell_split,
    "shlex.join": _shell_join,
}


def foreign_result(name: str, arguments: list[Value]) -> Unknown:
    """Return the Unknown that a foreign function of no known meaning gives."""
    made = frozenset().union(*(origins(each) for each in arguments)) if arguments else frozenset()
    return Unknown(made | external_origins(name))
