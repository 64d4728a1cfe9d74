"""A Python environment in, where it keeps packages and what torch it has out; never imports torch.

The farm builds in other environments than its own, so everything here also works on an interpreter
given by path: it is asked once for its ``sys.path``.
"""

import json
import logging
import re
import site
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.facts.installed_torch import InstalledTorch, read_installed_torch

logger = logging.getLogger(__name__)

_QUESTION = """\
import json, site, sys, sysconfig
print(json.dumps({
    "path": sys.path,
    "prefix": sys.prefix,
    "base_prefix": sys.base_prefix,
    "user_site": site.getusersitepackages() if site.ENABLE_USER_SITE else "",
    "all_user_sites": site.getusersitepackages(),
    "soabi": sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag,
}))
"""
_DIST_INFO = re.compile(r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[^-]+)\.(?:dist|egg)-info", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """An interpreter's search path, in the order in which its wheels count.

    A virtual environment comes before the user's site-packages, those before the system's; the
    user's are not here at all where they are disabled (PEP 370, ``-s``, PYTHONNOUSERSITE).
    """

    python: Path
    prefix: Path
    folders: tuple[Path, ...]
    soabi: str

    @classmethod
    def here(cls) -> "Environment":
        """Return the environment of this process."""
        user = site.getusersitepackages()
        return cls.of_answer(
            Path(sys.executable),
            {
                "path": sys.path,
                "prefix": sys.prefix,
                "base_prefix": sys.base_prefix,
                "user_site": user if site.ENABLE_USER_SITE else "",
                "all_user_sites": user,
                "soabi": sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag,
            },
        )

    @classmethod
    def of_python(cls, python: Path) -> "Environment":
        """Return the environment of the interpreter ``python``; CouldNotLookError if it fails."""
        from wheelfarm.run import run

        completed = run([python, "-c", _QUESTION], check=False, timeout=60)
        try:
            answer = json.loads(completed.stdout.splitlines()[-1]) if completed.ok else None
        except (ValueError, IndexError):
            answer = None
        if not isinstance(answer, dict):
            message = f"{python} did not say where it keeps its packages"
            raise CouldNotLookError(message, cause=completed.stderr.strip()[-500:])
        return cls.of_answer(python, answer)

    @classmethod
    def of_answer(cls, python: Path, answer: Mapping[str, object]) -> "Environment":
        """Return the environment that an interpreter's answer describes."""
        raw = answer["path"]
        paths = [str(entry) for entry in raw] if isinstance(raw, list) else []
        prefix, base = Path(str(answer["prefix"])), Path(str(answer["base_prefix"]))
        user, user_known = str(answer["user_site"]), str(answer["all_user_sites"])
        folders: dict[Path, int] = {}
        for entry in paths:
            folder = Path(entry)
            if not entry or (not user and user_known and folder == Path(user_known)):
                continue
            if folder.is_dir():
                folders.setdefault(folder, _rank(folder, prefix, base, user))
        ordered = sorted(folders, key=lambda folder: folders[folder])
        return cls(python=python, prefix=prefix, folders=tuple(ordered), soabi=str(answer["soabi"]))

    def distributions(self, folders: tuple[Path, ...] | None = None) -> dict[str, Version]:
        """Return the versions of installed distributions by normalised name; first folder wins."""
        found: dict[str, Version] = {}
        for folder in self.folders if folders is None else folders:
            for entry in sorted(folder.glob("*.dist-info")):
                match = _DIST_INFO.fullmatch(entry.name)
                if match is None:
                    continue
                try:
                    found.setdefault(canonicalize_name(match["name"]), Version(match["version"]))
                except InvalidVersion:
                    logger.debug("%s has no PEP 440 version", entry)
        return found

    def torch(self) -> InstalledTorch | None:
        """Return what the torch of this environment says of itself; None where there is none.

        Raises BadInputError where its version.py is not as torch writes it.
        """
        for folder in self.folders:
            path = folder / "torch" / "version.py"
            if path.is_file():
                found = read_installed_torch(folder)
                if found is None:
                    message = f"{path} does not say which torch this is"
                    raise BadInputError(message)
                return found
        return None


def _rank(folder: Path, prefix: Path, base: Path, user: str) -> int:
    if user and folder == Path(user):
        return 1
    if prefix != base and folder.is_relative_to(base) and not folder.is_relative_to(prefix):
        return 2
    # In a plain interpreter the system's own folders come after the user's too (PEP 370).
    if prefix == base and folder.is_relative_to(base) and folder.name.endswith("-packages"):
        return 2
    return 0
