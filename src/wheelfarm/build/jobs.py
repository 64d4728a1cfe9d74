"""The jobs of a sharded cell: a request comes in, a plan, a shard's archive or a wheel goes out.

Every job of a cell makes the same preparations, so that it can run on a machine of its own; what
passes between jobs are the plan's file and the shards' archives, all in one folder.
"""

from collections.abc import Mapping
from pathlib import Path

from wheelfarm import files
from wheelfarm.build.handoff import ShardProduct, read_product, record_of
from wheelfarm.build.part import Prepared
from wheelfarm.build.partition import ShardFilter, ShardPlan
from wheelfarm.build.pipeline import Pipeline, StepListener
from wheelfarm.build.request import BuildRequest, BuiltWheel
from wheelfarm.build.sharded import (
    make_plan,
    run_census,
    run_link,
    run_shard,
    source_filter_plan,
    write_report,
)
from wheelfarm.build.source_filter import (
    filtered_plan,
    run_filtered_link,
    run_filtered_shard,
)
from wheelfarm.build.steps import Inputs, stable_key
from wheelfarm.build.workspace import Workspace
from wheelfarm.errors import BadInputError


class ShardedCell:
    """The jobs of one cell that is built in ``shards`` parts.

    ``exchange`` is the folder of the plan and the archives; by default the cell's own.
    """

    def __init__(
        self,
        request: BuildRequest,
        workspace: Workspace,
        shards: int,
        *,
        exchange: Path | None = None,
        shard_filter: ShardFilter = "seat",
        listen: StepListener | None = None,
    ) -> None:
        self.pipeline = Pipeline(request, workspace, listen or (lambda _name, _result: None))
        self.shards = shards
        # MSVC's tools cannot be stood in for: there torch's extension is parted.
        windows = request.cell.identifier.platform.system == "windows"
        self.filter: ShardFilter = (
            "extension" if windows and shard_filter == "seat" else shard_filter
        )
        self.cell = str(request.cell)
        self.exchange = exchange or workspace.cell(request.cell.identifier) / "shards"

    @property
    def plan_file(self) -> Path:
        """The plan that all jobs read."""
        return self.exchange / f"plan-of{self.shards}.json"

    def archive(self, shard: int) -> Path:
        """Return the path of a shard's archive."""
        return self.exchange / f"shard{shard}of{self.shards}.tar.zst"

    def make_plan(self) -> ShardPlan:
        """Take the census and write the plan; a plan of this very build is left as it is.

        Raises TooManyShardsError, NoUnitsError.
        """
        return self._plan(self.pipeline.prepare(), make=True)

    def build_shard(self, shard: int) -> ShardProduct:
        """Compile one part (from 1) and write its archive.

        Raises BadInputError where the plan is another build's, GuardError.
        """
        prepared = self.pipeline.prepare()
        plan = self._plan(prepared, make=True)
        archive = self.archive(shard)

        def work(folder: Path, log: Path) -> Mapping[str, str]:
            run = run_filtered_shard if plan.filter == "extension" else run_shard
            product, calls = run(prepared, plan, shard, folder, folder / archive.name, log=log)
            self.pipeline.costs.add(calls, plan.units)
            files.remove(folder / "cache")
            return {
                "calls": "seat/calls.jsonl",
                "archive": archive.name,
                "record": product.record.name,
            }

        inputs: Inputs = {**self.pipeline.compile_inputs(), "plan": plan.digest}
        done = self.pipeline.step(f"shard{shard}of{self.shards}", inputs, work)
        # The record comes last: an archive without one is one that is still being copied.
        for name, target in (("archive", archive), ("record", record_of(archive))):
            if not target.is_file() or files.sha256(target) != files.sha256(done.path(name)):
                files.copy(done.path(name), target)
        return read_product(archive, plan=plan.digest, identity=plan.identity)

    def build(self) -> BuiltWheel:
        """Build every part here, one after the other, and link."""
        for shard in range(1, self.shards + 1):
            self.build_shard(shard)
        return self.link()

    def link(self, *, heal: bool = False) -> BuiltWheel:
        """Link the cell's wheel from the shards' archives.

        Raises MissingShardsError before anything is compiled (unless ``heal``), GuardError.
        """
        prepared = self.pipeline.prepare()
        plan = self._plan(prepared, make=False)
        archives = [self.archive(shard) for shard in range(1, self.shards + 1)]

        def work(folder: Path, log: Path) -> Mapping[str, str]:
            if plan.filter == "extension":
                part = run_filtered_link(prepared, plan, archives, folder, log=log)
                return {
                    "wheel": str(part.wheel.relative_to(folder)),
                    "calls": "seat/calls.jsonl",
                }
            linked = run_link(prepared, plan, archives, folder, log=log, heal=heal)
            self.pipeline.costs.add(linked.calls, plan.units)
            write_report(linked, folder / "link.json")
            files.remove(folder / "cache")
            return {
                "wheel": str(linked.wheel.relative_to(folder)),
                "calls": "seat/calls.jsonl",
                "report": "link.json",
            }

        inputs: Inputs = {
            **self.pipeline.compile_inputs(),
            "plan": plan.digest,
            "shards": [files.sha256(path) if path.is_file() else "" for path in archives],
            "heal": heal,
        }
        return self.pipeline.finish(self.pipeline.step("link", inputs, work), prepared)

    def _plan(self, prepared: Prepared, *, make: bool) -> ShardPlan:
        """Return the plan in the exchange, making it where it may be made and is not there."""
        build = self._build_key()
        with files.locked(self.exchange / ".plan.lock"):
            plan = ShardPlan.read(self.plan_file) if self.plan_file.is_file() else None
            if plan is not None and plan.build == build:
                return plan
            if make:
                plan = self._make_plan(prepared, build)
                plan.write(self.plan_file)
                return plan
        if plan is None:
            message = f"there is no shard plan at {self.plan_file}"
            raise BadInputError(message, hint="build the shards first")
        message = f"{self.plan_file} is the plan of another build of {plan.cell}"
        raise BadInputError(
            message,
            cause="its sources, patches, architectures or options are not this job's",
            hint="build the shards again",
        )

    def _build_key(self) -> str:
        """Return the hash of what all jobs of the build must have in common."""
        inputs = self.pipeline.compile_inputs()
        # The environments of two machines may differ in a patch release of Python.
        shared = {name: value for name, value in inputs.items() if name != "requirements"}
        return stable_key(self.cell, {**shared, "shards": self.shards, "filter": self.filter})

    def _make_plan(self, prepared: Prepared, build: str) -> ShardPlan:
        made: list[ShardPlan] = []

        def work(folder: Path, log: Path) -> Mapping[str, str]:
            if self.filter != "seat":
                filtered = source_filter_plan if self.filter == "source" else filtered_plan
                plan = filtered(prepared, folder, cell=self.cell, build=build, shards=self.shards)
            else:
                found = run_census(prepared, folder, log=log)
                costs = self.pipeline.costs.read()
                plan = make_plan(found, costs, cell=self.cell, build=build, shards=self.shards)
            plan.write(folder / "plan.json")
            made.append(plan)
            return {"plan": "plan.json"}

        inputs: Inputs = {
            **self.pipeline.compile_inputs(),
            "shards": self.shards,
            "filter": self.filter,
        }
        result = self.pipeline.step("census", inputs, work)
        return made[0] if made else ShardPlan.read(result.path("plan"))
