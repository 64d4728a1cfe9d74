"""The dist-info folder: METADATA, WHEEL and RECORD from bytes to typed facts, faults noted.

Sources: core metadata 2.5, the binary distribution format (WHEEL, RECORD), PEP 440.
"""

import base64
import binascii
import csv
import io
from dataclasses import dataclass, field
from email.message import Message
from email.parser import HeaderParser

from wheelfarm.facts.model import Problem, ProblemKind, RecordRow

_ALGORITHMS = {"sha256": 32, "sha384": 48, "sha512": 64}
_RECORD_FIELDS = 3


@dataclass(slots=True)
class DistInfo:
    """What the dist-info folder says."""

    folder: str = ""
    metadata: str = ""
    project: str = ""
    version: str = ""
    requires_python: str = ""
    requires_dist: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    root_is_purelib: bool | None = None
    entry_points: str = ""
    record: tuple[RecordRow, ...] | None = None
    problems: list[Problem] = field(default_factory=list)

    def note(self, kind: ProblemKind, message: str) -> None:
        """Note one problem of a metadata file."""
        self.problems.append(Problem(kind=kind, message=message))


def read_dist_info(texts: dict[str, bytes]) -> DistInfo:
    """Return what a wheel's dist-info files say; ``texts`` maps member names to bytes."""
    info = DistInfo()
    folders = sorted({name.split("/")[0] for name in texts})
    if not folders:
        info.note("metadata", "there is no dist-info folder")
        return info
    if len(folders) > 1:
        info.note("metadata", f"there are {len(folders)} dist-info folders: {', '.join(folders)}")
    info.folder = folders[0]
    files = {name: data for name, data in texts.items() if name.startswith(f"{info.folder}/")}
    _read_metadata(info, files.get(f"{info.folder}/METADATA"))
    _read_wheel(info, files.get(f"{info.folder}/WHEEL"))
    _read_record(info, files.get(f"{info.folder}/RECORD"))
    entry_points = files.get(f"{info.folder}/entry_points.txt", b"")
    info.entry_points = entry_points.decode("utf-8", "replace")
    return info


def _decoded(info: DistInfo, kind: ProblemKind, name: str, data: bytes | None) -> str | None:
    if data is None:
        info.note(kind, f"there is no {name} in {info.folder}")
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        info.note(kind, f"{name} is not UTF-8: {error}")
        return data.decode("utf-8", "replace")


def _headers(text: str) -> Message:
    return HeaderParser().parsestr(text)


def _values(message: Message, name: str) -> tuple[str, ...]:
    return tuple(str(value).strip() for value in message.get_all(name, []))


def _read_metadata(info: DistInfo, data: bytes | None) -> None:
    text = _decoded(info, "metadata", "METADATA", data)
    if text is None:
        return
    info.metadata = text
    message = _headers(text)
    for field_name in ("Metadata-Version", "Name", "Version"):
        count = len(_values(message, field_name))
        if count != 1:
            info.note("metadata", f"METADATA has {count} fields {field_name}, not one")
    info.project = next(iter(_values(message, "Name")), "")
    info.version = next(iter(_values(message, "Version")), "")
    info.requires_python = next(iter(_values(message, "Requires-Python")), "")
    info.requires_dist = _values(message, "Requires-Dist")


def _read_wheel(info: DistInfo, data: bytes | None) -> None:
    text = _decoded(info, "wheel", "WHEEL", data)
    if text is None:
        return
    message = _headers(text)
    info.tags = _values(message, "Tag")
    if not info.tags:
        info.note("wheel", "WHEEL has no Tag line")
    version = next(iter(_values(message, "Wheel-Version")), "")
    if version.split(".")[0] != "1":
        info.note("wheel", f"WHEEL has Wheel-Version {version!r}; installers know 1.x")
    purelib = next(iter(_values(message, "Root-Is-Purelib")), "").lower()
    if purelib not in {"true", "false"}:
        info.note("wheel", f"WHEEL has Root-Is-Purelib {purelib!r}, not true or false")
    else:
        info.root_is_purelib = purelib == "true"


def _read_record(info: DistInfo, data: bytes | None) -> None:
    text = _decoded(info, "record", "RECORD", data)
    if text is None:
        return
    rows: list[RecordRow] = []
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for fields in reader:
            if fields:
                row = _record_row(info, fields, reader.line_num)
                rows += [] if row is None else [row]
    except csv.Error as error:
        info.note("record", f"RECORD line {reader.line_num}: {error}")
    info.record = tuple(rows)


def _record_row(info: DistInfo, fields: list[str], line: int) -> RecordRow | None:
    if len(fields) != _RECORD_FIELDS:
        info.note("record", f"RECORD line {line} has {len(fields)} fields, not 3: {fields[0]!r}")
        return None
    path, digest, size = fields
    problem = _digest_problem(digest)
    if problem:
        info.note("record", f"RECORD line {line} ({path!r}): {problem}")
    number = int(size) if size.isascii() and size.isdigit() and len(size) < 20 else None  # noqa: PLR2004 - digits of 64 bits
    if size and number is None:
        info.note("record", f"RECORD line {line} ({path!r}): {size!r} is no size")
    return RecordRow(path=path, digest=digest, size=number, line=line)


def _digest_problem(digest: str) -> str:
    if not digest:
        return ""
    algorithm, _, value = digest.partition("=")
    length = _ALGORITHMS.get(algorithm)
    if length is None:
        return f"{algorithm!r} is no accepted hash"
    return "" if len(digest_bytes(value)) == length else f"{value!r} is no {algorithm} digest"


def digest_bytes(value: str) -> bytes:
    """Return the bytes of a RECORD digest (URL-safe base64, no padding); empty where it is none."""
    try:
        return base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""
