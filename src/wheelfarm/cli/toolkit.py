"""``wheelfarm toolkit``: show which CUDA is found and from where."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelfarm.cli.output import clean, print_json, print_table

if TYPE_CHECKING:
    from wheelfarm.toolkit.model import Toolkit


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the sub-verbs."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True, dest="action")
    show = actions.add_parser("show", help="print which CUDA is found, and every file's place")
    _add_choice(show)


def execute(arguments: argparse.Namespace) -> int:
    """Run the sub-verb that was asked for."""
    return _show(arguments)


def _add_choice(parser: argparse.ArgumentParser) -> None:
    from wheelfarm.toolkit.model import SOURCES

    parser.add_argument("--python", type=Path, metavar="PY", help="look in this interpreter's")
    parser.add_argument(
        "--cuda", metavar="VERSION", help="13 or 13.0; by default that of the interpreter's torch"
    )
    parser.add_argument("--source", choices=("auto", *SOURCES), default="auto")
    parser.add_argument(
        "--need",
        action="append",
        choices=("host", "device", "device-link", "link"),
        help="a step whose files must be there (default: host and link); may be given again",
    )
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS)


def _find(arguments: argparse.Namespace) -> "Toolkit":
    from wheelfarm.toolkit.find import find_toolkit

    return find_toolkit(
        arguments.cuda,
        arguments.source,
        python=arguments.python,
        needs=arguments.need or ("host", "link"),
    )


def _show(arguments: argparse.Namespace) -> int:
    toolkit = _find(arguments)
    if arguments.json:
        print_json("wheelfarm.toolkit.show/1", _document(toolkit))
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
    for note in toolkit.notes:
        print(f"note: {clean(note)}")
    for candidate in toolkit.candidates:
        if candidate.reason:
            print(f"passed over: {clean(str(candidate))}")
    return 0


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
