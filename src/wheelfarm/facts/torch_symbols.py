"""What a binary takes of libtorch: from its symbols to the torch that they tie it to.

Which functions make up the stable ABI, and since when, stands in data/torch_stable_symbols.json,
written from torch's headers by bin/torch_stable_symbols.py. Everything else of torch is a C++ name
in one of its namespaces, or a function of its Python binding; of those nothing is promised from one
minor to the next. Mangled names are read by the Itanium C++ ABI, section 5.1, and MSVC's habit.
"""

import functools
import json
import re
from collections.abc import Iterable, Iterator
from importlib import resources

from wheelfarm.facts.buffers import Buffer
from wheelfarm.facts.libraries import is_torch_library
from wheelfarm.facts.model import BinaryFacts, TorchUse
from wheelfarm.model.axis import CxxAbi
from wheelfarm.model.versions import Minor

_NAMESPACES = frozenset({"c10", "at", "torch", "caffe2", "c10d", "torch_shm"})
_C_NAMES = re.compile(r"(aoti_)?torch_\w+|aoti_record_function_\w+|TH[PC][A-Z]\w*")
#: A nested name's first part: prefixes for data of a type, qualifiers, then the length.
_NESTED = re.compile(r"_Z(?:T[VTIS]|GV|Th?v?n?\d+_|Tc\w{0,8}?)?N?[rVKRO]*(\d{1,4})")
_MSVC = re.compile(r"@(c10|at|torch|caffe2|c10d)@@")
_KEPT = 8
#: What opens a library by its name at run time (a PE's imports carry their DLL before a ``!``).
_OPENERS = frozenset(
    {"dlopen", "dlmopen", "LoadLibraryA", "LoadLibraryW", "LoadLibraryExA", "LoadLibraryExW"}
)
#: How the names of torch's libraries begin in a binary's data, and how they end. Windows programs
#: have them in UTF-16 as well.
_OPENED = {
    b"libtorch": re.compile(rb"libtorch(?:_[a-z_]+)?\.so(?=[.\d]*\0)"),
    b"libc10": re.compile(rb"libc10(?:_[a-z_]+)?\.so(?=[.\d]*\0)"),
}
_OPENED_WINDOWS = {
    b"torch": re.compile(rb"torch(?:_[a-z_]+)?\.dll(?=\0)"),
    b"c10": re.compile(rb"c10(?:_[a-z_]+)?\.dll(?=\0)"),
    b"t\0o\0r\0c\0h\0": re.compile(rb"t\0o\0r\0c\0h\0(?:[a-z_]\0)*\.\0d\0l\0l\0(?=\0\0)"),
    b"c\x001\x000\0": re.compile(rb"c\x001\x000\0(?:[a-z_]\0)*\.\0d\0l\0l\0(?=\0\0)"),
}
_NEW_STRING = "__cxx11"


@functools.cache
def stable_symbols() -> dict[str, Minor]:
    """Return the functions of torch's stable ABI and the first minor that has each."""
    file = resources.files("wheelfarm.facts") / "data" / "torch_stable_symbols.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    return {
        name: Minor.parse(minor) for minor, names in document["since"].items() for name in names
    }


def is_torch_symbol(name: str) -> bool:
    """Return whether an undefined symbol can only come from libtorch."""
    if name.startswith("_Z"):
        match = _NESTED.match(name)
        if match is None:
            return False
        start = match.end()
        return name[start : start + int(match[1])] in _NAMESPACES
    if name.startswith("?"):
        return _MSVC.search(name) is not None
    return _C_NAMES.fullmatch(name) is not None


def opened_torch(facts: BinaryFacts, data: Buffer) -> tuple[str, ...]:
    """Return the libraries of torch that a binary's data names, where it can open any by name.

    Such a link stands in no table. A binary that needs torch's libraries anyway is not looked
    through. The plain search comes first: a library may have a gigabyte.
    """
    if any(map(is_torch_library, facts.needed)):
        return ()
    if not any(name.rpartition("!")[2] in _OPENERS for name in facts.undefined):
        return ()
    found: set[str] = set()
    for start, pattern in (_OPENED_WINDOWS if facts.kind == "pe" else _OPENED).items():
        at = data.find(start)
        while at >= 0:
            match = pattern.match(data, at)
            if match is not None:
                found.add(match[0].replace(b"\0", b"").decode("ascii"))
            at = data.find(start, at + 1)
    return tuple(sorted(filter(is_torch_library, found)))


def torch_use(facts: BinaryFacts, own: frozenset[str] = frozenset()) -> TorchUse | None:
    """Return what a binary takes of libtorch, None for nothing.

    ``own`` are symbols that another binary of the same wheel defines: they are not torch's then.
    """
    libraries = tuple(name for name in facts.needed + facts.delayed if is_torch_library(name))
    names = tuple(_torch_names(facts, own))
    if not libraries and not names:
        return None
    known = stable_symbols()
    unstable = [name for name in names if name not in known]
    last = max((name for name in names if name in known), key=known.__getitem__, default="")
    abi, symbol = cxx_abi_of(names)
    return TorchUse(
        libraries=libraries,
        symbols=len(names),
        unstable=tuple(unstable[:_KEPT]),
        unstable_count=len(unstable),
        from_torch=known[last] if last else None,
        from_symbol=last,
        cxx_abi=abi,
        cxx_abi_symbol=symbol,
    )


def _torch_names(facts: BinaryFacts, own: frozenset[str]) -> Iterator[str]:
    for name in facts.undefined:
        library, separator, symbol = name.partition("!")
        if facts.kind == "pe" and separator:
            if is_torch_library(library):
                yield symbol
        elif is_torch_symbol(name) and name not in own:
            yield name


def cxx_abi_of(symbols: Iterable[str]) -> tuple[CxxAbi | None, str]:
    """Return the libstdc++ ABI that mangled names with a std::string show, and the first of them.

    The new ABI writes std::string as a name in ``std::__cxx11``, the old one as ``Ss``.
    """
    for name in symbols:
        if not name.startswith("_Z"):
            continue
        if _NEW_STRING in name:
            return 1, name
        if "Ss" in name and "Ss" in _tokens(name):
            return 0, name
    return None, ""


def _tokens(name: str) -> Iterator[str]:
    """Yield the parts of a mangled name, identifiers skipped, so that ``Ss`` is a type."""
    at = 2
    while at < len(name):
        if name[at].isdigit():
            digits = re.match(r"\d+", name[at:])
            length = digits[0] if digits else "1"
            at += len(length) + int(length)
        elif (match := _SUBSTITUTION.match(name, at)) is not None:
            yield match[0]
            at = match.end()
        else:
            yield name[at]
            at += 1


#: Back references (S_, S1_, T0_), standard abbreviations (Ss), literals (Lj16E), constructors and
#: destructors (C2, CI1, D0), bounds of arrays and vectors (A16_, Dv4_), parameters (fp0_).
_SUBSTITUTION = re.compile(
    r"S[0-9A-Z]*_|S[absiodt]|T[0-9]*_|L[a-z]n?\d+E|CI?[1-5]|D[0-5]|(?:A|Dv)\d+_|f(?:L\d+)?p[rVK]*\d*_"
)
