"""What all stores on other machines tell alike."""

from collections.abc import Iterator
from pathlib import Path

from wheelfarm.store.protocol import Blob


class RemoteStore:
    """A store of which nothing lies on this machine."""

    def blobs(self, package: str) -> Iterator[Blob]:
        """Return every file of a package."""
        raise NotImplementedError

    def local(self, key: str) -> Path | None:  # noqa: ARG002 - the protocol's
        """Return None: nothing lies on this machine."""
        return None

    def folder(self) -> Path | None:
        """Return None: nothing lies on this machine."""
        return None

    def hashes(self, package: str) -> frozenset[str]:
        """Return the hashes of the package's wheels."""
        wheels = (blob.key for blob in self.blobs(package) if blob.key.endswith(".whl"))
        return frozenset(key.split("/")[2] for key in wheels)
