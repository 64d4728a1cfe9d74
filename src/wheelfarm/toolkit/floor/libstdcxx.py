"""The part of libstdc++ that a floor's systems have: the host's library in, a stub of it out.

A module that needs more takes the rest from libstdc++.a, hidden in itself, as Red Hat's newer
compilers do on their old systems. What both have stays shared, above all exceptions, their types
and the streams: they cross the boundary to torch, and two copies of them would not meet.
"""

from collections.abc import Iterable
from pathlib import Path

from wheelfarm.run import run
from wheelfarm.toolkit.floor.binutils import DynamicSymbol, HostCompiler

LIBRARY = "libstdc++.so.6"
ARCHIVE = "libstdc++.a"


def write_libstdcxx(
    compiler: HostCompiler, library: Path, allowed: frozenset[str], folder: Path
) -> None:
    """Write a stub of the compiler's own ``library`` that has the ``allowed`` versions alone."""
    known = [
        symbol
        for symbol in compiler.dynamic_symbols(library)
        if symbol.defined and symbol.version in allowed and symbol.name != symbol.version
    ]
    source, script = folder / "libstdcxx.s", folder / "libstdcxx.map"
    source.write_text("\n".join(_assembly(known)) + "\n", encoding="utf-8")
    versions = sorted({symbol.version for symbol in known})
    nodes = [
        f"{version} {{ {'local: *;' if not at else ''} }};" for at, version in enumerate(versions)
    ]
    script.write_text("\n".join(nodes) + "\n", encoding="utf-8")
    run([
        compiler.program, "-shared", "-nostdlib", f"-Wl,-soname,{LIBRARY}",
        f"-Wl,--version-script={script}", "-o", folder / LIBRARY, source,
    ])  # fmt: skip
    source.unlink()
    script.unlink()


def _assembly(symbols: Iterable[DynamicSymbol]) -> Iterable[str]:
    """Give each symbol a place of its own: a linker takes symbols of one place for one thing."""
    places = {
        "function": ".text",
        "object": ".bss",
        "thread": '.section .tbss,"awT",%nobits',
    }
    types = {"function": "%function", "object": "%object", "thread": "%tls_object"}
    for number, symbol in enumerate(symbols):
        label = f"stub{number}"
        size = max(symbol.size, 1)
        yield places[symbol.kind]
        yield f"{'.weak' if symbol.weak else '.globl'} {label}"
        yield f".type {label}, {types[symbol.kind]}"
        yield f".size {label}, {size}"
        yield f"{label}: .skip {1 if symbol.kind == 'function' else size}"
        separator = "@@" if symbol.default else "@"
        yield f".symver {label}, {symbol.name}{separator}{symbol.version}"
    yield '.section .note.GNU-stack,"",%progbits'
