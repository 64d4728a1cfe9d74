"""A build's steps: each keyed by its inputs, with its own log, done whole or not at all.

A step owns a folder. Its record (``step.json``) is written last, so that a folder without one, or
with another key, is what a kill or a change left behind: it is emptied and the step runs again.
Failures are never recorded.
"""

import hashlib
import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wheelfarm import files
from wheelfarm.errors import BadInputError
from wheelfarm.reading import Reader, read_json

logger = logging.getLogger(__name__)

#: Raised when the meaning of a record or of any key changes; older records are then not believed.
FORMAT = 1

InputValue = str | int | bool | list[str] | dict[str, str] | None
Inputs = Mapping[str, InputValue]


@dataclass(frozen=True, kw_only=True, slots=True)
class StepResult:
    """What a step left: its folder, the named outputs in it, and whether it was there already."""

    key: str
    folder: Path
    outputs: Mapping[str, str]
    seconds: float
    reused: bool

    def path(self, name: str) -> Path:
        """Return the path of a named output."""
        return self.folder / self.outputs[name]


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A step's name, its folder, its log file and the inputs that make its key."""

    name: str
    folder: Path
    log: Path
    inputs: Inputs

    @property
    def key(self) -> str:
        """The hash of the inputs; the names of the fields are part of it."""
        return stable_key(self.name, self.inputs)

    def run(
        self, work: Callable[[Path], Mapping[str, str]], *, keep: tuple[str, ...] = ()
    ) -> StepResult:
        """Return the step's result, doing ``work(folder)`` only where it is not there already.

        ``work`` returns names and relative paths of its outputs. Names in ``keep`` survive the
        emptying of a folder that another key, or a kill, left.
        """
        with files.locked(self.folder.with_name(f"{self.folder.name}.lock")):
            done = self._recorded()
            if done is not None:
                logger.info("%s: unchanged, kept", self.name)
                return done
            self._empty(keep)
            self.log.unlink(missing_ok=True)
            started = time.monotonic()
            outputs = dict(work(self.folder))
            seconds = time.monotonic() - started
            self._record(outputs, seconds)
            return StepResult(
                key=self.key, folder=self.folder, outputs=outputs, seconds=seconds, reused=False
            )

    def forget(self) -> None:
        """Remove the record, so that the next run does the work again."""
        (self.folder / "step.json").unlink(missing_ok=True)

    def _empty(self, keep: tuple[str, ...]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in self.folder.iterdir():
            if path.name not in keep and path != self.log.parent:
                files.remove(path)

    def _record(self, outputs: Mapping[str, str], seconds: float) -> None:
        document = {
            "format": FORMAT,
            "step": self.name,
            "key": self.key,
            "inputs": dict(self.inputs),
            "outputs": outputs,
            "seconds": round(seconds, 3),
        }
        files.write_text(self.folder / "step.json", json.dumps(document, indent=2) + "\n")

    def _recorded(self) -> StepResult | None:
        path = self.folder / "step.json"
        if not path.exists():
            return None
        try:
            reader = Reader(read_json(path), str(path))
            same = reader.integer("format") == FORMAT and reader.string("key") == self.key
            outputs = reader.string_map("outputs")
            seconds = float(reader.raw("seconds") or 0)
            reader.finish()
        except BadInputError:
            return None
        there = all((self.folder / output).exists() for output in outputs.values())
        if not (same and there):
            return None
        return StepResult(
            key=self.key, folder=self.folder, outputs=outputs, seconds=seconds, reused=True
        )


def stable_key(name: str, inputs: Mapping[str, Any]) -> str:
    """Return 64 hexadecimal digits that depend on the inputs' names and values alone.

    Inputs that are None count as absent, so that a new optional input keeps the old keys.
    """
    given = {key: value for key, value in sorted(inputs.items()) if value is not None}
    text = json.dumps([FORMAT, name, given], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
