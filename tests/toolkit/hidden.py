"""Run a command on this machine as if it had no CUDA toolkit below /usr/local."""

import shutil
import subprocess
from pathlib import Path

import pytest

#: In a private mount namespace: /usr/local without its CUDA, written over in memory alone.
_SCRIPT = """\
set -e
top=$(mktemp -d)
mount -t tmpfs none "$top"
mkdir "$top/upper" "$top/work" "$top/local"
layers="lowerdir=/usr/local,upperdir=$top/upper,workdir=$top/work"
mount -t overlay overlay -o "$layers" "$top/local"
rm -rf "$top"/local/cuda "$top"/local/cuda-* "$top"/local/bin/nvcc
mount --bind "$top/local" /usr/local
exec "$@"
"""


def without_toolkit() -> list[str]:
    """The words to put before a command; the test is skipped where a toolkit cannot be hidden."""
    if not Path("/usr/local/cuda").exists() and shutil.which("nvcc") is None:
        return []
    prefix = ["unshare", "--mount", "sh", "-c", _SCRIPT, "hidden"]
    check = [*prefix, "sh", "-c", "[ ! -e /usr/local/cuda ]"]
    if subprocess.run(check, check=False, capture_output=True).returncode != 0:
        pytest.skip("this machine's CUDA toolkit cannot be hidden without root")
    return prefix
