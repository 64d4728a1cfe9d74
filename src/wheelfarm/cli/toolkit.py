"""``wheelfarm toolkit``: which CUDA is found, variables for builds, a CUDA_HOME, a self-check."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelfarm.cli.output import clean, print_json, print_table

if TYPE_CHECKING:
    from wheelfarm.toolkit.model import Toolkit

#: What may be asked for; the room's own values, repeated so that --help imports nothing of it.
_SOURCES = ("auto", "wheels", "conda", "system")
_STEPS = ("host", "device", "device-link", "link")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the sub-verbs."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True, dest="action")
    show = actions.add_parser("show", help="print which CUDA is found, and every file's place")
    show.add_argument(
        "--floor", metavar="2.28", help="print what links at this glibc are made with, in its place"
    )
    show.add_argument(
        "--libstdcxx",
        choices=("shared", "static"),
        default="shared",
        help="where symbols of libstdc++ that the floor lacks come from",
    )
    show.add_argument(
        "--compiler", default="g++", metavar="NAME", help="the C++ compiler (a cross compiler too)"
    )
    show.set_defaults(run=_show)
    env = actions.add_parser("env", help="print shell exports that point any build at it")
    env.add_argument("--cmake", action="store_true", help="print what CMake reads instead")
    env.set_defaults(run=_env)
    home = actions.add_parser("home", help="make a CUDA_HOME of links and print its place")
    home.add_argument("--to", type=Path, metavar="FOLDER", help="make it there, not in the cache")
    home.set_defaults(run=_home)
    check = actions.add_parser("check", help="build and load a tiny extension, and report")
    check.set_defaults(run=_check)
    for action in (show, env, home, check):
        _add_choice(action)


def execute(arguments: argparse.Namespace) -> int:
    """Run the sub-verb that was asked for."""
    status: int = arguments.run(arguments)
    return status


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--python", type=Path, metavar="PY", help="look in this interpreter's")
    parser.add_argument(
        "--cuda", metavar="VERSION", help="13 or 13.0; by default that of the interpreter's torch"
    )
    parser.add_argument(
        "--source",
        choices=_SOURCES,
        default="auto",
        help="where CUDA may come from (default auto: wheels, conda, then a system's)",
    )
    parser.add_argument(
        "--need",
        action="append",
        choices=_STEPS,
        help="a step whose files must be there (default: host and link); may be given again",
    )


def _find(arguments: argparse.Namespace) -> "Toolkit":
    from wheelfarm.toolkit.find import find_toolkit

    return find_toolkit(
        arguments.cuda,
        arguments.source,
        python=arguments.python,
        needs=arguments.need or ("host", "link"),
    )


def _tell(toolkit: "Toolkit", arguments: argparse.Namespace) -> None:
    """Say on standard error which CUDA won, and over which; what is printed is for a shell."""
    if arguments.quiet:
        return
    lines = [f"CUDA {toolkit.version} from {toolkit.source}: {toolkit.path}"]
    lines += [f"passed over: {candidate}" for candidate in toolkit.candidates if candidate.reason]
    for line in (*lines, *(f"note: {note}" for note in toolkit.notes)):
        print(clean(line), file=sys.stderr)


def _show(arguments: argparse.Namespace) -> int:
    if arguments.floor is not None:
        return _show_floor(arguments)
    toolkit = _find(arguments)
    notes = (*toolkit.notes, *_of_builds(toolkit, arguments))
    if arguments.json:
        print_json("wheelfarm.toolkit-show/1", {**_document(toolkit), "notes": list(notes)})
        return 0
    print(f"CUDA {toolkit.version} from {toolkit.source}: {clean(str(toolkit.path))}")
    rows = [(name, str(path)) for name, path in toolkit.parts.items()]
    rows += [("include", str(folder)) for folder in toolkit.include_dirs]
    rows += [
        (library.name, str(library.folder / library.file_name))
        for library in toolkit.libraries.values()
    ]
    print_table(("part", "place"), rows)
    for missing in toolkit.missing:
        print(f"missing: {clean(str(missing))}")
    for note in notes:
        print(f"note: {clean(note)}")
    for candidate in toolkit.candidates:
        if candidate.reason:
            print(f"passed over: {clean(str(candidate))}")
    return 0


def _of_builds(toolkit: "Toolkit", arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return what is to be said where builds at run time take another CUDA than is shown."""
    from wheelfarm.toolkit.environment import Environment
    from wheelfarm.toolkit.flags import DEFAULT_VARIABLES, installed_toolkit, read_mode
    from wheelfarm.toolkit.layout import Machine

    machine, mode = Machine.here(), DEFAULT_VARIABLES.mode
    if toolkit.source == "system" or read_mode(machine.environ, mode) != "auto":
        return ()
    python = arguments.python
    environment = Environment.here() if python is None else Environment.of_python(python)
    installed = installed_toolkit(machine, environment.torch())
    if installed is None:
        return ()
    return (f"load and build_flags take {installed}, as it is installed; {mode}=1: this one",)


