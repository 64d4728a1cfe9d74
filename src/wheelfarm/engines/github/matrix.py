"""A plan's file in; the matrices of its batches out, as GitHub's outputs take them."""

import json
from collections.abc import Iterable
from typing import Any

from wheelfarm.engines.plan_file import PlanFile, PlannedJob
from wheelfarm.errors import BadInputError
from wheelfarm.model.platform import LINUX_AARCH64, LINUX_X86_64, WINDOWS_AMD64, Platform
from wheelfarm.plan.jobs import MATRIX_BYTES, MATRIX_JOBS

#: Where each platform's jobs run, and in which image; both are part of what a wheel promises.
RUNNERS: dict[Platform, tuple[str, str]] = {
    LINUX_X86_64: ("ubuntu-24.04", "quay.io/pypa/manylinux_2_28_x86_64"),
    LINUX_AARCH64: ("ubuntu-24.04-arm", "quay.io/pypa/manylinux_2_28_aarch64"),
    WINDOWS_AMD64: ("windows-2022", ""),
}


def batches(plan: PlanFile) -> str:
    """Return the numbers of a plan's batches, as a JSON list."""
    return json.dumps(sorted({job.batch for job in plan.jobs}))


def matrices(plan: PlanFile, batch: int) -> dict[str, str]:
    """Return a batch's matrices by the names of the workflow's jobs; "" for one without jobs.

    Raises BadInputError for a batch that the plan does not have, or one that GitHub would refuse.
    """
    jobs = [job for job in plan.jobs if job.batch == batch]
    if not jobs:
        message = f"the plan {plan.path} has no batch {batch}"
        raise BadInputError(message, hint=f"it has {batches(plan)}")
    chosen: dict[str, list[PlannedJob]] = {
        "compile": [],
        "link": [],
        "windows": [],
        "windows_link": [],
    }
    for job in jobs:
        windows = job.cell_id.platform == WINDOWS_AMD64
        if job.kind == "link":
            chosen["windows_link" if windows else "link"].append(job)
        else:
            chosen["windows" if windows else "compile"].append(job)
    return {name: _matrix(some) for name, some in chosen.items()}


def _matrix(jobs: list[PlannedJob]) -> str:
    if not jobs:
        return ""
    text = json.dumps({"include": list(_entries(jobs))}, separators=(",", ":"))
    if len(jobs) > MATRIX_JOBS or len(text) > MATRIX_BYTES:
        message = f"a batch of {len(jobs)} jobs and {len(text)} bytes is more than GitHub takes"
        raise BadInputError(message, hint="make the plan with `wheelfarm plan --json`")
    return text


def _entries(jobs: Iterable[PlannedJob]) -> Iterable[dict[str, Any]]:
    for job in jobs:
        runner, container = RUNNERS[job.cell_id.platform]
        entry = {"id": job.id, "cell": job.cell, "kind": job.kind, "runner": runner}
        yield entry | ({"container": container} if container else {})
