"""Folders in, one root with its version and its include, library and program folders out."""

import json
import os
import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from wheelfarm.model.platform import System
from wheelfarm.model.versions import Minor
from wheelfarm.toolkit.model import Layout, Root, Source

_UNIFIED = re.compile(r"cu(\d{2})", re.ASCII)
_CUDART_VERSION = re.compile(r"^\s*#\s*define\s+CUDART_VERSION\s+(\d{4,6})\b", re.MULTILINE)
_CUDA_VERSION = re.compile(r"^\s*#\s*define\s+CUDA_VERSION\s+(\d{4,6})\b", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """What of the machine matters: variables, the top of its file system, system, processor."""

    environ: Mapping[str, str]
    top: Path = Path("/")
    system: System = "linux"
    processor: str = "x86_64"

    @classmethod
    def here(cls) -> "Machine":
        """Return this machine."""
        windows = sys.platform == "win32"
        return cls(
            environ=os.environ,
            top=Path(os.environ.get("SYSTEMDRIVE", "C:") + "\\") if windows else Path("/"),
            system="windows" if windows else "linux",
            processor=platform.machine().lower(),
        )

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of this processor's folder below ``targets`` in a toolkit."""
        return ("sbsa-linux", "aarch64-linux") if self.processor == "aarch64" else ("x86_64-linux",)


def header_version(include_dirs: tuple[Path, ...]) -> Minor | None:
    """Return the CUDA version that the headers declare; None where none does."""
    for name, pattern in (("cuda_runtime_api.h", _CUDART_VERSION), ("cuda.h", _CUDA_VERSION)):
        for folder in include_dirs:
            try:
                text = (folder / name).read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            if (match := pattern.search(text)) is not None:
                return Minor(int(match[1]) // 1000, int(match[1]) % 1000 // 10)
    return None


def make_root(
    machine: Machine,
    *,
    source: Source,
    layout: Layout,
    tops: tuple[Path, ...],
    path: Path,
    found_by: str,
    distributions: Mapping[str, Version],
    pins: Mapping[str, str],
) -> Root:
    """Return the root that the folders ``tops`` make up, shown to people as ``path``."""
    includes, libraries, binaries = _folders(machine, layout, tops)
    version = header_version(includes)
    major = version.major if version is not None else _major_of(layout, path, tops, distributions)
    if version is None:
        version = _metadata_version(major, distributions) or _json_version(path)
        major = version.major if version is not None and major is None else major
    return Root(
        source=source,
        layout=layout,
        path=path,
        folders=tops,
        major=major,
        version=version,
        found_by=found_by,
        include_dirs=includes,
        library_dirs=libraries,
        bin_dirs=binaries,
        system=machine.system,
        distributions=distributions,
        pins=pins,
    )


def _folders(
    machine: Machine, layout: Layout, tops: tuple[Path, ...]
) -> tuple[tuple[Path, ...], tuple[Path, ...], tuple[Path, ...]]:
    targets = [f"targets/{target}/" for target in machine.targets] if layout == "prefix" else []
    includes = [f"{prefix}include{more}" for prefix in ("", *targets) for more in ("", "/cccl")]
    if machine.system == "windows":
        libraries = ["lib/x64", "lib"]
        binaries = ["bin/x64", "bin/x86_64", "bin"]
    else:
        libraries = ["lib64", "lib", *(f"{target}lib" for target in targets)]
        libraries += [f"lib/{machine.processor}-linux-gnu"] if layout == "prefix" else []
        binaries = ["bin"]
    return (
        _existing(tops, includes),
        _existing(tops, libraries),
        _existing(tops, binaries),
    )


def _existing(tops: tuple[Path, ...], names: list[str]) -> tuple[Path, ...]:
    """Return the folders that are there, each once however many names lead to it."""
    found: dict[Path, Path] = {}
    for top in tops:
        for name in names:
            if (folder := top / name).is_dir():
                found.setdefault(folder.resolve(), folder)
    return tuple(found.values())


def _major_of(
    layout: Layout, path: Path, tops: tuple[Path, ...], distributions: Mapping[str, Version]
) -> int | None:
    if layout == "unified" and (match := _UNIFIED.fullmatch(path.name)) is not None:
        return int(match[1])
    return split_major(tops, distributions) if layout == "split" else None


def _metadata_version(major: int | None, distributions: Mapping[str, Version]) -> Minor | None:
    for name in ("nvidia-cuda-runtime", "nvidia-cuda-nvrtc", "nvidia-cuda-nvcc"):
        for full in (name, f"{name}-cu{major}"):
            version = distributions.get(full)
            if version is not None and version.major == major:
                return Minor.of(version)
    return None


def _json_version(path: Path) -> Minor | None:
    try:
        document = json.loads((path / "version.json").read_text(encoding="utf-8"))
        return Minor.of(Version(document["cuda"]["version"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def split_major(tops: tuple[Path, ...], distributions: Mapping[str, Version]) -> int | None:
    """Return the CUDA major of the split layout's folders: by headers, else by wheels' names."""
    declared = header_version(tuple(top / "include" for top in tops))
    if declared is not None:
        return declared.major
    for name in sorted(distributions, reverse=True):
        match = re.fullmatch(r"nvidia-(?:cuda-(?:runtime|nvrtc|nvcc)|cublas)-cu(\d+)", name)
        if match is not None:
            return int(match[1])
    return None
