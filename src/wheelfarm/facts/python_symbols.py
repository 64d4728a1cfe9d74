"""What a binary takes of CPython: from its symbols to the ABI that it really uses.

The members of the stable ABI, and the version that added each, are abi3info's (written from
CPython's own stable_abi.toml).
"""

import functools
import re
from collections.abc import Iterator

from wheelfarm.facts.model import BinaryFacts, PythonUse
from wheelfarm.model.versions import Minor

_NAME = re.compile(r"_?Py[A-Z_]\w*")
_INIT = re.compile(r"PyInit_(\w+)|PyInitU_(\w+)|PyModExport_(\w+)")
_DLL = re.compile(r"python3\d*t?\.dll", re.IGNORECASE)
_FREE_THREADED_DLL = re.compile(r"python3\d*t\.dll", re.IGNORECASE)
#: Functions that only the free-threaded build's macros call (CPython's Include/refcount.h).
_FREE_THREADED = frozenset(
    {"_Py_DecRefShared", "_Py_DecRefSharedDebug", "_Py_MergeZeroLocalRefcount"}
)
#: Called by the GIL build's inlined Py_DECREF, and never by the free-threaded one's.
_WITH_LOCK = frozenset({"_Py_Dealloc"})
_KEPT = 8


def python_use(facts: BinaryFacts) -> PythonUse | None:
    """Return what a binary takes of CPython, None for nothing."""
    names = tuple(_python_names(facts))
    module = next((_module(name) for name in facts.defined if _INIT.fullmatch(name)), "")
    if not names and not module:
        return None
    added = [(name, _added(name)) for name in names]
    unstable = [name for name, since in added if since is None]
    floors = [(since, name) for name, since in added if since is not None]
    floor, symbol = max(floors, default=(None, ""))
    return PythonUse(
        module=module,
        symbols=len(names),
        unstable=tuple(unstable[:_KEPT]),
        floor=floor,
        floor_symbol=symbol,
        free_threaded=_free_threaded(facts, names),
    )


def _python_names(facts: BinaryFacts) -> Iterator[str]:
    for name in facts.undefined:
        library, separator, symbol = name.partition("!")
        if facts.kind == "pe" and separator:
            if _DLL.fullmatch(library):
                yield symbol
        elif _NAME.fullmatch(name):
            yield name


def _module(name: str) -> str:
    match = _INIT.fullmatch(name)
    return "" if match is None else next(filter(None, match.groups()), "")


@functools.cache
def _added(name: str) -> Minor | None:
    """Return the Python whose stable ABI first had a symbol; None for one outside of it."""
    from abi3info import DATAS, FUNCTIONS
    from abi3info.models import Symbol

    found = FUNCTIONS.get(Symbol(name)) or DATAS.get(Symbol(name))
    return None if found is None else Minor(found.added.major, found.added.minor)


def _free_threaded(facts: BinaryFacts, names: tuple[str, ...]) -> bool | None:
    if facts.kind == "pe":
        dlls = [name for name in facts.needed if _DLL.fullmatch(name)]
        return any(map(_FREE_THREADED_DLL.fullmatch, dlls)) if dlls else None
    if _FREE_THREADED.intersection(names):
        return True
    return False if _WITH_LOCK.intersection(names) else None
