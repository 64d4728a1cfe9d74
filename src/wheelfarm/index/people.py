"""The pages for people: shells of escaped text, and the data that one script draws them from.

Data comes as scripts and not by ``fetch``, so that a site works from a disk too; one file per
package, so that 30,000 wheels never travel at once. Pure.
"""

import json
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib import resources
from typing import Any

from wheelfarm.index.channels import Lines
from wheelfarm.index.model import Manifest
from wheelfarm.index.shipped import Shipped
from wheelfarm.model.platform import PLATFORMS

#: Links name their files, as a folder opened from a disk shows a listing and no page.
_NAVIGATION = (
    ("find", "index.html", "Find your wheel"),
    ("list", "packages/index.html", "Packages"),
    ("coverage", "coverage/index.html", "Coverage"),
    ("archs", "archs/index.html", "GPU code"),
    ("torch", "torch/index.html", "What PyTorch ships"),
)


def asset_pages() -> dict[str, bytes]:
    """Return the style and the script that all pages share."""
    return {f"assets/{name}": _asset(name) for name in ("site.css", "site.js")}


def data_page(name: str, part: bytes) -> bytes:
    """Return a package's part of the manifest as the script that hands it to a page.

    The part is JSON in ASCII, so it is the same text in JavaScript.
    """
    return b"WHEELFARM_PART(" + json.dumps(name).encode() + b", " + part.rstrip() + b");\n"


def site_data(
    title: str,
    base_url: str,
    summaries: Mapping[str, Mapping[str, Any]],
    manifest: Manifest,
    shipped: list[dict[str, Any]],
) -> bytes:
    """Return what every page knows: packages in short, channels, what PyTorch ships."""
    document = manifest.to_dict()
    keys = ("versions", "wheels", "channels", "cover", "archs")
    data = {
        "title": title,
        "base": base_url,
        "packages": {name: {key: found[key] for key in keys} for name, found in summaries.items()},
        "combinations": document["combinations"],
        "fallback": document["fallback"],
        "shipped": shipped,
    }
    # Sorted, as a summary that comes from the last build's state has its keys in another order.
    return b"window.WHEELFARM = " + json.dumps(data, sort_keys=True).encode() + b";\n"


def grid_data(grid: Mapping[str, Any]) -> bytes:
    """Return the grid's decisions as the script that the coverage page reads."""
    return b"window.WHEELFARM_GRID = " + json.dumps(grid).encode() + b";\n"


def package_page(title: str, name: str, *, reports: bool) -> bytes:
    """Return the shell of a package's page."""
    body = (
        f"<h1>{escape(name)}</h1>"
        '<p class="lead" id="status" role="status">Loading…</p>'
        f'<p><a href="../../index.html?package={escape(name)}">'
        "Find the wheel for your machine</a> · "
        f'<a href="../../simple/{escape(name)}/index.html">Simple index page</a> · '
        f'<a href="../../manifest/packages/{escape(name)}.json">Data</a></p>'
        '<div class="card"><label for="channel">Channel</label><select id="channel"></select></div>'
        '<div class="scroll"><table id="wheels"><caption>Wheels, newest first</caption><thead><tr>'
        '<th scope="col">file</th><th scope="col">serves</th><th scope="col">size</th>'
        '<th scope="col">GPU code</th><th scope="col">glibc</th><th scope="col">uploaded</th>'
        '<th scope="col">report</th></tr></thead><tbody></tbody></table></div>'
        '<h2>Build history</h2><ul id="history"></ul>'
    )
    extra = f' data-package="{escape(name)}"' + (' data-reports="yes"' if reports else "")
    return _page("page", "../../", f"{name} · {title}", title, body, extra=extra)


def people_pages(title: str) -> dict[str, bytes]:
    """Return the shells of the common pages."""
    bodies = {
        "find": (_FIND, "index.html", "./"),
        "list": (_LIST, "packages/index.html", "../"),
        "coverage": (_COVERAGE, "coverage/index.html", "../"),
        "archs": (_ARCHS, "archs/index.html", "../"),
        "torch": (_TORCH, "torch/index.html", "../"),
    }
    headings = {key: text for key, _, text in _NAVIGATION}
    return {
        path: _page(key, root, f"{headings[key]} · {title}", title, body)
        for key, (body, path, root) in bodies.items()
    }


def shipped_rows(lines: Lines, shipped: Shipped) -> list[dict[str, Any]]:
    """Return what PyTorch ships for the site's CUDA lines, as pages read it."""
    rows = []
    for combination in lines.combinations():
        for platform in PLATFORMS:
            pythons = shipped.pythons(combination.accelerator, combination.torch, platform)
            if pythons:
                rows.append(
                    {
                        "accelerator": str(combination.accelerator),
                        "torch": str(combination.torch),
                        "platform": platform.identifier,
                        "pythons": [python.dotted for python in sorted(pythons)],
                    }
                )
    return rows


