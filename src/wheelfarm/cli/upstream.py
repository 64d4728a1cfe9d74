"""``wheelfarm upstream show|refresh``: what PyTorch published, and bringing it up to date."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from wheelfarm.cli.output import print_json, print_table
from wheelfarm.wording import counted

if TYPE_CHECKING:
    from wheelfarm.upstream.model import UpstreamFacts
    from wheelfarm.upstream.refresh import Refreshed


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="show|refresh")
    show = actions.add_parser("show", help="print the releases that the facts have")
    refresh = actions.add_parser("refresh", help="read PyTorch's wheel pages")
    for sub in (show, refresh):
        sub.add_argument("--farm", type=Path, metavar="DIR", help="a farm with facts of its own")
        sub.add_argument("--facts", type=Path, metavar="FILE", help="a file of upstream facts")
    refresh.add_argument("--base-url", metavar="URL", help="where PyTorch's wheel pages are")
    refresh.add_argument(
        "--cuda", action="append", default=[], metavar="13.4", help="a CUDA line to look for too"
    )
    refresh.add_argument(
        "--dry-run", action="store_true", help="print the difference and write nothing"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Show or refresh the facts."""
    path = _path(arguments)
    facts = _facts(path)
    if arguments.action == "show":
        _show(facts, as_json=arguments.json)
        return 0
    return _refresh(arguments, facts, path)


def _path(arguments: argparse.Namespace) -> Path | None:
    """Return the file of facts in use; None for those that come with wheelfarm."""
    from wheelfarm.errors import BadInputError
    from wheelfarm.recipes.load import load_farm

    if arguments.facts is not None:
        return Path(arguments.facts)
    if arguments.farm is None:
        return None
    farm = load_farm(arguments.farm)
    if not farm.policy.upstream:
        message = f"the farm {arguments.farm} has no facts of its own"
        hint = "give `upstream: upstream.json` in farm.yml, or a file with --facts"
        raise BadInputError(message, hint=hint)
    return farm.root / farm.policy.upstream


def _facts(path: Path | None) -> "UpstreamFacts":
    from wheelfarm.upstream.facts import committed_facts, load_facts

    if path is None or not path.exists():
        return committed_facts()
    return load_facts(path)


def _show(facts: "UpstreamFacts", *, as_json: bool) -> None:
    rows = [
        (
            str(release.accelerator),
            str(release.torch),
            str(platform),
            " ".join(tag.dotted for tag in tags),
        )
        for release in facts.releases
        for platform, tags in release.pythons.items()
    ]
    if as_json:
        keys = ("accelerator", "torch", "platform", "pythons")
        releases = [dict(zip(keys, row, strict=True)) for row in rows]
        print_json("wheelfarm.upstream-show/1", {"observed": facts.observed, "releases": releases})
        return
    print_table(("accelerator", "torch", "platform", "pythons"), rows)
    print(f"\nobserved {facts.observed}")


def _refresh(arguments: argparse.Namespace, facts: "UpstreamFacts", path: Path | None) -> int:
    import datetime as dt

    from wheelfarm import files
    from wheelfarm.http import Client
    from wheelfarm.model.accelerator import Accelerator
    from wheelfarm.model.versions import Minor
    from wheelfarm.upstream.facts import dump_facts
    from wheelfarm.upstream.refresh import BASE_URL, refresh
    from wheelfarm.values import replace

    also = [Accelerator.cuda(Minor.parse(text)) for text in arguments.cuda]
    found = refresh(facts, client=Client(), base_url=arguments.base_url or BASE_URL, also=also)
    written = None
    if found.added and path is not None and not arguments.dry_run:
        today = dt.datetime.now(dt.timezone.utc).date().isoformat()
        newer = replace(found.facts, observed=today)
        files.write_text(path, dump_facts(newer, _sources(path)))
        written = str(path)
    _report(arguments, found, written)
    return 0


def _sources(path: Path) -> dict[str, str]:
    from importlib import resources

    from wheelfarm.reading import read_text
    from wheelfarm.upstream.facts import FILE_NAME, read_sources

    if path.exists():
        return read_sources(read_text(path))
    return read_sources(
        resources.files("wheelfarm.upstream").joinpath(FILE_NAME).read_text("utf-8")
    )


def _report(arguments: argparse.Namespace, found: "Refreshed", written: str | None) -> None:
    if arguments.json:
        document = {
            "added": list(found.added),
            "kept": list(found.kept),
            "not_published": list(found.not_published),
            "passed_over": [{"name": name, "reason": why} for name, why in found.passed_over],
            "written": written,
        }
        print_json("wheelfarm.upstream-refresh/1", document)
        return
    for line in found.added:
        print(f"+ {line}")
    print(
        f"{counted(len(found.added), 'new wheel')}; kept though no page shows them: "
        f"{counted(len(found.kept), 'fact')}"
    )
    if found.not_published:
        print(f"not published: {', '.join(found.not_published)}")
    if found.passed_over:
        print(f"{counted(len(found.passed_over), 'name')} passed over (--json has the reasons)")
    if written:
        print(f"wrote {written}")
    elif found.added:
        print("nothing was written: name a file with --facts, or a farm with facts of its own")
