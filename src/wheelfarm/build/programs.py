"""Programs that are installed beside wheelfarm: its folder of scripts need not be on PATH."""

import os
import sysconfig
from pathlib import Path

from wheelfarm.run import find_program


def scripts_path() -> str:
    """Return a PATH on which the programs beside wheelfarm come first."""
    return os.pathsep.join([sysconfig.get_path("scripts"), *os.get_exec_path()])


def find_beside(name: str) -> Path:
    """Return a program of the ``farm`` extra; ProgramNotFoundError where it is not installed."""
    return find_program(name, path=scripts_path(), hint="pip install wheelfarm[farm]")
