"""The command line, one module per verb: parse, call, print; nothing else.

A verb is a module ``wheelfarm.cli.<verb>`` with ``configure(parser)`` and ``execute(arguments)``,
which returns the exit status. Only the verb that was asked for is imported, so that ``--help``
stays fast. Results go to stdout, logs to stderr.
"""

import argparse
import contextlib
import gc
import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from wheelfarm import __version__
from wheelfarm.cli.output import clean_lines, print_error_json
from wheelfarm.cli.verbs import VERBS, module_of
from wheelfarm.errors import (
    CouldNotLookError,
    InterruptedByUserError,
    UsageError,
    WheelfarmError,
    refused_by_system,
)

#: The exit status of a fault of wheelfarm itself (EX_SOFTWARE of sysexits.h).
INTERNAL_FAULT = 70

#: Verbs whose whole run is a fraction of a second. They log nothing that is shown unless ``-v``
#: asks for it, and leave nothing behind: `logging` and the interpreter's taking apart, a tenth of
#: their time, are left out.
_SHORT = frozenset({"host", "resolve"})

#: Modules that only an extra brings, with the extra: ``pip install wheelfarm`` has the user side.
EXTRA_MODULES = {
    "auditwheel": "farm",
    "jinja2": "farm",
    "rich": "farm",
    "yaml": "farm",
    "zstandard": "farm",
    "obstore": "objects",
    "dask": "dask",
    "distributed": "dask",
}


class _Formatter(argparse.HelpFormatter):
    """The usual help; its width is asked for here, as argparse imports all of shutil for it."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


def _columns() -> int:
    """Return the terminal's width, as shutil.get_terminal_size finds it."""
    given = os.environ.get("COLUMNS", "")
    if given.isdigit() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1).columns or 80
    except (OSError, ValueError):
        return 80


class _Parser(argparse.ArgumentParser):
    """A parser of a verb, or of what stands below it; each takes the common options.

    Its complaints carry the usage exit code of sysexits.h.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": _Formatter, **settings})
        # An unset variable in a script must not become the current folder, or "every package".
        # Where an empty text means something, the option says ``type=str``.
        self.register("type", None, _some_text)
        self.register("type", Path, lambda text: Path(_some_text(text)))
        _add_common(self)

    def add_subparsers(self, **settings: Any) -> Any:
        """Leave the texts behind a verb to the verb's own arguments, which have names."""
        action = super().add_subparsers(**settings)
        action.type = str
        return action

    def error(self, message: str) -> "None":  # type: ignore[override]
        if _asks_for_json(sys.argv[1:]):
            print_error_json(UsageError(message, hint=f"{self.prog} --help"))
        self.print_usage(sys.stderr)
        self.exit(UsageError.exit_code, f"{self.prog}: {message}\n")


def _some_text(text: str) -> str:
    """Return what a user gave for an argument; argparse.ArgumentTypeError where it is empty."""
    if not text:
        message = "it is empty; give a value (or, in a script, see which variable is unset)"
        raise argparse.ArgumentTypeError(message)
    return text


def verb_of(argv: Sequence[str]) -> str | None:
    """Return the word that stands where a verb should; None where there is none."""
    return next((word for word in argv if not word.startswith("-")), None)


def main(argv: Sequence[str]) -> int:
    """Run one command and return its exit status; WheelfarmError goes through to the caller."""
    verb = verb_of(argv)
    parser = _build_parser(verb if verb in VERBS else None)
    arguments = parser.parse_args(argv)
    if arguments.verb is None:
        if arguments.json:
            parser.error("no verb was given")
        parser.print_help()
        return UsageError.exit_code
    verbosity = arguments.verbose - arguments.quiet
    if verbosity > 0 or arguments.verb not in _SHORT:
        from wheelfarm.cli.log_lines import configure

        configure(verbosity)
    module = _verb_module(arguments.verb)
    status: int = module.execute(arguments)
    return status


