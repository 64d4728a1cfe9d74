"""``wheelfarm prune``: propose superseded wheels, and take them out only with ``--apply``.

So go, from a store on this machine, files that killed processes left half-written.
"""

import argparse
from typing import TYPE_CHECKING

from wheelfarm.cli.output import clean, print_json, print_table
from wheelfarm.cli.store_option import add_store_option, existing_store_of
from wheelfarm.wording import counted

if TYPE_CHECKING:
    from wheelfarm.store.protocol import Store


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="(default: all)")
    parser.add_argument("--keep", type=int, default=1, help="how many versions of a cell stay")
    parser.add_argument("--apply", action="store_true", help="take the proposed wheels out")
    add_store_option(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print what is superseded by what; remove it where that was asked for."""
    from packaging.utils import canonicalize_name

    from wheelfarm.errors import BadInputError, UsageError
    from wheelfarm.store.prune import remove, superseded

    if arguments.keep < 1:
        message = "--keep must be at least 1"
        raise UsageError(message)
    store = existing_store_of(arguments)
    names = [str(canonicalize_name(name)) for name in arguments.packages]
    known = sorted(store.heads())
    if unknown := sorted(set(names) - set(known)):
        message = f"{store.location} has no package {unknown[0]!r}"
        raise BadInputError(message, hint=f"it has {', '.join(known) or 'none'}")
    rows: list[tuple[str, str]] = []
    for package in names or known:
        decisions = superseded(store.catalogue(package).records.values(), keep=arguments.keep)
        rejected = [each for each in decisions if not each.accepted]
        rows += [(each.candidate.filename, each.reason) for each in rejected]
        if arguments.apply and rejected:
            remove(store, package, frozenset(each.candidate.filename for each in rejected))
    left = [] if names else _left(store, apply=arguments.apply)
    if arguments.json:
        wheels = [{"wheel": wheel, "reason": reason} for wheel, reason in rows]
        print_json(
            "wheelfarm.prune/1", {"applied": arguments.apply, "wheels": wheels, "left": left}
        )
        return 0
    if rows:
        print_table(("wheel", "reason"), rows)
    done = "removed" if arguments.apply else "would go; nothing was changed (add --apply)"
    print(f"{counted(len(rows), 'wheel')} {done}")
    for path in left:
        print(f"left by a killed process: {clean(path)}")
    return 0


def _left(store: "Store", *, apply: bool) -> list[str]:
    """Return the half-written files of a store on this machine; remove them where asked to."""
    from wheelfarm import files

    folder = store.folder()
    found = []
    for path in files.dead(folder.parent, deep=True) if folder is not None else ():
        found.append(str(path))
        if apply:
            files.remove(path)
    return found
