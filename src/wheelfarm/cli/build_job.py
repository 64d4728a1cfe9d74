"""Which job of a build the command line asks for: whole, a shard, a link, or all of them here."""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wheelfarm.errors import UsageError

if TYPE_CHECKING:
    from wheelfarm.build.jobs import ShardedCell
    from wheelfarm.build.pipeline import StepListener
    from wheelfarm.build.request import BuildRequest, BuiltWheel
    from wheelfarm.build.workspace import Workspace
    from wheelfarm.model.cell import JobId
    from wheelfarm.recipes.model import Sharding

_SHARD = re.compile(r"(\d+)/(\d+)", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """The part of a build: ``shards`` 0 is a build in one job; ``shard`` 0 links, or does all."""

    shards: int = 0
    shard: int = 0
    link: bool = False
    heal: bool = False
    source_filter: bool = False
    exchange: Path | None = None

    @classmethod
    def of_arguments(
        cls,
        arguments: argparse.Namespace,
        job: "JobId | None" = None,
        sharding: "Sharding | None" = None,
    ) -> "Job":
        """Return the job; a cell's identifier may name it, and the recipe the number of shards.

        Raises UsageError where they contradict each other or say too little.
        """
        if arguments.shards is not None and arguments.shards < 1:
            message = f"--shards {arguments.shards} is no number of shards; give 1 or more"
            raise UsageError(message)
        shard, shards = _shard_of(arguments.shard)
        link = arguments.link
        if job is not None and job.shard:
            shard, shards = job.shard, job.shards
        if job is not None and job.link:
            link = True
        if shard and (link or arguments.heal):
            message = "a shard is not linked: --link and --heal go with the link job"
            raise UsageError(message)
        shards = shards or arguments.shards or (sharding.shards if link and sharding else 0)
        if link and not shards:
            message = "how many shards are to be linked? name them with --shards"
            raise UsageError(message)
        if shards < 0 or (arguments.shards and arguments.shards != shards):
            message = f"--shards {arguments.shards} does not go with {shards} shards"
            raise UsageError(message)
        return cls(
            shards=shards,
            shard=shard,
            link=link,
            heal=arguments.heal,
            source_filter=sharding is not None and sharding.filter == "source",
            exchange=arguments.exchange,
        )

    def sharded(
        self, request: "BuildRequest", workspace: "Workspace", listen: "StepListener"
    ) -> "ShardedCell | None":
        """Return the cell whose jobs these are, None for a build in one job."""
        from wheelfarm.build.jobs import ShardedCell

        if not self.shards:
            return None
        return ShardedCell(
            request,
            workspace,
            self.shards,
            exchange=None if self.exchange is None else self.exchange.absolute(),
            shard_filter="source" if self.source_filter else "seat",
            listen=listen,
        )

    def wheel(self, cell: "ShardedCell") -> "BuiltWheel":
        """Return the linked wheel, building all parts first where no single job was asked for."""
        return cell.link(heal=self.heal) if self.link else cell.build()


def _shard_of(text: str | None) -> tuple[int, int]:
    if text is None:
        return 0, 0
    match = _SHARD.fullmatch(text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        message = f"--shard {text} names no shard; the form is 1/3, counted from 1"
        raise UsageError(message)
    return int(match[1]), int(match[2])
