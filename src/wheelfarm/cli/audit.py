"""``wheelfarm audit``: hold the store and the index against the farm that declares them."""

import argparse
from collections import Counter
from pathlib import Path

from wheelfarm.cli.farm_option import grids_of, stocked_farm_of
from wheelfarm.cli.output import clean, print_json, print_table
from wheelfarm.cli.store_option import add_store_option, existing_store_of, store_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    add_store_option(parser)
    parser.add_argument("--site", type=Path, metavar="DIR", help="the index's folder, to compare")
    parser.add_argument(
        "--hashes", action="store_true", help="read every wheel whole and compare its hash"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print the findings; 1 for a fault, 2 where something could not be looked at."""
    from wheelfarm.engines.audit import AuditOptions, audit
    from wheelfarm.errors import BadInputError

    farm = stocked_farm_of(arguments)
    # The farm's own store may be still to come; one that was named must be there.
    store = store_of(arguments) if arguments.store is None else existing_store_of(arguments)
    if arguments.site is not None and not (arguments.site / "simple").is_dir():
        message = f"{arguments.site} is no site"
        raise BadInputError(message, hint="write one with wheelfarm index build --out DIR")
    options = AuditOptions(hashes=arguments.hashes, site=arguments.site)
    findings = audit(store, grids_of(farm, tuple(farm.recipes.values())), options)
    counts = Counter(finding.id for finding in findings)
    if arguments.json:
        rows = [
            {"id": f.id, "severity": f.severity, "subject": f.subject, "text": f.text}
            for f in findings
        ]
        print_json(
            "wheelfarm.audit/1",
            {"store": store.location, "counts": dict(counts), "findings": rows},
        )
    else:
        if findings:
            print_table(
                ("severity", "rule", "of", "what"),
                [(f.severity, f.id, f.subject, f.text) for f in findings],
            )
        told = ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))
        print(f"{clean(store.location)}: {told or 'no findings'}")
    severities = {finding.severity for finding in findings}
    return 1 if "fail" in severities else 2 if "could-not-look" in severities else 0
