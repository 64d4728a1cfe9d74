"""What all binaries of a wheel say together: from their facts to one Linkage with its evidence."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from wheelfarm.facts.fatbin import toolkit_of
from wheelfarm.facts.libraries import is_driver_library, nvidia_library
from wheelfarm.facts.model import BinaryFacts, Evidence, Linkage
from wheelfarm.facts.python_symbols import python_use
from wheelfarm.facts.torch_symbols import (
    cxx_abi_of,
    is_torch_symbol,
    torch_use,
)
from wheelfarm.model.axis import CxxAbi
from wheelfarm.model.versions import Minor
from wheelfarm.values import replace

#: How many of torch's symbols inside a binary are told.
_KEPT = 8
_VERSION = re.compile(r"(?P<set>GLIBC|GLIBCXX|CXXABI)_(?P<numbers>\d+(?:\.\d+)*)")
#: Not a symbol version but a promise: packed relative relocations need glibc 2.36.
_RELR = ("GLIBC_ABI_DT_RELR", Minor(2, 36))


def with_uses(binaries: Sequence[BinaryFacts]) -> tuple[BinaryFacts, ...]:
    """Return the binaries with what each takes of torch and CPython filled in."""
    defined = [tuple(filter(is_torch_symbol, binary.defined)) for binary in binaries]
    own = frozenset(itertools.chain.from_iterable(defined))
    return tuple(
        replace(
            binary,
            torch=torch_use(binary, own),
            torch_inside=tuple(itertools.islice(filter(_is_mangled, inside), _KEPT)),
            python=python_use(binary),
        )
        for binary, inside in zip(binaries, defined, strict=True)
    )


def _is_mangled(name: str) -> bool:
    # Others may have a function torch_something in C.
    return name.startswith(("_Z", "?"))


def derive(binaries: Sequence[BinaryFacts]) -> Linkage:
    """Return what the binaries (from ``with_uses``) say together."""
    evidence: list[Evidence] = []
    inside = {binary.soname or binary.path.rsplit("/", 1)[-1] for binary in binaries}
    torch, stable = _torch(binaries, inside, evidence)
    glibc = _highest(binaries, "GLIBC", evidence)
    glibcxx = _highest(binaries, "GLIBCXX", evidence)
    cxxabi = _highest(binaries, "CXXABI", evidence)
    python, floor = _python(binaries, evidence)
    return Linkage(
        torch=torch,
        stable_torch=stable,
        cxx_abi=_cxx_abi(binaries, evidence),
        cuda_major=_cuda_major(binaries, evidence),
        glibc=None if glibc is None else Minor(*(*glibc, 0)[:2]),
        glibcxx="" if glibcxx is None else f"GLIBCXX_{_dotted(glibcxx)}",
        needs_driver=_driver(binaries, evidence),
        cxxabi="" if cxxabi is None else f"CXXABI_{_dotted(cxxabi)}",
        toolkit=_toolkit(binaries, evidence),
        python=python,
        python_floor=floor,
        evidence=tuple(evidence),
    )


def _torch(
    binaries: Iterable[BinaryFacts], inside: set[str], evidence: list[Evidence]
) -> tuple[Literal["none", "stable_abi", "linked"], Minor | None]:
    linked, used = False, False
    floor: Minor | None = None
    for binary in binaries:
        use = binary.torch
        if use is None:
            continue
        outside = [name for name in use.libraries if name not in inside]
        if not outside and not use.symbols:
            continue
        used = True
        if outside:
            evidence.append(Evidence(fact="torch", path=binary.path, detail=f"needs {outside[0]}"))
        if use.unstable_count:
            linked = True
            more = f" and {use.unstable_count - 1} more" if use.unstable_count > 1 else ""
            detail = f"takes {use.unstable[0]}{more}"
            evidence.append(Evidence(fact="torch", path=binary.path, detail=detail))
        if use.from_torch is not None and (floor is None or use.from_torch > floor):
            floor = use.from_torch
            detail = f"{use.from_symbol} is there since torch {floor}"
            evidence.append(Evidence(fact="stable_torch", path=binary.path, detail=detail))
    if linked:
        return "linked", None
    return ("stable_abi", floor) if used else ("none", None)


def _cxx_abi(binaries: Iterable[BinaryFacts], evidence: list[Evidence]) -> CxxAbi | None:
    found: dict[CxxAbi, Evidence] = {}
    for binary in binaries:
        use = binary.torch
        if use is not None and use.cxx_abi is not None:
            proof = Evidence(fact="cxx_abi", path=binary.path, detail=use.cxx_abi_symbol)
            found.setdefault(use.cxx_abi, proof)
    if not found:
        found = _standard_abi(binaries)
    evidence += found.values()
    return next(iter(found)) if len(found) == 1 else None


def _standard_abi(binaries: Iterable[BinaryFacts]) -> dict[CxxAbi, Evidence]:
    """Return what symbols of libstdc++ show of the ABI flag, where none of torch's does.

    A package that links no torch may still have been compiled with torch's flag. Only the first
    binary that shows anything counts: libraries of other makers may use the other ABI inside.
    """
    for binary in binaries:
        abi, symbol = cxx_abi_of(binary.undefined)
        if abi is not None:
            return {abi: Evidence(fact="cxx_abi", path=binary.path, detail=symbol)}
    return {}


def _cuda_major(binaries: Iterable[BinaryFacts], evidence: list[Evidence]) -> int | None:
    majors: set[int] | None = None
    for binary in binaries:
        for name in binary.needed + binary.delayed:
            library = nvidia_library(name)
            if library is None or not library.majors:
                continue
            narrower = set(library.majors) if majors is None else majors & library.majors
            if narrower != majors:
                words = " or ".join(map(str, sorted(library.majors)))
                detail = f"needs {name}, of CUDA {words}"
                evidence.append(Evidence(fact="cuda_major", path=binary.path, detail=detail))
            majors = narrower
    return next(iter(majors)) if majors is not None and len(majors) == 1 else None


def _driver(binaries: Iterable[BinaryFacts], evidence: list[Evidence]) -> bool:
    found = [
        Evidence(fact="needs_driver", path=binary.path, detail=f"needs {name}")
        for binary in binaries
        for name in binary.needed
        if is_driver_library(name)
    ]
    evidence += found
    return bool(found)


def _toolkit(binaries: Iterable[BinaryFacts], evidence: list[Evidence]) -> Minor | None:
    entries = (
        (code.isa, binary.path)
        for binary in binaries
        for code in binary.device_code
        if code.isa is not None
    )
    isa, path = max(entries, default=(None, ""))
    release = None if isa is None else toolkit_of(isa)
    if release is not None:
        detail = f"holds PTX {isa}, of CUDA {release}"
        evidence.append(Evidence(fact="toolkit", path=path, detail=detail))
    return release


def _python(
    binaries: Iterable[BinaryFacts], evidence: list[Evidence]
) -> tuple[Literal["none", "stable", "exact"], Minor | None]:
    floor: Minor | None = None
    answer: Literal["none", "stable", "exact"] = "none"
    for binary in binaries:
        use = binary.python
        if use is None:
            continue
        if answer == "none":
            answer = "stable"
        if use.unstable:
            if answer != "exact":
                proof = Evidence(fact="python", path=binary.path, detail=f"takes {use.unstable[0]}")
                evidence.append(proof)
            answer = "exact"
        if use.floor is not None and (floor is None or use.floor > floor):
            floor = use.floor
            detail = f"{use.floor_symbol} is in the stable ABI since Python {floor}"
            evidence.append(Evidence(fact="python_floor", path=binary.path, detail=detail))
    return answer, floor if answer == "stable" else None


def version_numbers(version: str, name: str) -> tuple[int, ...] | None:
    """Return the numbers of a version such as ``GLIBC_2.34`` if it belongs to the set ``name``."""
    if name == "GLIBC" and version == _RELR[0]:
        return (_RELR[1].major, _RELR[1].minor)
    match = _VERSION.fullmatch(version)
    if match is None or match["set"] != name:
        return None
    return tuple(map(int, match["numbers"].split(".")))


def _needs(
    binaries: Iterable[BinaryFacts], name: str
) -> Iterator[tuple[tuple[int, ...], BinaryFacts, str]]:
    for binary in binaries:
        for need in binary.version_needs:
            numbers = version_numbers(need.version, name)
            if numbers is not None:
                symbol = f"{need.symbol} needs " if need.symbol else "needs "
                yield numbers, binary, f"{symbol}{need.version} of {need.library}"


def _highest(
    binaries: Iterable[BinaryFacts], name: str, evidence: list[Evidence]
) -> tuple[int, ...] | None:
    found = max(_needs(binaries, name), key=lambda need: need[0], default=None)
    if found is None:
        return None
    numbers, binary, detail = found
    evidence.append(Evidence(fact=name.lower(), path=binary.path, detail=detail))
    return numbers


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
