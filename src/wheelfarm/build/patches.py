"""Patches of a recipe, applied to its source tree: they apply exactly, or the build stops."""

import os
import sys
from pathlib import Path

from wheelfarm.errors import BadInputError
from wheelfarm.run import ProgramFailedError, run


class PatchError(BadInputError):
    """A patch does not apply; nothing of it was applied."""


def apply_patches(tree: Path, patches: tuple[Path, ...], *, log: Path) -> None:
    """Apply ``.patch`` files in their order with git; PatchError where one does not apply whole."""
    # Without its own repository, git would take a tree inside another checkout for part of that
    # one, and skip every file of the patch in silence.
    environment = {
        **os.environ,
        "GIT_CEILING_DIRECTORIES": str(tree.parent),
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    for patch in patches:
        try:
            run(
                ["git", "apply", "--verbose", "--whitespace=nowarn", patch.absolute()],
                cwd=tree,
                env=environment,
                log=log,
            )
        except ProgramFailedError as error:
            detail = error.completed.stdout.strip()
            message = f"the patch {patch.name} does not apply to this source\n{detail}"
            raise PatchError(
                message, hint="make it anew for this version of the source", cause=f"log: {log}"
            ) from error


def run_patch_script(tree: Path, script: Path, *, log: Path) -> None:
    """Run a recipe's trusted Python script in the source tree; PatchError where it fails."""
    try:
        run([sys.executable, "-I", script.absolute()], cwd=tree, log=log)
    except ProgramFailedError as error:
        message = f"the patch script {script.name} failed\n{error.what}"
        raise PatchError(message) from error
