"""``wheelfarm resolve``: the exact wheels for this machine, or a precise reason."""

import argparse
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wheelfarm.cli.host import add_host_options
from wheelfarm.cli.output import clean, print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wheelfarm.http import Client
    from wheelfarm.resolve.configuration import Configuration
    from wheelfarm.resolve.lock import Profile
    from wheelfarm.resolve.session import Session

_FORMATS = ("table", "requirements", "pylock", "pixi", "uv", "constraints")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="diso, flash-attn>=2.8")
    add_index_options(parser)
    choice = parser.add_argument_group("the choice")
    choice.add_argument(
        "--choose-torch", action="store_true", help="choose torch too, as if none were installed"
    )
    choice.add_argument("--pre", action="store_true", help="take pre-releases too")
    choice.add_argument("--explain", action="store_true", help="show every candidate's decision")
    choice.add_argument(
        "--available", action="store_true", help="show the cells that exist, and choose nothing"
    )
    lock = parser.add_argument_group("the answer")
    lock.add_argument("--format", choices=_FORMATS, help="default: by --output, else a table")
    lock.add_argument("--output", "-o", metavar="FILE", type=Path, help="write a lock there")
    lock.add_argument(
        "--profile", action="append", default=[], metavar="NAME=HOST.json", help="repeatable"
    )
    lock.add_argument(
        "--feature", type=str, default="", metavar="NAME", help="pixi: into this feature"
    )
    lock.add_argument("--pixi-version", metavar="X.Y", help="write for this pixi (default: 0.71)")
    lock.add_argument(
        "--upgrade", action="store_true", help="take newer wheels than those of --output's lock"
    )
    lock.add_argument("--check", metavar="LOCK", type=Path, help="does this lock still hold?")
    install = parser.add_argument_group("installation")
    install.add_argument("--install", action="store_true", help="install it, torch left as it is")
    install.add_argument("--dry-run", action="store_true", help="with --install: only the plan")
    install.add_argument("--installer", choices=("pip", "uv"), help="default: the one there is")
    add_host_options(parser)


def add_index_options(parser: argparse.ArgumentParser) -> None:
    """Declare where wheels and wishes come from."""
    group = parser.add_argument_group("the index")
    group.add_argument("--index", metavar="URL", help="default: WHEELFARM_INDEX, configuration")
    group.add_argument(
        "--releases",
        metavar="OWNER/NAME",
        type=str,
        default="",
        help="the farm's GitHub repository, asked when the index is out of reach"
        " (WHEELFARM_RELEASES)",
    )
    group.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        type=Path,
        help="requirements.txt, pyproject.toml ([tool.wheelfarm]) or comfy-env.toml",
    )
    group.add_argument("--offline", action="store_true", help="ask nothing, use the cache")
    group.add_argument("--no-cache", action="store_true", help="keep no pages")
    group.add_argument("--no-download", action="store_true", help="refuse wheels without a hash")


def execute(arguments: argparse.Namespace) -> int:
    """Resolve and print; exit 1 where no wheel serves, 2 where it could not look."""
    import gc

    # A short run keeps nearly all that it makes: walking it for garbage costs a tenth of the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _execute(arguments)
    finally:
        if collecting:
            gc.enable()


def _execute(arguments: argparse.Namespace) -> int:
    if arguments.dry_run or arguments.available or arguments.check is not None:
        from wheelfarm.cli.resolve_usage import refuse_contradictions

        refuse_contradictions(arguments)
    if arguments.check is not None:
        return _check(arguments)
    with opened_session(arguments) as session:
        return _answered(arguments, session)


def _answered(arguments: argparse.Namespace, session: "Session") -> int:
    from wheelfarm.resolve.session import hosts

    found = hosts(vars(arguments), arguments.host, arguments.profile)
    if arguments.available:
        return _available(arguments, session)
    profiles = [session.answer(host, name) for name, host in found.items()]
    if not all(profile.resolution.answer.ok for profile in profiles):
        return print_refusals(arguments, profiles)
    _write_or_print(arguments, session, profiles)
    if arguments.install:
        _install(arguments, session, profiles)
    return 0


@contextlib.contextmanager
def opened_session(arguments: argparse.Namespace) -> "Iterator[Session]":
    """Yield the session that the options ask for; what it asked for ends with it."""
    from wheelfarm.resolve.backends import index_for_all
    from wheelfarm.resolve.configuration import read_configuration
    from wheelfarm.resolve.connect import ask_ahead, make_client

    configuration = read_configuration()
    client = make_client(
        offline=arguments.offline, cache=not arguments.no_cache, logins=configuration.logins
    )
    # While the index answers, the rest is imported and the machine looked at.
    configured = configuration.indexes if arguments.source is None else None
    try:
        ask_ahead(client, index_for_all(arguments.index, configured), arguments.packages)
        yield _session(arguments, configuration, client)
    finally:
        client.close()


