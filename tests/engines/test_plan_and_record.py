"""The engines' values: plans that are read, what runs next, what a run remembers."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.conftest import Farm
from tests.loopback import serving, status
from wheelfarm import guard
from wheelfarm.build.workspace import Workspace
from wheelfarm.engines.exchange import FolderExchange, ObjectExchange, open_exchange
from wheelfarm.engines.farm_cells import FarmCell
from wheelfarm.engines.farm_files import pack_farm, unpack_farm
from wheelfarm.engines.farm_meaning import recipe_digest
from wheelfarm.engines.job import JobOptions, JobPlace, run_job
from wheelfarm.engines.job_result import STATUSES, JobResult, Status
from wheelfarm.engines.machine_memory import memory_kills
from wheelfarm.engines.plan_file import PlanFile, PlannedJob, read_plan
from wheelfarm.engines.record import RunRecord, measured_costs
from wheelfarm.engines.run_plan import done_before, exit_code
from wheelfarm.engines.schedule import Schedule
from wheelfarm.errors import BadInputError, CouldNotLookError, FaultsError
from wheelfarm.files import UnsafeArchiveError
from wheelfarm.recipes.load import load_farm

CELL = "six-1.0-cu130-torch2.14-cp311-linux_x86_64"


def job(cell: str = CELL, kind: str = "whole", shard: int = 0, shards: int = 1) -> PlannedJob:
    suffix = {"whole": "", "link": "-link"}.get(kind, f"-shard{shard}of{shards}")
    return PlannedJob(
        id=cell + suffix,
        cell=cell,
        package="six",
        kind="shard" if kind == "shard" else "link" if kind == "link" else "whole",
        shard=shard,
        shards=shards,
        cost_minutes=1.0,
    )


def sharded(cell: str, shards: int) -> list[PlannedJob]:
    parts = [job(cell, "shard", number, shards) for number in range(1, shards + 1)]
    return [*parts, job(cell, "link")]


def result(of: PlannedJob, status: Status = "done", **changes: object) -> JobResult:
    fields = {"job": of.id, "cell": of.cell, "package": of.package, "kind": of.kind}
    return JobResult(**fields, status=status, **changes)  # type: ignore[arg-type] # fields


def test_a_link_waits_for_its_shards() -> None:
    parts = sharded(CELL, 2)
    schedule = Schedule(parts, lambda _job: 1)
    first, second = schedule.start(10), schedule.start(10)
    assert (first, second) == (parts[0], parts[1])
    assert schedule.start(10) is None
    schedule.finish(parts[0], ok=True)
    assert schedule.start(10) is None
    schedule.finish(parts[1], ok=True)
    assert schedule.start(10) == parts[2]


def test_a_link_without_its_shard_is_not_run() -> None:
    parts = sharded(CELL, 2)
    schedule = Schedule(parts, lambda _job: 1)
    schedule.start(10), schedule.start(10)
    assert schedule.finish(parts[0], ok=False) == (parts[2],)
    assert schedule.finish(parts[1], ok=True) == ()
    assert schedule.waiting == 0


def test_memory_decides_who_runs_beside_whom() -> None:
    needs = {"a": 6, "b": 6, "c": 3}
    jobs = [job(f"{name}-1.0-cu130-torch2.14-cp311-linux_x86_64") for name in needs]
    schedule = Schedule(jobs, lambda each: needs[each.cell[0]])
    assert schedule.start(10) == jobs[0]
    assert schedule.start(10) == jobs[2], "the one that fits goes first"
    assert schedule.start(10) is None
    schedule.finish(jobs[0], ok=True)
    assert schedule.start(10) == jobs[1]


def test_what_needs_more_than_there_is_runs_alone() -> None:
    schedule = Schedule([job()], lambda _job: 100)
    assert schedule.start(10) == job()


def test_a_second_try_runs_alone() -> None:
    jobs = [job(f"{name}-1.0-cu130-torch2.14-cp311-linux_x86_64") for name in "abc"]
    schedule = Schedule(jobs, lambda _job: 1)
    schedule.start(10)
    schedule.retry_alone(jobs[0])
    assert [schedule.start(10), schedule.start(10)] == jobs[1:]
    assert schedule.start(10) is None
    schedule.finish(jobs[1], ok=True)
    schedule.finish(jobs[2], ok=True)
    assert schedule.start(10) == jobs[0]


@given(
    cells=st.lists(st.integers(1, 4), min_size=1, max_size=8),
    memory=st.integers(1, 20),
    bad=st.sets(st.integers(0, 30)),
)
def test_every_job_is_run_or_given_up_once(cells: list[int], memory: int, bad: set[int]) -> None:
    jobs: list[PlannedJob] = []
    for number, shards in enumerate(cells):
        cell = f"p{number}-1.0-cu130-torch2.14-cp311-linux_x86_64"
        jobs += sharded(cell, shards) if shards > 1 else [job(cell)]
    schedule = Schedule(jobs, lambda each: len(each.id) % 7 + 1)
    running: list[PlannedJob] = []
    ended: list[str] = []
    while schedule.waiting or running:
        while (found := schedule.start(memory)) is not None:
            running.append(found)
        assert running, "it never stands still"
        one = running.pop(0)
        ended.append(one.id)
        ok = len(ended) not in bad
        ended += [other.id for other in schedule.finish(one, ok=ok)]
    assert sorted(ended) == sorted(each.id for each in jobs)


def test_a_plan_is_read_whole(small_farm: Farm) -> None:
    plan = read_plan(small_farm.plan())
    farm = load_farm(small_farm.root)
    assert plan.recipes == recipe_digest(farm)
    assert len(plan.jobs) == 1
    assert plan.only((plan.jobs[0].cell,)) == plan.jobs
    with pytest.raises(BadInputError, match="has no diso"):
        plan.only(("diso-1.0-cu130-torch2.14-cp311-linux_x86_64",))
    with pytest.raises(BadInputError, match="no cell identifier"):
        plan.only(("nonsense",))


def test_the_status_of_what_was_never_run(small_farm: Farm) -> None:
    plan = small_farm.plan()
    assert "nothing was run" in small_farm.call("status", status=4).stderr
    found = small_farm.json("status", plan)
    assert (found["state"], found["jobs"], found["left"]) == ("not started", 1, 1)


def test_a_full_disk_is_said_of_the_job(tmp_path: Path) -> None:
    def find(_: object) -> FarmCell:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path / "tree"))

    finder = Mock(find=find)
    place = JobPlace(workspace=Workspace.of(tmp_path), wheelhouse=tmp_path / "wheelhouse")
    found = run_job(job(), finder, place, JobOptions())
    assert found.status == "could-not-look"
    assert found.error == (
        f"{tmp_path}/tree: No space left on device\n  next:  free some disk space and run again"
    )


def test_the_last_runs_plan_is_kept_beside_its_record(small_farm: Farm, tmp_path: Path) -> None:
    path = small_farm.plan()
    plan = read_plan(path)
    record = RunRecord.of(Workspace.of(small_farm.root), plan)
    with record.writing(plan, "local"):
        record.add(result(plan.jobs[0], "failed"))
    kept = path.read_bytes()
    for other in (b'{"schema": "wheelfarm.plan/1", "recipes": "x", "jobs": []}', None):
        path.unlink() if other is None else path.write_bytes(other)
        found = small_farm.json("status")
        assert (found["jobs"], found["left"], found["outcomes"]) == (1, 0, {"failed": 1})
        assert found["plan"] == str(path)
    # A record of an older wheelfarm has no plan beside it.
    (record.folder / "plan.json").unlink()
    done = small_farm.call("status", status=4)
    assert "the plan of the last run is gone" in done.stderr
    assert "`wheelfarm status PLAN`" in done.stderr
    path.write_bytes(kept)
    assert small_farm.json("status")["jobs"] == 1


def test_costs_come_from_other_machines_runs(small_farm: Farm, tmp_path: Path) -> None:
    name = json.loads(small_farm.plan().read_text())["jobs"][0]["id"]
    measured = tmp_path / "measured"
    done = small_farm.call("plan", "--measured", measured)
    assert "nothing was measured in" in done.stderr
    measured.mkdir()
    one = {
        **result(job(name)).to_dict(), "package": "tiny_cuda", "seconds": 90.0,
        "steps": {"compile": 80.0}, "archs": 1,
    }  # fmt: skip
    document = {"schema": "wheelfarm.status/1", "state": "done", "results": [one]}
    (measured / "one.json").write_text(json.dumps(document))
    (measured / "damaged.json").write_text(json.dumps(document)[:-9])
    (measured / "other.json").write_text('{"schema": "wheelfarm.plan/1"}')
    (measured / "odd.json").write_text('{"schema": "wheelfarm.status/1", "results": [7]}')
    done = small_farm.call("plan", "--measured", measured, "--json")
    assert json.loads(done.stdout)["cost_minutes"] == 1.5
    assert done.stderr.count("left out: ") == 3
    for odd in ('"seconds": 1e999', '"seconds": true', '"cache": {"hit": 1e999}', '"status": ""'):
        key = odd.partition(":")[0]
        text = json.dumps({"schema": "wheelfarm.status/1", "results": [one]})
        value = json.dumps(one[key.strip('"')])
        assert f"{key}: {value}" in text
        (measured / "odd.json").write_text(text.replace(f"{key}: {value}", odd))
        done = small_farm.call("plan", "--measured", measured, "--json")
        assert json.loads(done.stdout)["cost_minutes"] == 1.5, odd


def test_a_plan_with_faults_tells_all(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    rows = [
        {"id": CELL, "cell": CELL, "package": "six", "kind": "hole"},
        {"id": "other", "cell": CELL, "package": "six", "kind": "link", "shards": 0},
    ]
    path.write_text(json.dumps({"schema": "wheelfarm.plan/1", "jobs": rows}))
    with pytest.raises(FaultsError) as caught:
        read_plan(path)
    assert len(caught.value.faults) == 3
    good = {"id": CELL, "cell": CELL, "package": "six"}
    for cost in ("1e999", "-1", "NaN", '"20"', "true"):
        text = json.dumps({"schema": "wheelfarm.plan/1", "jobs": [{**good, "cost_minutes": 0}]})
        path.write_text(text.replace('"cost_minutes": 0', f'"cost_minutes": {cost}'))
        with pytest.raises(BadInputError, match=r"minutes|NaN"):
            read_plan(path)
    path.write_text(json.dumps({"schema": "wheelfarm.report/1"}))
    with pytest.raises(BadInputError, match="is no plan"):
        read_plan(path)


def test_another_recipe_is_another_plan(small_farm: Farm) -> None:
    plan = small_farm.plan()
    recipe = small_farm.root / "recipes/tiny_cuda/recipe.yml"
    recipe.write_text(recipe.read_text() + "max_jobs: 1\n")
    done = small_farm.call("run", plan, status=4)
    assert "was made from other recipes" in done.stderr
    assert "make the plan again" in done.stderr


def test_a_farm_travels_packed(farm: Farm, tmp_path: Path) -> None:
    whole = load_farm(farm.root)
    archive = tmp_path / "farm.tar.gz"
    pack_farm(whole, archive)
    other = unpack_farm(archive, tmp_path / "there", recipe_digest(whole))
    assert set(other.recipes) == set(whole.recipes)
    assert (tmp_path / "there/sources/tiny_cuda/setup.py").is_file()
    with pytest.raises(BadInputError, match="other recipes"):
        unpack_farm(archive, tmp_path / "there", "0" * 64)


def test_a_hostile_pack_is_refused(tmp_path: Path) -> None:
    import io
    import tarfile

    archive = tmp_path / "farm.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("../outside"), io.BytesIO())
    with pytest.raises(UnsafeArchiveError):
        unpack_farm(archive, tmp_path / "there", "0" * 64)
    assert not (tmp_path / "there").exists()


def test_a_record_survives_a_kill(tmp_path: Path) -> None:
    record = RunRecord(tmp_path)
    plan = PlanFile(path=tmp_path / "plan.json", recipes="r", digest="d" * 64, jobs=(job(),))
    with record.writing(plan, "local"):
        record.add(result(job(), "failed"))
    path = tmp_path / "record.jsonl"
    path.write_bytes(path.read_bytes() + b'{"job": "half')
    assert record.results()[CELL].status == "failed"
    with record.writing(plan, "local"):
        record.add(result(job()))
        assert record.running()
    assert record.results()[CELL].status == "done"
    assert not record.running()


def test_two_runs_of_one_plan_are_refused(tmp_path: Path) -> None:
    plan = PlanFile(path=tmp_path / "plan.json", recipes="r", digest="d" * 64, jobs=())
    with (
        RunRecord(tmp_path).writing(plan, "local"),
        pytest.raises(BadInputError, match="being run by another"),
        RunRecord(tmp_path).writing(plan, "local"),
    ):
        pass


@given(st.sampled_from(STATUSES), st.dictionaries(st.text(), st.integers(0, 9)), st.text())
def test_a_result_is_read_back(status: Status, cache: dict[str, int], error: str) -> None:
    one = result(job(), status, cache=cache, error=error, steps={"compile": 1.5}, seconds=2.0)
    assert JobResult.from_dict(json.loads(json.dumps(one.to_dict())), "a result") == one


def test_measured_minutes_become_costs() -> None:
    steps = {"compile": 1.0}
    other = "six-1.0-cu130-torch2.14-cp312-linux_x86_64"
    whole = [
        result(job(), seconds=120.0, archs=1, steps=steps),
        result(job(other), seconds=360.0, archs=3, steps=steps),
    ]
    cost = measured_costs(whole)["six"]
    assert (cost.fixed, cost.per_arch) == (0.0, 2.0)
    kept = [result(job(), seconds=0.1, archs=1)]
    assert measured_costs(kept) == {}, "what was kept from before was not measured"
    parts = [result(each, seconds=60.0, archs=2, steps=steps) for each in sharded(CELL, 2)]
    assert measured_costs(parts)["six"].fixed == 3.0
    assert measured_costs(parts[:2]) == {}, "shards without their link are no whole cell"


def test_done_is_what_lies_there(tmp_path: Path) -> None:
    import hashlib

    jobs = sharded(CELL, 2)
    (tmp_path / "six.whl").write_bytes(b"wheel")
    digest = hashlib.sha256(b"wheel").hexdigest()
    known = {each.id: result(each, wheel="six.whl", sha256=digest) for each in jobs}
    assert done_before(jobs, known, tmp_path) == {each.id for each in jobs}
    (tmp_path / "six.whl").write_bytes(b"other")
    assert done_before(jobs, known, tmp_path) == frozenset()
    (tmp_path / "six.whl").unlink()
    assert done_before(jobs, known, tmp_path) == frozenset()


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        (("done",), 0),
        (("done", "refused"), 1),
        (("refused", "could-not-look"), 2),
        (("could-not-look", "failed"), 3),
        (("killed",), 3),
        (("not-run", "done"), 3),
    ],
)
def test_exit_codes(statuses: tuple[Status, ...], code: int) -> None:
    assert exit_code(result(job(), status) for status in statuses) == code


@pytest.fixture(params=["folder", "objects"])
def exchange(request: pytest.FixtureRequest, tmp_path: Path) -> FolderExchange | ObjectExchange:
    if request.param == "folder":
        return FolderExchange(tmp_path / "exchange")
    stores = pytest.importorskip("obstore.store")
    return ObjectExchange("memory://", stores.MemoryStore())


def test_an_exchange_keeps_whole_files(
    exchange: FolderExchange | ObjectExchange, tmp_path: Path
) -> None:
    one, two, found = tmp_path / "one", tmp_path / "two", tmp_path / "found"
    one.write_bytes(b"1" * 100_000)
    two.write_bytes(b"2")
    assert not exchange.get("plans/a/b", found)
    exchange.put("plans/a/b", one)
    exchange.put("plans/a/b", two)
    assert exchange.get("plans/a/b", found)
    assert found.read_bytes() == b"2"
    assert exchange.put_new("plans/a/plan.json", one)
    assert not exchange.put_new("plans/a/plan.json", two)
    exchange.get("plans/a/plan.json", found)
    assert found.read_bytes() == b"1" * 100_000
    with pytest.raises(BadInputError):
        exchange.get("../outside", found)


def test_an_address_of_no_kind_is_refused() -> None:
    pytest.importorskip("obstore")
    with pytest.raises(BadInputError, match="is no exchange"):
        open_exchange("nonsense://somewhere")


def test_an_expired_token_is_told_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("obstore")
    answer = b"<Error><Code>ExpiredToken</Code><Message>The token has expired.</Message></Error>"
    (tmp_path / "pages").mkdir()
    with serving(tmp_path / "pages") as server:
        server.plan("/bucket/jobs/plans/a", *[status(403, answer)] * 9)
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url.rstrip("/"))
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "KEY")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "verysecret")
        monkeypatch.setenv("AWS_SESSION_TOKEN", "verysecrettoken")
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        with pytest.raises(CouldNotLookError) as caught:
            open_exchange("s3://bucket/jobs").get("plans/a", tmp_path / "found")
    text = str(caught.value)
    assert "renew the credentials" in text
    assert "verysecret" not in text
    assert "KEY" not in text
    assert not (tmp_path / "found").exists()


def test_memory_kills_are_counted(tmp_path: Path) -> None:
    assert memory_kills(tmp_path) == 0
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/vmstat").write_text("pgfault 7\noom_kill 3\n")
    assert memory_kills(tmp_path) == 3
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/memory.events").write_text("oom 2\noom_kill 1\n")
    assert memory_kills(tmp_path) == 1


RUNS_A_COMPILER = """
import os, sys
from wheelfarm.run import guard_children, run
guard_children()
# A shell that starts a process in a group of its own, as ninja does with compilers.
run(["bash", "-c", "set -m; sleep 600 & echo $! > {pid}.part; mv {pid}.part {pid}; wait"])
"""


KILLED_BEFORE_IT_NAMES_THE_PROGRAM = """
import os, signal
from pathlib import Path
from wheelfarm import run

def killed(word, session):
    Path({pid!r}).write_text(str(session))
    os.kill(os.getpid(), signal.SIGKILL)

run.guard_children()
run.run(["true"])
run._Guard.tell = killed
run.run(["sleep", "600"], env={{"PATH": os.environ["PATH"]}})
"""


def test_a_program_dies_whose_starter_was_killed_right_after_the_start(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    script = KILLED_BEFORE_IT_NAMES_THE_PROGRAM.format(pid=str(pid))
    ended = subprocess.run([sys.executable, "-c", script], check=False)
    assert ended.returncode == -signal.SIGKILL
    end = time.monotonic() + 60
    while guard.session_members(int(pid.read_text())):
        assert time.monotonic() < end, "the program lives on"
        time.sleep(0.02)


def test_nothing_outlives_a_killed_process(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    process = subprocess.Popen([sys.executable, "-c", RUNS_A_COMPILER.format(pid=pid)])
    end = time.monotonic() + 60
    while not pid.exists():
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)
    compiler = int(pid.read_text())
    session = os.getsid(compiler)
    assert session != os.getsid(0)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    while guard.session_members(session):
        assert time.monotonic() < end, "the compiler lives on"
        time.sleep(0.02)
