"""The part of libstdc++ that a floor's systems have: the host's library in, a stub of it out.

A link against the stub takes the versions of the floor. What a module needs beyond them comes from
the fallbacks, or from libstdc++.a where that is asked for, hidden in the module itself, as Red
Hat's newer compilers do on their old systems. What both have stays shared, above all exceptions,
their types and the streams: they cross the boundary to torch, and two copies would not meet.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from wheelfarm.run import run
from wheelfarm.toolkit.floor.binutils import DynamicSymbol, HostCompiler
from wheelfarm.values import replace

LIBRARY = "libstdc++.so.6"
ARCHIVE = "libstdc++.a"

_PLACES = {
    "function": ".text",
    "object": ".bss",
    "thread": '.section .tbss,"awT",%nobits',
}
_TYPES = {"function": "%function", "object": "%object", "thread": "%tls_object"}


def write_libstdcxx(
    compiler: HostCompiler, symbols: Iterable[DynamicSymbol], allowed: frozenset[str], folder: Path
) -> None:
    """Write a stub that has those of a libstdc++'s ``symbols`` whose version is ``allowed``."""
    known = floor_symbols(symbols, allowed)
    source, script = folder / "libstdcxx.s", folder / "libstdcxx.map"
    source.write_text("\n".join(_assembly(known)) + "\n", encoding="utf-8")
    versions = sorted({symbol.version for symbol in known})
    # The last node hides the labels that the versioned names stand for.
    nodes = [f"{version} {{ }};\n" for version in versions] + ["LABELS { local: stub*; };\n"]
    script.write_text("".join(nodes), encoding="utf-8")
    run([
        compiler.program, "-shared", "-nostdlib", f"-Wl,-soname,{LIBRARY}",
        # After -Wl, a comma in the folder's name would part it.
        "-Xlinker", f"--version-script={script}", "-o", folder / LIBRARY, source,
    ])  # fmt: skip
    source.unlink()
    script.unlink()


def floor_symbols(
    symbols: Iterable[DynamicSymbol], allowed: frozenset[str]
) -> tuple[DynamicSymbol, ...]:
    """Return what the floor has; of a name whose default is newer, the newest that it has.

    ``std::condition_variable::wait`` is such a name: 3.4.11, and 3.4.30 by default.
    """
    known = [
        symbol
        for symbol in symbols
        if symbol.defined and symbol.version in allowed and symbol.name != symbol.version
    ]
    settled = {symbol.name for symbol in known if symbol.default}
    newest: dict[str, DynamicSymbol] = {}
    for symbol in known:
        best = newest.get(symbol.name)
        if best is None or _numbers(symbol.version) > _numbers(best.version):
            newest[symbol.name] = symbol
    return tuple(
        replace(symbol, default=True)
        if symbol.name not in settled and newest[symbol.name] is symbol
        else symbol
        for symbol in known
    )


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.partition("_")[2].split(".")
    return tuple(int(part) if part.isdigit() else 0 for part in parts)


def _assembly(symbols: Iterable[DynamicSymbol]) -> Iterator[str]:
    """Give each symbol a place of its own: a linker takes symbols of one place for one thing."""
    for number, symbol in enumerate(symbols):
        label = f"stub{number}"
        size = max(symbol.size, 1)
        yield _PLACES[symbol.kind]
        yield f"{'.weak' if symbol.weak else '.globl'} {label}"
        yield f".type {label}, {_TYPES[symbol.kind]}"
        yield f".size {label}, {size}"
        yield f"{label}: .skip {1 if symbol.kind == 'function' else size}"
        separator = "@@" if symbol.default else "@"
        yield f".symver {label}, {symbol.name}{separator}{symbol.version}"
    yield '.section .note.GNU-stack,"",%progbits'
