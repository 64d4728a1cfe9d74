"""``wheelfarm doctor``: which compiled packages can load here, why others cannot, what mends it."""

import argparse
import sys
from typing import TYPE_CHECKING

from wheelfarm.cli.host import add_host_options
from wheelfarm.cli.output import clean, coloured, print_json

if TYPE_CHECKING:
    from wheelfarm.doctor.environment import Environment
    from wheelfarm.doctor.model import Diagnosis

_COLOURS = {"ok": "green", "broken": "red", "warning": "yellow", "unknown": "yellow"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="only these")
    parser.add_argument(
        "--error", metavar="TEXT", help="explain this error line ('-' reads standard input)"
    )
    add_host_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Examine; exit 1 where something is broken, 2 where something could not be read."""
    from wheelfarm import interpreter
    from wheelfarm.doctor.environment import Environment
    from wheelfarm.doctor.examine import examine
    from wheelfarm.doctor.model import DOCTOR_SCHEMA
    from wheelfarm.errors import UsageError
    from wheelfarm.model.project_name import normalized
    from wheelfarm.resolve.detect import detect

    host = detect(vars(arguments), arguments.host)
    python = host.interpreter_here
    if python is None:
        if arguments.error is None:
            message = "the doctor looks at an environment of this machine"
            raise UsageError(message, hint="leave --host and --platform away")
        return _explain(arguments, None)
    environment = Environment(
        interpreter=interpreter.ask(python), host=host, versions=host.installed
    )
    if arguments.error is not None:
        return _explain(arguments, environment)
    only = frozenset(normalized(name) for name in arguments.packages)
    diagnoses = examine(environment, only)
    absent = sorted(only - {each.package for each in diagnoses})
    if arguments.json:
        document = {
            "interpreter": python,
            "diagnoses": [each.to_dict() for each in diagnoses],
            "not_found": absent,
        }
        print_json(DOCTOR_SCHEMA, document)
    else:
        _print(diagnoses, absent)
    statuses = {each.status for each in diagnoses}
    if "broken" in statuses:
        return 1
    return 2 if "unknown" in statuses or absent else 0


def _print(diagnoses: "list[Diagnosis]", absent: list[str]) -> None:
    shown = [each for each in diagnoses if each.package or each.findings]
    for each in shown:
        name = clean(f"{each.package} {each.version}") if each.package else "environment"
        print(f"{coloured(each.status, _COLOURS[each.status])}  {name}")
        for finding in each.findings:
            print(f"  {clean(finding.summary)}")
            for line in finding.evidence:
                print(f"    {clean(line)}")
            if finding.command:
                print(f"  mend: {clean(finding.command)}")
    if not shown:
        print("no compiled package of torch or CUDA is installed here")
    for name in absent:
        print(f"{name}: no compiled package of that name is installed here")


def _explain(arguments: argparse.Namespace, environment: "Environment | None") -> int:
    from wheelfarm.doctor.model import DOCTOR_SCHEMA, Diagnosis
    from wheelfarm.doctor.pasted import explain

    text = sys.stdin.read() if arguments.error == "-" else arguments.error
    findings = explain(text, environment)
    if arguments.json:
        print_json(DOCTOR_SCHEMA, {"findings": [each.to_dict() for each in findings]})
    elif findings:
        _print([Diagnosis(package="", version="", findings=tuple(findings))], [])
    else:
        print("this line is not known; run `wheelfarm doctor` for what is installed")
    return 0 if findings else 1
