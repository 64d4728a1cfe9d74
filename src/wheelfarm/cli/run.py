"""``wheelfarm run PLAN``: run a plan's jobs here, or on a Dask cluster."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelfarm.cli.farm_option import add_farm_option, farm_of
from wheelfarm.cli.output import clean, print_json

if TYPE_CHECKING:
    from wheelfarm.engines.run_plan import RunOptions, RunOutcome


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    add_farm_option(parser)
    parser.add_argument("plan", type=Path, metavar="PLAN", help="a file of `wheelfarm plan --json`")
    parser.add_argument(
        "--only", action="append", default=[], metavar="CELL", help="run this cell's or this job"
    )
    parser.add_argument(
        "--wheelhouse", type=Path, metavar="DIR", help="where wheels go (default: the farm's)"
    )
    parser.add_argument(
        "--exchange",
        metavar="DIR|URL",
        help="what jobs on several machines share: a folder, or an address such as s3://…",
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="jobs at once (default: by memory)")
    going = parser.add_mutually_exclusive_group()
    going.add_argument(
        "--keep-going", action="store_true", help="run what can be run after a failure (default)"
    )
    going.add_argument(
        "--fail-fast", action="store_true", help="start nothing more after the first failure"
    )
    parser.add_argument("--again", action="store_true", help="run jobs that are done already too")
    parser.add_argument(
        "--heal", action="store_true", help="let a link job compile what its shards lack"
    )
    parser.add_argument(
        "--time-limit",
        type=float,
        metavar="MINUTES",
        help="stop then, keep what the compiler cache has, and go on another time",
    )
    parser.add_argument(
        "--engine",
        choices=("local", "dask", "container"),
        default="local",
        help="where the jobs run (default local)",
    )
    parser.add_argument(
        "--scheduler",
        type=str,
        default="",
        metavar="ADDRESS",
        help="of Dask, such as tcp://host:8786",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Run, and print what became of the jobs."""
    from wheelfarm.cli.run_view import RunView
    from wheelfarm.engines.plan_file import read_plan
    from wheelfarm.engines.run_plan import exit_code, run_plan

    options = _options(arguments)
    plan = read_plan(arguments.plan)
    farm = farm_of(arguments)
    if arguments.engine == "container":
        return _in_container(arguments, options)
    with RunView(plan.only(options.only), quiet=bool(arguments.quiet)) as view:
        outcome = run_plan(plan, farm, options, view)
    if arguments.json:
        print_json("wheelfarm.run/1", _document(outcome))
    else:
        _print(outcome)
    return exit_code(outcome.results.values())


def _options(arguments: argparse.Namespace) -> "RunOptions":
    from wheelfarm.engines.run_plan import RunOptions
    from wheelfarm.errors import UsageError

    if arguments.engine == "dask" and not (arguments.scheduler and arguments.exchange):
        message = "--engine dask needs --scheduler ADDRESS and --exchange DIR|URL"
        raise UsageError(message)
    for name in ("jobs", "time_limit"):
        value = getattr(arguments, name)
        if value is not None and not value > 0:
            message = f"--{name.replace('_', '-')} must be positive"
            raise UsageError(message)
    return RunOptions(
        only=tuple(arguments.only),
        again=arguments.again,
        wheelhouse=arguments.wheelhouse or arguments.farm / "wheelhouse",
        exchange=arguments.exchange,
        engine="dask" if arguments.engine == "dask" else "local",
        scheduler=arguments.scheduler,
        jobs=arguments.jobs,
        keep_going=not arguments.fail_fast,
        heal=arguments.heal,
        minutes=arguments.time_limit,
    )


def _in_container(arguments: argparse.Namespace, options: "RunOptions") -> int:
    from wheelfarm.engines.container import ContainerRun, run_in_container
    from wheelfarm.places import cache_root

    words = [word for name in options.only for word in ("--only", name)]
    for name, given in (
        ("--json", arguments.json),
        ("--again", options.again),
        ("--heal", options.heal),
        ("--fail-fast", not options.keep_going),
    ):
        words += [name] if given else []
    for name, value in (
        ("--jobs", options.jobs),
        ("--time-limit", options.minutes),
        ("--exchange", options.exchange),
    ):
        words += [name, str(value)] if value is not None else []
    run = ContainerRun(
        farm=arguments.farm.resolve(),
        plan=arguments.plan.resolve(),
        wheelhouse=options.wheelhouse.resolve(),
        cache=cache_root(),
        words=tuple(words),
    )
    return run_in_container(run, show=lambda text: print(text, end=""))


def _document(outcome: "RunOutcome") -> dict[str, Any]:
    from wheelfarm.engines.record import summary

    return {
        "record": str(outcome.record.folder),
        **summary(outcome.results),
        "kept": list(outcome.kept),
        "jobs": [result.to_dict() for result in outcome.results.values()],
    }


def _print(outcome: "RunOutcome") -> None:
    from wheelfarm.engines.record import summary

    for result in outcome.results.values():
        if result.status not in {"done", "not-run"}:
            print(f"{result.status}: {result.job}")
            for line in result.error.splitlines():
                print(f"  {clean(line)}")
            if result.log:
                print(f"  log: {result.log}")
    short = summary(outcome.results)
    counts = ", ".join(f"{number} {name}" for name, number in sorted(short["outcomes"].items()))
    kept = f" ({len(outcome.kept)} from before)" if outcome.kept else ""
    print(f"{counts or 'nothing to do'}{kept}; record: {outcome.record.folder}")