def _show_floor(arguments: argparse.Namespace) -> int:
    from wheelfarm.model.versions import Minor
    from wheelfarm.places import cache_root
    from wheelfarm.toolkit.floor.binutils import host_compiler
    from wheelfarm.toolkit.floor.prepare import prepare_floor
    from wheelfarm.toolkit.layout import Machine

    glibc = Minor.parse(arguments.floor)
    compiler = host_compiler(arguments.compiler)
    cache = cache_root(Machine.here().environ) / "floors"
    floor = prepare_floor(glibc, compiler, cache=cache, libstdcxx=arguments.libstdcxx)
    facts = {
        "compiler": f"{compiler.version} ({compiler.program})",
        "machine": compiler.machine,
        "linker": compiler.linker,
        "glibc": str(compiler.glibc),
        "floor": str(glibc),
        "libstdcxx": arguments.libstdcxx,
        "source": "the compiler's own glibc, which is not newer" if floor is None else floor.source,
        "folder": None if floor is None else str(floor.folder),
    }
    digests = {} if floor is None else dict(floor.digests)
    if arguments.json:
        print_json("wheelfarm.toolkit-floor/1", {**facts, "sha256": digests})
        return 0
    for name, value in facts.items():
        if value is not None:
            print(f"{name}: {clean(value)}")
    if digests:
        print_table(("file", "sha256"), sorted(digests.items()))
    return 0


def _env(arguments: argparse.Namespace) -> int:
    from wheelfarm.toolkit.layout import Machine
    from wheelfarm.toolkit.shell import build_variables, cuda_home, shell_exports

    toolkit = _find(arguments)
    home = cuda_home(toolkit, Machine.here())
    variables = build_variables(toolkit, home, cmake=arguments.cmake)
    _tell(toolkit, arguments)
    if arguments.json:
        print_json("wheelfarm.toolkit-env/1", {"variables": variables})
    else:
        print(shell_exports(variables))
    return 0


def _home(arguments: argparse.Namespace) -> int:
    from wheelfarm.toolkit.driver import stand_in
    from wheelfarm.toolkit.layout import Machine
    from wheelfarm.toolkit.shell import cuda_home
    from wheelfarm.toolkit.view import make_view

    toolkit, machine = _find(arguments), Machine.here()
    if arguments.to is None:
        home = cuda_home(toolkit, machine)
    else:
        home = make_view(toolkit, arguments.to.absolute(), stub=stand_in(toolkit, machine))
    _tell(toolkit, arguments)
    if arguments.json:
        print_json("wheelfarm.toolkit-home/1", {"home": str(home), "root": str(toolkit.path)})
    else:
        print(home)
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from wheelfarm.errors import NegativeVerdictError
    from wheelfarm.toolkit.check import check_toolkit
    from wheelfarm.toolkit.environment import Environment
    from wheelfarm.toolkit.layout import Machine

    toolkit = _find(arguments)
    python = arguments.python
    environment = Environment.here() if python is None else Environment.of_python(python)
    steps = check_toolkit(toolkit, environment=environment, machine=Machine.here())
    if arguments.json:
        document = {
            "version": str(toolkit.version),
            "source": toolkit.source,
            "root": str(toolkit.path),
            "checks": [
                {"id": step.name, "status": step.status, "evidence": step.evidence}
                for step in steps
            ],
        }
        print_json("wheelfarm.toolkit-check/1", document)
    else:
        print(f"CUDA {toolkit.version} from {toolkit.source}: {clean(str(toolkit.path))}")
        for step in steps:
            first, *rest = step.evidence.splitlines() or [""]
            print(f"{step.status}  {step.name}: {clean(first)}")
            for line in rest:
                print(f"      {clean(line)}")
    failed = any(step.status == "fail" for step in steps)
    return NegativeVerdictError.exit_code if failed else 0


def _document(toolkit: "Toolkit") -> dict[str, Any]:
    return {
        "version": str(toolkit.version),
        "source": toolkit.source,
        "root": str(toolkit.path),
        "found_by": toolkit.root.found_by,
        "nvcc": None if toolkit.nvcc is None else str(toolkit.nvcc),
        "parts": {name: str(path) for name, path in toolkit.parts.items()},
        "include_dirs": [str(folder) for folder in toolkit.include_dirs],
        "library_dirs": [str(folder) for folder in toolkit.library_dirs],
        "libraries": {
            library.name: str(library.folder / library.file_name)
            for library in toolkit.libraries.values()
        },
        "missing": [
            {"part": item.part, "file": item.file, "requirement": item.requirement}
            for item in toolkit.missing
        ],
        "notes": list(toolkit.notes),
        "candidates": [
            {
                "place": candidate.place,
                "accepted": not candidate.reason,
                "reason": candidate.reason,
                "version": None
                if candidate.root is None or candidate.root.version is None
                else str(candidate.root.version),
            }
            for candidate in toolkit.candidates
        ],
    }
