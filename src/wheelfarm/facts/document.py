"""A wheel's facts as a JSON document and back, for reports, the facts cache and the index.

Symbols are left out: what was derived of them stands in each binary's ``torch`` and ``python``.
Empty fields are left out too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, get_args

from wheelfarm.facts.model import (
    BinaryFacts,
    BinaryKind,
    DeviceCode,
    Evidence,
    InnerArchive,
    Linkage,
    Member,
    Problem,
    ProblemKind,
    PythonUse,
    RecordRow,
    TorchUse,
    VersionNeed,
    WheelFacts,
)
from wheelfarm.model.arch import Arch
from wheelfarm.model.axis import CxxAbi
from wheelfarm.model.versions import Minor
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.reading import Reader

SCHEMA = "wheelfarm.facts/1"
_KINDS: tuple[BinaryKind, ...] = get_args(BinaryKind)
_PROBLEMS: tuple[ProblemKind, ...] = get_args(ProblemKind)
_IN_MEMORY_ONLY = {"undefined", "defined"}


def facts_to_dict(facts: WheelFacts) -> dict[str, Any]:
    """Return the document of a wheel's facts."""
    return {"schema": SCHEMA, **_plain(facts)}


def _plain(value: object) -> Any:
    """Return a frozen value as tables, lists and strings; empty fields are left out."""
    if isinstance(value, Minor | Arch | WheelName):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        named = (
            (field.name, getattr(value, field.name))
            for field in fields(value)  # type: ignore[arg-type] # the attribute says it is one
            if field.name not in _IN_MEMORY_ONLY
        )
        return {
            name: _plain(item)
            for name, item in named
            # A RECORD without rows is another thing than no RECORD.
            if item not in (None, "", ()) or (name == "record" and item is not None)
        }
    return value


def facts_from_dict(data: Mapping[str, Any], context: str = "facts") -> WheelFacts:
    """Return the facts of a document; FaultsError (bad input) names every fault of it."""
    reader = Reader(data, context)
    if reader.string("schema") != SCHEMA:
        reader.fault(f"expected the schema {SCHEMA}", "schema")
    facts = _wheel(reader)
    reader.finish()
    return facts


def _wheel(reader: Reader) -> WheelFacts:
    linkage = reader.table("linkage")
    return WheelFacts(
        file_name=reader.string("file_name"),
        sha256=reader.string("sha256"),
        size=reader.integer("size"),
        name=reader.parsed("name", WheelName.parse),
        members=tuple(map(_member, reader.tables("members"))),
        metadata=reader.string("metadata", ""),
        version=reader.string("version", ""),
        project=reader.string("project", ""),
        requires_python=reader.string("requires_python", ""),
        requires_dist=reader.strings("requires_dist"),
        tags=reader.strings("tags"),
        binaries=tuple(map(_binary, reader.tables("binaries"))),
        linkage=Linkage(torch="none") if linkage is None else _linkage(linkage),
        dist_info=reader.string("dist_info", ""),
        record=tuple(map(_row, reader.tables("record"))) if reader.has("record") else None,
        root_is_purelib=(
            reader.boolean("root_is_purelib") if reader.has("root_is_purelib") else None
        ),
        entry_points=reader.string("entry_points", ""),
        inner=tuple(map(_inner, reader.tables("inner"))),
        problems=tuple(map(_problem, reader.tables("problems"))),
    )


def _member(reader: Reader) -> Member:
    return Member(
        name=reader.string("name"),
        size=reader.integer("size"),
        sha256=reader.string("sha256"),
        executable=reader.boolean("executable", default=False),
    )


def _row(reader: Reader) -> RecordRow:
    return RecordRow(
        path=reader.string("path", ""),
        digest=reader.string("digest", ""),
        size=reader.integer("size") if reader.has("size") else None,
        line=reader.integer("line"),
    )


def _inner(reader: Reader) -> InnerArchive:
    return InnerArchive(
        path=reader.string("path"),
        code=reader.strings("code"),
        count=reader.integer("count", 0, least=0),
        problem=reader.string("problem", ""),
    )


def _problem(reader: Reader) -> Problem:
    word = reader.choice("kind", _PROBLEMS)
    return Problem(
        kind=next((kind for kind in _PROBLEMS if kind == word), "zip"),
        message=reader.string("message"),
    )


