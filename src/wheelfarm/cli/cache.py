"""``wheelfarm cache``: prove the compiler cache of this machine, or hold all caches in a budget."""

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wheelfarm.cli.output import coloured, print_json, print_table
from wheelfarm.errors import BadInputError, CouldNotLookError, NegativeVerdictError

if TYPE_CHECKING:
    from wheelfarm.build.cache import CompilerCache

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", re.IGNORECASE)


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the sub-verbs."""
    verbs = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    doctor = verbs.add_parser("doctor", help="prove that the compiler cache serves no stale object")
    doctor.add_argument("--python", type=Path, help="the Python whose CUDA wheels are used")
    doctor.add_argument("--cuda-home", type=Path, help="a CUDA root to use instead")
    collector = verbs.add_parser("gc", help="remove what was unused for longest")
    collector.add_argument("--budget", default="50G", help="what all caches may take (default 50G)")
    collector.add_argument("--dry-run", action="store_true", help="show it, and remove nothing")


def execute(arguments: argparse.Namespace) -> int:
    """Run the sub-verb; the doctor's exit status is 1 where the cache failed a check."""
    return _doctor(arguments) if arguments.action == "doctor" else _collect(arguments)


def parse_size(text: str) -> int:
    """Return the bytes of ``50G``, ``1.5 TB`` or ``1000``; BadInputError for anything else."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        message = f"{text!r} is no size"
        raise BadInputError(message, hint="write it like 50G or 800M")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def _doctor(arguments: argparse.Namespace) -> int:
    import tempfile

    from wheelfarm.build.cache import record_verdict
    from wheelfarm.build.cache_doctor import examine
    from wheelfarm.build.compile import system_path
    from wheelfarm.places import cache_root

    with tempfile.TemporaryDirectory(prefix="wheelfarm-doctor-") as name:
        folder = Path(name)
        cache = _cache(folder)
        toolkit = _toolkit(arguments, folder)
        checks = examine(cache, toolkit, folder / "work", path=":".join(system_path()))
    failed = [check.id for check in checks if check.status == "fail"]
    record_verdict(cache_root() / "compilers", cache, failed)
    if arguments.json:
        rows = [
            {"id": c.id, "status": c.status, "summary": c.summary, "evidence": c.evidence}
            for c in checks
        ]
        print_json("wheelfarm.cache-doctor/1", {"cache": cache.name, "checks": rows})
    else:
        colours = {"pass": "green", "fail": "red"}
        for check in checks:
            word = coloured(f"{check.status:<4}", colours[check.status])
            print(f"{word}  {check.summary}  [{check.id}]")
        verdict = "can be trusted" if not failed else "is refused: builds will not use it"
        print(f"{cache.name} {verdict}")
    return NegativeVerdictError.exit_code if failed else 0


def _cache(folder: Path) -> "CompilerCache":
    from wheelfarm.build.cache import HOW_TO_GET_CCACHE, NoCache, find_cache
    from wheelfarm.build.compile import system_path

    path = ":".join([*system_path(), str(Path(sys.executable).parent)])
    cache = find_cache(folder / "cache", path=path)
    if isinstance(cache, NoCache):
        message = "there is no compiler cache on this machine"
        raise CouldNotLookError(message, cause=cache.reason, hint=HOW_TO_GET_CCACHE)
    return cache


def _toolkit(arguments: argparse.Namespace, folder: Path) -> Path:
    from wheelfarm.toolkit.find import find_toolkit
    from wheelfarm.toolkit.view import make_view

    if arguments.cuda_home is not None:
        root: Path = arguments.cuda_home.absolute()
        return root
    toolkit = find_toolkit(python=arguments.python, needs=("device",))
    return make_view(toolkit, folder / "cuda")


def _collect(arguments: argparse.Namespace) -> int:
    from wheelfarm.build.cache_budget import collect
    from wheelfarm.places import cache_root

    budget = parse_size(arguments.budget)
    done = collect(cache_root(), budget, remove=not arguments.dry_run)
    if arguments.json:
        document = {
            "budget": budget,
            "before": done.before,
            "after": done.after,
            "removed": [
                {"kind": item.kind, "path": str(item.path), "bytes": item.bytes}
                for item in done.removed
            ],
            "in_use": [str(path) for path in done.in_use],
        }
        print_json("wheelfarm.cache-gc/1", document)
        return 0
    kinds: dict[str, list[int]] = {}
    for item in done.removed:
        kinds.setdefault(item.kind, []).append(item.bytes)
    rows = [(kind, str(len(sizes)), _gigabytes(sum(sizes))) for kind, sizes in kinds.items()]
    print_table(("removed" if not arguments.dry_run else "would remove", "count", "bytes"), rows)
    print(f"{_gigabytes(done.before)} before, {_gigabytes(done.after)} now")
    for path in done.in_use:
        print(f"in use: {path}")
    return 0


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.2f} GB"
