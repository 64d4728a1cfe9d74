"""From one package's rows to all of its pages, its manifest part and its summary. Pure."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from wheelfarm.index.channels import Placement, alias_names
from wheelfarm.index.model import PACKAGE_SCHEMA
from wheelfarm.index.pages import (
    HTML_NAME,
    JSON_ALIAS,
    JSON_NAME,
    Line,
    line_of,
    project_html,
    project_json,
    quoted,
    safe_address,
)
from wheelfarm.index.people import data_page, package_page
from wheelfarm.index.rows import Row
from wheelfarm.index.state import digest
from wheelfarm.model.versions import parse_version


@dataclass(frozen=True, kw_only=True, slots=True)
class SiteConfig:
    """How a site is written.

    ``files_url`` is the base address of the store's keys; None hosts the files under ``/files/``.
    ``aliases`` lists torch-free wheels once per torch on the root pages. ``base_url`` is the site's
    own address in install commands; empty takes the one under which a page was opened. ``releases``
    is the farm's GitHub repository, ``owner/name``, for clients that cannot reach the site.
    """

    title: str = "CUDA wheels"
    files_url: str | None = None
    aliases: bool = True
    base_url: str = ""
    releases: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendered:
    """One package's part of the site: pages by path, hosted wheels, what common pages say of it."""

    pages: Mapping[str, bytes]
    hosted: tuple[str, ...]
    summary: Mapping[str, Any]


def render(package: str, rows: list[Row], placement: Placement, config: SiteConfig) -> Rendered:
    """Return everything that the site says of a package."""
    channels: dict[str, list[Line]] = defaultdict(list)
    lines: list[Line] = []
    hosted: list[str] = []
    wheels: list[str] = []
    for row in ordered(rows):
        where = _where(row, config)
        if "://" not in where:
            hosted.append(row.url)
        stand = placement.stand(row.kind)
        line = line_of(row, where, alias_names(row.name, row.filename, stand))
        lines.append(line)
        for path in stand.channels:
            channels[path].append(line)
        wheels.append(_manifest_entry(row, where, stand.channels))
    pages = _project_pages(f"simple/{package}", package, lines, "../../", aliases=config.aliases)
    for path, found in channels.items():
        folder = f"{path}/simple/{package}"
        pages |= _project_pages(folder, package, found, "../../../../", aliases=False)
    part = _part(package, wheels)
    pages[f"manifest/packages/{package}.json"] = part
    pages[f"assets/data/{package}.js"] = data_page(package, part)
    hosted_here = bool(hosted)
    pages[f"packages/{package}/index.html"] = package_page(
        config.title, package, reports=hosted_here
    )
    return Rendered(
        pages=pages,
        hosted=tuple(hosted),
        summary={
            **_summary(
                rows,
                [each.path for each in placement.lines.combinations() if each.path in channels],
                digest(part),
            ),
            "cover": _cover(rows, placement),
            "archs": _archs(ordered(rows)),
        },
    )


def labels_of(rows: Iterable[Row]) -> list[str]:
    """Return the local versions of a package's wheels, each once: what makes channels exist."""
    return sorted({row.name.version_text.partition("+")[2] for row in rows})


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Return rows newest first, as old clients take the first link that matches; yanked last."""
    out = sorted(rows, key=lambda row: row.filename)
    texts = {row.name.version_text for row in out}
    versions = sorted({parse_version(text) for text in texts})
    rank = {version: number for number, version in enumerate(versions)}
    ranks = {text: rank[parse_version(text)] for text in texts}
    out.sort(
        key=lambda row: (
            ranks[row.name.version_text],
            row.name.build_number if row.name.build else (0, ""),
        ),
        reverse=True,
    )
    out.sort(key=lambda row: row.yanked is not None)
    return out


def _project_pages(
    folder: str, package: str, lines: list[Line], up: str, *, aliases: bool
) -> dict[str, bytes]:
    document = project_json(package, lines, up=up)
    return {
        f"{folder}/{HTML_NAME}": project_html(package, lines, up=up, aliases=aliases),
        f"{folder}/{JSON_NAME}": document,
        f"{folder}/{JSON_ALIAS}": document,
    }


def _where(row: Row, config: SiteConfig) -> str:
    """Return a wheel's address: absolute, or under the site's root."""
    if row.key is None:
        return safe_address(row.url)
    if config.files_url is not None:
        return safe_address(f"{config.files_url.rstrip('/')}/{quoted(row.key)}")
    return quoted(row.key)


#: Members of a record that say nothing to a client.
_INTERNAL = ("revision", "removed")


def _manifest_entry(row: Row, where: str, stands: tuple[str, ...]) -> str:
    entry = row.document.copy()
    for key in _INTERNAL:
        entry.pop(key, None)
    # The part lies in /manifest/packages/, two folders under the root.
    entry["url"] = where if "://" in where else f"../../{where}"
    entry["channels"] = stands
    return json.dumps(entry)


def _part(package: str, wheels: list[str]) -> bytes:
    head = json.dumps({"schema": PACKAGE_SCHEMA, "package": package})[:-1]
    body = ",\n".join(wheels)
    return f'{head}, "wheels": [\n{body}\n]}}\n'.encode()


def _summary(rows: list[Row], channels: list[str], part_sha256: str) -> dict[str, Any]:
    texts = {row.name.version_text.partition("+")[0] for row in rows}
    versions = {parse_version(text) for text in texts}
    return {
        "labels": labels_of(rows),
        "channels": channels,
        "versions": [str(version) for version in sorted(versions)],
        "wheels": len(rows),
        "part": part_sha256,
    }


def _cover(rows: list[Row], placement: Placement) -> dict[str, dict[str, list[str]]]:
    """Return, for each channel and platform, the Pythons that some good wheel serves."""
    kinds = {id(row.kind): row.kind for row in rows if row.yanked is None}
    found: dict[str, dict[str, set[str]]] = {}
    for kind in kinds.values():
        for path, platform, pythons in placement.stand(kind).cover:
            table = found.setdefault(path, {})
            table.setdefault(platform, set()).update(pythons)
    return {
        path: {
            platform: sorted(pythons, key=_python_order)
            for platform, pythons in sorted(table.items())
        }
        for path, table in sorted(found.items())
    }


def _python_order(dotted: str) -> tuple[int, str]:
    return int(dotted.rstrip("t").rpartition(".")[2]), dotted


def _archs(rows: list[Row]) -> dict[str, dict[str, list[str]]]:
    """Return, for each CUDA line, the architectures in the newest wheel of each platform."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    seen: set[tuple[str, str]] = set()
    for row in rows:
        if row.kind is None or row.yanked is not None:
            continue
        line = str(row.kind.accelerator)
        if (line, str(row.kind.platform)) in seen:
            continue
        seen.add((line, str(row.kind.platform)))
        sass, ptx = found.setdefault(line, (set(), set()))
        for module in row.document.get("modules") or ():
            sass.update(_words(module, "sass"))
            ptx.update(_words(module, "ptx"))
    return {line: {"sass": sorted(sass), "ptx": sorted(ptx)} for line, (sass, ptx) in found.items()}


def _words(module: object, key: str) -> list[str]:
    found = module.get(key) if isinstance(module, dict) else None
    return [word for word in found if isinstance(word, str)] if isinstance(found, list) else []
