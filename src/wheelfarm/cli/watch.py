"""``wheelfarm watch``: what is new upstream, as a difference of the farm's files and an issue."""

import argparse
from pathlib import Path

from wheelfarm.cli.farm_option import add_farm_option, facts_of, farm_of
from wheelfarm.cli.output import clean, print_json


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    add_farm_option(parser)
    parser.add_argument("--base-url", metavar="URL", help="where PyTorch's wheel pages are")
    parser.add_argument("--index", metavar="URL", help="where PyPI's pages are")
    parser.add_argument("--issue", type=Path, metavar="FILE", help="write an issue's text there")
    parser.add_argument("--diff", type=Path, metavar="FILE", help="write the difference there")
    parser.add_argument(
        "--told",
        type=Path,
        metavar="FILE",
        help="fingerprints of news that was told already; new ones are added to it",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print the news; 2 where a source could not be read."""
    from wheelfarm import files
    from wheelfarm.engines.watch import watch
    from wheelfarm.http import Client
    from wheelfarm.recipes.pypi import index_url
    from wheelfarm.upstream.refresh import BASE_URL

    farm = farm_of(arguments)
    found = watch(
        farm,
        facts_of(farm),
        client=Client(),
        index=(arguments.index or index_url()).rstrip("/"),
        base_url=arguments.base_url or BASE_URL,
    )
    told = _told(arguments.told)
    known = not found.news or found.fingerprint in told
    if not known and arguments.issue is not None:
        files.write_text(arguments.issue, found.issue())
    if not known and arguments.diff is not None:
        files.write_text(arguments.diff, found.diff)
    if not known and arguments.told is not None:
        files.write_text(arguments.told, "\n".join([*told, found.fingerprint]) + "\n")
    if arguments.json:
        document = {
            "news": [{"kind": n.kind, "subject": n.subject, "text": n.text} for n in found.news],
            "fingerprint": found.fingerprint,
            "told_before": bool(found.news) and known,
            "unread": list(found.unread),
            "diff": found.diff,
        }
        print_json("wheelfarm.watch/1", document)
    else:
        for item in found.news:
            print(f"{item.kind:<13} {clean(item.subject)}: {clean(item.text)}")
        for text in found.unread:
            print(f"unread        {clean(text)}")
        state = "nothing new" if not found.news else "told before" if known else "new"
        print(f"{state}; fingerprint {found.fingerprint}")
    return 2 if found.unread else 0


def _told(path: Path | None) -> list[str]:
    from wheelfarm.reading import read_text

    return read_text(path).split() if path is not None and path.exists() else []
