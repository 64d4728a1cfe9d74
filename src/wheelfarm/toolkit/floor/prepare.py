"""A floor made ready once and kept: a compiler and a glibc come in, a folder to link with goes out.

The folder holds, under the names that a link asks for (``libc.so``, ``libm.so``, ...), linker
scripts that lead to the floor's stub libraries, to libc's static remainder and to the fallbacks,
and the list of what has no answer at the floor (``limits``).
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from wheelfarm import files
from wheelfarm.errors import CouldNotLookError
from wheelfarm.facts.manylinux import JUDGED, policies, policy_for
from wheelfarm.model.libstdcxx import LibstdcxxChoice
from wheelfarm.model.versions import Minor
from wheelfarm.toolkit.floor import fallbacks, libstdcxx, stubs
from wheelfarm.toolkit.floor.binutils import DynamicSymbol, HostCompiler, glibc_version

_FORMAT = 3
_RECORD = "record.json"
_LIMITS = "limits"
#: Vector forms of libm's functions; no stub has them, and their versions are judged like others.
_VECTOR_MATH = "libmvec.so.1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Floor:
    """A floor that is ready to link with.

    ``folder`` is to be searched before the system's own library folders, ``limits`` is the file
    that names what has no answer at ``glibc``, ``source`` is where the stub libraries come from.
    """

    glibc: Minor
    compiler: HostCompiler
    libstdcxx: LibstdcxxChoice
    folder: Path
    source: str
    digests: Mapping[str, str]

    @property
    def limits(self) -> Path:
        """The file that names every version and symbol that the floor lacks."""
        return self.folder / _LIMITS


def prepare_floor(
    glibc: Minor,
    compiler: HostCompiler,
    *,
    cache: Path,
    libstdcxx: LibstdcxxChoice = "shared",
) -> Floor | None:
    """Return the floor, made in ``cache`` where it is not there or not whole.

    None where the compiler's own glibc is not newer: then every link has the floor already. Raises
    CouldNotLookError where the stub libraries cannot be made.
    """
    if compiler.glibc <= glibc:
        return None
    plan = _Plan(glibc=glibc, compiler=compiler, choice=libstdcxx, source=stubs.stub_source())
    name = f"glibc-{glibc}-{compiler.machine}-{plan.key()[:16]}"
    folder = cache / name
    with files.locked(cache / f"{name}.lock"):
        digests = _whole(folder)
        if digests is None:
            with files.replacing_folder(folder) as made:
                plan.write(made, folder)
                digests = {path.name: files.sha256(path) for path in sorted(made.iterdir())}
                record = {"format": _FORMAT, "source": str(plan.source), "sha256": digests}
                files.write_text(made / _RECORD, json.dumps(record, indent=1) + "\n")
        else:
            # What was used last goes last when the cache is held in a budget.
            with contextlib.suppress(OSError):
                os.utime(folder / _RECORD)
    return Floor(
        glibc=glibc,
        compiler=compiler,
        libstdcxx=libstdcxx,
        folder=folder,
        source=str(plan.source),
        digests=digests,
    )


def _whole(folder: Path) -> Mapping[str, str] | None:
    """Return the recorded digests of a folder whose files still have them, else None."""
    try:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        digests: dict[str, str] = record["sha256"]
        whole = all(files.sha256(folder / name) == digest for name, digest in digests.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return digests if whole else None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Plan:
    """What a floor is made from."""

    glibc: Minor
    compiler: HostCompiler
    choice: LibstdcxxChoice
    source: stubs.StubSource

    def key(self) -> str:
        """Return the digest of everything."""
        compiler = self.compiler
        parts = {
            "format": _FORMAT,
            "glibc": str(self.glibc),
            "compiler": [str(compiler.program), compiler.version, compiler.machine],
            "libraries": {
                name: files.sha256(path)
                for name in (*stubs.LIBRARIES.values(), libstdcxx.LIBRARY, libstdcxx.ARCHIVE)
                if (path := compiler.file(name)) is not None
            },
            "libstdcxx": self.choice,
            "source": [self.source.version, sorted(self.source.sha256.items())],
            "fallbacks": fallbacks.digest(),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def write(self, made: Path, final: Path) -> None:
        """Fill ``made``; its scripts name the files by their places in ``final``."""
        compiler, machine = self.compiler, self.compiler.machine
        stubs.write_stubs(self.source, glibc=self.glibc, machine=machine, folder=made)
        fallbacks.write_fallbacks(compiler, made)
        libstdcxx.write_libstdcxx(compiler, self.libstdcxx_symbols(), self.allowed(), made)
        scripts = [
            *_scripts(final, self.glibc, compiler),
            ("libstdc++.so", self.libstdcxx_script(final)),
        ]
        for name, script in scripts:
            files.write_text(made / name, script)
        lines = [*self.promised(), *self.unanswered(made)]
        files.write_text(made / _LIMITS, "\n".join(lines) + "\n")

    def libstdcxx_symbols(self) -> tuple[DynamicSymbol, ...]:
        """Return the symbols of the compiler's own libstdc++."""
        return self.compiler.dynamic_symbols(self.library(libstdcxx.LIBRARY))

    def libstdcxx_script(self, folder: Path) -> str:
        """Return the linker script that leads to the floor's libstdc++ and to the rest of it."""
        # Fallbacks come first: what libstdc++.a has for GCC 13's <iostream> makes std::cout anew,
        # and they are weak, so that a file of the archive may bring the same names.
        parts = [folder / libstdcxx.LIBRARY, folder / fallbacks.ARCHIVE]
        if self.choice == "static":
            parts.append(self.library(libstdcxx.ARCHIVE))
        return f"GROUP ( {' '.join(map(_quoted, parts))} )\n"

    def library(self, name: str) -> Path:
        """Return one of the compiler's libraries; CouldNotLookError where it has none."""
        found = self.compiler.file(name)
        if found is None:
            message = f"{self.compiler.program} has no {name} to link with"
            raise CouldNotLookError(message, hint="Debian, Ubuntu: apt-get install g++")
        return found

    def allowed(self) -> frozenset[str]:
        """Return the versions, beside glibc's own, that every system of the floor has."""
        promised = policy_for(self.glibc).versions.get(self.compiler.machine, {})
        return frozenset(f"{name}_{number}" for name in JUDGED for number in promised.get(name, ()))

    def later(self) -> dict[str, Minor]:
        """Return the versions that the floor lacks, with the first glibc whose systems have it."""
        result: dict[str, Minor] = {}
        for policy in policies():
            for name in JUDGED:
                for number in policy.versions.get(self.compiler.machine, {}).get(name, ()):
                    if policy.glibc > self.glibc:
                        result.setdefault(f"{name}_{number}", policy.glibc)
        return {name: result[name] for name in sorted(result.keys() - self.allowed())}

    def promised(self) -> Iterator[str]:
        """Yield what the floor promises, and from which glibc on the rest is promised."""
        yield f"floor {self.glibc} - {self.glibc}"
        yield from (f"allowed {name} - {self.glibc}" for name in sorted(self.allowed()))
        yield from (f"later {name} - {since}" for name, since in self.later().items())

    def unanswered(self, made: Path) -> Iterator[str]:
        """Yield what the machine's glibc and libstdc++ have and nothing at the floor answers."""
        answered: set[str] = set()
        for file in (*stubs.library_files(self.glibc), libstdcxx.LIBRARY):
            answered |= {symbol.name for symbol in self.compiler.dynamic_symbols(made / file)}
        for archive in (stubs.REMAINDER, fallbacks.ARCHIVE):
            answered |= self.compiler.defined_names(made / archive)
        if self.choice == "static":
            answered |= self.compiler.defined_names(self.library(libstdcxx.ARCHIVE))
        found = {symbol.name: symbol for symbol in self.libstdcxx_symbols() if symbol.is_offered}
        for name in stubs.LIBRARIES.values():
            path = self.compiler.file(name)
            for symbol in () if path is None else self.compiler.dynamic_symbols(path):
                if symbol.is_offered:
                    found.setdefault(symbol.name, symbol)
        later = self.later()
        for name in sorted(found.keys() - answered):
            version = found[name].version
            since = glibc_version(version) or later.get(version)
            if since is None or since > self.glibc:
                yield f"symbol {name} {version or '-'} {since or '-'}"


