"""The committed file of upstream facts: read into values, and written in one canonical form."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from packaging.version import Version

from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.arch import Arch, ArchList
from wheelfarm.model.platform import PLATFORMS, Platform
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor, parse_version
from wheelfarm.reading import Reader, parse_json, read_text
from wheelfarm.upstream.model import Release, TorchArchs, UpstreamFacts

SCHEMA = "wheelfarm.upstream/1"
FILE_NAME = "facts.json"


@cache
def committed_facts() -> UpstreamFacts:
    """Return the facts that come with wheelfarm."""
    text = resources.files("wheelfarm.upstream").joinpath(FILE_NAME).read_text("utf-8")
    return read_facts(text, "wheelfarm's upstream facts")


def load_facts(path: Path) -> UpstreamFacts:
    """Read a file of facts; BadInputError where it is absent, cut short or not of this form."""
    return read_facts(read_text(path), str(path))


def read_facts(text: str, context: str) -> UpstreamFacts:
    """Read facts from JSON; BadInputError with all faults."""
    reader = Reader(parse_json(text, context), context)
    if (schema := reader.string("schema")) != SCHEMA:
        reader.fault(f"expected {SCHEMA!r}, found {schema!r}", "schema")
    releases = tuple(map(_release, reader.tables("releases")))
    if not releases:
        reader.fault("there is no release at all; the file is cut short", "releases")
    facts = UpstreamFacts(
        observed=reader.string("observed"),
        releases=tuple(release for release in releases if release is not None),
        pypi=_pypi(reader.table("pypi")),
        torch_archs=tuple(
            entry for entry in map(_torch_archs, reader.tables("torch_archs")) if entry is not None
        ),
        extension_archs=_arch_sets(reader.table("extension_archs")),
        compiler_archs=_arch_sets(reader.table("compiler_archs")),
    )
    for key in ("pypi", "torch_archs", "extension_archs", "compiler_archs"):
        if not reader.has(key):
            reader.fault(f"the key {key!r} is required", key)
    reader.string_map("sources")
    seen: set[tuple[Accelerator, Version]] = set()
    for index, release in enumerate(facts.releases):
        if (release.accelerator, release.torch) in seen:
            reader.fault("this release stands here twice", "releases", index)
        seen.add((release.accelerator, release.torch))
    reader.done()
    reader.finish()
    return facts


def _release(reader: Reader) -> Release | None:
    accelerator = reader.parsed("accelerator", Accelerator.parse)
    torch = reader.parsed("torch", parse_version)
    table = reader.table("pythons")
    pythons: dict[Platform, tuple[PythonTag, ...]] = {}
    for name in table or ():
        if table is None:
            break
        platform = table.attempt(_platform(name), name)
        tags = table.parsed(name, _python_tags)
        if platform is not None and tags is not None:
            pythons[platform] = tags
    if not pythons:
        reader.fault("a release needs at least one platform", "pythons")
    reader.done()
    if accelerator is None or torch is None:
        return None
    return Release(accelerator=accelerator, torch=torch, pythons=pythons)


def _platform(text: str) -> Any:
    return lambda: Platform.parse(text)


def _python_tags(text: str) -> tuple[PythonTag, ...]:
    return tuple(map(_python_tag, text.split()))


@cache
def _python_tag(text: str) -> PythonTag:
    return PythonTag.of_version(text)


def _torch_archs(reader: Reader) -> TorchArchs | None:
    accelerator = reader.parsed("accelerator", Accelerator.parse)
    platform = reader.parsed("platform", Platform.parse)
    from_torch = reader.parsed("from_torch", Minor.parse)
    archs = reader.parsed("archs", ArchList.parse)
    reader.done()
    if accelerator is None or platform is None or from_torch is None or archs is None:
        return None
    return TorchArchs(
        accelerator=accelerator, platform=platform, from_torch=from_torch, archs=archs
    )


def _pypi(reader: Reader | None) -> dict[Version, dict[Platform, Accelerator]]:
    found: dict[Version, dict[Platform, Accelerator]] = {}
    for name in reader or ():
        table = None if reader is None else reader.table(name)
        if table is None or reader is None:
            continue
        version = reader.attempt(_version(name), name)
        row: dict[Platform, Accelerator] = {}
        for key in table:
            platform = table.attempt(_platform(key), key)
            accelerator = table.parsed(key, Accelerator.parse)
            if platform is not None and accelerator is not None:
                row[platform] = accelerator
        if version is not None:
            found[version] = row
    return found


def _version(text: str) -> Any:
    return lambda: parse_version(text)


def _arch_sets(reader: Reader | None) -> dict[Minor, frozenset[Arch]]:
    found: dict[Minor, frozenset[Arch]] = {}
    for name in reader or ():
        if reader is None:
            break
        key = reader.attempt(_minor(name), name)
        archs = reader.parsed(name, _archs)
        if key is not None and archs is not None:
            found[key] = archs
    return found


def _minor(text: str) -> Any:
    return lambda: Minor.parse(text)


def _archs(text: str) -> frozenset[Arch]:
    return frozenset(map(Arch.parse, text.split()))


def dump_facts(facts: UpstreamFacts, sources: Mapping[str, str]) -> str:
    """Return facts in the one form in which they are committed: sorted, a release a line."""
    parts = [
        f'"schema": {json.dumps(SCHEMA)}',
        f'"observed": {json.dumps(facts.observed)}',
        f'"sources": {json.dumps(dict(sources), indent=2)}',
        f'"releases": {_lines(map(_release_dict, _sorted_releases(facts)))}',
        f'"pypi": {_table({str(key): _row(row) for key, row in sorted(facts.pypi.items())})}',
        f'"torch_archs": {_lines(map(_torch_archs_dict, facts.torch_archs))}',
        f'"extension_archs": {_table(_words(facts.extension_archs))}',
        f'"compiler_archs": {_table(_words(facts.compiler_archs))}',
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def read_sources(text: str) -> dict[str, str]:
    """Return where the facts of a file come from, by section."""
    return Reader(parse_json(text, "upstream facts"), "upstream facts").string_map("sources")


def _sorted_releases(facts: UpstreamFacts) -> list[Release]:
    return sorted(facts.releases, key=lambda release: (release.accelerator, release.torch))


def _release_dict(release: Release) -> dict[str, Any]:
    return {
        "accelerator": str(release.accelerator),
        "torch": str(release.torch),
        "pythons": {
            str(platform): " ".join(tag.dotted for tag in sorted(release.pythons[platform]))
            for platform in PLATFORMS
            if release.pythons.get(platform)
        },
    }


def _torch_archs_dict(entry: TorchArchs) -> dict[str, str]:
    return {
        "accelerator": str(entry.accelerator),
        "platform": str(entry.platform),
        "from_torch": str(entry.from_torch),
        "archs": str(entry.archs),
    }


def _row(row: Mapping[Platform, Accelerator]) -> dict[str, str]:
    return {str(platform): str(row[platform]) for platform in PLATFORMS if platform in row}


def _words(table: Mapping[Minor, frozenset[Arch]]) -> dict[str, str]:
    return {str(key): " ".join(map(str, sorted(archs))) for key, archs in sorted(table.items())}


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "[\n  " + ",\n  ".join(map(json.dumps, rows)) + "\n]"


def _table(rows: Mapping[str, Any]) -> str:
    text = ",\n  ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in rows.items())
    return "{\n  " + text + "\n}"
