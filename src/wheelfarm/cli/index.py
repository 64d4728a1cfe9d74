"""``wheelfarm index build|check|import``: write the static site, check a live one, take one in."""

import argparse
import contextlib
import itertools
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelfarm.cli.output import clean, print_json, print_table
from wheelfarm.cli.store_option import (
    add_store_option,
    existing_store_of,
    store_of,
    upstream_of,
)
from wheelfarm.wording import counted

if TYPE_CHECKING:
    from wheelfarm.index.importing import Imported


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the sub-verbs."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True, dest="action")
    build = actions.add_parser("build", help="write the site of a store's wheels")
    add_store_option(build)
    build.add_argument("--out", type=Path, default=Path("site"), help="the site's folder")
    build.add_argument("--title", default="CUDA wheels", help="the site's name")
    build.add_argument(
        "--files",
        choices=("link", "copy"),
        default="link",
        help="host a folder store's wheels by one symbolic link, or as files of the site",
    )
    build.add_argument("--files-url", metavar="URL", help="where the store's files are served")
    build.add_argument(
        "--no-aliases", action="store_true", help="list each file once, also on the root pages"
    )
    build.add_argument(
        "--base-url", type=str, default="", help="the site's own address, for commands"
    )
    build.add_argument(
        "--releases",
        type=str,
        metavar="OWNER/NAME",
        default="",
        help="the GitHub repository whose releases answer when the site cannot be reached",
    )
    build.add_argument(
        "--grid", type=Path, metavar="FILE", help="decisions for the coverage page (JSON)"
    )
    build.add_argument("--full", action="store_true", help="render every page again")
    build.add_argument("--live", metavar="URL", help="the live site that must not get shorter")
    build.add_argument("--new-site", action="store_true", help="there is no live site yet")
    build.add_argument(
        "--allow-removal",
        action="append",
        default=[],
        metavar="NAME",
        help="a package or file that may go; may be given again",
    )

    check = actions.add_parser("check", help="follow every link of a live site")
    check.add_argument("url", metavar="URL", help="the site's address")
    check.add_argument(
        "--no-download", action="store_true", help="ask for each wheel's size, not its bytes"
    )
    take = actions.add_parser("import", help="take in another index, a page or a release list")
    take.add_argument("source", metavar="URL|FILE", help="where the other index's list stands")
    take.add_argument(
        "--package", action="append", default=[], help="only this one; may be given again"
    )
    take.add_argument(
        "--allow-missing",
        action="append",
        default=[],
        metavar="NAME",
        help="a package or file whose link may be dead; may be given again",
    )
    add_store_option(take)


def execute(arguments: argparse.Namespace) -> int:
    """Run the sub-verb that was asked for."""
    return {"build": _build, "check": _check, "import": _import}[arguments.action](arguments)


def _check(arguments: argparse.Namespace) -> int:
    from wheelfarm.http import Client
    from wheelfarm.index.check import Checker

    checked = Checker(_address(arguments.url), Client(), download=not arguments.no_download).run()
    rows = [(each.kind, each.url, each.message) for each in checked.findings]
    if arguments.json:
        findings = [dict(zip(("kind", "url", "message"), row, strict=True)) for row in rows]
        print_json(
            "wheelfarm.index-check/1",
            {"pages": checked.pages, "files": checked.files, "findings": findings},
        )
    else:
        if rows:
            print_table(("kind", "where", "finding"), rows)
        print(
            f"{counted(checked.pages, 'page')}, {counted(checked.files, 'file')}, "
            f"{counted(len(rows), 'fault')}"
        )
    return 1 if rows else 0


def _address(text: str) -> str:
    """Return the address of a site or of files; BadInputError for anything else."""
    from urllib.parse import urlsplit

    from wheelfarm.errors import BadInputError

    with contextlib.suppress(ValueError):
        parts = urlsplit(text)
        if parts.scheme in {"http", "https"} and parts.hostname and text.isprintable():
            return text
    message = f"{text!r} is no http or https address"
    raise BadInputError(message, hint="give https://...; `wheelfarm serve DIR` serves a folder")


def _public_address(text: str) -> None:
    """Raise BadInputError for an address that must not, or cannot, stand in public pages."""
    from urllib.parse import urlsplit

    from wheelfarm.errors import BadInputError
    from wheelfarm.http import redacted

    parts = urlsplit(_address(text))
    if "@" in parts.netloc:
        message = f"{redacted(text)} was given with a user name, which everybody would read"
        raise BadInputError(message, hint="the site's pages are public: leave it out")
    if parts.query or parts.fragment:
        message = f"{redacted(text)} has more than a path, and file names go behind it"
        raise BadInputError(message, hint="leave out what stands from '?' or '#' on")


