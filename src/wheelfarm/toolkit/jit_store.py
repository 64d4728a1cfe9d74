"""The JIT cache on disk: one folder a key, several results in it, a manifest that names whole ones.

    <cache>/jit/v1/<name>/<key>/lock
    <cache>/jit/v1/<name>/<key>/manifest.json      the results, newest first
    <cache>/jit/v1/<name>/<key>/result-XXXX/       one build: its library and what it was made of

The key names every input that is known before a build. What a build reads beyond that (headers of
the user's own) is known afterwards and stands in the manifest with its digest; a result counts
only while all of these have the contents they had. A folder that the manifest does not name was
left by a build that was killed: it is never loaded, and the next build removes it.
"""

import contextlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from wheelfarm import files
from wheelfarm.errors import BadInputError
from wheelfarm.reading import Reader, parse_json
from wheelfarm.toolkit.digests import Digests

logger = logging.getLogger(__name__)

_FORMAT = 1
_MANIFEST = "manifest.json"
#: Results kept for one key: switching between branches of a header hits.
_KEPT = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """One whole build: its folder and library (names below the key's folder), size, dependencies.

    ``dependencies`` maps each file that the build read and the key does not name to its digest.
    """

    folder: str
    library: str
    size: int
    dependencies: Mapping[str, str]


class JitStore:
    """The results of one key."""

    def __init__(self, folder: Path, digests: Digests) -> None:
        self.folder = folder
        self._digests = digests

    @property
    def lock(self) -> Path:
        """The file whose lock a build holds; a crash releases it."""
        return self.folder / "lock"

    @property
    def failure_log(self) -> Path:
        """Where the compiler's output of the last failed build is kept."""
        return self.folder / "failed.log"

    def find(self) -> Path | None:
        """Return the library of a result that is whole and whose dependencies are unchanged."""
        for result in self._results():
            library = self.folder / result.folder / result.library
            try:
                whole = library.stat().st_size == result.size
            except OSError:
                continue
            if whole and self._unchanged(result.dependencies):
                # What was used last goes last when the cache is held in a budget.
                with contextlib.suppress(OSError):
                    os.utime(self.folder / _MANIFEST)
                return library
        return None

    def new_folder(self) -> Path:
        """Return an empty folder for a build, after removing what killed builds left."""
        known = {result.folder for result in self._results()}
        for entry in self.folder.glob("result-*"):
            if entry.name not in known:
                logger.info("removing what an unfinished build left: %s", entry)
                shutil.rmtree(entry, ignore_errors=True)
        return Path(tempfile.mkdtemp(prefix="result-", dir=self.folder))

    def add(self, library: Path, dependencies: tuple[Path, ...]) -> None:
        """Enter a finished build into the manifest; old results go."""
        result = Result(
            folder=library.parent.name,
            library=library.name,
            size=library.stat().st_size,
            dependencies={
                str(path): self._digests.of_file(path) for path in sorted(set(dependencies))
            },
        )
        results = [result, *self._results()]
        document = {"format": _FORMAT, "results": [asdict(entry) for entry in results[:_KEPT]]}
        files.write_text(self.folder / _MANIFEST, json.dumps(document, indent=1))
        for old in results[_KEPT:]:
            shutil.rmtree(self.folder / old.folder, ignore_errors=True)

    def _results(self) -> list[Result]:
        path = self.folder / _MANIFEST
        try:
            reader = Reader(parse_json(path.read_text(encoding="utf-8"), str(path)), str(path))
            results = [
                Result(
                    folder=table.string("folder"),
                    library=table.string("library"),
                    size=table.integer("size"),
                    dependencies=table.string_map("dependencies"),
                )
                for table in reader.tables("results")
            ]
            if reader.integer("format", 0) != _FORMAT:
                return []
            reader.finish()
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError, BadInputError) as error:
            logger.warning("a damaged cache entry is made anew: %s", error)
            return []
        return [result for result in results if _plain(result.folder) and _plain(result.library)]

    def _unchanged(self, dependencies: Mapping[str, str]) -> bool:
        for name, digest in dependencies.items():
            try:
                if self._digests.of_file(Path(name)) != digest:
                    return False
            except OSError:
                return False
        return True


def _plain(name: str) -> bool:
    return bool(name) and Path(name).name == name and name not in {".", ".."}
