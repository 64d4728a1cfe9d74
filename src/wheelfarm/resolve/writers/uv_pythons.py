"""The Pythons that a project admits, held against those that its wheels serve.

uv locks a project for every Python that ``requires-python`` admits, and finds no solution where a
wheel serves fewer. So the lock is limited by ``tool.uv.environments``, which makes ``uv sync`` on
another Python an error and no silent gap; wheels of one profile are marked where the profiles
differ. What the user wrote there stays. (uv's manual, "Limited resolution environments".)
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import tomlkit
from packaging.markers import InvalidMarker, Marker, UndefinedComparison
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version
from tomlkit.items import Array, InlineTable

from wheelfarm.errors import BadInputError
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor
from wheelfarm.resolve.lock import Profile
from wheelfarm.resolve.tags import python_refusal
from wheelfarm.resolve.writers.tables import list_at, table_at, value_at
from wheelfarm.values import replace

#: Stands behind the list that is ours to change.
_OURS = "written by wheelfarm: the Pythons of its wheels"
#: Patch releases that ``requires-python`` is asked about, of each minor.
_PATCHES = 60
#: The Pythons that a specifier is asked about.
MINORS = tuple(Minor(3, number) for number in range(6, 40))
_PYTHON = r"""python_version (==|>=|<=) "3\.\d+\""""
_OWN_MARKER = re.compile(rf"{_PYTHON}( (and|or) {_PYTHON})*", re.ASCII)
#: The systems on which a user's marker may hold.
_SYSTEMS = (
    {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"},
    {"sys_platform": "darwin", "platform_system": "Darwin", "os_name": "posix"},
    {"sys_platform": "win32", "platform_system": "Windows", "os_name": "nt"},
)


def requires_python(profiles: Sequence[Profile]) -> str:
    """Return what a new project admits: the Pythons of all hosts."""
    found = [python for profile in profiles if (python := _python(profile)) is not None]
    if not found:
        return ">=3.10"
    oldest, newest = min(found), max(found)
    if oldest == newest:
        return f"=={oldest}.*"
    return f">={oldest},<{newest.major}.{newest.minor + 1}"


class Pythons:
    """The Pythons of one document and of the profiles that are written into it.

    Raises BadInputError where the project admits none of a profile's.
    """

    def __init__(self, document: Any, profiles: Sequence[Profile], name: str) -> None:
        self.document = document
        self.name = name
        self.text = _requires(document, profiles)
        self.admitted = _admitted(self.text, name, _newest(profiles))
        self.served: dict[str, frozenset[Minor]] = {}
        for profile in profiles:
            python = _python(profile)
            if python is not None and python not in self.admitted:
                message = f"{name} requires Python {self.text}, and these wheels are for {python}"
                hint = "resolve for a Python that the project takes (--python), or change that line"
                raise BadInputError(message, hint=hint)
            self.served[profile.name] = frozenset(_served(profile, self.admitted))
        self.together = frozenset[Minor]().union(*self.served.values())

    def marker(self, profile: str) -> str:
        """Return what marks a profile's wheels; empty where all profiles serve the same."""
        served = self.served[profile]
        return "" if served == self.together else " or ".join(_markers(served))

    def limit(self) -> tuple[str, ...]:
        """Limit uv's lock to the Pythons that are served; return what is to be said of that."""
        wrong = self.admitted - self.together
        known = value_at(self.document, "tool", "uv", "environments")
        if known is not None and not _is_ours_list(known):
            return self.judge(wrong)
        if not wrong:
            if known is not None:
                del self.document["tool"]["uv"]["environments"]
            return ()
        markers = _markers(self.together)
        uv = table_at(self.document, "tool", "uv")
        uv["environments"] = tomlkit.array()
        uv["environments"].extend(markers)
        if not isinstance(uv, InlineTable):
            uv["environments"].comment(_OURS)
        note = (
            f"{self.name} takes Python {self.text}, which is more than these wheels serve:"
            f" tool.uv.environments limits uv's lock to {', '.join(markers)}"
        )
        return (note,)

    def judge(self, wrong: frozenset[Minor]) -> tuple[str, ...]:
        """Say where the user's own limits let a Python through that is not served."""
        stated = list_at(self.document["tool"]["uv"], "environments", "tool.uv.environments")
        bad = sorted(each for each in wrong if any(_takes(word, each) for word in stated))
        if not bad:
            return ()
        names = ", ".join(map(str, bad))
        note = (
            f"{self.name}: tool.uv.environments takes Python {names} too, which these wheels do not"
            f" serve; uv locks once it says {', '.join(_markers(self.together))}"
        )
        return (note,)


def _python(profile: Profile) -> Minor | None:
    python = profile.resolution.host.python.value
    return None if python is None else python.version


def _requires(document: Any, profiles: Sequence[Profile]) -> str:
    """Return what a project requires; where it says nothing, what uv takes: this one and later."""
    text = table_at(document, "project").get("requires-python")
    if text is not None:
        return str(text)
    found = [python for profile in profiles if (python := _python(profile)) is not None]
    return f">={min(found)}" if found else ">=3"


def _admitted(text: str, name: str, newest: Minor) -> frozenset[Minor]:
    """Return the Pythons up to ``newest`` that a specifier takes."""
    try:
        specifier = SpecifierSet(text)
    except InvalidSpecifier as error:
        message = f"{name}: project.requires-python is no version specifier: {text!r}"
        raise BadInputError(message, hint='write one such as ">=3.10"') from error
    return frozenset(minor for minor in MINORS if minor <= newest and takes(specifier, minor))


def takes(specifier: SpecifierSet, minor: Minor) -> bool:
    """Return whether a specifier takes any patch release of a Python."""
    return any(specifier.contains(f"{minor}.{patch}") for patch in range(_PATCHES))


def _newest(profiles: Sequence[Profile]) -> Minor:
    """Return the newest Python that counts: what came after torch is no limit that uv minds."""
    from wheelfarm.upstream.facts import committed_facts

    found = [python.version for profile in profiles for python in _ships(profile)]
    if not all(map(_ships, profiles)):
        releases = (release.pythons.values() for release in committed_facts().releases)
        found += [python.version for each in releases for row in each for python in row]
    hosts = [_python(profile) for profile in profiles]
    return max((each for each in (*found, *hosts) if each is not None), default=MINORS[0])


def _served(profile: Profile, admitted: Iterable[Minor]) -> Iterable[Minor]:
    """Yield the Pythons for which every wheel of a profile is, and its torch."""
    host = profile.resolution.host
    names = [choice.candidate.entry.name for choice in profile.resolution.choices]
    own = host.python.value
    ships = _ships(profile)
    for minor in admitted:
        python = PythonTag("exact", minor, own is not None and own.free_threaded)
        other = host.with_facts(python=replace(host.python, value=python))
        if python == own or (
            not any(python_refusal(name.pythons, name.abis, other) for name in names)
            and (profile.resolution.torch is None or python in ships)
        ):
            yield minor


def _ships(profile: Profile) -> tuple[PythonTag, ...]:
    """Return the Pythons that PyTorch published a profile's torch for, as far as is known."""
    from wheelfarm.upstream.facts import committed_facts

    pin = profile.resolution.torch
    if pin is None or pin.accelerator is None:
        return ()
    release = committed_facts().release(pin.accelerator, Version(pin.torch.public))
    if release is None:
        return ()
    # A host may be of a system for which no farm builds.
    word = profile.resolution.host.platform.value
    return next((tags for platform, tags in release.pythons.items() if str(platform) == word), ())


def is_ours(marker: Marker | None) -> bool:
    """Return whether a marker is one that a profile's wheels get: of Pythons alone."""
    return marker is not None and _OWN_MARKER.fullmatch(str(marker)) is not None


def _is_ours_list(stated: Any) -> bool:
    return isinstance(stated, Array) and _OURS in stated.trivia.comment


def _markers(pythons: Iterable[Minor]) -> list[str]:
    """Return one marker for each run of Pythons that follow one another."""
    runs: list[list[Minor]] = []
    for python in sorted(pythons):
        if runs and python.minor == runs[-1][-1].minor + 1:
            runs[-1].append(python)
        else:
            runs.append([python])
    return [
        f"python_version == '{run[0]}'"
        if len(run) == 1
        else f"python_version >= '{run[0]}' and python_version <= '{run[-1]}'"
        for run in runs
    ]


def _takes(word: object, python: Minor) -> bool:
    """Return whether an environment of the user's holds on a Python, of whatever system."""
    variables = {"python_version": str(python), "python_full_version": f"{python}.0"}
    try:
        marker = Marker(str(word))
        return any(marker.evaluate({**variables, **system, "extra": ""}) for system in _SYSTEMS)
    except (InvalidMarker, UndefinedComparison):
        return True
