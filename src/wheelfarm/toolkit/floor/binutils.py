"""What a compiler brings with it: its machine, its libraries and their symbols, typed.

Everything is asked of the compiler itself, so that a cross compiler answers for its own target.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wheelfarm.errors import CouldNotLookError
from wheelfarm.model.versions import Minor
from wheelfarm.run import find_program, run

_GLIBC = "GLIBC_"
_FIELDS = 3
_FLAGS = 7
_UNDEFINED = "*UND*"

SymbolKind = Literal["function", "object", "thread"]


@dataclass(frozen=True, kw_only=True, slots=True)
class DynamicSymbol:
    """One symbol of a dynamic table; ``version`` is empty where it has none.

    ``default`` is False for a version that is kept for old programs alone.
    """

    name: str
    version: str
    default: bool
    defined: bool
    weak: bool
    kind: SymbolKind
    size: int

    @property
    def is_offered(self) -> bool:
        """Whether a link may take the symbol from this library, and takes this version of it."""
        return self.defined and self.default and self.name != self.version


@dataclass(frozen=True, kw_only=True, slots=True)
class HostCompiler:
    """A C++ compiler of this machine and what it links with.

    ``machine`` is its target's (``x86_64``, ``aarch64``), ``glibc`` what its target's libc is,
    ``linker`` the program and version that it runs.
    """

    program: Path
    version: str
    machine: str
    glibc: Minor
    linker: str

    def file(self, name: str) -> Path | None:
        """Return the file that the compiler finds under a name, None where it finds none."""
        found = Path(_asked(self.program, f"-print-file-name={name}"))
        return found.resolve() if found.is_absolute() and found.is_file() else None

    def tool(self, name: str) -> Path:
        """Return one of its binutils; CouldNotLookError where there is none."""
        found = _asked(self.program, f"-print-prog-name={name}")
        return find_program(found, hint="install binutils")

    def dynamic_symbols(self, library: Path) -> tuple[DynamicSymbol, ...]:
        """Return the dynamic symbols of a library."""
        text = run([self.tool("objdump"), "-T", library]).stdout
        return tuple(_symbols(text))

    def defined_names(self, archive: Path) -> frozenset[str]:
        """Return the names that the objects of an archive define."""
        text = run([self.tool("nm"), "--defined-only", "--extern-only", archive]).stdout
        lines = (line.split() for line in text.splitlines())
        return frozenset(words[2] for words in lines if len(words) == _FIELDS)


def host_compiler(name: str = "g++", *, path: str | None = None) -> HostCompiler:
    """Return the compiler of a name, looked for on ``path``.

    Raises CouldNotLookError where there is none, or where its target has no glibc.
    """
    program = find_program(name, path=path, hint="install one (Debian, Ubuntu: apt install g++)")
    libc = Path(_asked(program, "-print-file-name=libc.so.6"))
    if not libc.is_file():
        message = f"{program} links with no glibc: it knows no libc.so.6"
        raise CouldNotLookError(message, hint="a glibc floor is for glibc's systems")
    linker = _asked(program, "-Wl,--version", "-shared", "-nostdlib").splitlines()
    draft = HostCompiler(
        program=program,
        version=_asked(program, "--version").splitlines()[0],
        machine=_asked(program, "-dumpmachine").partition("-")[0],
        glibc=Minor(0, 0),
        linker=linker[0] if linker else "",
    )
    versions = (glibc_version(symbol.version) for symbol in draft.dynamic_symbols(libc))
    glibc = max(filter(None, versions))
    return HostCompiler(
        program=program,
        version=draft.version,
        machine=draft.machine,
        glibc=glibc,
        linker=draft.linker,
    )


def glibc_version(version: str) -> Minor | None:
    """Return the glibc of a version such as ``GLIBC_2.2.5`` (2.2), None for any other."""
    if not version.startswith(_GLIBC):
        return None
    parts = version.removeprefix(_GLIBC).split(".")
    numbers = [int(part) for part in parts[:2] if part.isdigit()]
    return Minor(numbers[0], numbers[1]) if len(numbers) == len(parts[:2]) > 1 else None


def _asked(program: Path, *words: str) -> str:
    environment = {**os.environ, "LC_ALL": "C"}
    return run([program, *words], env=environment, check=False).stdout.strip()


def _symbols(text: str) -> Iterator[DynamicSymbol]:
    """Read ``objdump -T``: address, flags in fixed columns, section, tab, size, version, name."""
    for line in text.splitlines():
        head, tab, tail = line.partition("\t")
        words = tail.split()
        if not tab or len(words) < _FIELDS - 1:
            continue
        _, _, columns = head.partition(" ")
        flags, section = columns[:_FLAGS], columns[_FLAGS:].strip()
        version = words[1] if len(words) >= _FIELDS else ""
        name = version.strip("()")
        yield DynamicSymbol(
            name=words[-1],
            version="" if name == "Base" else name,
            default=not version.startswith("("),
            defined=section != _UNDEFINED,
            weak="w" in flags,
            kind=_kind(flags, section),
            size=int(words[0], 16),
        )


def _kind(flags: str, section: str) -> SymbolKind:
    if section in {".tbss", ".tdata"}:
        return "thread"
    return "function" if "F" in flags or "i" in flags else "object"
