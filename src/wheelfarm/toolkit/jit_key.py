"""Everything that decides what a JIT build makes, as one key: contents, never time stamps."""

import hashlib
import json
import os
import platform
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wheelfarm.errors import BadInputError
from wheelfarm.facts.installed_torch import InstalledTorch
from wheelfarm.run import run
from wheelfarm.toolkit.digests import Digests
from wheelfarm.toolkit.flags import BuildFlags

_FORMAT = 1
#: Variables that change what compilers read or write without standing on the command line.
_VARIABLES = (
    *("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH"),
    *("GCC_EXEC_PREFIX", "LD_RUN_PATH", "CC", "NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS"),
    *("NVCC_CCBIN", "PYTORCH_NVCC", "SOURCE_DATE_EPOCH"),
)
#: The programs of a toolkit that turn a .cu file into an object.
_DEVICE_PARTS = ("nvcc", "nvcc.profile", "cudafe++", "fatbinary", "ptxas", "cicc", "libdevice")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sources:
    """What is compiled: files by path, or texts by name, and the arguments around them."""

    name: str
    files: tuple[Path, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, object] = field(default_factory=dict)
    include_paths: tuple[Path, ...] = ()
    has_device_code: bool = False


def jit_key(
    sources: Sources,
    flags: BuildFlags | None,
    *,
    torch: InstalledTorch,
    torch_abi: bool,
    archs: str,
    compiler: Path,
    digests: Digests,
    environ: Mapping[str, str],
) -> str:
    """Return the key of a build, 40 hexadecimal digits.

    Paths enter as what they lead to, so one toolkit under two spellings is one key. ``archs`` is
    what device code is built for, empty without any.
    """
    document = {
        "format": _FORMAT,
        "name": sources.name,
        "files": {os.path.realpath(path): _file(digests, path) for path in sources.files},
        "order": [os.path.realpath(path) for path in sources.files],
        "texts": dict(sources.texts),
        "arguments": dict(sources.arguments),
        "include_paths": [os.path.realpath(path) for path in sources.include_paths],
        "toolkit": None if flags is None else _toolkit(sources, flags, digests),
        "torch": {
            "version": str(torch.version),
            "abi": torch_abi,
            "facts": digests.of_file(torch.folder / "version.py"),
            "headers": digests.of_folder(torch.folder / "include"),
            "folder": os.path.realpath(torch.folder),
        },
        "archs": archs,
        "compiler": compiler_identity(compiler, digests),
        "python": _python(digests),
        "machine": platform.machine(),
        "environment": {name: environ[name] for name in _VARIABLES if name in environ},
    }
    text = json.dumps(document, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def compiler_identity(compiler: Path, digests: Digests) -> Mapping[str, str]:
    """Return what tells one host compiler from another: the driver's and the pass's contents."""
    answer = run([compiler, "-print-prog-name=cc1plus"], check=False, timeout=30)
    passes = Path(answer.stdout.strip()) if answer.ok and answer.stdout.strip() else None
    return {
        "driver": digests.of_file(compiler),
        "pass": digests.of_file(passes) if passes is not None and passes.is_file() else "",
    }


def words(flags: Sequence[str] | None) -> list[str]:
    """Return flags as a list; None is none."""
    return [] if flags is None else [str(flag) for flag in flags]


def _toolkit(sources: Sources, flags: BuildFlags, digests: Digests) -> Mapping[str, object]:
    toolkit = flags.toolkit
    parts = _DEVICE_PARTS if sources.has_device_code else ()
    return {
        "version": str(toolkit.version),
        "root": os.path.realpath(toolkit.path),
        "headers": [
            digests.of_folder(folder)
            for folder in toolkit.include_dirs
            if folder.parent not in toolkit.include_dirs and folder != Path("/usr/include")
        ],
        "parts": {
            name: digests.of_file(toolkit.parts[name]) for name in parts if name in toolkit.parts
        },
        "link": list(flags.link_args),
    }


def _file(digests: Digests, path: Path) -> str:
    try:
        return digests.of_file(path)
    except OSError as error:
        message = f"the source {path} cannot be read: {error.strerror}"
        raise BadInputError(message) from error


def _python(digests: Digests) -> Mapping[str, str]:
    headers = Path(sysconfig.get_path("include"))
    return {
        "abi": str(sysconfig.get_config_var("SOABI")),
        "headers": digests.of_folder(headers) if headers.is_dir() else "",
    }
