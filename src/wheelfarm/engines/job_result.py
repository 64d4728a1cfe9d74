"""What became of one job: the value that every engine hands back and every record holds."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from wheelfarm.engines.plan_file import PlannedJob
from wheelfarm.errors import BadInputError
from wheelfarm.reading import Reader

#: ``refused``: built, and the gate said no. ``killed``: the process or its machine went away.
#: ``not-run``: what it needs failed, or the run stopped before it.
Status = Literal[
    "done", "refused", "could-not-look", "failed", "killed", "interrupted", "timed-out", "not-run"
]
#: No measured number is larger: it is more seconds, or bytes, than there are.
_MOST = 1e18
STATUSES: tuple[Status, ...] = get_args(Status)
#: How a job ends that says nothing of its cell: the next run of the plan takes it up.
UNFINISHED: frozenset[Status] = frozenset(("interrupted", "timed-out", "not-run"))


@dataclass(frozen=True, kw_only=True, slots=True)
class JobResult:
    """One job's result.

    ``seconds`` is wall time, ``peak`` the bytes of the largest unit, ``cache`` counts units by
    how the compiler cache answered, ``steps`` the seconds of each step that was not kept from
    before. ``sha256`` is of the wheel, or of a shard's archive. ``log`` is a path on the worker.
    """

    job: str
    cell: str
    package: str
    kind: str
    status: Status
    engine: str = ""
    worker: str = ""
    started: str = ""
    seconds: float = 0.0
    steps: Mapping[str, float] = field(default_factory=dict)
    peak: int = 0
    archs: int = 0
    units: int = 0
    compile_seconds: float = 0.0
    cache: Mapping[str, int] = field(default_factory=dict)
    wheel: str = ""
    sha256: str = ""
    error: str = ""
    log: str = ""
    attempt: int = 1

    @classmethod
    def without_work(
        cls, job: PlannedJob, status: Status, error: str, *, engine: str, worker: str = ""
    ) -> "JobResult":
        """Return the result of a job of which nothing is known but how it ended."""
        return cls(
            job=job.id,
            cell=job.cell,
            package=job.package,
            kind=job.kind,
            status=status,
            error=error,
            engine=engine,
            worker=worker,
        )

    @property
    def hits(self) -> int:
        """Units that the cache answered."""
        return self.cache.get("hit", 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as records write it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, document: object, context: str) -> "JobResult":
        """Read a result; FaultsError lists what is wrong with it."""
        reader = Reader(document, context)
        status = reader.choice("status", STATUSES, "failed")
        result = cls(
            job=reader.string("job"),
            cell=reader.string("cell"),
            package=reader.string("package"),
            kind=reader.string("kind"),
            status=next((known for known in STATUSES if known == status), "failed"),
            engine=reader.string("engine", ""),
            worker=reader.string("worker", ""),
            started=reader.string("started", ""),
            seconds=_number(reader.raw("seconds"), reader.where("seconds")),
            steps=_numbers(reader, "steps"),
            peak=reader.integer("peak", 0),
            archs=reader.integer("archs", 0),
            units=reader.integer("units", 0),
            compile_seconds=_number(reader.raw("compile_seconds"), reader.where("compile_seconds")),
            cache={name: int(value) for name, value in _numbers(reader, "cache").items()},
            wheel=reader.string("wheel", ""),
            sha256=reader.string("sha256", ""),
            error=reader.string("error", ""),
            log=reader.string("log", ""),
            attempt=reader.integer("attempt", 1),
        )
        reader.finish()
        return result


def _is_finite(value: float) -> bool:
    return -_MOST < value < _MOST


def _number(value: object, where: str) -> float:
    # JSON's 1e999 is read as infinity, of which nothing can be counted.
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        message = f"{where}: expected a number"
        raise BadInputError(message)
    return float(value)


def _numbers(reader: Reader, key: str) -> dict[str, float]:
    table = reader.table(key)
    if table is None:
        return {}
    return {name: _number(table.raw(name), table.where(name)) for name in table}
