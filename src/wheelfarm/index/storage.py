"""What the catalogue lists against what the store holds, both ways."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone

from wheelfarm.errors import NegativeVerdictError
from wheelfarm.index.package import Listed
from wheelfarm.store.protocol import StoreReader

#: A wheel that came less than this ago may belong to a publish that is still under way.
UNDER_WAY = timedelta(hours=1)


class StorageMismatchError(NegativeVerdictError):
    """The store holds wheels that nothing lists, or lists wheels that it does not hold."""

    def __init__(self, missing: tuple[str, ...], unlisted: tuple[str, ...]) -> None:
        self.missing = missing
        self.unlisted = unlisted
        lines = [f"    listed, and not in the store: {name}" for name in missing]
        lines += [f"    in the store, and not listed: {key}" for key in unlisted]
        super().__init__(
            "the store's catalogue and its files differ:\n" + "\n".join(lines),
            hint="publish an unlisted wheel again, or delete its file; nothing was written",
        )


def check_storage(
    store: StoreReader, packages: Mapping[str, Sequence[Listed]], *, now: datetime | None = None
) -> None:
    """Raise StorageMismatchError where a package's rows and files differ."""
    missing: list[str] = []
    unlisted: list[str] = []
    for package, rows in packages.items():
        listed = {row.sha256 for row in rows if row.stored}
        known = {row.sha256 for row in rows}
        stands = store.hashes(package)
        missing += [row.filename for row in rows if row.stored and row.sha256 not in stands]
        if stands - known:
            unlisted += _unlisted(store, package, listed | known, now)
    if missing or unlisted:
        raise StorageMismatchError(tuple(missing), tuple(unlisted))


def _unlisted(store: StoreReader, package: str, known: set[str], now: datetime | None) -> list[str]:
    before = (now or datetime.now(timezone.utc)) - UNDER_WAY
    return [
        blob.key
        for blob in store.blobs(package)
        if blob.key.endswith(".whl")
        and blob.key.split("/")[2] not in known
        and blob.modified < before
    ]
