"""``wheelfarm host``: the facts that wheels are chosen by, each with its source."""

import argparse
from pathlib import Path

from wheelfarm.cli.output import clean, print_json, print_table


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_host_options(parser)


def add_host_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that say for which machine and environment an answer is."""
    from wheelfarm.resolve.overrides import OVERRIDES

    group = parser.add_argument_group("the machine and environment that are asked about")
    group.add_argument(
        "--python",
        metavar="PATH",
        help="interpreter or environment (default: WHEELFARM_PYTHON, VIRTUAL_ENV, this one)",
    )
    group.add_argument(
        "--host", metavar="FILE", type=Path, help="facts saved by `wheelfarm host --json`"
    )
    for key, override in OVERRIDES.items():
        group.add_argument(
            override.option, dest=key, metavar="X", help=f"{override.help} ({override.variable})"
        )


def execute(arguments: argparse.Namespace) -> int:
    """Print the facts; exit 2 where the devices could not be looked at or do not answer."""
    from wheelfarm.errors import CouldNotLookError
    from wheelfarm.resolve.detect import detect
    from wheelfarm.resolve.host import FACTS, HOST_SCHEMA

    host = detect(vars(arguments), arguments.host)
    document = host.to_dict()
    if arguments.json:
        print_json(HOST_SCHEMA, document)
    else:
        rows = []
        for name in FACTS:
            fact = document[name]
            value = fact["value"]
            if name == "gpus" and host.gpus.value is not None:
                value = ", ".join(map(str, host.gpus.value)) or "none"
            problem = f" ({fact['problem']})" if "problem" in fact else ""
            rows.append(
                (name, "-" if value is None else clean(str(value)), fact["source"] + problem)
            )
        print_table(("fact", "value", "source"), rows)
    return CouldNotLookError.exit_code if host.devices.value in {"unknown", "broken"} else 0
