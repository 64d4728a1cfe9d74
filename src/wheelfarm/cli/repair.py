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
    """Mend every wheel; the worst verdict of the results decides the exit status.

    Of several, one that cannot be read as a wheel is told of and the others are mended.
    """
    from wheelfarm.errors import BadInputError
    from wheelfarm.verify.mend import mend_wheel

    _require_own_names(arguments.wheels)
    results: list[Mended] = []
    refused: list[tuple[Path, BadInputError]] = []
    for path in arguments.wheels:
        try:
            results.append(mend_wheel(path, arguments.out, strip=not arguments.no_strip))
        except BadInputError as error:
            if len(arguments.wheels) == 1:
                raise
            refused.append((path, error))
    if arguments.json:
        document = {
            "wheels": [_document(result) for result in results],
            "refused": [{"wheel": str(path), "reason": why.what} for path, why in refused],
        }
        print_json("wheelfarm.repair/1", document)
    else:
        for result in results:
            _print(result)
        for path, why in refused:
            print(f"{clean(str(path))}  refused: {clean(why.what)}")
    if refused:
        return BadInputError.exit_code
    verdicts = {result.after.verdict for result in results}
    return _EXIT["fail" if "fail" in verdicts else max(verdicts, key=_EXIT.__getitem__)]


def _require_own_names(wheels: list[Path]) -> None:
    """Raise BadInputError where one result would replace another's."""
    from wheelfarm.errors import BadInputError

    names = [path.name for path in wheels]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        message = f"two of the wheels are named {twice}: one result would replace the other"
        raise BadInputError(message, hint="repair them apart, each with its own --out")


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