def _scripts(folder: Path, glibc: Minor, compiler: HostCompiler) -> Iterator[tuple[str, str]]:
    """Yield the linker scripts; a library that a link names and does not use is not needed."""
    there = stubs.library_files(glibc)
    libc = stubs.LIBRARIES["c"]
    place = {
        name: _quoted(folder / (file if file in there else libc))
        for name, file in stubs.LIBRARIES.items()
    }
    # Functions that newer systems have in libc itself, where links do not ask for more.
    moved = " ".join(place[name] for name in stubs.MOVED)
    archives = f"{_quoted(folder / stubs.REMAINDER)} {_quoted(folder / fallbacks.ARCHIVE)}"
    loader = _quoted(folder / stubs.LOADER)
    yield "libc.so", f"GROUP ( {place['c']} {archives} AS_NEEDED ( {moved} {loader} ) )\n"
    vector = compiler.file(_VECTOR_MATH)
    more = "" if vector is None else f" AS_NEEDED ( {_quoted(vector)} )"
    yield "libm.so", f"GROUP ( {place['m']}{more} )\n"
    for name in stubs.LIBRARIES:
        if name not in {"c", "m"}:
            yield f"lib{name}.so", f"INPUT ( AS_NEEDED ( {place[name]} ) )\n"


def _quoted(path: Path) -> str:
    """Return a path as a linker script takes it."""
    text = str(path)
    if '"' in text or "\n" in text:
        message = f"a linker script cannot name {text!r}"
        raise CouldNotLookError(message, hint="set WHEELFARM_CACHE to another folder")
    return f'"{text}"'
