"""One run of the resolver: from what a user gave to answers per profile, and to lock files."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from wheelfarm.errors import UsageError
from wheelfarm.http import Client, UnreachableError
from wheelfarm.index.model import Manifest
from wheelfarm.model.versions import Minor
from wheelfarm.reading import parse_toml, read_text
from wheelfarm.resolve.asking import Asking
from wheelfarm.resolve.backends import index_address
from wheelfarm.resolve.candidate import Wanted
from wheelfarm.resolve.configuration import Configuration, config_file
from wheelfarm.resolve.detect import detect
from wheelfarm.resolve.host import Host
from wheelfarm.resolve.lock import Profile, Question, Written, stated_facts
from wheelfarm.resolve.overrides import OVERRIDES
from wheelfarm.resolve.resolution import Settings, resolve
from wheelfarm.resolve.sources import Index, ManifestIndex, last_manifest, open_index
from wheelfarm.values import replace, value

#: Lock formats, and the file name that each is written to where none is given.
FORMATS = {
    "requirements": "requirements.txt",
    "pylock": "pylock.toml",
    "pixi": "pixi.toml",
    "uv": "pyproject.toml",
    "constraints": "constraints.txt",
}
#: Formats that go into a file of the user's; the others are files of our own.
EDITED = frozenset({"pixi", "uv"})
#: A profile's name is an extra's, a feature's, an environment's and a part of a file's.
_PROFILE = r"[a-z0-9]+(-[a-z0-9]+)*"


@value
class Session:
    """What a run works with."""

    asking: Asking
    client: Client
    index_option: str | None = None
    releases: str = ""
    configuration: Configuration = Configuration()
    settings: Settings = Settings()
    download: bool = True

    def index(self, host: Host) -> Index:
        """Return the index for a host's backend, with the second transport behind it.

        Raises UsageError where no index is named, UnreachableError where neither answers.
        """
        backend = host.backend.value or ""
        found = index_address(backend, self.index_option, self.asking.indexes)
        found = found or index_address(backend, None, self.configuration.indexes)
        if found is None:
            message = "no index is named"
            hint = f"give --index URL, set WHEELFARM_INDEX, or write index = to {config_file()}"
            raise UsageError(message, hint=hint)
        try:
            index = open_index(found[0], self.client)
        except UnreachableError as error:
            repository = self.repository(last_manifest(found[0], self.client))
            if not repository:
                raise
            from wheelfarm.resolve.releases import second_transport

            return second_transport(error, self.client, repository)
        repository = self.repository(index.manifest if isinstance(index, ManifestIndex) else None)
        if not repository:
            return index
        from wheelfarm.resolve.releases import TwoTransports

        return TwoTransports(index, self.client, repository)

    def repository(self, manifest: Manifest | None) -> str:
        """Return the repository of the second transport: the user's word, else the manifest's.

        A manifest can name a repository, and no other address; empty where nobody names one.
        BadInputError for a word of the user's that is neither.
        """
        named = self.releases or self.asking.releases or self.configuration.releases
        if named:
            from wheelfarm.resolve.releases import releases_address

            # A name that is none is said now, and not on the day that the index is out of reach.
            releases_address(named)
        if named or manifest is None or not manifest.releases:
            return named
        from wheelfarm.resolve.releases import is_repository

        return manifest.releases if is_repository(manifest.releases) else ""

    def answer(self, host: Host, name: str = "") -> Profile:
        """Return the answer for one host, every wheel of it with a hash."""
        resolution = resolve(self.asking.wanted, host, self.index(host), self.client, self.settings)
        resolution = replace(resolution, notes=(*resolution.notes, *self.asking.notes))
        if any(each.candidate.entry.sha256 is None for each in resolution.choices):
            from wheelfarm.resolve.hashing import with_hashes

            resolution = with_hashes(resolution, self.client, download=self.download)
        locked = {
            urlsplit(each.candidate.entry.url).hostname
            for each in resolution.choices
            if self.client.told_login(each.candidate.entry.url)
        }
        if locked:
            note = (
                f"files of {', '.join(sorted(map(str, locked)))} are asked for with a login, which "
                "no lock holds: an installer of the lock needs it in netrc or a keyring"
            )
            resolution = replace(resolution, notes=(*resolution.notes, note))
        return Profile(name=name, resolution=resolution)

    def question(self, profiles: Sequence[Profile]) -> Question:
        """Return what a lock of these profiles answers."""
        return Question(
            index=profiles[0].resolution.index if profiles else "",
            packages=tuple(map(_text, self.asking.wanted)),
            choose_torch=self.settings.choose_torch,
            prereleases=self.settings.prereleases,
            profiles={each.name: stated_facts(each.resolution.host) for each in profiles},
        )


def _text(wanted: Wanted) -> str:
    marker = f" ; {wanted.marker}" if wanted.marker is not None else ""
    return f"{wanted}{marker}"


def asking_of(packages: Sequence[str], source: Path | None) -> Asking:
    """Return what is asked for: words, or a file, or the project's own ``pyproject.toml``.

    The project's settings (its index, its releases) hold for words too.
    """
    from wheelfarm.resolve.choose import parse_wanted

    here = Path("pyproject.toml")
    if source is None and here.is_file() and _asks(here):
        source = here
    asking = Asking(wanted=()) if source is None else _read(source)
    words = tuple(map(parse_wanted, packages))
    if source == here and words:
        return replace(asking, wanted=words)
    return replace(asking, wanted=(*asking.wanted, *words))


def _asks(project: Path) -> bool:
    """Return whether a project's file says anything to us besides a lock that we wrote into it."""
    text = read_text(project)
    if "wheelfarm" not in text:
        return False
    tool = parse_toml(text, str(project)).get("tool")
    ours = tool.get("wheelfarm") if isinstance(tool, Mapping) else None
    return ours is not None and not (isinstance(ours, Mapping) and set(ours) <= {"lock"})