def _binary(reader: Reader) -> BinaryFacts:
    word = reader.choice("kind", _KINDS)
    torch, python = reader.table("torch"), reader.table("python")
    return BinaryFacts(
        path=reader.string("path"),
        kind=next((kind for kind in _KINDS if kind == word), "elf"),
        machine=reader.string("machine", ""),
        size=reader.integer("size"),
        soname=reader.string("soname", ""),
        needed=reader.strings("needed"),
        delayed=reader.strings("delayed"),
        rpath=reader.strings("rpath"),
        runpath=reader.strings("runpath"),
        version_needs=tuple(map(_need, reader.tables("version_needs"))),
        device_code=_present(map(_code, reader.tables("device_code"))),
        opens=reader.strings("opens"),
        torch_inside=reader.strings("torch_inside"),
        torch=None if torch is None else _torch(torch),
        python=None if python is None else _python(python),
        problem=reader.string("problem", ""),
    )


def _need(reader: Reader) -> VersionNeed:
    return VersionNeed(
        library=reader.string("library"),
        version=reader.string("version"),
        symbol=reader.string("symbol", ""),
    )


def _code(reader: Reader) -> DeviceCode | None:
    arch = reader.parsed("arch", Arch.parse)
    kind = reader.choice("kind", ("sass", "ptx", "lto"))
    compressed, isa = reader.boolean("compressed"), reader.parsed("isa", Minor.parse)
    if arch is None:
        return None
    return DeviceCode(
        kind="ptx" if kind == "ptx" else "lto" if kind == "lto" else "sass",
        arch=arch,
        compressed=compressed,
        isa=isa,
    )


def _present(values: Iterable[DeviceCode | None]) -> tuple[DeviceCode, ...]:
    return tuple(value for value in values if value is not None)


def _cxx_abi(reader: Reader) -> CxxAbi | None:
    value = reader.raw("cxx_abi")
    return 0 if value == 0 and value is not None else 1 if value == 1 else None


def _torch(reader: Reader) -> TorchUse:
    return TorchUse(
        libraries=reader.strings("libraries"),
        symbols=reader.integer("symbols", 0),
        unstable=reader.strings("unstable"),
        unstable_count=reader.integer("unstable_count", 0),
        from_torch=reader.parsed("from_torch", Minor.parse),
        from_symbol=reader.string("from_symbol", ""),
        cxx_abi=_cxx_abi(reader),
        cxx_abi_symbol=reader.string("cxx_abi_symbol", ""),
    )


def _python(reader: Reader) -> PythonUse:
    return PythonUse(
        module=reader.string("module", ""),
        symbols=reader.integer("symbols", 0),
        unstable=reader.strings("unstable"),
        floor=reader.parsed("floor", Minor.parse),
        floor_symbol=reader.string("floor_symbol", ""),
        free_threaded=reader.boolean("free_threaded") if reader.has("free_threaded") else None,
    )


def _linkage(reader: Reader) -> Linkage:
    torch = reader.choice("torch", ("none", "stable_abi", "linked"))
    python = reader.choice("python", ("none", "stable", "exact"), "none")
    return Linkage(
        torch="linked" if torch == "linked" else "stable_abi" if torch == "stable_abi" else "none",
        stable_torch=reader.parsed("stable_torch", Minor.parse),
        cxx_abi=_cxx_abi(reader),
        cuda_major=reader.integer("cuda_major") if reader.has("cuda_major") else None,
        glibc=reader.parsed("glibc", Minor.parse),
        glibcxx=reader.string("glibcxx", ""),
        needs_driver=reader.boolean("needs_driver", default=False),
        cxxabi=reader.string("cxxabi", ""),
        toolkit=reader.parsed("toolkit", Minor.parse),
        python="exact" if python == "exact" else "stable" if python == "stable" else "none",
        python_floor=reader.parsed("python_floor", Minor.parse),
        evidence=tuple(map(_evidence, reader.tables("evidence"))),
    )


def _evidence(reader: Reader) -> Evidence:
    return Evidence(
        fact=reader.string("fact"),
        path=reader.string("path"),
        detail=reader.string("detail"),
    )
