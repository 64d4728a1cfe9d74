"""A farm's site made for tests: real, installable wheels, their manifest and simple pages."""

import base64
import hashlib
import html
import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from wheelfarm.model.wheel_name import WheelName

MANIFEST = "wheelfarm.manifest/1"
PACKAGE = "wheelfarm.package/1"


def make_wheel(
    folder: Path, name: str, requires: tuple[str, ...] = (), *, body: str = "VALUE = 1\n"
) -> Path:
    """Write a small wheel of that file name whose metadata, tags and RECORD are right."""
    parsed = WheelName.parse(name)
    info = parsed.dist_info
    tags = "".join(
        f"Tag: {python}-{abi}-{platform}\n"
        for python in parsed.pythons
        for abi in parsed.abis
        for platform in parsed.platforms
    )
    needs = "".join(f"Requires-Dist: {text}\n" for text in requires)
    members = {
        f"{parsed.distribution}/__init__.py": body,
        f"{info}/METADATA": "Metadata-Version: 2.1\n"
        f"Name: {parsed.distribution}\nVersion: {parsed.version_text}\n{needs}",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: false\n{tags}",
    }
    rows = []
    for member, text in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
        rows.append(f"{member},sha256={digest.rstrip(b'=').decode()},{len(text.encode())}")
    members[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""])
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in members.items():
            archive.writestr(member, text)
    return path


@dataclass
class FarmSite:
    """A site under construction: ``add`` wheels, then ``write`` its pages."""

    folder: Path
    wheels: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    combinations: list[dict[str, str]] = field(default_factory=list)
    fallback: dict[str, str] | None = None

    def add(self, name: str, *, requires: tuple[str, ...] = (), **facts: Any) -> dict[str, Any]:
        """Add a wheel of that file name; ``facts`` are keys of its manifest entry."""
        files = self.folder / "files"
        files.mkdir(parents=True, exist_ok=True)
        path = make_wheel(files, name, requires)
        parsed = WheelName.parse(name)
        data = path.read_bytes()
        entry = {
            "filename": name,
            "url": f"../../files/{quote(name)}",
            "sha256": hashlib.sha256(data).hexdigest(),
            "size": len(data),
            "requires_dist": list(requires),
            "torch_axis": "linked",
            **facts,
        }
        entry = {key: value for key, value in entry.items() if value is not None}
        self.wheels.setdefault(parsed.package, []).append(entry)
        return entry

    def write_empty(self) -> Path:
        """Write a site without a wheel."""
        (self.folder / "manifest").mkdir(parents=True, exist_ok=True)
        return self.write()

    def write(self) -> Path:
        """Write the manifest and the simple pages; return the folder."""
        parts = {}
        for package, entries in self.wheels.items():
            data = json.dumps({"schema": PACKAGE, "package": package, "wheels": entries}).encode()
            path = self.folder / "manifest" / "packages" / f"{package}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            parts[package] = {
                "url": f"packages/{package}.json",
                "sha256": hashlib.sha256(data).hexdigest(),
                "versions": [],
                "wheels": len(entries),
            }
            self._simple(package, entries)
        index = {
            "schema": MANIFEST,
            "packages": parts,
            "combinations": self.combinations,
            "fallback": self.fallback,
        }
        (self.folder / "manifest" / "index.json").write_text(json.dumps(index), encoding="utf-8")
        return self.folder

    def _simple(self, package: str, entries: list[dict[str, Any]]) -> None:
        page = self.folder / "simple" / package / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        links = "".join(
            f'<a href="../../files/{quote(entry["filename"])}#sha256={entry["sha256"]}">'
            f"{html.escape(entry['filename'])}</a><br>\n"
            for entry in entries
            if "sha256" in entry
        )
        page.write_text(f"<!DOCTYPE html><html><body>{links}</body></html>", encoding="utf-8")
