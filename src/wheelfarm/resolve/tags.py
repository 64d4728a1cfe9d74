"""Wheel tags against a host: python and ABI tags, platform tags. The quick rules, by name alone.

PyPA specifications, "Platform compatibility tags"; PEP 425, 513, 571, 599, 600, 656; PEP 703 for
free-threaded Pythons, which load neither abi3 nor default-ABI modules.
"""

import re

from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor
from wheelfarm.resolve.host import Host, Libc

_INTERPRETER = re.compile(r"(cp|py)(\d)(\d*)", re.ASCII)
_MANYLINUX = re.compile(r"manylinux_(\d+)_(\d+)_(\w+)", re.ASCII)
_MUSLLINUX = r"musllinux_(\d+)_(\d+)_(\w+)"
_LEGACY = r"manylinux(1|2010|2014)_(\w+)"
_LEGACY_GLIBC = {"1": Minor(2, 5), "2010": Minor(2, 12), "2014": Minor(2, 17)}


def python_refusal(pythons: tuple[str, ...], abis: tuple[str, ...], host: Host) -> str:
    """Return why no (python, ABI) pair of a name runs on the host's Python; empty where one does.

    A host whose Python is not known refuses nothing.
    """
    python = host.python.value
    if python is None or python.version is None:
        return ""
    if any(_python_fits(tag, abi, python) for tag in pythons for abi in abis):
        return ""
    tags = f"{'.'.join(pythons)}-{'.'.join(abis)}"
    return f"is for {tags}, this is Python {python.dotted}"


def _python_fits(tag: str, abi: str, python: PythonTag) -> bool:
    match = _INTERPRETER.fullmatch(tag)
    if match is None or python.version is None:
        return False
    version = Minor(int(match[2]), int(match[3])) if match[3] else None
    if abi == "none":
        return _pure_fits(match[1], version, int(match[2]), python.version)
    if match[1] != "cp" or version is None:
        return False
    if abi == "abi3":
        return PythonTag("abi3", version).serves(python)
    free = abi.endswith("t")
    if abi.rstrip("tm") != f"cp{version.major}{version.minor}":
        return False
    return PythonTag("exact", version, free).serves(python)


def _pure_fits(kind: str, version: Minor | None, major: int, python: Minor) -> bool:
    if version is None:
        return major == python.major
    if kind == "cp":
        return version == python
    return version.major == python.major and version.minor <= python.minor


def platform_refusal(platforms: tuple[str, ...], host: Host) -> str:
    """Return why no platform tag of a name fits the host; empty where one does.

    A host whose platform is not known refuses nothing; one whose C library is not known refuses
    none for its version.
    """
    platform = host.platform.value
    if platform is None:
        return ""
    reasons = [_platform_refusal(tag, platform, host.libc.value) for tag in platforms]
    return "" if "" in reasons else reasons[0]


def _platform_refusal(tag: str, platform: str, libc: Libc | None) -> str:
    if tag == "any":
        return ""
    system, _, machine = platform.partition("_")
    foreign = f"is for {tag}, this is {platform}"
    if system == "linux":
        return _linux_refusal(tag, machine, libc, foreign)
    if system == "windows":
        names = {"amd64": "win_amd64", "arm64": "win_arm64", "x86": "win32"}
        return "" if tag == names.get(machine) else foreign
    if system == "macosx":
        fits = tag.startswith("macosx_") and tag.endswith((f"_{machine}", "_universal2"))
        return "" if fits else foreign
    return foreign


def _linux_refusal(tag: str, machine: str, libc: Libc | None, foreign: str) -> str:
    if tag == f"linux_{machine}":
        return ""
    stated = _stated(tag)
    if stated is None or stated[2] != machine:
        return foreign
    if libc is None:
        return ""
    kind, needed, _ = stated
    if libc.kind != kind:
        return f"is for {kind}, this system has {libc.kind}"
    if libc.version < needed:
        return f"needs {kind} {needed}, this system has {libc.version}"
    return ""


def _stated(tag: str) -> tuple[str, Minor, str] | None:
    """Return the C library, its version and the processor that a tag states; None for no such."""
    if not tag.startswith(("manylinux", "musllinux")):
        return None
    if (match := _MANYLINUX.fullmatch(tag)) is not None:
        return "glibc", Minor(int(match[1]), int(match[2])), match[3]
    if (match := re.fullmatch(_LEGACY, tag, re.ASCII)) is not None:
        return "glibc", _LEGACY_GLIBC[match[1]], match[2]
    if (match := re.fullmatch(_MUSLLINUX, tag, re.ASCII)) is not None:
        return "musl", Minor(int(match[1]), int(match[2])), match[3]
    return None


def promises_nothing(platforms: tuple[str, ...]) -> bool:
    """Return whether a name has only plain ``linux_*`` tags, which say nothing of glibc."""
    return all(tag.startswith("linux_") for tag in platforms)
