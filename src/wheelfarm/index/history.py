"""Yesterday's index: every build's state is kept beside the site, and one can go back to it."""

import hashlib
import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from wheelfarm import files
from wheelfarm.errors import BadInputError
from wheelfarm.index.tree import SiteTree
from wheelfarm.reading import Reader, read_json
from wheelfarm.store.model import Catalogue
from wheelfarm.store.protocol import Blob, StoreReader

logger = logging.getLogger(__name__)

_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_NUMBER = re.compile(r"\d{1,12}", re.ASCII)

#: How many builds are kept.
KEPT = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Generation:
    """One build: its number, when it was, each package's catalogue by hash, how it was written."""

    number: int
    time: str
    packages: Mapping[str, str]
    config: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the document of a generation."""
        return {
            "number": self.number,
            "time": self.time,
            "packages": dict(self.packages),
            "config": dict(self.config),
        }


class History:
    """The generations of one site, under its state folder."""

    def __init__(self, tree: SiteTree) -> None:
        self.folder = tree.state / "history"

    def generations(self) -> list[Generation]:
        """Return every kept generation, oldest first; one that cannot be read is told of."""
        found = []
        for path in sorted(self.folder.glob("*.json"), key=lambda each: each.name):
            try:
                found.append(_generation(Reader(read_json(path), str(path))))
            except BadInputError as error:
                logger.warning("a kept build is left out: %s", error)
        return found

    def newest(self) -> Generation | None:
        """Return the last build; None where there is none, or where it cannot be read."""
        generations = self.generations()
        if generations and generations[-1].number == self._newest_number():
            return generations[-1]
        return None

    def _newest_number(self) -> int:
        """Return the last build's number, by the files' names: one may be damaged; 0 for none."""
        known = (path.stem for path in self.folder.glob("*.json"))
        return max((int(name) for name in known if _NUMBER.fullmatch(name)), default=0)

    def remember(
        self,
        catalogues: Mapping[str, bytes],
        same: Mapping[str, str],
        config: Mapping[str, Any],
    ) -> dict[str, bytes]:
        """Return the files of a new generation, by path in the state folder.

        ``catalogues`` are those that were read, ``same`` the hashes of the others.
        """
        number = self._newest_number() + 1
        hashes = {name: hashlib.sha256(data).hexdigest() for name, data in catalogues.items()}
        generation = Generation(
            number=number,
            time=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            packages={**same, **hashes},
            config=config,
        )
        remembered = {
            f"history/catalogues/{hashes[name]}.json": data
            for name, data in catalogues.items()
            if not (self.folder / "catalogues" / f"{hashes[name]}.json").exists()
        }
        document = json.dumps(generation.to_dict(), indent=1).encode()
        return {**remembered, f"history/{number:08}.json": document}

    def forget(self) -> None:
        """Remove generations beyond those kept, and catalogues that none of the rest names."""
        generations = self.generations()
        for old in generations[:-KEPT]:
            self.drop(old)
        named = {digest for each in generations[-KEPT:] for digest in each.packages.values()}
        for path in self.folder.glob("catalogues/*.json"):
            if path.stem not in named:
                files.remove(path)

    def drop(self, generation: Generation) -> None:
        """Remove one generation."""
        files.remove(self.folder / f"{generation.number:08}.json")

    def target(self, number: int | None) -> Generation:
        """Return the generation to go back to: the one before the newest, or the one named.

        Raises BadInputError where there is none.
        """
        generations = self.generations()
        if number is not None:
            found = [each for each in generations if each.number == number]
        else:
            found = generations[-2:-1]
        if not found:
            known = ", ".join(str(each.number) for each in generations) or "none"
            message = (
                "there is no earlier index to go back to"
                if number is None
                else f"build {number} is not kept"
            )
            raise BadInputError(message, hint=f"kept builds: {known}")
        return found[0]


def _generation(reader: Reader) -> Generation:
    packages = reader.string_map("packages")
    for name, digest in packages.items():
        if not _SHA256.fullmatch(digest):
            reader.fault(f"{digest!r} is no hash", "packages", name)
    config = reader.table("config") or Reader({}, reader.context)
    generation = Generation(
        number=reader.integer("number", least=1),
        time=reader.string("time"),
        packages=packages,
        config={
            "title": config.string("title"),
            "files_url": config.optional_string("files_url"),
            "aliases": config.boolean("aliases"),
            "base_url": config.string("base_url"),
            "releases": config.string("releases", ""),
            "files": config.choice("files", ("link", "copy"), "link"),
        },
    )
    reader.finish()
    return generation


class PastStore:
    """A store as a generation saw it; its files are the present store's."""

    def __init__(self, history: History, generation: Generation, present: StoreReader) -> None:
        self._folder = history.folder / "catalogues"
        self._generation = generation
        self._present = present

    @property
    def location(self) -> str:
        """The present store's."""
        return self._present.location

    def heads(self) -> Mapping[str, str]:
        """Return each package with its catalogue's hash."""
        return self._generation.packages

    def catalogue(self, package: str) -> Catalogue:
        """Return a package's records as they were."""
        digest = self._generation.packages[package]
        path = self._folder / f"{digest}.json"
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != digest:
            message = f"{path} is damaged: it is not what its build read"
            raise BadInputError(message, hint="go back to another build (`rollback --list`)")
        return Catalogue(package=package, data=data, token=digest)

    def fetch(self, key: str, target: Path) -> None:
        """Write a blob to ``target``."""
        self._present.fetch(key, target)

    def local(self, key: str) -> Path | None:
        """Return a blob's path on this machine."""
        return self._present.local(key)

    def folder(self) -> Path | None:
        """Return the present store's folder of files."""
        return self._present.folder()

    def hashes(self, package: str) -> frozenset[str]:
        """Return the hashes of the wheels that stand in the present store."""
        return self._present.hashes(package)

    def blobs(self, package: str) -> Iterator[Blob]:
        """Return the present store's files."""
        return self._present.blobs(package)
