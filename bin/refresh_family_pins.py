"""Write resolve/data/family_pins.json: which torchvision and torchaudio belong to which torch.

Usage: python bin/refresh_family_pins.py [--check]

Each release's wheels say on PyPI which torch they require (``torch==2.14.0``, and of late
``torch>=2.14.0``); the metadata of the smallest wheel per release is read. A torch release gets
the newest version that takes it, and null where none does.
"""

import argparse
import json
import re
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from email.parser import HeaderParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from wheelfarm.http import Client
from wheelfarm.recipes.pypi import index_url

OUT = Path(__file__).parents[1] / "src/wheelfarm/resolve/data/family_pins.json"
FAMILY = ("torchvision", "torchaudio")
FIRST_TORCH = Version("2.4")
#: The first releases that are looked at: those of the first torch.
FIRST = {"torchvision": Version("0.19"), "torchaudio": Version("2.4")}
METADATA = re.compile(r"[^/]+\.dist-info/METADATA")
ACCEPT = "application/vnd.pypi.simple.v1+json"


def wheels(client: Client, project: str) -> dict[Version, dict[str, Any]]:
    """Return per final release of a project the smallest wheel that its index lists."""
    answer = client.get(f"{index_url()}/{project}/", accept=ACCEPT)
    found: dict[Version, dict[str, Any]] = {}
    for file in json.loads(answer.body)["files"]:
        try:
            version = parse_wheel_filename(file["filename"])[1]
        except InvalidWheelFilename:
            continue
        if version.is_prerelease or file.get("yanked"):
            continue
        entry = {**file, "url": urljoin(answer.url, file["url"])}
        size = entry.get("size") or sys.maxsize
        if version not in found or size < (found[version].get("size") or sys.maxsize):
            found[version] = entry
    return found


def metadata(client: Client, wheel: dict[str, Any]) -> str:
    """Return a wheel's METADATA: the file beside it (PEP 658), else from the wheel itself."""
    if wheel.get("core-metadata"):
        return client.get(f"{wheel['url']}.metadata").body.decode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, wheel["filename"])
        client.download(wheel["url"], path, sha256=wheel["hashes"].get("sha256"))
        with zipfile.ZipFile(path) as archive:
            name = next(name for name in archive.namelist() if METADATA.fullmatch(name))
            return archive.read(name).decode()


def torch_allowed(text: str) -> SpecifierSet | None:
    """Return what a wheel's metadata requires of torch; None where it requires nothing of it."""
    for line in HeaderParser().parsestr(text).get_all("Requires-Dist") or ():
        requirement = Requirement(line)
        if requirement.name == "torch" and requirement.specifier:
            return requirement.specifier
    return None


def table(client: Client) -> dict[str, dict[str, str | None]]:
    """Return project -> torch release -> the newest version that takes it; null for none."""
    torches = sorted(version for version in wheels(client, "torch") if version >= FIRST_TORCH)
    pins: dict[str, dict[str, str | None]] = {}
    for project in FAMILY:
        allowed = {
            version: torch_allowed(metadata(client, wheel))
            for version, wheel in sorted(wheels(client, project).items())
            if version >= FIRST[project]
        }
        pins[project] = {
            str(torch): str(max(fits)) if (fits := fitting(allowed, torch)) else None
            for torch in reversed(torches)
        }
    return pins


def fitting(allowed: Mapping[Version, SpecifierSet | None], torch: Version) -> list[Version]:
    """Return the versions whose metadata takes a torch release by name."""
    return [
        version
        for version, specifier in allowed.items()
        if specifier is not None and specifier.contains(torch)
    ]


def main() -> int:
    """Write or compare the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    pins = table(Client())
    document = {"schema": "wheelfarm.family-pins/1", "pins": pins}
    text = json.dumps(document, indent=1) + "\n"
    if arguments.check:
        same = OUT.read_text(encoding="utf-8") == text
        print("the table is current" if same else "the table differs")
        return 0 if same else 1
    OUT.write_text(text, encoding="utf-8")
    print(f"{OUT}: {len(pins['torchvision'])} torch releases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
