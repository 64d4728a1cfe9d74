"""A store in GitHub Releases: one rolling release ``<package>-latest`` per package.

Its assets are the wheels, their metadata files and reports, and the catalogue. GitHub has no
conditional write, so a catalogue's change is: a new asset up, then the ones that it was made from
down. Where two hosts do that at once, two catalogues stand, and readers take their union.
"""

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from wheelfarm import files
from wheelfarm.errors import BadInputError
from wheelfarm.store.github_api import (
    AlreadyExistsError,
    Asset,
    GithubApi,
    Release,
    TooManyAssetsError,
)
from wheelfarm.store.model import Catalogue, Records, catalogue_bytes, merge, parse_catalogue
from wheelfarm.store.protocol import (
    Blob,
    BlobMissingError,
    CostState,
    RefusedError,
    StoreConflictError,
    StoreError,
)
from wheelfarm.store.remote import RemoteStore

#: A release takes 1,000 assets of less than 2 GiB each (docs.github.com, "About releases").
ASSETS = 1000
LARGEST = 2 << 30
#: Room that stays for catalogues in a package's first release.
_RESERVE = 20
_ATTEMPTS = 4
_TAG = re.compile(r"(?P<package>[a-z0-9][a-z0-9-]*)-latest(?:-(?P<number>\d+))?", re.ASCII)
_CATALOGUE = re.compile(r"catalogue-[0-9a-f]{20}\.json", re.ASCII)
_COSTS = re.compile(r"costs-[0-9a-f]{20}\.json", re.ASCII)
_REPORT = re.compile(r"([0-9a-f]{64})\.report\.json", re.ASCII)
_API = "https://api.github.com"


@dataclass(frozen=True, slots=True)
class _Placed:
    """An asset, and the release that holds it."""

    release: Release
    asset: Asset


