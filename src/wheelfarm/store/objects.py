"""A store in object storage: S3, Google Cloud Storage, Azure, through obstore.

Blobs stand under content-hashed keys, so that writing one twice is harmless; catalogues are written
with a condition (ETag, or generation), so that of two hosts that publish at once one goes again.
Credentials come from the environment, as each provider's own tools read them; we never see them.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from wheelfarm import files
from wheelfarm.errors import BadInputError
from wheelfarm.store.model import Catalogue, Records, catalogue_bytes
from wheelfarm.store.protocol import (
    Blob,
    BlobMissingError,
    CostState,
    RefusedError,
    StoreConflictError,
    StoreError,
)
from wheelfarm.store.remote import RemoteStore

_CHUNK = 8 << 20

#: Where each kind's environment may name another endpoint (the last are those of emulators).
_AZURE = ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT", "AZURITE_BLOB_STORAGE_URL")
_ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ENDPOINT_URL_S3"),
    "gs": ("GOOGLE_BASE_URL",),
    "az": _AZURE,
    "azure": _AZURE,
}


class ObjectStore(RemoteStore):
    """A store under a bucket's prefix; ``client`` is an obstore store."""

    def __init__(self, client: Any, location: str) -> None:
        self._client = client
        self._location = location

    @classmethod
    def open(cls, location: str) -> "ObjectStore":
        """Open ``s3://bucket/prefix`` and its like.

        Plain http is allowed only where the endpoint of the environment is on loopback. Raises
        BadInputError without the extra, StoreError where the environment lacks something.
        """
        try:
            from obstore.store import from_url  # noqa: PLC0415 - an extra
        except ImportError as error:
            message = f"{location} needs obstore"
            raise BadInputError(message, hint="pip install 'wheelfarm[objects]'") from error
        loopback = {"127.0.0.1", "localhost", "::1"}
        endpoints = (os.environ.get(name, "") for name in _ENDPOINTS[location.partition("://")[0]])
        local = any(urlsplit(each).hostname in loopback for each in endpoints)
        named: dict[str, Any] = {"client_options": {"allow_http": local}}
        with _translated(location):
            return cls(from_url(location, **named), location)

    @property
    def location(self) -> str:
        """The bucket's address."""
        return self._location

    def heads(self) -> Mapping[str, str]:
        """Return each package with its catalogue's ETag."""
        found = {}
        for meta in self._list("catalogue/"):
            name = str(meta["path"]).rpartition("/")[2]
            if name.endswith(".json"):
                found[name.removesuffix(".json")] = _head(meta)
        return found

    def catalogue(self, package: str) -> Catalogue:
        """Return a package's records."""
        data, meta = self._read(f"catalogue/{package}.json")
        if meta is None:
            return Catalogue(package=package)
        return Catalogue(package=package, data=data, token=_token(meta), shown=_head(meta))

    def replace(self, package: str, records: Records, token: str) -> str:
        """Write a catalogue whose state is still ``token``: a conditional write."""
        data = catalogue_bytes(package, records)
        return self._replace(f"catalogue/{package}.json", data, token)

    def costs(self, package: str) -> CostState:
        """Return what the units of a package cost."""
        data, meta = self._read(f"costs/{package}.json")
        return CostState() if meta is None else CostState(documents=(data,), token=_token(meta))

    def replace_costs(self, package: str, data: bytes, token: str) -> None:
        """Write a package's costs whose state is still ``token``: a conditional write."""
        self._replace(f"costs/{package}.json", data, token)

    def _read(self, key: str) -> tuple[bytes, Any]:
        """Return a small object's bytes and what is said of it; None where it is not there."""
        import obstore  # noqa: PLC0415 - an extra

        with _translated(self.location):
            try:
                answer = obstore.get(self._client, key)
                data = bytes(answer.bytes())
            except FileNotFoundError:
                return b"", None
        return data, answer.meta

    def _replace(self, key: str, data: bytes, token: str) -> str:
        import obstore  # noqa: PLC0415 - an extra
        from obstore.exceptions import (  # noqa: PLC0415 - an extra
            AlreadyExistsError,
            PreconditionError,
        )

        mode: Any = json.loads(token) if token else "create"
        with _translated(self.location):
            try:
                done = obstore.put(self._client, key, data, mode=mode)
            except (AlreadyExistsError, PreconditionError) as error:
                message = f"{key} in {self.location} changed"
                raise StoreConflictError(message) from error
        return _token(done)

    def put(self, key: str, source: Path, sha256: str) -> str:
        """Store a file's bytes, read them back, and return the key."""
        import obstore  # noqa: PLC0415 - an extra

        found = self._hash(key)
        if found is None:
            with _translated(self.location):
                obstore.put(self._client, key, source)
            found = self._hash(key)
            if found != sha256:
                message = f"{key} was read back with sha256 {found}, expected {sha256}"
                raise StoreError(message)
        elif found != sha256:
            message = f"{key} stands in {self.location} with other bytes"
            raise RefusedError(message, cause="the object was damaged or changed in the store")
        return key

    def fetch(self, key: str, target: Path) -> None:
        """Download a blob to ``target``."""
        chunks = self._stream(key)
        if chunks is None:
            raise BlobMissingError(key, self.location)
        with files.replacing(target) as temporary, temporary.open("wb") as out:
            for chunk in chunks:
                out.write(chunk)

    def blobs(self, package: str) -> Iterator[Blob]:
        """Return every file of a package."""
        for area in ("files", "reports"):
            for meta in self._list(f"{area}/{package}/"):
                yield Blob(
                    key=str(meta["path"]), size=int(meta["size"]), modified=meta["last_modified"]
                )

    def delete(self, key: str) -> None:
        """Remove an object; nothing there is fine."""
        import obstore  # noqa: PLC0415 - an extra

        with _translated(self.location), contextlib.suppress(FileNotFoundError):
            obstore.delete(self._client, key)

    def _list(self, prefix: str) -> Iterator[Any]:
        import obstore  # noqa: PLC0415 - an extra

        with _translated(self.location):
            for batch in obstore.list(self._client, prefix=prefix):
                yield from batch

    def _hash(self, key: str) -> str | None:
        chunks = self._stream(key)
        if chunks is None:
            return None
        digest = hashlib.sha256()
        for chunk in chunks:
            digest.update(chunk)
        return digest.hexdigest()

    def _stream(self, key: str) -> Iterator[bytes] | None:
        import obstore  # noqa: PLC0415 - an extra

        with _translated(self.location):
            try:
                answer = obstore.get(self._client, key)
            except FileNotFoundError:
                return None
        return self._chunks(answer)

    def _chunks(self, answer: Any) -> Iterator[bytes]:
        with _translated(self.location):
            for chunk in answer.stream(min_chunk_size=_CHUNK):
                yield bytes(chunk)


def _token(meta: Mapping[str, Any]) -> str:
    """Return the state of an object as text: what a conditional write wants back."""
    state = {
        key: meta.get(key) for key in ("e_tag", "version") if meta.get(key) not in {None, "null"}
    }
    return json.dumps(state, sort_keys=True)


def _head(meta: Mapping[str, Any]) -> str:
    """Return the state of an object as a list and a read of it say alike.

    Lists name no version or generation, and Azure's write the ETag without its quotes.
    """
    return str(meta["e_tag"]).strip('"')


@contextlib.contextmanager
def _translated(location: str) -> Iterator[None]:
    """Turn the library's errors into ours; who expects absent objects catches them inside."""
    from obstore.exceptions import (  # noqa: PLC0415 - an extra
        AlreadyExistsError,
        BaseError,
        PreconditionError,
    )

    try:
        yield
    except (AlreadyExistsError, PreconditionError):
        raise
    except FileNotFoundError as error:
        message = f"{location} could not be used: there is no such bucket or container"
        raise StoreError(message, hint="check the address, or make the bucket first") from error
    except BaseError as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else ""
        message = f"{location} could not be used: {first or type(error).__name__}"
        hint = "check the address, the region and the credentials of the environment"
        raise StoreError(message, hint=hint) from error
