"""The record of a run: one line per finished job, so that a second run goes on where one ended.

``<workspace>/runs/<plan>/`` holds ``run.json`` (which plan, which engine, since when), the plan,
``record.jsonl`` (a result per line; of two of one job the last counts) and ``logs/``. A last line
that a kill left half-written is not read.
"""

import contextlib
import fcntl
import json
import logging
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any

from wheelfarm import files
from wheelfarm.build.workspace import Workspace
from wheelfarm.engines.job_result import JobResult
from wheelfarm.engines.plan_file import PlanFile, read_plan
from wheelfarm.errors import BadInputError
from wheelfarm.plan.model import Cost
from wheelfarm.reading import Reader, parse_json, read_json, read_text
from wheelfarm.values import replace

logger = logging.getLogger(__name__)

SCHEMA = "wheelfarm.run-record/1"
#: The schema of ``wheelfarm status --json``.
STATUS_SCHEMA = "wheelfarm.status/1"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunHead:
    """What a run is of: the plan's path and hash, its recipes' hash, the engine, the start."""

    plan: str
    digest: str
    recipes: str
    engine: str
    started: str


class RunRecord:
    """One plan's record in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of(cls, workspace: Workspace, plan: PlanFile) -> "RunRecord":
        """Return a plan's record in a workspace; nothing need be there yet."""
        return cls(workspace.root / "runs" / plan.digest[:16])

    def log(self, job: str) -> Path:
        """Return the path of a job's log."""
        return self.folder / "logs" / f"{job}.log"

    @contextlib.contextmanager
    def writing(self, plan: PlanFile, engine: str) -> Iterator["RunRecord"]:
        """Own the record while a run goes on.

        Raises BadInputError where another run of the plan has it; a kill frees it.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "run.lock").open("a") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                message = f"the plan {plan.path} is being run by another process"
                raise BadInputError(
                    message, hint="`wheelfarm status` shows how far it is"
                ) from error
            now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
            head = {
                "schema": SCHEMA,
                "plan": str(plan.path.absolute()),
                "digest": plan.digest,
                "recipes": plan.recipes,
                "engine": engine,
                "started": now,
            }
            files.write_text(self.folder / "run.json", json.dumps(head, indent=1) + "\n")
            # The file may be another plan's by the time somebody asks how this one went.
            if plan.path.is_file():
                files.copy(plan.path, self._plan)
            self._mend()
            yield self

    def running(self) -> bool:
        """Return whether a process owns the record now."""
        try:
            with (self.folder / "run.lock").open("r") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False

    def add(self, result: JobResult) -> None:
        """Append one job's result."""
        line = json.dumps(result.to_dict(), separators=(",", ":")) + "\n"
        with self._path.open("ab") as stream:
            stream.write(line.encode())

    def head(self) -> RunHead:
        """Return what the run is of; raises BadInputError where the record is none."""
        path = self.folder / "run.json"
        reader = Reader(read_json(path), str(path))
        if reader.string("schema") != SCHEMA:
            reader.fault(f"expected {SCHEMA}", "schema")
        head = RunHead(
            plan=reader.string("plan"),
            digest=reader.string("digest"),
            recipes=reader.string("recipes"),
            engine=reader.string("engine"),
            started=reader.string("started"),
        )
        reader.finish()
        return head

    def plan(self) -> PlanFile:
        """Return the plan that was run; BadInputError where it is nowhere any more."""
        head = self.head()
        for path in (self._plan, Path(head.plan)):
            if path.is_file() and (plan := read_plan(path)).digest == head.digest:
                return replace(plan, path=Path(head.plan))
        message = f"the plan of the last run is gone: {head.plan} is not there, or another one"
        raise BadInputError(message, hint="name its file: `wheelfarm status PLAN`")

    def results(self) -> dict[str, JobResult]:
        """Return the last result of every job that has one."""
        found: dict[str, JobResult] = {}
        if not self._path.exists():
            return found
        lines = read_text(self._path).split("\n")[:-1]
        for number, line in enumerate(lines, 1):
            context = f"{self._path}:{number}"
            result = JobResult.from_dict(parse_json(line, context), context)
            found[result.job] = result
        return found

    @property
    def _plan(self) -> Path:
        return self.folder / "plan.json"

    @property
    def _path(self) -> Path:
        return self.folder / "record.jsonl"

    def _mend(self) -> None:
        """Cut off a half-written last line, so that the next one starts on its own."""
        if not self._path.exists():
            return
        data = self._path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole != len(data):
            os.truncate(self._path, whole)


