"""``wheelfarm bundle``: an air-gapped folder of index, wheels and locks."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wheelfarm.cli.host import add_host_options
from wheelfarm.cli.output import clean, print_json
from wheelfarm.cli.resolve import (
    add_index_options,
    opened_session,
    print_refusals,
)

if TYPE_CHECKING:
    from wheelfarm.resolve.session import Session


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="diso, flash-attn>=2.8")
    parser.add_argument(
        "--output", "-o", dest="folder", metavar="DIR", type=Path, required=True, help="the folder"
    )
    parser.add_argument(
        "--profile", action="append", default=[], metavar="NAME=HOST.json", help="repeatable"
    )
    parser.add_argument("--choose-torch", action="store_true", help="choose torch too")
    parser.add_argument("--pre", action="store_true", help="take pre-releases too")
    parser.add_argument(
        "--with-dependencies",
        action="store_true",
        help="download torch and what else the wheels need too, by pip",
    )
    add_index_options(parser)
    add_host_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Resolve each host and write the folder; exit 1 where one has no answer."""
    with opened_session(arguments) as session:
        return _execute(arguments, session)


def _execute(arguments: argparse.Namespace, session: "Session") -> int:
    from wheelfarm.bundle.write import write_bundle
    from wheelfarm.resolve.session import hosts

    found = hosts(vars(arguments), arguments.host, arguments.profile)
    profiles = [session.answer(host, name) for name, host in found.items()]
    if not all(profile.resolution.answer.ok for profile in profiles):
        return print_refusals(arguments, profiles)
    from wheelfarm.cli.resolve_view import progress_to

    bundle = write_bundle(
        profiles,
        session.question(profiles),
        arguments.folder,
        session.client,
        progress_to(arguments),
        dependencies=arguments.with_dependencies,
    )
    if arguments.json:
        document = {key: value for key, value in bundle.to_dict().items() if key != "schema"}
        print_json("wheelfarm.bundle/1", {"folder": str(bundle.folder), **document})
        return 0
    for name in (*bundle.wheels, *bundle.locks):
        print(clean(name))
    for text in bundle.outside:
        print(clean(f"not in it: {text}"), file=sys.stderr)
    return 0
