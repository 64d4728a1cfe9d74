"""A catalogue's documents as rows: what pages use of each wheel, checked, at speed.

An index of 30,000 wheels cannot afford the full reader for every field of every wheel. So a row is
made by plain checks of what pages use; where one fails, the full reader says what is wrong.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from packaging.version import Version

from wheelfarm.errors import BadInputError
from wheelfarm.index.channels import Kind, kind_of
from wheelfarm.model.axis import TORCH_AXES, TorchAxis
from wheelfarm.model.versions import Minor
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.reading import Reader
from wheelfarm.store.model import Record

_HASH = re.compile(r"[0-9a-f]{64}")
_AXES: dict[object, TorchAxis | None] = {None: None, **{axis: axis for axis in TORCH_AXES}}


@dataclass(frozen=True, slots=True)
class Row:
    """One wheel: its name, what was checked of it, and its document as the catalogue has it."""

    name: WheelName
    filename: str
    version: Version
    sha256: str
    url: str
    kind: Kind | None
    requires_python: str
    metadata_sha256: str | None
    yanked: str | None
    uploaded: str
    document: dict[str, Any]

    @property
    def key(self) -> str | None:
        """The wheel's key in the store, None where it has an address of its own."""
        return None if "://" in self.url else self.url


def rows_of(package: str, documents: Iterable[Any]) -> list[Row]:
    """Return the rows of a package's wheels that are not removed.

    Raises FaultsError or BadInputError for a document that is none, for a wheel of another
    package, and for two files of one name.
    """
    rows = []
    seen: dict[str, str] = {}
    for document in documents:
        if _is_removed(document):
            continue
        row = _row(package, document)
        if row is None:
            raise _faults(package, document)
        folded = row.filename.lower()
        if folded in seen:
            message = f"{package}: {row.filename} and {seen[folded]} are two files of one name"
            raise BadInputError(message, cause="names that differ in case alone collide on disks")
        seen[folded] = row.filename
        rows.append(row)
    return rows


def _row(package: str, document: Any) -> Row | None:
    try:
        filename, sha256, url = document["filename"], document["sha256"], document["url"]
        uploaded, size = document["uploaded"], document["size"]
        get = document.get
        name = WheelName.parse(filename)
        axis = _AXES[get("torch_axis")]
        floor = get("from_torch")
        from_torch = None if floor is None else _minor(floor)
    except (KeyError, TypeError, AttributeError, BadInputError):
        return None
    metadata, yanked = get("metadata_sha256"), get("yanked")
    requires, abi = get("requires_python", ""), get("cxx_abi")
    texts_fine = isinstance(uploaded, str) and isinstance(requires, str)
    optional_fine = (yanked is None or isinstance(yanked, str)) and abi in {0, 1, None}
    hashes_fine = _is_hash(sha256) and (metadata is None or _is_hash(metadata))
    if not (texts_fine and optional_fine and hashes_fine and type(size) is int):
        return None
    if not _address_fine(url, f"files/{package}/{sha256}/{filename}"):
        return None
    if name.package != package:
        return None
    return Row(
        name,
        filename,
        name.version,
        sha256,
        url,
        kind_of(name, axis, from_torch, abi),
        requires,
        metadata,
        yanked,
        uploaded,
        document,
    )


def _is_removed(document: object) -> bool:
    return isinstance(document, dict) and document.get("removed") is True


def _is_hash(text: object) -> bool:
    return isinstance(text, str) and _HASH.fullmatch(text) is not None


def _address_fine(url: object, key: str) -> bool:
    return url == key or (isinstance(url, str) and url.startswith(("https://", "http://")))


@lru_cache(maxsize=1024)
def _minor(text: str) -> Minor:
    return Minor.parse(text)


def _faults(package: str, document: object) -> BadInputError:
    """Return what is wrong with a document that made no row."""
    reader = Reader(document, f"catalogue of {package}")
    record = Record.read(reader)
    try:
        reader.finish()
    except BadInputError as error:
        return error
    shown = "a wheel" if record is None else record.filename
    message = f"the catalogue of {package} says what cannot be of {shown}"
    return BadInputError(message, cause="another package's name, address, size or hash")
