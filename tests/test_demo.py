"""The demonstration itself: the whole way on a real package, twice."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.full
@pytest.mark.network
@pytest.mark.compile
@pytest.mark.torch
def test_the_demonstration_holds_twice(repository: Path) -> None:
    demonstrate(repository)
    second = demonstrate(repository)
    assert "compile       kept from before" in second.stderr


def demonstrate(repository: Path) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        [sys.executable, "bin/demo.py"], cwd=repository, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "all of CUDA lies in" in done.stdout
    assert "imported" in done.stdout
    assert "torch is still 2.14.1+cu130" in done.stdout
    return done