def _session(
    arguments: argparse.Namespace, configuration: "Configuration", client: "Client"
) -> "Session":
    import os

    from wheelfarm.resolve.asking import Asking
    from wheelfarm.resolve.resolution import Settings
    from wheelfarm.resolve.session import Session, asking_of

    checking = getattr(arguments, "check", None) is not None
    asking = Asking(wanted=()) if checking else asking_of(arguments.packages, arguments.source)
    return Session(
        asking=asking,
        client=client,
        configuration=configuration,
        index_option=arguments.index,
        releases=arguments.releases or os.environ.get("WHEELFARM_RELEASES", ""),
        settings=Settings(
            choose_torch=arguments.choose_torch or asking.choose_torch,
            prereleases=arguments.pre or asking.prereleases,
            preferred=_preferred(arguments),
        ),
        download=not arguments.no_download,
    )


def _preferred(arguments: argparse.Namespace) -> frozenset[str]:
    """Return the wheels of the lock that is there already, which stay unless upgraded."""
    output = getattr(arguments, "output", None)
    if output is None or getattr(arguments, "upgrade", False):
        return frozenset()
    from wheelfarm.errors import BadInputError
    from wheelfarm.resolve.lock import file_of_profile
    from wheelfarm.resolve.locked import read_lock

    names = (word.partition("=")[0] for word in arguments.profile)
    found: set[str] = set()
    for path in (output, *(output.with_name(file_of_profile(output.name, each)) for each in names)):
        if path.is_file():
            with contextlib.suppress(BadInputError):
                found.update(wheel.sha256 for wheel in read_lock(path).wheels)
    return frozenset(found)


def _no(profiles: "Sequence[Profile]") -> int:
    """Return 2 where the machine could not be looked at and that may be why, else 1."""
    from wheelfarm.errors import CouldNotLookError, NegativeVerdictError

    unknown = any(
        profile.resolution.host.devices.value == "unknown"
        and profile.resolution.host.torch.value is None
        and not profile.resolution.answer.ok
        for profile in profiles
    )
    return CouldNotLookError.exit_code if unknown else NegativeVerdictError.exit_code


def print_refusals(arguments: argparse.Namespace, profiles: "Sequence[Profile]") -> int:
    """Print why there is no answer, and return the exit status that says so."""
    from wheelfarm.cli import resolve_view as view
    from wheelfarm.resolve import explain

    explained = getattr(arguments, "explain", False)
    if arguments.json:
        view.print_answers(profiles, explained=explained)
        return _no(profiles)
    for profile in profiles:
        if profile.name:
            answer = profile.resolution.answer
            ok = f" for {answer.target} there is an answer" if answer.ok else ""
            print(f"{profile.name}:{ok}")
        for line in explain.report(profile.resolution):
            print(clean(line))
        if explained:
            view.print_decisions(profile.resolution)
    return _no(profiles)


def _write_or_print(
    arguments: argparse.Namespace, session: "Session", profiles: "Sequence[Profile]"
) -> None:
    from wheelfarm.cli import resolve_view as view

    wanted = _format(arguments)
    texts: dict[str, str] = {}
    if wanted is not None and arguments.output is None:
        texts = _lock(arguments, session, profiles, wanted)
        if len(texts) > 1 and not arguments.json:
            from wheelfarm.errors import UsageError

            message = f"{wanted} of several profiles is several files"
            raise UsageError(message, hint="give --output")
    if arguments.json:
        view.print_answers(profiles, explained=arguments.explain, locks=texts)
    elif texts:
        sys.stdout.writelines(texts.values())
        view.print_notes(profiles)
    elif not (arguments.output is None and arguments.install and arguments.quiet):
        for profile in profiles:
            view.print_answer(profile)
            if arguments.explain:
                view.print_decisions(profile.resolution)
        view.print_notes(profiles, remarks=False)
    if wanted is not None and arguments.output is not None:
        _write(arguments, wanted, _lock(arguments, session, profiles, wanted))


def _format(arguments: argparse.Namespace) -> str | None:
    """Return the format of the lock that is asked for; None where a table is."""
    if arguments.format not in {None, "table"}:
        return str(arguments.format)
    if arguments.output is None:
        return None
    from wheelfarm.resolve.session import format_of

    return format_of(arguments.output)


