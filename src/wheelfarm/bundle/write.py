"""An air-gapped folder: the wheels of one or more hosts, an index of them, and their locks.

The folder is an index (``wheelfarm resolve --index FOLDER``, ``pip --find-links FOLDER/wheels``),
and its locks name files beside them, so it can be carried anywhere.
"""

import hashlib
import html
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import tomlkit

from wheelfarm import files
from wheelfarm.errors import BadInputError, NegativeVerdictError
from wheelfarm.http import Client
from wheelfarm.index.model import PACKAGE_SCHEMA, Manifest, PackagePart, WheelEntry
from wheelfarm.reading import parse_toml
from wheelfarm.resolve.choose import Choice
from wheelfarm.resolve.lock import Profile, Question, merged
from wheelfarm.resolve.writers import pylock
from wheelfarm.values import replace

BUNDLE_SCHEMA = "wheelfarm.bundle/1"

_OWN_FOLDERS = frozenset({"wheels", "manifest", "simple"})

#: Told a wheel's name, how many of its bytes have come, and how many are expected.
Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bundle:
    """What was written: the wheels' file names, the locks, and what the folder does not hold."""

    folder: Path
    wheels: tuple[str, ...]
    locks: tuple[str, ...]
    outside: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the document ``bundle.json``."""
        return {
            "schema": BUNDLE_SCHEMA,
            "wheels": list(self.wheels),
            "locks": list(self.locks),
            "outside": list(self.outside),
        }


def write_bundle(
    profiles: Sequence[Profile],
    question: Question,
    folder: Path,
    client: Client,
    progress: Progress | None = None,
    *,
    dependencies: bool = False,
) -> Bundle:
    """Write the folder; wheels that are there with the right hash are not fetched again.

    With ``dependencies`` pip downloads what the wheels need besides, torch among it.

    Raises NegativeVerdictError where a profile has no answer, BadInputError for a folder with other
    things in it.
    """
    _refuse_foreign(folder)
    for profile in profiles:
        if not profile.resolution.answer.ok:
            message = f"no bundle is written: {profile.name or 'this host'} has no answer"
            raise NegativeVerdictError(message, hint="run wheelfarm resolve for the reasons")
    choices = merged(profiles)
    for choice, _ in choices:
        _fetch(choice, folder / "wheels", client, progress)
    _write_index([choice for choice, _ in choices], folder)
    outside = _outside(profiles)
    entries: list[dict[str, Any]] = []
    added: tuple[str, ...] = ()
    if dependencies:
        from wheelfarm.bundle.dependencies import (
            add_dependencies,
            dependencies_file,
            locked_dependencies,
        )

        found = [each for profile in profiles for each in add_dependencies(profile, folder)]
        entries = locked_dependencies(found)
        added = tuple(dict.fromkeys(dependencies_file(each.profile) for each in found))
        outside = ()
    locks = (*_write_locks(profiles, question, folder, entries), *added)
    bundle = Bundle(
        folder=folder,
        wheels=tuple(str(choice.candidate.name) for choice, _ in choices),
        locks=locks,
        outside=outside,
    )
    files.write_text(folder / "bundle.json", json.dumps(bundle.to_dict(), indent=2) + "\n")
    return bundle


def _refuse_foreign(folder: Path) -> None:
    """Raise BadInputError where files of others stand, which a bundle could replace."""
    if not folder.exists() or (folder / "bundle.json").is_file():
        return
    if not folder.is_dir():
        message = f"{folder} is no folder"
        raise BadInputError(message)
    # What an interrupted run leaves is gone on with.
    foreign = sorted(path.name for path in folder.iterdir() if path.name not in _OWN_FOLDERS)
    if foreign:
        message = f"{folder} is no bundle and not empty: {', '.join(foreign[:3])}"
        raise BadInputError(message, hint="give a folder of its own, such as a new one in there")


def _fetch(choice: Choice, folder: Path, client: Client, progress: Progress | None) -> None:
    entry = choice.candidate.entry
    name = str(entry.name)
    path = folder / name
    if path.is_file() and files.sha256(path) == entry.sha256:
        return
    report = None
    if progress is not None:
        report = lambda done, total: progress(name, done, total)  # noqa: E731 - one line of glue
    client.download(entry.url, path, sha256=entry.sha256, progress=report)


def _write_index(choices: Sequence[Choice], folder: Path) -> None:
    """Write the manifest and simple pages of the bundled wheels."""
    by_package: dict[str, list[WheelEntry]] = {}
    for choice in choices:
        entry = choice.candidate.entry
        address = f"../../wheels/{quote(str(entry.name))}"
        by_package.setdefault(choice.candidate.package, []).append(replace(entry, url=address))
    parts = {}
    for package, entries in by_package.items():
        document = {
            "schema": PACKAGE_SCHEMA,
            "package": package,
            "wheels": [entry.to_dict() for entry in entries],
        }
        text = json.dumps(document, indent=1) + "\n"
        files.write_text(folder / "manifest" / "packages" / f"{package}.json", text)
        parts[package] = PackagePart(
            name=package,
            url=f"packages/{package}.json",
            sha256=hashlib.sha256(text.encode()).hexdigest(),
            versions=tuple(sorted({entry.name.version.public for entry in entries})),
            wheels=len(entries),
        )
        files.write_text(folder / "simple" / package / "index.html", _page(entries))
    text = json.dumps(Manifest(packages=parts).to_dict(), indent=1) + "\n"
    files.write_text(folder / "manifest" / "index.json", text)
    names = "".join(f'<a href="{package}/">{package}</a><br>\n' for package in sorted(parts))
    files.write_text(folder / "simple" / "index.html", _document(names))


def _page(entries: Sequence[WheelEntry]) -> str:
    links = [
        f'<a href="{html.escape(entry.url)}#sha256={entry.sha256}">'
        f"{html.escape(str(entry.name))}</a><br>\n"
        for entry in entries
    ]
    return _document("".join(links))


def _document(body: str) -> str:
    return f"<!DOCTYPE html>\n<html><body>\n{body}</body></html>\n"


def _write_locks(
    profiles: Sequence[Profile],
    question: Question,
    folder: Path,
    dependencies: Sequence[dict[str, Any]],
) -> tuple[str, ...]:
    """Write a requirements file per profile and one pylock, both of files beside them.

    The pylock lists the dependencies that the folder holds too.
    """
    written = []
    for profile in profiles:
        suffix = f"-{profile.name}" if profile.name else ""
        name = f"requirements{suffix}.txt"
        lines = [
            f"# Wheels for {profile.resolution.answer.target}: pip install --no-deps -r {name}",
            "--no-index",
            "--find-links ./wheels",
            *(
                f"{choice.candidate.package}=={choice.candidate.name.version}"
                f" --hash=sha256:{choice.candidate.entry.sha256}"
                for choice in profile.resolution.choices
            ),
        ]
        files.write_text(folder / name, "\n".join(lines) + "\n")
        written.append(name)
    text = pylock.write(profiles, question, "pylock.toml")["pylock.toml"]
    document = parse_toml(text, "pylock.toml")
    for package in document["packages"]:
        for wheel in package["wheels"]:
            del wheel["url"]
            wheel["path"] = f"wheels/{wheel['name']}"
    document["packages"] += dependencies
    files.write_text(folder / "pylock.toml", tomlkit.dumps(document))
    return (*written, "pylock.toml")


def _outside(profiles: Sequence[Profile]) -> tuple[str, ...]:
    """Return what the wheels need besides: torch, and projects of other indexes."""
    found: set[str] = set()
    for profile in profiles:
        pin = profile.resolution.torch
        if pin is not None:
            found.update(pin.requirements())
        for choice in profile.resolution.choices:
            found.update(str(requirement) for requirement in choice.outside)
    return tuple(sorted(found))