def latest_record(workspace: Workspace) -> RunRecord:
    """Return the record of the run that was started last; BadInputError where there is none."""
    heads = sorted(
        (workspace.root / "runs").glob("*/run.json"), key=lambda path: path.stat().st_mtime
    )
    if not heads:
        message = f"nothing was run in {workspace.root.parent} yet"
        raise BadInputError(message, hint="`wheelfarm run PLAN` runs a plan's jobs")
    return RunRecord(heads[-1].parent)


def all_results(workspace: Workspace) -> Iterator[JobResult]:
    """Return every result of every run of a workspace; a damaged record is left out."""
    for path in sorted((workspace.root / "runs").glob("*/run.json")):
        with contextlib.suppress(BadInputError):
            yield from RunRecord(path.parent).results().values()


def results_of_others(folder: Path) -> Iterator[JobResult]:
    """Return the results in a folder's files of ``wheelfarm status --json``.

    A file that is none is told of and left out: a lost measurement must not stop a plan.
    """
    if not folder.is_dir():
        logger.warning("nothing was measured in %s yet", folder)
        return
    for path in sorted(folder.glob("*.json")):
        try:
            reader = Reader(read_json(path), str(path))
            if reader.string("schema") != STATUS_SCHEMA:
                reader.fault(f"expected {STATUS_SCHEMA}", "schema")
            documents = reader.raw("results")
            if not isinstance(documents, list):
                reader.fault("expected a list", "results")
            reader.finish()
            found = [JobResult.from_dict(document, str(path)) for document in documents]
        except BadInputError as error:
            logger.warning("left out: %s", error)
        else:
            yield from found


def measured_costs(results: Iterable[JobResult]) -> Mapping[str, Cost]:
    """Return what each package's cells took (minutes), for the next plan.

    A cell counts where all of its jobs were done and each was really built; its archs are told
    apart where at least two numbers of them were measured.
    """
    cells: dict[str, list[JobResult]] = defaultdict(list)
    for result in results:
        if result.status in {"done", "refused"} and result.steps:
            cells[result.cell].append(result)
    known: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for jobs in cells.values():
        kinds = {job.kind for job in jobs}
        if kinds == {"whole"} or {"shard", "link"} <= kinds:
            minutes = sum(job.seconds for job in jobs) / 60
            known[jobs[0].package][jobs[0].archs].append(minutes)
    return {package: _fitted(points) for package, points in known.items()}


def _fitted(points: Mapping[int, list[float]]) -> Cost:
    middles = sorted((archs, median(values)) for archs, values in points.items())
    (least, low), (most, high) = middles[0], middles[-1]
    if least == most:
        return Cost(fixed=low)
    slope = max(0.0, (high - low) / (most - least))
    return Cost(fixed=max(0.0, low - slope * least), per_arch=slope)


def summary(results: Mapping[str, JobResult]) -> dict[str, Any]:
    """Return how many jobs had each outcome, and how the compiler caches answered."""
    counts: dict[str, int] = defaultdict(int)
    cache: dict[str, int] = defaultdict(int)
    for result in results.values():
        counts[result.status] += 1
        for name, number in result.cache.items():
            cache[name] += number
    return {"outcomes": dict(counts), "cache": dict(cache)}