@cache
def _asset(name: str) -> bytes:
    return resources.files("wheelfarm.index").joinpath(f"assets/{name}").read_bytes()


def _page(page: str, root: str, heading: str, title: str, body: str, *, extra: str = "") -> bytes:
    links = "".join(
        f'<li><a href="{root}{path}"{" aria-current=page" if key == page else ""}>{text}</a></li>'
        for key, path, text in _NAVIGATION
    )
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{escape(heading)}</title>"
        f'<link rel="icon" href="data:,"><link rel="stylesheet" href="{root}assets/site.css">'
        f'</head><body data-page="{page}" data-root="{root}"{extra}>\n'
        '<a class="skip" href="#main">Skip to the content</a>'
        f'<header><div><a class="brand" href="{root}index.html">{escape(title)}</a>'
        f'<nav aria-label="Pages"><ul>{links}</ul></nav></div></header>\n'
        f'<main id="main">{body}'
        "<noscript><p>These pages need JavaScript. Installers do not: the index is under "
        f'<a href="{root}simple/index.html">simple/</a>.</p></noscript></main>\n'
        f'<footer>Index for installers: <a href="{root}simple/index.html">simple/</a> · '
        f'machine-readable: <a href="{root}manifest/index.json">manifest</a></footer>\n'
        f'<script src="{root}assets/site-data.js"></script>'
        + (f'<script src="{root}assets/grid.js"></script>' if page == "coverage" else "")
        + f'<script src="{root}assets/site.js"></script></body></html>\n'
    ).encode()


_FIND = (
    "<h1>Find your wheel</h1>"
    '<p class="lead">Say what your machine has, tick the packages, and copy one command. '
    "Every wheel here was proven before it was published.</p>"
    '<form id="form" class="card"><div class="fields">'
    '<div><label for="platform">System</label><select id="platform"></select></div>'
    '<div><label for="cuda">CUDA of your torch</label><select id="cuda"></select></div>'
    '<div><label for="torch">torch</label><select id="torch"></select></div>'
    '<div><label for="python">Python</label><select id="python"></select></div>'
    '<div><label for="gpu">GPU</label><select id="gpu"></select></div></div>'
    "<fieldset><legend>Packages</legend>"
    '<input type="search" id="filter" aria-label="Filter the packages" placeholder="Filter">'
    '<div class="ticks" id="packages"></div></fieldset>'
    "<details><summary>Or paste what your machine says of itself</summary>"
    '<label for="paste">Output of <code>wheelfarm host --json</code> or <code>nvidia-smi</code>'
    '</label><textarea id="paste" spellcheck="false"></textarea>'
    '<p id="pasted" role="status"></p></details></form>'
    '<section id="result" aria-live="polite" aria-label="Answer"></section>'
)
_FILTER = '<label for="filter">Package</label><input type="search" id="filter">'
_LIST = (
    "<h1>Packages</h1>"
    f'<div class="card">{_FILTER}</div>'
    '<div class="scroll"><table id="packages"><caption>Every package of this index</caption>'
    '<thead><tr><th scope="col">package</th><th scope="col">newest</th><th scope="col">wheels</th>'
    '<th scope="col">channels</th></tr></thead><tbody></tbody></table></div>'
)
_COVERAGE = (
    "<h1>Coverage</h1>"
    '<p class="lead">How many of the Pythons that PyTorch ships a package serves, for each CUDA '
    "and torch. Point at a field for the details.</p>"
    '<div class="card"><div class="fields"><div><label for="platform">System</label>'
    f'<select id="platform"></select></div><div>{_FILTER}</div></div></div>'
    '<ul class="key"><li><i style="background:var(--built)"></i>all built</li>'
    '<li><i style="background:var(--some)"></i>some built</li>'
    '<li><i style="background:var(--none)"></i>missing</li>'
    '<li><i style="background:var(--refused)"></i>refused, with a reason</li>'
    '<li><i style="background:var(--failed)"></i>a build failed</li></ul>'
    '<div class="scroll"><table id="heat" class="heat"><caption class="skip">Coverage by package '
    "and channel</caption><thead></thead><tbody></tbody></table></div>"
)
_ARCHS = (
    "<h1>GPU code</h1>"
    '<p class="lead">Which architectures the newest wheels hold machine code (SASS) or PTX for. '
    "Code of a major version runs on its later minors; PTX is translated for later GPUs.</p>"
    '<div class="scroll"><table id="archs" class="heat"><caption class="skip">Architectures by '
    "package</caption><thead></thead><tbody></tbody></table></div>"
)
_TORCH = (
    "<h1>What PyTorch ships</h1>"
    '<p class="lead">The Pythons for which PyTorch publishes a torch, by CUDA and system. No wheel '
    "of ours can serve what is not here.</p>"
    '<div class="scroll"><table id="shipped"><caption class="skip">Torch releases</caption>'
    "<thead></thead><tbody></tbody></table></div>"
)
