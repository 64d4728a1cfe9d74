"""Values of old files: read as they are written, though YAML would read them as numbers."""

import re
from typing import Any

from wheelfarm.recipes.document import WrittenFloat
from wheelfarm.recipes.migrate.notes import Notes

#: One line of a pre-build script that only sets a variable of the build.
_ECHO = re.compile(
    r"""echo\s+(?P<quote>["']?)(?P<name>[A-Za-z_]\w*)=(?P<value>[^"'$`\\]*)(?P=quote)\s*"""
    r""">>\s*["']?\$\{?GITHUB_ENV\}?["']?""",
    re.ASCII,
)

#: Text that the shell takes as it is, without quotes.
_HARMLESS = re.compile(r"[\w.,:/=+@% -]*", re.ASCII)

#: Installer names of CUDA parts -> extras of PyPI's cuda-toolkit.
_COMPONENTS = {
    "cublas": "cublas",
    "cufft": "cufft",
    "curand": "curand",
    "cusolver": "cusolver",
    "cusparse": "cusparse",
    "cudart": "cudart",
    "cuda_cudart": "cudart",
    "npp": "npp",
    "nvjpeg": "nvjpeg",
    "nvjitlink": "nvjitlink",
    "nvrtc": "nvrtc",
    "cuda_nvrtc": "nvrtc",
    "nvtx": "nvtx",
    "cuda_nvtx": "nvtx",
    "cupti": "cupti",
    "cuda_cupti": "cupti",
    "thrust": "cccl",
    "cccl": "cccl",
    "nvml": "nvml",
    "cufile": "cufile",
    "nvptxcompiler": "nvptxcompiler",
}


def text_of(value: object, key: str, notes: Notes) -> str:
    """Return a value as text, as it stands in the file; a number is noted."""
    if isinstance(value, WrittenFloat):
        notes.changed(
            key,
            f"{value.text} was unquoted, so YAML read the number {float(value)}; now quoted: check",
        )
        return value.text
    if isinstance(value, bool) or not isinstance(value, str | int):
        notes.to_do(key, f"expected text, found {value!r}")
        return ""
    return str(value)


def words_of(value: object, key: str, notes: Notes) -> list[str]:
    """Return a list of words from a list, or from words separated by blanks."""
    if isinstance(value, str):
        return value.split()
    if isinstance(value, list):
        return [text_of(item, f"{key}[{index}]", notes) for index, item in enumerate(value)]
    return [text_of(value, key, notes)] if value is not None else []


def components_of(value: object, key: str, notes: Notes) -> list[str]:
    """Return extras of cuda-toolkit for an installer's component names."""
    found: list[str] = []
    for word in words_of(value, key, notes):
        plain = word.lower().replace("-", "_").removesuffix("_dev").removeprefix("lib")
        extra = _COMPONENTS.get(plain)
        if extra is None:
            notes.to_do(key, f"{word} is no part of the CUDA toolkit's wheels that is known")
        elif extra not in found:
            found.append(extra)
            if extra != word:
                notes.changed(key, f"{word} is {extra} (an extra of cuda-toolkit)")
    return found


def variables_of(script: str) -> dict[str, str] | None:
    """Return the variables that a pre-build script sets, where it does nothing else."""
    found: dict[str, str] = {}
    for line in script.splitlines():
        if not (text := line.strip()) or text.startswith("#"):
            continue
        match = _ECHO.fullmatch(text)
        if match is None:
            return None
        value = match["value"]
        if not match["quote"]:
            # Without quotes the shell joins words by one blank, and much else has a meaning.
            value = " ".join(value.split())
            if not _HARMLESS.fullmatch(value):
                return None
        found[match["name"]] = value
    return found


def reasons_of(readme: str) -> dict[str, str]:
    """Return the reasons that a README gives under "Overrides": file name -> sentence.

    The lines are of the form ``pcto_override.yml, arch_override.yml: why``; text without a file's
    name holds for all (key "").
    """
    found: dict[str, str] = {}
    inside = False
    for line in readme.splitlines():
        if line.startswith("#"):
            inside = "override" in line.lower()
        elif inside and line.strip():
            names, colon, why = line.strip().lstrip("-* ").partition(":")
            files = [name.strip().strip("`*") for name in names.split(",")]
            if colon and all(name.endswith((".yml", ".yaml")) for name in files):
                found |= dict.fromkeys(files, why.strip())
            else:
                found[""] = f"{found.get('', '')} {line.strip()}".strip()
    return found


def strings(value: Any, key: str, notes: Notes) -> Any:
    """Return a nested value whose numbers with a point are text, as they were written."""
    if isinstance(value, dict):
        return {name: strings(item, f"{key}.{name}", notes) for name, item in value.items()}
    if isinstance(value, list):
        return [strings(item, f"{key}[{index}]", notes) for index, item in enumerate(value)]
    return text_of(value, key, notes) if isinstance(value, WrittenFloat) else value
