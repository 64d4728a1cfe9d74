"""A Python environment in, where it keeps packages and what torch it has out; never imports torch.

The farm builds in other environments than its own, so everything here also works on an interpreter
given by path: it is asked once for its ``sys.path``.
"""

import logging
from pathlib import Path

from packaging.version import InvalidVersion, Version

from wheelfarm import interpreter
from wheelfarm.errors import BadInputError
from wheelfarm.facts.installed_torch import InstalledTorch, read_installed_torch
from wheelfarm.interpreter import Interpreter
from wheelfarm.values import value

logger = logging.getLogger(__name__)


@value
class Environment:
    """An interpreter's search path, in the order in which its wheels count.

    A virtual environment comes before the user's site-packages, those before the system's; the
    user's are not here at all where they are disabled (PEP 370, ``-s``, PYTHONNOUSERSITE).
    """

    python: Path
    prefix: Path
    folders: tuple[Path, ...]

    @classmethod
    def here(cls) -> "Environment":
        """Return the environment of this process."""
        return cls.of(interpreter.here())

    @classmethod
    def of_python(cls, python: Path) -> "Environment":
        """Return the environment of the interpreter ``python``, or of an environment's folder.

        Raises BadInputError where there is none, CouldNotLookError where it gives no answer.
        """
        return cls.of(interpreter.ask(python))

    @classmethod
    def of(cls, asked: Interpreter) -> "Environment":
        """Return the environment that an interpreter's answer describes."""
        folders = [
            folder
            for folder in dict.fromkeys(asked.path)
            if folder != asked.disabled_user_site and folder.is_dir()
        ]
        ordered = sorted(folders, key=lambda folder: _rank(folder, asked))
        return cls(python=asked.executable, prefix=asked.prefix, folders=tuple(ordered))

    def distributions(self, folders: tuple[Path, ...] | None = None) -> dict[str, Version]:
        """Return the versions of installed distributions by normalised name; first folder wins."""
        found: dict[str, Version] = {}
        for folder in self.folders if folders is None else folders:
            for name, version, path in interpreter.distributions(folder):
                try:
                    found.setdefault(name, Version(version))
                except InvalidVersion:
                    logger.debug("%s has no PEP 440 version", path)
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


def _rank(folder: Path, asked: Interpreter) -> int:
    prefix, base = asked.prefix, asked.base_prefix
    if folder == asked.user_site:
        return 1
    if prefix != base and folder.is_relative_to(base) and not folder.is_relative_to(prefix):
        return 2
    # In a plain interpreter the system's own folders come after the user's too (PEP 370).
    if prefix == base and folder.is_relative_to(base) and folder.name.endswith("-packages"):
        return 2
    return 0
