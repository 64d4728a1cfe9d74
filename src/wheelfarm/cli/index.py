"""``wheelfarm index build|check|import``: write the static site, check a live one, take one in."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from wheelfarm.cli.output import print_json
from wheelfarm.cli.store_option import add_store_option, optional_farm, store_of

if TYPE_CHECKING:
    from wheelfarm.upstream.model import UpstreamFacts


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
    build.add_argument("--json", action="store_true", default=argparse.SUPPRESS)


def execute(arguments: argparse.Namespace) -> int:
    """Run the sub-verb that was asked for."""
    return _build(arguments)


def _build(arguments: argparse.Namespace) -> int:
    from wheelfarm.http import Client
    from wheelfarm.index.build import build_site
    from wheelfarm.index.guard import Guard, LocalSite, RemoteSite
    from wheelfarm.index.render import SiteConfig
    from wheelfarm.index.shipped import ShippedTorch
    from wheelfarm.index.tree import SiteTree

    store = store_of(arguments)
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
        ),
        ShippedTorch.of(_upstream(arguments)),
        files=arguments.files,
        full=arguments.full,
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
            f"{arguments.out}: {built.wheels} wheels of {built.packages} packages;"
            f" {built.written} pages written, {built.removed} removed"
        )
    return 0


def _upstream(arguments: argparse.Namespace) -> "UpstreamFacts":
    from wheelfarm.cli.farm_option import facts_of
    from wheelfarm.upstream.facts import committed_facts

    farm = optional_farm(arguments.farm)
    return committed_facts() if farm is None else facts_of(farm)
