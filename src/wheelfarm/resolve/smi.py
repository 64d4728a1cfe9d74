"""GPUs and driver through nvidia-smi, read so that no error text becomes a version or an arch.

The tool's own version comes first in its banner and is not the driver's; from driver 610 on the
banner says ``KMD Version`` and ``CUDA UMD Version``. It may print errors to standard output, with
or without an exit status. One line comes per GPU, with the line ends of its system.
"""

import os
import re
from pathlib import Path

from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.model.arch import Arch
from wheelfarm.model.versions import Minor
from wheelfarm.resolve.drivers import is_driver_version
from wheelfarm.resolve.host import Gpu
from wheelfarm.resolve.nvml import Answer

_DRIVER = r"(?:Driver|KMD) Version\s*:\s*([0-9][0-9.]*)"
_CUDA = r"CUDA(?: UMD)? Version\s*:\s*(\d+)\.(\d+)"
_MISMATCH = "Driver/library version mismatch"
_NO_DEVICES = "No devices were found"
#: Where the tool lies besides PATH: WSL's folder, which not every shell has.
_FOLDERS = ("/usr/lib/wsl/lib", "/usr/bin", "/usr/local/nvidia/bin")
_SECONDS = 20
_FIELDS = ("index", "name", "uuid", "compute_cap", "driver_version")


def find() -> str | None:
    """Return the path of nvidia-smi; None where there is none."""
    name = "nvidia-smi.exe" if os.name == "nt" else "nvidia-smi"
    folders = os.get_exec_path()
    if not os.environ.get("WHEELFARM_ROOT"):
        folders += _FOLDERS
    paths = (Path(folder, name) for folder in folders)
    return next((str(path) for path in paths if path.is_file() and os.access(path, os.X_OK)), None)


def look() -> Answer | None:
    """Return nvidia-smi's answer; None where there is no such tool."""
    program = find()
    if program is None:
        return None
    rows, failure = _query(program, _FIELDS)
    if failure is not None and "not a valid field" in failure:
        rows, failure = _query(program, ("index", "name", "uuid", "driver_version"))
    if failure is not None:
        if _NO_DEVICES in failure:
            driver, cuda = _banner(program)
            return Answer(driver=driver, cuda=cuda)
        return Answer(problem=failure, mismatch=_MISMATCH in failure)
    gpus = tuple(_gpu(row) for row in rows)
    drivers = sorted({row["driver_version"] for row in rows} - {""})
    driver, cuda = _banner(program)
    return Answer(gpus=gpus, driver=driver or (drivers[0] if drivers else ""), cuda=cuda)


def _query(program: str, fields: tuple[str, ...]) -> tuple[list[dict[str, str]], str | None]:
    from wheelfarm.run import run

    argv = [program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader"]
    try:
        completed = run(argv, check=False, timeout=_SECONDS)
    except CouldNotLookError as error:
        return [], str(error)
    lines = [line.strip() for line in completed.stdout.splitlines() if line.strip()]
    rows = [row for row in (_row(line, fields) for line in lines) if row is not None]
    if not completed.ok or len(rows) != len(lines) or not rows:
        said = " ".join(lines) or completed.stderr.strip() or "nvidia-smi printed nothing"
        return [], said[:300]
    return rows, None


def _row(line: str, fields: tuple[str, ...]) -> dict[str, str] | None:
    words = [word.strip() for word in line.split(",")]
    if len(words) != len(fields) or not words[0].isdigit():
        return None
    row = dict(zip(fields, words, strict=True))
    return row if is_driver_version(row["driver_version"]) else None


def _gpu(row: dict[str, str]) -> Gpu:
    try:
        capability = Arch.parse(row.get("compute_cap", ""))
    except BadInputError:
        capability = None
    return Gpu(index=int(row["index"]), name=row["name"], capability=capability, uuid=row["uuid"])


def _banner(program: str) -> tuple[str, Minor | None]:
    """Return driver and CUDA as the banner states them; empty and None where it does not."""
    from wheelfarm.run import run

    try:
        text = run([program], check=False, timeout=_SECONDS).stdout
    except CouldNotLookError:
        return "", None
    return read_banner(text)


def read_banner(text: str) -> tuple[str, Minor | None]:
    """Return the driver and the CUDA that a banner of any generation states."""
    driver, cuda = re.search(_DRIVER, text), re.search(_CUDA, text)
    version = "" if driver is None or not is_driver_version(driver[1]) else driver[1]
    return version, None if cuda is None else Minor(int(cuda[1]), int(cuda[2]))