def _read(source: Path) -> Asking:
    from wheelfarm.resolve.inputs import read_input

    return read_input(source)


def hosts(
    stated: Mapping[str, str | None], host_file: Path | None, profiles: Sequence[str]
) -> dict[str, Host]:
    """Return the hosts that are asked for by profile name; the one at hand under "".

    ``profiles`` are words such as ``workstation=host.json``. Raises UsageError for others.
    """
    if not profiles:
        return {"": detect(stated, host_file)}
    extra = [f"--{key.replace('_', '-')}" for key in ("python", *OVERRIDES) if stated.get(key)]
    extra += ["--host"] if host_file is not None else []
    if extra:
        message = f"each --profile has its own facts, and {', '.join(extra)} would change none"
        raise UsageError(message, hint="state it when the host is saved: wheelfarm host --json")
    found: dict[str, Host] = {}
    for word in profiles:
        name, equals, path = word.partition("=")
        if not equals or not re.fullmatch(_PROFILE, name) or name == "default":
            message = f"--profile {word!r} is not of the form name=host.json"
            hint = "names have small letters, digits and hyphens between them; not 'default'"
            raise UsageError(message, hint=hint)
        if name in found:
            message = f"--profile {name} is given twice"
            raise UsageError(message)
        found[name] = detect({}, Path(path))
    return found


def lock_files(
    profiles: Sequence[Profile],
    question: Question,
    lock_format: str,
    output: Path,
    *,
    existing: str = "",
    feature: str = "",
    pixi_version: Minor | None = None,
) -> Written:
    """Return a lock's texts by the names of files beside ``output``, and notes on them."""
    name = output.name
    if lock_format == "requirements":
        from wheelfarm.resolve.writers import requirements

        return Written(texts=requirements.write(profiles, question, name))
    if lock_format == "constraints":
        from wheelfarm.resolve.writers import constraints

        return Written(texts=constraints.write(profiles, question, name))
    if lock_format == "pylock":
        from wheelfarm.resolve.writers import pylock

        return Written(texts=pylock.write(profiles, question, name))
    if lock_format == "uv":
        from wheelfarm.resolve.writers import uv

        return uv.write(profiles, question, name, existing)
    from wheelfarm.resolve.writers import pixi

    version = pixi_version or pixi.PLATFORM_TABLES
    return pixi.write(profiles, question, name, existing, feature=feature, version=version)


def format_of(output: Path) -> str:
    """Return the lock format that a file's name asks for; UsageError where it asks for none."""
    name = output.name
    if name.startswith("pylock"):
        return "pylock"
    if name == "pixi.toml":
        return "pixi"
    if name == "pyproject.toml":
        return _format_of_project(output)
    if name.endswith(".txt"):
        return "constraints" if name.startswith("constraints") else "requirements"
    message = f"the name {name!r} does not say which format to write"
    raise UsageError(message, hint="give --format")


def _format_of_project(output: Path) -> str:
    """Return ``pixi`` for a project that is a manifest of pixi's alone, else ``uv``."""
    from wheelfarm.resolve.writers.tables import value_at

    document = parse_toml(read_text(output), str(output)) if output.is_file() else {}
    pixi = value_at(document, "tool", "pixi")
    if not isinstance(pixi, Mapping) or not {"workspace", "project"} & set(pixi):
        return "uv"
    if value_at(document, "tool", "uv") is None:
        return "pixi"
    message = f"{output} is a manifest of pixi and of uv"
    raise UsageError(message, hint="give --format pixi or --format uv")
