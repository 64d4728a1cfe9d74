"""Tiny real wheels and the proofs that the gate would give, for the tests of store and index."""

import base64
import hashlib
import json
import zipfile
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

from wheelfarm.facts.model import BinaryFacts, DeviceCode, Linkage, WheelFacts
from wheelfarm.model.arch import Arch
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.store.evidence import Declared
from wheelfarm.store.publish import Proof
from wheelfarm.values import replace

WHEN = datetime(2026, 3, 4, 5, 6, 7, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Made:
    """A wheel on disk with its proof."""

    path: Path
    proof: Proof

    @property
    def name(self) -> str:
        return self.path.name


def make_wheel(
    folder: Path,
    filename: str,
    *,
    torch: Literal["none", "stable_abi", "linked"] = "none",
    requires_python: str = ">=3.8",
    requires_dist: tuple[str, ...] = (),
    declared: Declared | None = None,
    body: str = "",
    summary: str = "A test package",
    linkage: Linkage | None = None,
) -> Made:
    """Write a wheel that pip and uv install, and say of it what the gate would have read."""
    name = WheelName.parse(filename)
    path = folder / filename
    folder.mkdir(parents=True, exist_ok=True)
    module = name.distribution.replace(".", "_")
    metadata = "\n".join(
        [
            "Metadata-Version: 2.1",
            f"Name: {name.distribution}",
            f"Version: {name.version_text}",
            f"Summary: {summary}",
            f"Requires-Python: {requires_python}",
            *(f"Requires-Dist: {each}" for each in requires_dist),
            "",
        ]
    )
    tags = [
        f"{python}-{abi}-{platform}"
        for python in name.pythons
        for abi in name.abis
        for platform in name.platforms
    ]
    wheel = "\n".join(
        ["Wheel-Version: 1.0", "Generator: test", "Root-Is-Purelib: true"]
        + ([f"Build: {name.build}"] if name.build else [])
        + [f"Tag: {tag}" for tag in tags]
        + [""]
    )
    members = {
        f"{module}.py": f"VERSION = {name.version_text!r}\n{body}",
        f"{name.dist_info}/METADATA": metadata,
        f"{name.dist_info}/WHEEL": wheel,
    }
    record = [
        f"{member},sha256={_urlsafe(text.encode())},{len(text.encode())}"
        for member, text in members.items()
    ]
    members[f"{name.dist_info}/RECORD"] = "\n".join([*record, f"{name.dist_info}/RECORD,,", ""])
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in members.items():
            archive.writestr(zipfile.ZipInfo(member, (2026, 1, 1, 0, 0, 0)), text)
    facts = facts_of(path, metadata, linkage or Linkage(torch=torch, cxx_abi=1))
    facts = replace(facts, requires_python=requires_python, requires_dist=requires_dist)
    report = json.dumps({"schema": "wheelfarm.report/1", "wheel": filename}).encode()
    return Made(
        path, Proof(facts=facts, passed=True, report=report, declared=declared or Declared())
    )


def facts_of(
    path: Path,
    metadata: str,
    linkage: Linkage,
) -> WheelFacts:
    name = WheelName.parse(path.name)
    binary = BinaryFacts(
        path=f"{name.distribution}/_C.so",
        kind="elf",
        machine="x86_64",
        size=10,
        needed=("libcudart.so.13", "libtorch.so", "libc.so.6"),
        device_code=(
            DeviceCode(kind="sass", arch=Arch(8, 0), compressed=True),
            DeviceCode(kind="sass", arch=Arch(9, 0), compressed=True),
            DeviceCode(kind="ptx", arch=Arch(9, 0), compressed=True),
        ),
    )
    data = path.read_bytes()
    return WheelFacts(
        file_name=path.name,
        sha256=hashlib.sha256(data).hexdigest(),
        size=len(data),
        name=name,
        members=(),
        metadata=metadata,
        version=name.version_text,
        project=name.distribution,
        requires_python="",
        requires_dist=(),
        tags=(),
        binaries=(binary,),
        linkage=linkage,
    )


def with_bytes_changed(made: Made, folder: Path) -> Made:
    """Return a wheel of the same name whose bytes differ, as a second nvcc run would make it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / made.name
    with zipfile.ZipFile(made.path) as old, zipfile.ZipFile(path, "w") as new:
        for info in old.infolist():
            new.writestr(info, old.read(info))
        new.comment = b"another run"
    data = path.read_bytes()
    facts = replace(made.proof.facts, sha256=hashlib.sha256(data).hexdigest(), size=len(data))
    return Made(path, replace(made.proof, facts=facts))


def _urlsafe(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
