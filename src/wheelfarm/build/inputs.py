"""What went into a unit: the seat's notes come in, hashes and the first difference go out."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wheelfarm import files
from wheelfarm.build.calls import Call
from wheelfarm.build.census import unit_key
from wheelfarm.reading import Reader

_CLOCK = re.compile(rb"\b__(?:DATE|TIME|TIMESTAMP)__\b")


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitInputs:
    """One compile's inputs: the words that the cache saw, and each file that was read, by hash.

    ``clock`` marks a unit with ``__DATE__`` or ``__TIME__`` in one of its own files: no cache can
    answer for it.
    """

    words: tuple[str, ...]
    files: Mapping[str, str]
    clock: bool = False


class Hasher:
    """Hashes of files, each read once: the units of a package share thousands of headers."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[str, bool]] = {}

    def look(self, path: Path) -> tuple[str, bool]:
        """Return a file's SHA-256 (empty where it is gone), and whether it asks for the time."""
        real = path.resolve()
        if real not in self._known:
            try:
                clock = _CLOCK.search(real.read_bytes()) is not None
                self._known[real] = (files.sha256(real), clock)
            except OSError:
                self._known[real] = ("", False)
        return self._known[real]


def inputs_of(call: Call, hasher: Hasher) -> UnitInputs | None:
    """Return the inputs of a compile, None where the seat could not note them."""
    if not call.inputs or not Path(call.inputs).is_file():
        return None
    here = Path(call.cwd)
    names = Path(call.inputs).read_text(encoding="utf-8", errors="surrogateescape").split("\n")
    looks = {name: hasher.look(here / name) for name in names if name}
    # System headers mention the clock too (in comments, or unused); a unit's own files mean it.
    clock = any(asks for name, (_, asks) in looks.items() if not name.startswith("/usr/"))
    return UnitInputs(
        words=call.safe, files={name: digest for name, (digest, _) in looks.items()}, clock=clock
    )


def inputs_of_calls(calls: Iterable[Call], keys: Iterable[str]) -> dict[str, UnitInputs]:
    """Return the inputs of every unit that was compiled (or answered by the cache), by key."""
    hasher = Hasher()
    known = frozenset(keys)
    found: dict[str, UnitInputs] = {}
    for call in calls:
        if call.action == "compile" and call.status == 0:
            inputs = inputs_of(call, hasher)
            if inputs is not None:
                found[unit_key(call, known)] = inputs
    return found


def first_difference(before: UnitInputs, after: UnitInputs) -> str:
    """Return the first input in which two compiles of one unit differ, empty where none does."""
    if before.words != after.words:
        for old, new in zip(before.words, after.words, strict=False):
            if old != new:
                return f"the argument {new!r} was {old!r} in the shard"
        extra = {*before.words} ^ {*after.words}
        return f"the arguments differ: {' '.join(sorted(extra)) or 'their number'}"
    for name, digest in after.files.items():
        if name not in before.files:
            return f"the shard did not read {name}"
        if before.files[name] != digest:
            return f"{name} has other content"
    for name in before.files:
        if name not in after.files:
            return f"only the shard read {name}"
    return ""


def inputs_document(units: Mapping[str, UnitInputs]) -> dict[str, object]:
    """Return units' inputs as a document; each (name, hash) stands in it once."""
    table: dict[tuple[str, str], int] = {}
    listed = {}
    for key, unit in sorted(units.items()):
        numbers = [table.setdefault(pair, len(table)) for pair in unit.files.items()]
        listed[key] = {"words": list(unit.words), "clock": unit.clock, "files": numbers}
    return {"files": [list(pair) for pair in table], "units": listed}


def read_inputs_document(document: object, context: str) -> dict[str, UnitInputs]:
    """Read what ``inputs_document`` made; FaultsError where it is something else."""
    reader = Reader(document, context)
    table = reader.raw("files")
    pairs = [
        (str(pair[0]), str(pair[1]))
        for pair in (table if isinstance(table, list) else [])
        if isinstance(pair, list) and len(pair) == 2  # noqa: PLR2004 - name and hash
    ]
    units: dict[str, UnitInputs] = {}
    listed = reader.table("units")
    for key in listed or ():
        entry = listed.table(key) if listed is not None else None
        numbers = entry.raw("files") if entry is not None else None
        if entry is None or not isinstance(numbers, list):
            reader.fault("expected a unit's inputs", "units", key)
            continue
        chosen = [pairs[n] for n in numbers if isinstance(n, int) and 0 <= n < len(pairs)]
        units[key] = UnitInputs(
            words=entry.strings("words"), clock=entry.boolean("clock"), files=dict(chosen)
        )
    reader.finish()
    return units
