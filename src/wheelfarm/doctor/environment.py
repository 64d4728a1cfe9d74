"""What an environment supplies to compiled packages: torch's symbols, libraries, CUDA wheels."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from wheelfarm.doctor.installed import read_file
from wheelfarm.interpreter import Interpreter
from wheelfarm.resolve.host import Host

#: Torch's libraries, the quick ones first; the last is read only where a symbol is still missing.
_TORCH_LIBRARIES = (
    "libc10.so",
    "libc10_cuda.so",
    "libtorch_python.so",
    "libtorch.so",
    "libtorch_cpu.so",
    "libtorch_cuda.so",
)
_SYSTEM_FOLDERS = (
    "lib",
    "lib64",
    "usr/lib",
    "usr/lib64",
    "usr/local/lib",
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib/wsl/lib",
)
_CUDA_WHEEL = re.compile(r"nvidia-(?:cuda-runtime|cublas|cuda-nvrtc|cudnn|nccl)(?:-cu(\d+))?")


@dataclass(frozen=True, kw_only=True)
class Environment:
    """An interpreter with its host's facts."""

    interpreter: Interpreter
    host: Host
    versions: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def torch_folder(self) -> Path | None:
        """The folder of torch's libraries; None without torch."""
        folders = (path / "torch/lib" for path in self.interpreter.path)
        return next((folder for folder in folders if folder.is_dir()), None)

    @cached_property
    def nvidia_folders(self) -> tuple[Path, ...]:
        """The folders of libraries of NVIDIA's wheels, in both layouts."""
        found: list[Path] = []
        for path in self.interpreter.path:
            found += sorted(path.glob("nvidia/*/lib"))
        return tuple(found)

    @cached_property
    def system_folders(self) -> tuple[Path, ...]:
        """The folders that the loader searches by itself, and LD_LIBRARY_PATH."""
        words = os.environ.get("LD_LIBRARY_PATH", "").split(":")
        root = Path(os.environ.get("WHEELFARM_ROOT") or "/")
        own = [Path(word) for word in words if word]
        folders = [*own, *(root / folder for folder in _SYSTEM_FOLDERS)]
        return tuple(folder for folder in folders if folder.is_dir())

    @cached_property
    def cuda_majors(self) -> dict[int, tuple[str, ...]]:
        """The CUDA majors whose wheels are installed, and those wheels."""
        found: dict[int, list[str]] = {}
        for name, version in sorted(self.versions.items()):
            match = _CUDA_WHEEL.fullmatch(name)
            if match is None:
                continue
            major = int(match[1]) if match[1] else int(version.partition(".")[0])
            found.setdefault(major, []).append(f"{name}=={version}")
        return {major: tuple(names) for major, names in found.items()}

    def missing(self, symbols: frozenset[str]) -> frozenset[str] | None:
        """Return those of ``symbols`` that no library of torch has; None where none can be read."""
        folder = self.torch_folder
        if folder is None:
            return None
        left, read = set(symbols), 0
        for name in _TORCH_LIBRARIES:
            path = folder / name
            if not left or not path.is_file():
                continue
            facts = read_file(path, name, every=True)
            if facts is not None and not facts.problem:
                read += 1
                left -= set(facts.defined)
        return frozenset(left) if read or not symbols else None

    def supplies(self, library: str, own: frozenset[Path], paths: tuple[Path, ...]) -> bool:
        """Return whether a needed library is found, in the package, torch, NVIDIA's or the system.

        NVIDIA's folders count since torch loads its libraries before an extension is imported.
        """
        folders = [*paths, *own, *self.nvidia_folders, *self.system_folders]
        if self.torch_folder is not None:
            folders.append(self.torch_folder)
        return any((folder / library).exists() for folder in folders)
