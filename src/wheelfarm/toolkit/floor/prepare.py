"""A floor made ready once and kept: a compiler and a glibc come in, a folder to link with goes out.

The folder holds, under the names that a link asks for (``libc.so``, ``libm.so``, ...), linker
scripts that lead to the floor's stub libraries, to libc's static remainder and to the fallbacks,
and the list of what has no answer at the floor (``limits``).
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from wheelfarm import files
from wheelfarm.errors import CouldNotLookError
from wheelfarm.facts.manylinux import JUDGED, policies, policy_for
from wheelfarm.model.libstdcxx import LibstdcxxChoice
from wheelfarm.model.versions import Minor
from wheelfarm.toolkit.floor import fallbacks, libstdcxx, stubs
from wheelfarm.toolkit.floor.binutils import HostCompiler, glibc_version

_FORMAT = 1
_RECORD = "record.json"
_LIMITS = "limits"
#: Vector forms of libm's functions; no stub has them, and their versions are judged like others.
_VECTOR_MATH = "libmvec.so.1"
#: What libc.so brings beside libc itself: functions that newer systems have moved into it.
_MOVED = ("pthread", "dl", "rt", "util")


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
        machine = self.compiler.machine
        stubs.write_stubs(self.source, glibc=self.glibc, machine=machine, folder=made)
        fallbacks.write_fallbacks(self.compiler, made)
        for name, script in _scripts(final, self.compiler):
            files.write_text(made / name, script)
        if self.choice == "static":
            self.write_libstdcxx(made, final)
        lines = [*self.promised(), *self.unanswered(made)]
        files.write_text(made / _LIMITS, "\n".join(lines) + "\n")

    def write_libstdcxx(self, made: Path, final: Path) -> None:
        """Write the floor's part of libstdc++, and where the rest of it comes from."""
        library = self.compiler.file(libstdcxx.LIBRARY)
        archive = self.compiler.file(libstdcxx.ARCHIVE)
        if library is None or archive is None:
            message = f"{self.compiler.program} has no {libstdcxx.ARCHIVE} to link from"
            raise CouldNotLookError(
                message, hint="Debian, Ubuntu: apt-get install libstdc++-12-dev"
            )
        libstdcxx.write_libstdcxx(self.compiler, library, self.allowed(), made)
        script = f"GROUP ( {_quoted(final / libstdcxx.LIBRARY)} {_quoted(archive)} )\n"
        files.write_text(made / "libstdc++.so", script)

    def allowed(self) -> frozenset[str]:
        """Return the versions, beside glibc's own, that every system of the floor has."""
        promised = policy_for(self.glibc).versions.get(self.compiler.machine, {})
        return frozenset(f"{name}_{number}" for name in JUDGED for number in promised.get(name, ()))

    def promised(self) -> Iterator[str]:
        """Yield what the floor promises, and from which glibc on the rest is promised."""
        yield f"floor {self.glibc} {self.glibc}"
        known = self.allowed()
        yield from (f"allowed {version} {self.glibc}" for version in sorted(known))
        later: dict[str, Minor] = {}
        for policy in policies():
            for name in JUDGED:
                for number in policy.versions.get(self.compiler.machine, {}).get(name, ()):
                    if policy.glibc > self.glibc:
                        later.setdefault(f"{name}_{number}", policy.glibc)
        yield from (f"later {name} {later[name]}" for name in sorted(later.keys() - known))

    def unanswered(self, made: Path) -> Iterator[str]:
        """Yield the functions of the machine's glibc that nothing at the floor answers."""
        answered: set[str] = set()
        for file in (*stubs.LIBRARIES.values(), stubs.LOADER):
            answered |= {symbol.name for symbol in self.compiler.dynamic_symbols(made / file)}
        for archive in (stubs.REMAINDER, fallbacks.ARCHIVE):
            answered |= self.compiler.defined_names(made / archive)
        newer: dict[str, Minor] = {}
        for name in stubs.LIBRARIES.values():
            path = self.compiler.file(name)
            for symbol in () if path is None else self.compiler.dynamic_symbols(path):
                since = glibc_version(symbol.version)
                if since is not None and since > self.glibc and symbol.is_offered:
                    newer[symbol.name] = min(since, newer.get(symbol.name, since))
        yield from (f"symbol {name} {newer[name]}" for name in sorted(newer.keys() - answered))


def _scripts(folder: Path, compiler: HostCompiler) -> Iterator[tuple[str, str]]:
    """Yield the linker scripts; a library that a link names and does not use is not needed."""
    place = {name: _quoted(folder / file) for name, file in stubs.LIBRARIES.items()}
    moved = " ".join(place[name] for name in _MOVED)
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
