"""The pages over all packages: lists of projects, the manifest and its schema. Pure."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from wheelfarm.index.channels import Lines, Placement
from wheelfarm.index.model import (
    MANIFEST_SCHEMA,
    Combination,
    Manifest,
    PackagePart,
)
from wheelfarm.index.pages import HTML_NAME, JSON_ALIAS, JSON_NAME, root_html, root_json
from wheelfarm.index.people import (
    asset_pages,
    grid_data,
    people_pages,
    shipped_rows,
    site_data,
)
from wheelfarm.index.render import SiteConfig
from wheelfarm.index.schema import PACKAGE_JSON_SCHEMA, manifest_json_schema
from wheelfarm.values import replace

Summaries = Mapping[str, Mapping[str, Any]]

#: The whole manifest in one document; every other common page is small.
ALL = "manifest/all.json"


def common_pages(
    summaries: Summaries, placement: Placement, config: SiteConfig, grid: Mapping[str, Any]
) -> dict[str, bytes]:
    """Return the common pages but for the manifest in one piece.

    ``grid`` are the farm's decisions for the coverage page (see ``wheelfarm.index.grid``).
    """
    lines = placement.lines
    pages = _lists("simple", config.title, sorted(summaries))
    for channel, packages in _channels(summaries, lines).items():
        pages |= _lists(f"{channel.path}/simple", f"{config.title}: {channel}", packages)
    manifest = replace(manifest_of(summaries, lines), releases=config.releases)
    pages["manifest/index.json"] = _json(manifest.to_dict())
    pages["manifest/schema/index.json"] = _json(manifest_json_schema())
    pages["manifest/schema/package.json"] = _json(PACKAGE_JSON_SCHEMA)
    pages |= people_pages(config.title) | asset_pages()
    rows = shipped_rows(lines, placement.shipped)
    pages["assets/site-data.js"] = site_data(
        config.title, config.base_url, summaries, manifest, rows
    )
    pages["assets/grid.js"] = grid_data(grid)
    return pages


def manifest_of(summaries: Summaries, lines: Lines) -> Manifest:
    """Return the manifest's index."""
    serving = Counter(channel for summary in summaries.values() for channel in summary["channels"])
    combinations = lines.combinations()
    fallback = max(
        (each for each in combinations if serving[each.path]),
        key=lambda each: (serving[each.path], each),
        default=None,
    )
    return Manifest(
        packages={
            name: PackagePart(
                name=name,
                url=f"packages/{name}.json",
                sha256=summary["part"],
                versions=tuple(summary["versions"]),
                wheels=summary["wheels"],
            )
            for name, summary in summaries.items()
        },
        combinations=combinations,
        fallback=fallback,
    )


def whole_manifest(index: bytes, parts: Iterable[tuple[str, bytes]]) -> bytes:
    """Return the manifest in one piece: the index's members, and each package's part in full.

    Addresses in a part stay relative to ``/manifest/packages/``, as in the part itself.
    """
    document = json.loads(index)
    document["schema"] = f"{MANIFEST_SCHEMA}#all"
    del document["packages"]
    body = b",\n".join(
        json.dumps(name).encode() + b": " + part.rstrip(b"\n") for name, part in parts
    )
    return json.dumps(document)[:-1].encode() + b', "packages": {\n' + body + b"\n}}\n"


def _channels(summaries: Summaries, lines: Lines) -> dict[Combination, list[str]]:
    # A channel that no wheel serves yet is an empty list, not a missing page.
    channels: dict[Combination, list[str]] = {each: [] for each in lines.combinations()}
    by_path = {each.path: each for each in channels}
    for name in sorted(summaries):
        for path in summaries[name]["channels"]:
            channels[by_path[path]].append(name)
    return channels


def _lists(folder: str, title: str, packages: list[str]) -> dict[str, bytes]:
    document = root_json(packages)
    return {
        f"{folder}/{HTML_NAME}": root_html(title, packages),
        f"{folder}/{JSON_NAME}": document,
        f"{folder}/{JSON_ALIAS}": document,
    }


def _json(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, indent=1) + "\n").encode()
