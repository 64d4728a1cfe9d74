"""``wheelfarm repair WHEEL...``: mend what can be mended without lying, and judge the result."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelfarm.cli.output import clean, print_json

if TYPE_CHECKING:
    from wheelfarm.verify.mend import Mended

_EXIT = {"pass": 0, "fail": 1, "could-not-look": 2}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL", help="a wheel's file")
    parser.add_argument(
        "--out", type=Path, default=Path("repaired"), help="where results go (default: repaired)"
    )
    parser.add_argument("--no-strip", action="store_true", help="keep symbols of debuggers")


def execute(arguments: argparse.Namespace) -> int:
    """Mend every wheel; the worst verdict of the results decides the exit status."""
    from wheelfarm.verify.mend import mend_wheel

    results = [
        mend_wheel(path, arguments.out, strip=not arguments.no_strip) for path in arguments.wheels
    ]
    if arguments.json:
        print_json("wheelfarm.repair/1", {"wheels": [_document(result) for result in results]})
    else:
        for result in results:
            _print(result)
    return max(_EXIT[result.after.verdict] for result in results)


def _document(result: "Mended") -> dict[str, Any]:
    return {
        "wheel": str(result.wheel),
        "sha256": result.after.sha256,
        "done": list(result.done),
        "before": result.before.verdict,
        "verdict": result.after.verdict,
        "left": [
            {"id": check.id, "status": check.status, "summary": check.summary}
            for check in result.after.checks
            if check.status != "pass"
        ],
    }


def _print(result: "Mended") -> None:
    print(f"{clean(str(result.wheel))}  {result.before.verdict} -> {result.after.verdict}")
    for line in result.done or ("nothing to mend",):
        print(f"  mended: {clean(line)}")
    for check in result.after.checks:
        if check.status != "pass":
            print(f"  left: {check.id}: {check.status}: {clean(check.summary)}")
