"""A plan as documents: the JSON of the verb, and GitHub matrices. No text for people here."""

from collections.abc import Iterator
from typing import Any

from wheelfarm.model.cell import CellId
from wheelfarm.plan.jobs import matrices
from wheelfarm.plan.model import Plan


def summary(plan: Plan) -> dict[str, Any]:
    """Return the plan's short part: counts and minutes."""
    jobs = plan.jobs
    return {
        "cells": sum(len(batch) for batch in plan.batches),
        "job_count": len(jobs),
        "batch_count": len(plan.batches),
        "cost_minutes": round(sum(job.cost_minutes for job in jobs), 2),
        "totals": dict(plan.totals()),
    }


def job_rows(plan: Plan) -> Iterator[dict[str, Any]]:
    """Return every job, in the order in which it runs."""
    for number, batch in enumerate(plan.batches):
        for cell in batch:
            identifier = cell.cell.identifier
            common = {
                "package": identifier.package,
                "cell": cell.jobs[0].cell_name,
                "torch": str(cell.cell.cell.torch_release),
                "archs": str(cell.cell.archs),
                "batch": number,
                "build": cell.build,
                "reason": cell.reason,
            }
            for job in cell.jobs:
                yield {
                    "id": job.name,
                    **common,
                    "kind": job.kind,
                    "shard": job.id.shard,
                    "shards": job.id.shards,
                    "cost_minutes": job.cost_minutes,
                }


def refused_rows(plan: Plan) -> Iterator[dict[str, str]]:
    """Return every refused candidate with its reason, and every cell left out this time."""
    for item in plan.left_out:
        yield {"package": item.cell.package, "cell": str(item.cell), "reason": item.reason}
    for grid, decision in plan.refused:
        point = decision.point
        package = grid.recipe.package
        name = f"{package}-{point.accelerator}-torch{point.torch}-{point.python}-{point.platform}"
        if grid.version is not None:
            name = str(
                CellId(
                    package,
                    grid.version,
                    point.accelerator,
                    point.minor,
                    point.python,
                    point.platform,
                )
            )
        yield {"package": package, "cell": name, "reason": decision.reason}


def existing_rows(plan: Plan) -> Iterator[dict[str, str]]:
    """Return every cell that exists, with a wheel that serves it."""
    for item in plan.existing:
        yield {"cell": str(item.cell), "wheel": str(item.wheel)}


def github_batches(plan: Plan) -> list[dict[str, Any]]:
    """Return the matrices of each batch."""
    return [matrices(batch) for batch in plan.batches]


def decision_rows(plan: Plan) -> Iterator[dict[str, str]]:
    """Return the decision of every candidate: planned, existing, served, refused or left out."""
    for cell in plan.cells:
        yield {"cell": cell.jobs[0].cell_name, "outcome": "planned", "reason": cell.reason}
    for item in plan.existing:
        yield {"cell": str(item.cell), "outcome": "exists", "reason": str(item.wheel)}
    for grid in plan.grids:
        for decision in grid.decisions:
            if decision.outcome == "served":
                name = f"{grid.recipe.package}-{decision.point}"
                yield {"cell": name, "outcome": "served", "reason": decision.reason}
    for row in refused_rows(plan):
        yield {"cell": row["cell"], "outcome": "refused", "reason": row["reason"]}