def _import(arguments: argparse.Namespace) -> int:
    from packaging.utils import canonicalize_name

    from wheelfarm.errors import CouldNotLookError, NegativeVerdictError
    from wheelfarm.http import Client
    from wheelfarm.index.importing import import_links, read_source

    client = Client()
    packages = frozenset(str(canonicalize_name(name)) for name in arguments.package)
    listing = read_source(arguments.source, client, packages=packages)
    taken = import_links(store_of(arguments), listing.links, client, packages=packages)
    done = []
    for each in itertools.chain(listing.unread, taken):
        done.append(each)
        if not arguments.json:
            _print_imported(each)
    if arguments.json:
        print_json("wheelfarm.index-import/1", {"wheels": [_imported(each) for each in done]})
    else:
        counts = Counter(each.outcome for each in done)
        print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    may_miss = {*arguments.allow_missing, *map(canonicalize_name, arguments.allow_missing)}
    missing = [
        each
        for each in done
        if each.outcome == "missing" and may_miss.isdisjoint({each.link.filename, each.package})
    ]
    if missing:
        _say_missing(len(missing))
        return CouldNotLookError.exit_code
    return NegativeVerdictError.exit_code if any(each.outcome == "refused" for each in done) else 0


def _imported(each: "Imported") -> dict[str, str]:
    from wheelfarm.http import redacted

    return {
        "wheel": each.link.filename,
        "url": redacted(each.link.url),
        "outcome": each.outcome,
        "reason": each.reason,
    }


def _print_imported(each: "Imported") -> None:
    words = _imported(each)
    print(f"{each.outcome:10}  {clean(words['wheel'] or words['url'])}")
    if each.reason:
        print(f"            {clean(each.reason)}")


def _say_missing(count: int) -> None:
    print(
        f"wheelfarm: {counted(count, 'link')} could not be read; what came in stays\n"
        "  next:  run again for the rest, or say --allow-missing NAME of what is gone for good",
        file=sys.stderr,
    )


def _grid(path: Path | None) -> dict[str, Any] | None:
    from wheelfarm.index.grid import read_grid
    from wheelfarm.reading import read_json

    return None if path is None else read_grid(read_json(path), str(path))


def _repository(name: str) -> str:
    """Return a repository's name; BadInputError where it is none, an address for one."""
    from wheelfarm.errors import BadInputError
    from wheelfarm.resolve.releases import is_repository

    if name and not is_repository(name):
        message = f"{name!r} is no repository; expected owner/name"
        raise BadInputError(message)
    return name


def _build(arguments: argparse.Namespace) -> int:
    from wheelfarm.http import Client
    from wheelfarm.index.build import build_site
    from wheelfarm.index.guard import Guard, LocalSite, RemoteSite
    from wheelfarm.index.render import SiteConfig
    from wheelfarm.index.shipped import ShippedTorch
    from wheelfarm.index.tree import SiteTree

    for address in filter(None, (arguments.files_url, arguments.base_url)):
        _public_address(address)
    if arguments.live:
        _address(arguments.live)
    store = existing_store_of(arguments)
    tree = SiteTree(arguments.out)
    guards = [Guard(LocalSite(tree), arguments.allow_removal)]
    if arguments.live:
        live = RemoteSite(arguments.live, Client(), new=arguments.new_site)
        guards.append(Guard(live, arguments.allow_removal))
    built = build_site(
        store,
        tree,
        SiteConfig(
            title=arguments.title,
            files_url=arguments.files_url,
            aliases=not arguments.no_aliases,
            base_url=arguments.base_url,
            releases=_repository(arguments.releases),
        ),
        ShippedTorch.of(upstream_of(arguments)),
        files=arguments.files,
        full=arguments.full,
        grid=_grid(arguments.grid),
        guards=tuple(guards),
    )
    document = {
        "site": str(arguments.out),
        "packages": built.packages,
        "wheels": built.wheels,
        "rendered": list(built.rendered),
        "written": built.written,
        "removed": built.removed,
    }
    if arguments.json:
        print_json("wheelfarm.index/1", document)
    else:
        print(
            f"{arguments.out}: {counted(built.wheels, 'wheel')} of "
            f"{counted(built.packages, 'package')};"
            f" {counted(built.written, 'page')} written, {built.removed} removed"
        )
    return 0
