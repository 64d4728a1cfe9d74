"""``wheelfarm publish WHEEL...``: put wheels with a passing report into the store."""

import argparse
from pathlib import Path

from wheelfarm.cli.output import clean, print_json
from wheelfarm.cli.store_option import add_store_option, declared_of, optional_farm, store_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument(
        "wheels", nargs="+", type=Path, metavar="WHEEL", help="a wheel, or a folder of wheels"
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="the gate's report (default: WHEEL.report.json beside the wheel)",
    )
    add_store_option(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Publish every wheel; one that is refused does not keep the others out."""
    from wheelfarm.errors import UsageError
    from wheelfarm.model.wheel_name import WheelName
    from wheelfarm.store.proof import read_proof
    from wheelfarm.store.protocol import RefusedError
    from wheelfarm.store.publish import publish
    from wheelfarm.verify.report import report_path

    wheels = _wheels(arguments.wheels)
    if arguments.report is not None and len(wheels) != 1:
        message = "--report goes with one wheel"
        raise UsageError(message)
    farm = optional_farm(arguments.farm)
    store = store_of(arguments)
    # All reports before the first upload: what cannot be read stops the run with nothing done.
    proofs = [
        read_proof(
            arguments.report or report_path(wheel), declared_of(farm, WheelName.parse(wheel.name))
        )
        for wheel in wheels
    ]
    done, refused = [], []
    for wheel, proof in zip(wheels, proofs, strict=True):
        try:
            done.append(publish(store, wheel, proof))
        except RefusedError as error:
            refused.append((wheel, error))
    if arguments.json:
        document = {
            "store": store.location,
            "wheels": [
                {
                    "wheel": each.record.filename,
                    "outcome": each.outcome,
                    "sha256": each.record.sha256,
                    "url": each.record.entry.url,
                }
                for each in done
            ],
            "refused": [
                {"wheel": wheel.name, "reason": why.what, "cause": why.cause}
                for wheel, why in refused
            ],
        }
        print_json("wheelfarm.publish/1", document)
    else:
        for each in done:
            print(f"{each.outcome:10}  {clean(each.record.filename)}")
        for wheel, why in refused:
            print(f"refused     {clean(wheel.name)}\n{_indented(str(why))}")
    return RefusedError.exit_code if refused else 0


def _wheels(paths: list[Path]) -> list[Path]:
    from wheelfarm.errors import BadInputError

    found: list[Path] = []
    for path in paths:
        if not path.exists():
            message = f"{path} does not exist"
            raise BadInputError(message, hint="name a wheel, or a folder of wheels")
        found += sorted(path.glob("*.whl")) if path.is_dir() else [path]
    if not found:
        message = f"there is no wheel in {', '.join(map(str, paths))}"
        raise BadInputError(message)
    return found


def _indented(text: str) -> str:
    return "\n".join(f"  {clean(line)}" for line in text.splitlines())
