"""A wheel's zip, taken apart and put together again: same inputs, same bytes.

The only writer of wheels in the project: members are sorted, dated and of fixed modes, RECORD is
made anew from the bytes, so that no caller can write a wheel whose RECORD does not hold.
"""

import base64
import csv
import hashlib
import io
import os
import stat
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wheelfarm import files
from wheelfarm.errors import BadInputError
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.values import replace

#: 1980-01-01, the earliest date a zip can hold; used where SOURCE_DATE_EPOCH is not set.
EARLIEST = 315532800


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    """One member: its bytes, and whether it is executable."""

    data: bytes
    executable: bool = False


Members = Mapping[str, Content]


def read_members(wheel: Path) -> dict[str, Content]:
    """Return all members of a wheel.

    Raises BadInputError for what is no wheel, names one member twice or would leave its folder.
    """
    members: dict[str, Content] = {}
    try:
        with zipfile.ZipFile(wheel) as archive:
            infos = archive.infolist()
            if sum(info.file_size for info in infos) > files.MAX_UNPACKED:
                message = f"{wheel.name} claims to unpack to more than {files.MAX_UNPACKED} bytes"
                raise BadInputError(message)
            for info in infos:
                if info.is_dir():
                    continue
                name = str(files.safe_member(info.filename))
                if name in members:
                    message = f"{wheel.name} holds {name} twice"
                    raise BadInputError(message)
                executable = bool((info.external_attr >> 16) & 0o111)
                members[name] = Content(data=archive.read(info), executable=executable)
    except OSError as error:
        message = f"{wheel} is no readable wheel: {error}"
        raise BadInputError(message) from error
    except files.broken_archive() as error:
        message = f"{wheel} is no readable wheel: {error}"
        raise BadInputError(message) from error
    return members


def write_wheel(folder: Path, name: WheelName, members: Members, *, level: int = 6) -> Path:
    """Write a wheel into ``folder``, whole or not at all, with a RECORD made from its bytes."""
    record = f"{name.dist_info}/RECORD"
    listed = {path: content for path, content in members.items() if not _is_record(path)}
    everything = {**listed, record: Content(data=_record(listed, record))}
    date = time.gmtime(max(EARLIEST, int(os.environ.get("SOURCE_DATE_EPOCH", EARLIEST))))[:6]
    target = folder / str(name)
    with files.replacing(target) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        # The dist-info folder goes last, as the wheel specification recommends.
        for path in sorted(everything, key=lambda path: (path.startswith(name.dist_info), path)):
            content = everything[path]
            info = zipfile.ZipInfo(path, date)
            mode = 0o755 if content.executable else 0o644
            info.external_attr = (stat.S_IFREG | mode) << 16
            info.create_system = 3
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content.data, compresslevel=level)
    return target


def rename_version(members: Members, old: WheelName, new: WheelName) -> dict[str, Content]:
    """Return the members with dist-info and ``.data`` folders, METADATA and WHEEL as ``new`` says.

    A bare rename of the file leaves the version inside at odds with the name, which pip and uv
    refuse (cuda-wheels#2); here all five places change together.
    """
    prefixes = _prefixes(members, old, new)
    renamed = {_moved(path, prefixes): content for path, content in members.items()}
    metadata = f"{new.dist_info}/METADATA"
    wheel = f"{new.dist_info}/WHEEL"
    for path in (metadata, wheel):
        if path not in renamed:
            message = f"{old} has no {path.rpartition('/')[2]} in its dist-info folder"
            raise BadInputError(message)
    text = text_of(renamed, metadata, old)
    renamed[metadata] = replace(
        renamed[metadata], data=set_fields(text, {"Version": [new.version_text]}).encode()
    )
    text = text_of(renamed, wheel, old)
    fields = {"Tag": list(_tags(new)), "Build": [new.build] if new.build else []}
    if new.platforms != ("any",):
        # What has a platform's tag has compiled code, which goes where torch's goes.
        fields["Root-Is-Purelib"] = ["false"]
    renamed[wheel] = replace(renamed[wheel], data=set_fields(text, fields).encode())
    return renamed


def text_of(members: Members, path: str, wheel: WheelName) -> str:
    """Return a member's text; BadInputError where it is none (the format asks for UTF-8)."""
    try:
        return members[path].data.decode()
    except UnicodeDecodeError as error:
        message = f"{path.rpartition('/')[2]} of {wheel} is not UTF-8: {error}"
        raise BadInputError(message) from error


def set_fields(text: str, fields: Mapping[str, list[str]]) -> str:
    """Return a METADATA or WHEEL text whose header fields are replaced; the body is untouched.

    Each field's lines stand where its first one stood, or at the header's end. An empty list
    removes the field.
    """
    text = text.replace("\r\n", "\n")
    header, separator, body = text.partition("\n\n")
    lines: list[str] = []
    written: set[str] = set()
    dropping = False
    wanted = {name.lower(): (name, values) for name, values in fields.items()}
    for line in header.rstrip("\n").split("\n"):
        if line[:1] in {" ", "\t"}:
            # A continuation goes the way of the field that it continues.
            if not dropping:
                lines.append(line)
            continue
        key = line.partition(":")[0].strip().lower()
        dropping = key in wanted
        if not dropping:
            lines.append(line)
        elif key not in written:
            written.add(key)
            name, values = wanted[key]
            lines += [f"{name}: {value}" for value in values]
    for key, (name, values) in wanted.items():
        if key not in written:
            lines += [f"{name}: {value}" for value in values]
    return "\n".join(lines) + "\n" + ("\n" + body if separator else "")


def _record(members: Members, record: str) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for path in sorted(members):
        data = members[path].data
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        writer.writerow([path, f"sha256={digest}", len(data)])
    writer.writerow([record, "", ""])
    return text.getvalue().encode()


def _is_record(path: str) -> bool:
    # Signatures of the old RECORD (RECORD.jws, RECORD.p7s) do not survive a new one.
    folder, _, name = path.rpartition("/")
    return folder.endswith(".dist-info") and "/" not in folder and name.split(".")[0] == "RECORD"


def _prefixes(members: Members, old: WheelName, new: WheelName) -> dict[str, str]:
    tops = {path.partition("/")[0] for path in members}
    infos = [top for top in tops if top.endswith(".dist-info")]
    if len(infos) != 1:
        message = f"{old} has {len(infos)} dist-info folders"
        raise BadInputError(message, cause="a wheel has exactly one")
    stem = new.dist_info.removesuffix(".dist-info")
    prefixes = {infos[0]: new.dist_info}
    old_stem = infos[0].removesuffix(".dist-info")
    prefixes[f"{old_stem}.data"] = f"{stem}.data"
    return prefixes


def _moved(path: str, prefixes: Mapping[str, str]) -> str:
    top, slash, rest = path.partition("/")
    return f"{prefixes.get(top, top)}{slash}{rest}"


def _tags(name: WheelName) -> list[str]:
    return [
        f"{python}-{abi}-{platform}"
        for python in name.pythons
        for abi in name.abis
        for platform in name.platforms
    ]