def entry_point() -> None:
    """Run the command line of this process: the one place that catches WheelfarmError."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Imports make thousands of objects that stay: looking through them costs a tenth of a start.
    gc.set_threshold(50_000)
    _settle_streams()
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except WheelfarmError as error:
        status = _refused(error)
    except KeyboardInterrupt:
        status = _refused(InterruptedByUserError("interrupted; finished steps are kept"))
    except ModuleNotFoundError as error:
        extra = EXTRA_MODULES.get((error.name or "").partition(".")[0])
        if extra is None:
            status = _own_fault()
        else:
            message = f"this verb needs {error.name}, which is not installed"
            hint = f"pip install 'wheelfarm[{extra}]'"
            status = _refused(CouldNotLookError(message, hint=hint))
    except OSError as error:
        # A folder that cannot be written, a file where a folder should be: the machine said no.
        import logging

        logging.getLogger(__name__).debug("the operating system refused", exc_info=True)
        status = _refused(refused_by_system(error))
    except Exception:  # noqa: BLE001 - the edge: a crash must not end with the status of a verdict
        status = _own_fault()
    if verb_of(sys.argv[1:]) in _SHORT:
        _end(status)
    # The interpreter's last collections would walk all that ever was imported, to free a memory
    # that the system takes back anyway: a tenth of a short run.
    gc.freeze()
    sys.exit(status)


def _end(status: int) -> NoReturn:
    """End the process now: taking an interpreter apart costs a tenth of a short run."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)


def _refused(error: WheelfarmError) -> int:
    """Print an error; what foreign data put into it cannot steer the terminal."""
    print(f"wheelfarm: {clean_lines(str(error))}", file=sys.stderr)
    if _asks_for_json(sys.argv[1:]):
        print_error_json(error)
    return error.exit_code


def _asks_for_json(argv: Sequence[str]) -> bool:
    """Return whether a command line asks for JSON: also one that is too wrong to be parsed."""
    options = argv[: argv.index("--")] if "--" in argv else argv
    return "--json" in options


def _own_fault() -> int:
    """Print the traceback of a fault of ours; Python's own status, 1, would read as a verdict."""
    import traceback

    traceback.print_exc()
    what = "this is a fault of wheelfarm, not of its input"
    print(f"wheelfarm: {what}", file=sys.stderr)
    if _asks_for_json(sys.argv[1:]):
        error = WheelfarmError(what, cause=repr(sys.exc_info()[1]))
        print_error_json(error, exit_status=INTERNAL_FAULT)
    return INTERNAL_FAULT


class _Output(io.FileIO):
    """Standard output or error whose end changes neither what is done nor what is answered."""

    def __init__(self, descriptor: int, *, lossy: bool) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._lossy = lossy

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            # The reader went away (`| head`): the work goes on, and its status stays true.
            _discard(self.fileno())
        except OSError as error:
            _discard(self.fileno())  # What is left in buffers would fail once more at the end.
            if not self._lossy:
                error.filename = "standard output"
                raise
        return memoryview(data).nbytes


def _discard(descriptor: int) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def _settle_streams() -> None:
    """Let both streams take every name, and be there; what they cannot encode is escaped."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # It was closed (`>&-`): no file of ours may get its number.
            nothing = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, io.TextIOWrapper(io.FileIO(nothing, "w"), encoding="utf-8"))
        elif isinstance(stream, io.TextIOWrapper) and stream.isatty():
            stream.reconfigure(errors="backslashreplace")
        elif isinstance(stream, io.TextIOWrapper):
            output = io.TextIOWrapper(
                io.BufferedWriter(_Output(stream.fileno(), lossy=name == "stderr")),
                encoding=stream.encoding,
                errors="backslashreplace",
                line_buffering=stream.line_buffering,
                write_through=stream.write_through,
            )
            setattr(sys, name, output)


def _verb_module(verb: str) -> ModuleType:
    return importlib.import_module(f"wheelfarm.cli.{module_of(verb)}")


def whole_parser() -> argparse.ArgumentParser:
    """Return the parser with every verb's options, for completion and for tests."""
    return _build_parser(None, whole=True)


def _build_parser(verb: str | None, *, whole: bool = False) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="wheelfarm",
        description="Build, prove, publish and resolve the CUDA wheels of Python extensions.",
    )
    parser.add_argument("--version", action="version", version=f"wheelfarm {__version__}")
    parser.set_defaults(verb=None, json=False, verbose=0, quiet=0)
    subparsers = parser.add_subparsers(title="verbs", metavar="VERB", prog=parser.prog)
    for name, summary in VERBS.items():
        if verb not in {None, name}:
            continue
        sub = subparsers.add_parser(name, help=summary, description=summary)
        sub.set_defaults(verb=name)
        if whole or name == verb:
            _verb_module(name).configure(sub)
    return parser


def _add_common(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("common options")
    # Without defaults of their own, they may stand before the verb as well as behind it.
    absent = argparse.SUPPRESS
    group.add_argument(
        "--json", action="store_true", default=absent, help="print one JSON document to stdout"
    )
    group.add_argument("-v", "--verbose", action="count", default=absent, help="log more to stderr")
    group.add_argument("-q", "--quiet", action="count", default=absent, help="log less to stderr")
