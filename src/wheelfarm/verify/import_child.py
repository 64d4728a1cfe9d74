"""Child processes that see a wheel as if it were installed: their environment, layout and answers.

The wheel is unpacked into a folder of its own, beside which links stand for torch and NVIDIA's
wheels, so that search paths relative to the file lead where they would after an installation.
"""

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.files import unpack
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor
from wheelfarm.run import run, signal_name
from wheelfarm.verify.subject import Subject

#: No import takes longer (seconds); torch alone takes two to ten on a slow disk.
TIME_LIMIT = 300.0
_PROBE = Path(__file__).with_name("import_probe.py")


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportRequest:
    """Where to import the wheel: an environment's Python, and a stub driver's folder.

    ``packages`` is a folder with what the wheel requires beside the environment.
    """

    wheel: Path
    environment: Path | None = None
    driver_stub: Path | None = None
    packages: Path | None = None
    time_limit: float = TIME_LIMIT


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """What the interpreter says of itself, its torch and this machine's driver."""

    python: PythonTag
    site: Path
    torch: Version | None
    cuda: Minor | None
    torch_folder: Path | None
    driver: bool


def describe(request: ImportRequest) -> Environment:
    """Return what the environment is; CouldNotLookError where its Python does not say."""
    with tempfile.TemporaryDirectory(prefix="wheelfarm-") as folder:
        answer = Path(folder) / "answer"
        events = run_probe(request, {"describe": True, "answer": str(answer)}, answer, stub=None)
    found = next((event for event in events if event["event"] == "environment"), None)
    if found is None:
        message = f"{request.environment} could not say what it is: {events[-1]['message']}"
        raise CouldNotLookError(message)
    text = f"{found['python']}{'t' if found['free_threaded'] else ''}"
    folder_text = found["torch_folder"]
    return Environment(
        python=PythonTag.of_version(text),
        site=Path(str(found["site"])),
        torch=_version(found["torch"]),
        cuda=_minor(found["cuda"]),
        torch_folder=None if folder_text is None else Path(str(folder_text)),
        driver=bool(found["driver"]),
    )


def _version(value: object) -> Version | None:
    try:
        return Version(str(value)) if value is not None else None
    except InvalidVersion:
        return None


def _minor(value: object) -> Minor | None:
    try:
        return Minor.of(Version(str(value))) if value is not None else None
    except InvalidVersion:
        return None


def mismatches(subject: Subject, environment: Environment) -> Iterator[str]:
    """Yield why an environment is not the one that the wheel and its cell are for."""
    name, cell = subject.facts.name, subject.cell
    if name is None:
        yield "the wheel's name says no Python"
        return
    try:
        tag = name.python
    except BadInputError as error:
        yield error.what
        return
    if not tag.serves(environment.python):
        yield f"its Python is {environment.python}, the wheel is for {tag}"
    if name.platform is not None and name.platform.system == "windows" and os.name != "nt":
        yield "the wheel is for Windows"
    if cell is None:
        return
    linked = subject.facts.linkage.torch != "none"
    if environment.torch is None:
        if linked:
            yield "it has no torch"
        return
    if Minor.of(environment.torch) != cell.torch:
        yield f"its torch is {environment.torch}, the cell's is {cell.torch}"
    wanted = cell.accelerator.version
    if cell.accelerator.kind == "cuda" and wanted is not None and environment.cuda != wanted:
        yield f"its torch is built for CUDA {environment.cuda}, the cell is for {wanted}"


def lay_out(wheel: Path, site: Path, environment: Environment, subject: Subject) -> None:
    """Unpack a wheel into ``site``, which is made, with its neighbours beside it."""
    site.mkdir()
    unpack(wheel, site)
    for data in site.glob("*.data"):
        for part in ("purelib", "platlib"):
            for entry in (data / part).glob("*"):
                target = site / entry.name
                if not target.exists():
                    entry.rename(target)
    if os.name == "nt":
        return
    torch = environment.torch_folder
    places = {"torch": torch, "nvidia": environment.site / "nvidia"}
    for name in _neighbours(subject):
        places.setdefault(name, environment.site / name)
    for name, place in places.items():
        if place is not None and place.is_dir() and not (site / name).exists():
            (site / name).symlink_to(place)


def _neighbours(subject: Subject) -> Iterator[str]:
    """Yield the folders of other packages to which search paths lead."""
    for binary in subject.binaries:
        depth = binary.path.count("/")
        for path in (*binary.rpath, *binary.runpath):
            parts = path.split("/")[1:]
            if parts[:depth] == [".."] * depth and len(parts) > depth and parts[depth] != "..":
                yield parts[depth]


def run_probe(
    request: ImportRequest, asked: Mapping[str, Any], answer: Path, *, stub: Path | None
) -> list[dict[str, Any]]:
    """Run the probe; return its events, with a crash or time-out as the last one."""
    done = run(
        [str(request.environment), "-I", "-B", str(_PROBE), json.dumps(asked)],
        env=_variables(stub),
        timeout=request.time_limit,
        check=False,
        cwd=answer.parent,
    )
    lines = answer.read_text(encoding="utf-8").splitlines() if answer.exists() else []
    events: list[dict[str, Any]] = [json.loads(line) for line in lines]
    last = events[-1] if events else {"event": "start", "target": ""}
    if last["event"] == "start" or not done.ok:
        message = _last_words((done.stderr, done.stdout))
        code = done.returncode
        kind = f"killed by {signal_name(-code)}" if code < 0 else f"exit status {code}"
        events.append(
            {"event": "crash", "target": last["target"], "kind": kind, "message": message}
        )
    return events


def _last_words(streams: Iterable[str]) -> str:
    for stream in streams:
        lines = stream.strip().splitlines()
        if lines:
            return " | ".join(lines[-3:])[:600]
    return "it said nothing"


def _variables(stub: Path | None) -> dict[str, str]:
    """Return the child's environment: nothing of ours that could help or hinder an import."""
    dropped = {"LD_LIBRARY_PATH", "LD_PRELOAD", "CUDA_HOME", "CUDA_PATH"}
    variables = {
        name: value
        for name, value in os.environ.items()
        if name not in dropped and not name.startswith("PYTHON")
    }
    if stub is not None:
        variables["LD_LIBRARY_PATH"] = str(stub)
    return variables
