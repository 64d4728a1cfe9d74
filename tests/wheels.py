"""Small wheels for tests, right by default and wrong on demand."""

import base64
import csv
import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from wheelfarm.model.wheel_name import WheelName

INIT = b'"""A test package."""\n'


def digest(data: bytes) -> str:
    """Return RECORD's digest of some bytes."""
    text = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"sha256={text}"


def record(members: Mapping[str, bytes], own: str) -> bytes:
    """Return the RECORD of some members."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for name, data in members.items():
        writer.writerow([name, digest(data), len(data)])
    writer.writerow([own, "", ""])
    return text.getvalue().encode()


def make_wheel(
    folder: Path,
    file_name: str,
    files: Mapping[str, bytes | Path] | None = None,
    *,
    version: str | None = None,
    project: str | None = None,
    requires: Sequence[str] = (),
    tags: Sequence[str] | None = None,
    dist_info: str | None = None,
    without: Sequence[str] = (),
    replaced: Mapping[str, bytes] | None = None,
    purelib: str = "false",
) -> Path:
    """Write a wheel; every keyword makes it differ from the one that its name promises.

    ``without`` and ``replaced`` act on members behind RECORD's back (keys relative to dist-info
    when they have no slash).
    """
    name = WheelName.parse(file_name)
    info = dist_info or f"{name.distribution}-{name.version_text}.dist-info"
    members: dict[str, bytes] = {
        path: data.read_bytes() if isinstance(data, Path) else data
        for path, data in (files or {f"{name.distribution}/__init__.py": INIT}).items()
    }
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project or name.distribution}",
        f"Version: {version or name.version_text}",
        *(f"Requires-Dist: {text}" for text in requires),
    ]
    members[f"{info}/METADATA"] = ("\n".join(lines) + "\n\nA body.\n").encode()
    claimed = [
        f"{python}-{abi}-{platform}"
        for python in name.pythons
        for abi in name.abis
        for platform in name.platforms
    ]
    wheel = ["Wheel-Version: 1.0", "Generator: test", f"Root-Is-Purelib: {purelib}"]
    wheel += [f"Tag: {tag}" for tag in (claimed if tags is None else tags)]
    members[f"{info}/WHEEL"] = ("\n".join(wheel) + "\n").encode()
    members[f"{info}/RECORD"] = record(members, f"{info}/RECORD")
    for key, data in (replaced or {}).items():
        members[key if "/" in key else f"{info}/{key}"] = data
    for key in without:
        members.pop(key if "/" in key else f"{info}/{key}")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file_name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, data in members.items():
            archive.writestr(key, data)
    return path