class GithubStore(RemoteStore):
    """The releases of one repository; ``room`` (assets per release) is for tests."""

    def __init__(self, api: GithubApi, location: str, *, room: int = ASSETS) -> None:
        self._api = api
        self._location = location
        self._room = room

    @classmethod
    def open(cls, location: str) -> "GithubStore":
        """Open ``github://owner/repository``, with ``?api=URL`` for another GitHub.

        The token is GITHUB_TOKEN's or GH_TOKEN's; it goes to that API and its uploads alone.
        """
        parts = urlsplit(location)
        names = [parts.netloc, *parts.path.strip("/").split("/")]
        if len(names) != 2 or not all(names):  # noqa: PLR2004 - owner and repository
            message = f"{location!r} names no repository"
            raise BadInputError(message, hint="the form is github://owner/repository")
        api = parse_qs(parts.query).get("api", [_API])[0]
        token = os.environ.get("GITHUB_TOKEN") or os.environ.get("GH_TOKEN") or ""
        return cls(GithubApi(names[0], names[1], api=api, token=token), location)

    @property
    def location(self) -> str:
        """The repository's address."""
        return self._location

    def heads(self) -> Mapping[str, str]:
        """Return each package with the digests of its catalogues."""
        found: dict[str, str] = {}
        for release in self._api.releases():
            match = _TAG.fullmatch(release.tag)
            if match is None or match["number"] is not None:
                continue
            catalogues = _catalogues(self._api.assets(release))
            if catalogues:
                found[match["package"]] = _token(catalogues)
        return found

    def catalogue(self, package: str) -> Catalogue:
        """Return a package's records: the union of its catalogues."""
        release = self._api.release(_tag(package, 1))
        if release is None:
            return Catalogue(package=package)
        catalogues = _catalogues(self._api.assets(release))
        if not catalogues:
            return Catalogue(package=package)
        documents = self._documents(package, catalogues)
        names = (f"{self.location} {asset.name}" for asset in catalogues)
        states = map(parse_catalogue, documents, names)
        data = catalogue_bytes(package, merge(states))
        return Catalogue(package=package, data=data, token=_token(catalogues))

    def replace(self, package: str, records: Records, token: str) -> str:
        """Put a new catalogue up, then take those down that it was made from."""
        data = catalogue_bytes(package, records)
        return self._replace(package, "catalogue", _CATALOGUE, data, token)

    def costs(self, package: str) -> CostState:
        """Return what the units of a package cost, of each host that wrote at once."""
        release = self._api.release(_tag(package, 1))
        found = [] if release is None else _named_so(_COSTS, self._api.assets(release))
        documents = tuple(self._documents(package, found))
        return CostState(documents=documents, token=_token(found))

    def replace_costs(self, package: str, data: bytes, token: str) -> None:
        """Put new costs up, then take those down that they were made from."""
        self._replace(package, "costs", _COSTS, data, token)

    def _documents(self, package: str, assets: list[Asset]) -> Iterator[bytes]:
        for asset in assets:
            data = self._api.read(asset)
            if asset.sha256 and hashlib.sha256(data).hexdigest() != asset.sha256:
                message = f"{asset.name} of {package} came with other bytes than GitHub has"
                raise StoreError(message)
            yield data

    def _replace(
        self, package: str, word: str, pattern: re.Pattern[str], data: bytes, token: str
    ) -> str:
        release = self._first(package)
        before = _named_so(pattern, self._api.assets(release))
        if _token(before) != token:
            message = f"the {word} of {package} changed"
            raise StoreConflictError(message)
        digest = hashlib.sha256(data).hexdigest()
        name = f"{word}-{digest[:20]}.json"
        with tempfile.TemporaryDirectory(prefix="wheelfarm-") as folder:
            source = Path(folder) / name
            source.write_bytes(data)
            new = self._upload([release], name, source, digest)
        for asset in before:
            if asset.id != new.asset.id:
                self._api.delete(asset.id)
        return _token([new.asset])

    def put(self, key: str, source: Path, sha256: str) -> str:
        """Upload a file, compare what GitHub has of it, and return its public address."""
        size = source.stat().st_size
        if size >= LARGEST:
            message = f"{source.name} has {size} bytes; GitHub takes less than {LARGEST} per file"
            raise RefusedError(message, hint="build fewer architectures, or use object storage")
        package, name = _names(key)
        placed = self._find(package, name)
        if placed is not None:
            if placed.asset.complete and self._hash(placed.asset) == sha256:
                return placed.asset.url
            self._clear(package, placed.asset)
        releases = self._with_room(package, name)
        return self._upload(releases, name, source, sha256).asset.url

    def fetch(self, key: str, target: Path) -> None:
        """Download a blob to ``target``."""
        placed = self._find(*_names(key))
        if placed is None:
            raise BlobMissingError(key, self.location)
        self._api.download(placed.asset, target)

    def blobs(self, package: str) -> Iterator[Blob]:
        """Return every complete file of a package under its key."""
        for release in self._releases(package):
            for asset in self._api.assets(release):
                document = _CATALOGUE.fullmatch(asset.name) or _COSTS.fullmatch(asset.name)
                if document or not asset.complete:
                    continue
                digest = asset.sha256 or self._hash(asset)
                report = _REPORT.fullmatch(asset.name)
                key = (
                    f"reports/{package}/{report[1]}.json"
                    if report
                    else f"files/{package}/{digest}/{asset.name}"
                )
                yield Blob(key=key, size=asset.size, modified=asset.modified)

    def delete(self, key: str) -> None:
        """Delete an asset."""
        placed = self._find(*_names(key))
        if placed is not None:
            self._api.delete(placed.asset.id)

    def _first(self, package: str) -> Release:
        return self._api.release(_tag(package, 1)) or self._create(package, 1)

    def _create(self, package: str, number: int) -> Release:
        text = f"Wheels of {package}, written by wheelfarm. Do not edit the assets by hand."
        return self._api.create(_tag(package, number), text)

    def _releases(self, package: str) -> Iterator[Release]:
        number = 1
        while (release := self._api.release(_tag(package, number))) is not None:
            yield release
            number += 1

    def _find(self, package: str, name: str) -> _Placed | None:
        for release in self._releases(package):
            for asset in self._api.assets(release):
                if asset.name == name:
                    return _Placed(release, asset)
        return None

    def _clear(self, package: str, asset: Asset) -> None:
        """Make room for a name that nothing published holds: what a killed publish left."""
        if asset.name in self.catalogue(package).records and asset.complete:
            message = f"{asset.name} stands in {self.location} with other bytes"
            raise RefusedError(message, cause=f"its sha256 is {asset.sha256}")
        self._api.delete(asset.id)

    def _with_room(self, package: str, name: str) -> list[Release]:
        """Return the releases into which a file may go, the best first.

        A metadata file stands beside its wheel, since clients ask for it there.
        """
        wheel = name.removesuffix(".metadata")
        if wheel != name and (placed := self._find(package, wheel)) is not None:
            return [placed.release]
        releases = list(self._releases(package)) or [self._create(package, 1)]
        # A wheel brings its metadata and its report, and the first release holds catalogues.
        wanted = 3 + _RESERVE if name.endswith(".whl") else 1
        free = [
            release
            for release in releases
            if len(self._api.assets(release)) + min(wanted, self._room - 1) <= self._room
        ]
        return free or [self._create(package, len(releases) + 1)]

    def _upload(self, releases: list[Release], name: str, source: Path, sha256: str) -> _Placed:
        """Upload with retries; whatever a broken attempt left under the name is taken down."""
        cause = "it came back changed"
        for attempt in range(_ATTEMPTS):
            if attempt:
                self._api.wait(attempt)
            release = releases[0]
            problem = self._try(release, name, source)
            if isinstance(problem, TooManyAssetsError) and len(releases) > 1:
                del releases[0]
                continue
            found = self._named(release, name)
            if found is not None:
                if found.complete and self._hash(found) == sha256:
                    return _Placed(release, found)
                if found.complete and isinstance(problem, AlreadyExistsError):
                    message = f"{name} stands in {self.location} with other bytes"
                    raise RefusedError(message, cause="another host published it just now")
                self._api.delete(found.id)
            cause = cause if problem is None else problem.cause
        message = f"{name} could not be stored in {self.location} ({_ATTEMPTS} attempts)"
        raise StoreError(message, cause=cause)

    def _try(self, release: Release, name: str, source: Path) -> StoreError | None:
        try:
            self._api.upload(release, name, source)
        except StoreError as error:
            return error
        return None

    def _named(self, release: Release, name: str) -> Asset | None:
        found = (asset for asset in self._api.assets(release) if asset.name == name)
        return next(found, None)

    def _hash(self, asset: Asset) -> str:
        """Return an asset's SHA-256: GitHub's own, else of the bytes that it gives."""
        if asset.sha256:
            return asset.sha256
        with tempfile.TemporaryDirectory(prefix="wheelfarm-") as folder:
            return files.sha256(self._downloaded(asset, Path(folder)))

    def _downloaded(self, asset: Asset, folder: Path) -> Path:
        target = folder / "asset"
        self._api.download(asset, target)
        return target


def _tag(package: str, number: int) -> str:
    return f"{package}-latest" if number == 1 else f"{package}-latest-{number}"


def _catalogues(assets: list[Asset]) -> list[Asset]:
    return _named_so(_CATALOGUE, assets)


def _named_so(pattern: re.Pattern[str], assets: list[Asset]) -> list[Asset]:
    found = (asset for asset in assets if pattern.fullmatch(asset.name) and asset.complete)
    return sorted(found, key=lambda asset: asset.id)


def _token(catalogues: list[Asset]) -> str:
    return ",".join(f"{asset.id}:{asset.sha256}" for asset in catalogues)


def _names(key: str) -> tuple[str, str]:
    """Return the package and the asset name of a key."""
    area, package, *rest = key.split("/")
    if area == "files" and len(rest) == 2:  # noqa: PLR2004 - hash and name
        return package, rest[1]
    if area == "reports" and len(rest) == 1:
        return package, rest[0].removesuffix(".json") + ".report.json"
    message = f"{key!r} is no key of a store"
    raise BadInputError(message)