def _lock(
    arguments: argparse.Namespace,
    session: "Session",
    profiles: "Sequence[Profile]",
    wanted: str,
) -> dict[str, str]:
    from wheelfarm.model.versions import Minor
    from wheelfarm.resolve.session import EDITED, FORMATS, lock_files
    from wheelfarm.resolve.user_file import UserFile

    output = arguments.output or Path(FORMATS[wanted])
    existing = ""
    if arguments.output is not None and wanted in EDITED:
        existing = UserFile.read(output).text
    if wanted == "pixi" and session.asking.carried:
        from wheelfarm.reading import parse_toml
        from wheelfarm.resolve.writers.tables import carry

        parse_toml(existing, str(output))
        carried = session.asking.carried
        if output.name == "pyproject.toml":
            carried = {"tool": {"pixi": carried}}
        existing, differing = carry(existing, carried)
        for key in differing:
            print(clean(f"note: {key} stays as {output} has it"), file=sys.stderr)
    written = lock_files(
        profiles,
        session.question(profiles),
        wanted,
        output,
        existing=existing,
        feature=arguments.feature,
        pixi_version=None if not arguments.pixi_version else Minor.parse(arguments.pixi_version),
    )
    for note in written.notes:
        print(f"note: {clean(note)}", file=sys.stderr)
    return dict(written.texts)


def _write(arguments: argparse.Namespace, wanted: str, texts: "dict[str, str]") -> None:
    """Write a lock beside ``--output``; nothing is written where a file would be lost."""
    from wheelfarm.resolve.locked import refuse_to_replace
    from wheelfarm.resolve.session import EDITED
    from wheelfarm.resolve.user_file import UserFile

    places = {arguments.output.parent / name: text for name, text in texts.items()}
    if wanted not in EDITED:
        for path in places:
            refuse_to_replace(path)
    for path, text in places.items():
        UserFile.read(path).write(text)
        print(f"wrote {path}", file=sys.stderr)


def _available(arguments: argparse.Namespace, session: "Session") -> int:
    from wheelfarm.resolve.detect import detect
    from wheelfarm.resolve.explain import available

    index = session.index(detect(vars(arguments), arguments.host))
    names = [each.name for each in session.asking.wanted]
    if not names and index.packages() is None:
        from wheelfarm.errors import UsageError

        message = f"{index.address} has no manifest, and does not tell what it serves"
        raise UsageError(message, hint="name the packages: wheelfarm resolve --available diso")
    rows = available(index, names)
    if arguments.json:
        keys = ("package", "version", "accelerator", "torch", "python", "platform", "filename")
        document = {"cells": [dict(zip(keys, row, strict=True)) for row in rows]}
        print_json("wheelfarm.resolve-available/1", document)
    else:
        header = ("package", "version", "accelerator", "torch", "python", "platform")
        print_table(header, sorted({row[:6] for row in rows}))
        for name in sorted(set(names) - {row[0] for row in rows}):
            print(f"{index.address} has no wheel of {clean(name)}", file=sys.stderr)
    return 0 if rows else 1


def _check(arguments: argparse.Namespace) -> int:
    """Ask a lock's own question again, with its wheels preferred; exit 1 where it fails."""
    from wheelfarm.errors import NegativeVerdictError
    from wheelfarm.resolve.asking import Asking
    from wheelfarm.resolve.check import check
    from wheelfarm.resolve.choose import parse_wanted
    from wheelfarm.resolve.detect import detect
    from wheelfarm.resolve.locked import read_lock
    from wheelfarm.resolve.resolution import Settings
    from wheelfarm.values import replace

    lock = read_lock(arguments.check)
    question = lock.question
    # The lock says where it asked; only a word of the command line counts more, for a mirror.
    arguments.index = arguments.index or question.index
    with opened_session(arguments) as opened:
        session = replace(
            opened,
            asking=Asking(wanted=tuple(map(parse_wanted, question.packages))),
            settings=Settings(
                choose_torch=question.choose_torch,
                prereleases=question.prereleases,
                preferred=frozenset(wheel.sha256 for wheel in lock.wheels),
            ),
        )
        profiles = [
            session.answer(detect(facts), name) for name, facts in sorted(question.profiles.items())
        ]
    lines = check(lock, profiles)
    if arguments.json:
        print_json("wheelfarm.resolve-check/1", {"holds": not lines, "faults": lines})
    else:
        count = len(lock.wheels)
        holds = "1 wheel still holds" if count == 1 else f"{count} wheels still hold"
        for line in lines or [f"{arguments.check}: {holds}"]:
            print(clean(line))
    return NegativeVerdictError.exit_code if lines else 0


def _install(
    arguments: argparse.Namespace, session: "Session", profiles: "Sequence[Profile]"
) -> None:
    from wheelfarm.errors import UsageError
    from wheelfarm.resolve.install import install, plan

    if len(profiles) != 1 or profiles[0].name:
        message = "--install is for this machine, not for profiles"
        raise UsageError(message)
    planned = plan(profiles[0].resolution, session.client, tool=arguments.installer)
    for line in planned.lines():
        print(clean(line), file=sys.stderr if arguments.json else sys.stdout)
    if not arguments.dry_run:
        from wheelfarm.cli.resolve_view import progress_to

        install(planned, session.client, progress_to(arguments))
