"""Yesterday's index: every build's state is kept beside the site, and one can go back to it."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from wheelfarm import files
from wheelfarm.errors import BadInputError
from wheelfarm.index.tree import SiteTree
from wheelfarm.reading import read_json
from wheelfarm.store.model import Catalogue
from wheelfarm.store.protocol import Blob, StoreReader

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
        """Return every kept generation, oldest first."""
        found = []
        for path in sorted(self.folder.glob("*.json"), key=lambda each: each.name):
            document = read_json(path)
            found.append(
                Generation(
                    number=document["number"],
                    time=document["time"],
                    packages=document["packages"],
                    config=document["config"],
                )
            )
        return found

    def remember(
        self,
        catalogues: Mapping[str, bytes],
        same: Mapping[str, str],
        config: Mapping[str, Any],
    ) -> dict[str, bytes]:
        """Return the files of a new generation, by path in the state folder.

        ``catalogues`` are those that were read, ``same`` the hashes of the others.
        """
        number = max((each.number for each in self.generations()), default=0) + 1
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
        data = (self._folder / f"{digest}.json").read_bytes()
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
