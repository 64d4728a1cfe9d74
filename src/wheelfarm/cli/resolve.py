"""``wheelfarm resolve``: the exact wheels for this machine, or a precise reason."""

import argparse
from typing import TYPE_CHECKING

from wheelfarm.cli.host import add_host_options
from wheelfarm.cli.output import clean, print_json, print_table

if TYPE_CHECKING:
    from wheelfarm.resolve.resolution import Resolution

FORMATS = ("table", "requirements")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="diso, flash-attn>=2.8")
    parser.add_argument("--index", metavar="URL", help="the index (default: WHEELFARM_INDEX)")
    parser.add_argument("--pre", action="store_true", help="take pre-releases too")
    parser.add_argument(
        "--format", choices=FORMATS, default="table", help="how to print the answer"
    )
    parser.add_argument("--explain", action="store_true", help="show every candidate's decision")
    parser.add_argument("--install", action="store_true", help="install it, torch left as it is")
    parser.add_argument("--dry-run", action="store_true", help="with --install: only the plan")
    parser.add_argument("--installer", choices=("pip", "uv"), help="(default: the one there is)")
    add_host_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Resolve and print; exit 1 where no wheel serves."""
    from wheelfarm.errors import UsageError
    from wheelfarm.http import Client
    from wheelfarm.resolve import explain
    from wheelfarm.resolve.backends import index_address
    from wheelfarm.resolve.choose import parse_wanted
    from wheelfarm.resolve.detect import detect
    from wheelfarm.resolve.resolution import resolve
    from wheelfarm.resolve.sources import open_index

    wanted = tuple(map(parse_wanted, arguments.packages))
    host = detect(vars(arguments), arguments.host)
    found = index_address(host.backend.value or "", arguments.index)
    if found is None:
        message = "no index is named"
        raise UsageError(message, hint="give --index URL, or set WHEELFARM_INDEX")
    client = Client()
    resolution = resolve(
        wanted, host, open_index(found[0], client), client, prereleases=arguments.pre
    )
    if not resolution.answer.ok:
        for line in explain.report(resolution.answer, resolution.index):
            print(clean(line))
        return 1
    _print(arguments, resolution)
    if arguments.install:
        _install(arguments, resolution)
    return 0


def _print(arguments: argparse.Namespace, resolution: "Resolution") -> None:
    from wheelfarm.resolve.writers import requirements

    if arguments.json:
        print_json("wheelfarm.resolve/1", {"wheels": []})
    elif arguments.format == "requirements":
        print(requirements.write(resolution), end="")
    else:
        for choice in resolution.choices:
            print(clean(requirements.requirement(choice.candidate)))
            for remark in choice.remarks:
                print(f"  note: {clean(remark)}")


def _install(arguments: argparse.Namespace, resolution: "Resolution") -> None:
    from wheelfarm.resolve.install import install, plan

    planned = plan(resolution, tool=arguments.installer)
    for line in planned.lines():
        print(clean(line))
    if not arguments.dry_run:
        install(planned)


__all__ = ["configure", "execute", "print_table"]
