"""The main job, end to end: a real package from its sdist to an import in a user's environment.

Runs wheelfarm's own verbs as a maintainer and then a user would type them, and stops at the first
thing that is not as it should be. A second run keeps every finished step.
"""

import contextlib
import http.server
import io
import json
import os
import shutil
import sys
import threading
import time
import zipfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from wheelfarm import files
from wheelfarm.build.interpreter import inspect_interpreter
from wheelfarm.cli import main
from wheelfarm.errors import WheelfarmError
from wheelfarm.run import run, shown

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "demo"
FARM = DEMO / "farm"
SITE = DEMO / "site"
USER = DEMO / "user"
TORCH = "2.14"
#: What only a farm's machine has; a user's environment is made without it.
TOOLKIT_ONLY = ("nvidia_cuda_nvcc", "nvidia_nvvm", "nvidia_cuda_crt", "nvidia_cuda_cccl")


def demonstrate() -> int:
    """Run the demonstration; 0 where all of it holds."""
    started = time.monotonic()
    cell = prepare_farm()
    built = build(cell)
    refuse_altered(Path(built["wheel"]), cell)
    publish(Path(built["wheel"]))
    environment = Path(built["environment"])
    with served(SITE) as address:
        python = user_environment(environment)
        use(python, address)
    say(f"done in {time.monotonic() - started:.0f} s")
    return 0


def prepare_farm() -> str:
    """Copy the example farm and return its cell for this Python and machine."""
    shutil.copytree(ROOT / "examples" / "demo-farm", FARM, dirs_exist_ok=True)
    grid = wheelfarm_json("grid", "diso", "--farm", str(FARM))
    wanted = f"-cp{sys.version_info.major}{sys.version_info.minor}-"
    cells = [item for item in cell_names(grid) if wanted in item]
    if len(cells) != 1:
        fail(f"the demo farm has no cell for Python {sys.version_info.major}."
             f"{sys.version_info.minor}: {cell_names(grid)}")  # fmt: skip
    return cells[0]


def cell_names(grid: dict[str, Any]) -> list[str]:
    """Return the identifiers of all cells in the grid's document."""
    return [cell["id"] for package in grid["packages"] for cell in package["cells"]]


def build(cell: str) -> dict[str, Any]:
    """Build and gate the cell; every root of the toolkit must be the environment's own."""
    say("as the maintainer: build one cell, prove the wheel")
    wheelfarm("build", cell, "--farm", str(FARM))
    built = wheelfarm_json("--quiet", "build", cell, "--farm", str(FARM))
    toolkit = built["toolkit"]
    print(f"  {'nvcc':<8} {toolkit['nvcc']}")
    for name in ("include", "library"):
        for place in toolkit[name]:
            print(f"  {name:<8} {place}")
    if toolkit["outside"]:
        fail(f"parts of CUDA lie outside the cell's environment: {toolkit['outside']}")
    print(f"  all of CUDA lies in {built['environment']}")
    return built


def refuse_altered(wheel: Path, cell: str) -> None:
    """Alter the version in a copy's METADATA; the gate must refuse the copy."""
    say("a copy whose METADATA says another version is refused")
    altered = DEMO / "altered" / wheel.name
    altered.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(altered, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            if info.filename.endswith(".dist-info/METADATA"):
                data = data.replace(b"\nVersion: 0.1.4+cu130torch2.14\n", b"\nVersion: 0.1.4\n")
            new.writestr(info, data)
    wheelfarm("verify", str(altered), "--cell", cell, expected=1)


def publish(wheel: Path) -> None:
    """Publish the wheel and its report, and write the static site."""
    say("publish to a store, write the index")
    # A store never takes other bytes under a published name: the demonstration's begins empty.
    files.remove(FARM / "store")
    files.remove(SITE)
    wheelfarm("publish", str(wheel), "--farm", str(FARM))
    wheelfarm("index", "build", "--farm", str(FARM), "--out", str(SITE))


def user_environment(farm_environment: Path) -> Path:
    """Return the Python of a fresh environment that has torch and nothing of the farm's.

    torch's files are hard links to those of the farm's environment: they are the same bytes, and
    5.5 GB are not copied.
    """
    say("as the user: a new environment with torch and no toolkit")
    python = USER / "bin" / "python"
    files.remove(USER)
    run([sys.executable, "-m", "venv", "--without-pip", USER])
    source = inspect_interpreter(farm_environment / "bin" / "python").site_packages
    target = inspect_interpreter(python).site_packages
    for entry in source.iterdir():
        if entry.name.startswith((*TOOLKIT_ONLY, "diso", "_virtualenv", "__pycache__")):
            continue
        if entry.is_dir():
            shutil.copytree(entry, target / entry.name, copy_function=os.link, symlinks=True)
        else:
            os.link(entry, target / entry.name)
    for part in ("bin", "nvvm"):
        files.remove(target / "nvidia" / "cu13" / part)
    return python


def use(python: Path, address: str) -> None:
    """Resolve, install and import as the user; torch must be what it was."""
    before = torch_version(python)
    wheelfarm("host", "--python", str(python))
    wheelfarm("resolve", "diso", "--index", address, "--python", str(python))
    wheelfarm("resolve", "diso", "--index", address, "--python", str(python), "--install")
    after = torch_version(python)
    if before != after:
        fail(f"the install changed torch from {before} to {after}")
    code = "import diso, diso._C; print('imported', diso.__file__)"
    print(f"$ python -c {code!r}")
    print(f"  {run([python, '-I', '-c', code], cwd=DEMO).stdout.strip()}")
    print(f"  torch is still {after}")


def torch_version(python: Path) -> str:
    """Return what the environment's torch says of itself."""
    code = "import torch; print(torch.__version__)"
    return run([python, "-I", "-c", code]).stdout.strip()


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on loopback, as any static file server would, and yield its address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def wheelfarm(*words: str, expected: int = 0) -> None:
    """Run one verb as it would be typed; its exit status must be ``expected``."""
    print(f"$ wheelfarm {shown(words)}", flush=True)
    started = time.monotonic()
    status = exit_status(words)
    print(f"  ({time.monotonic() - started:.1f} s)", flush=True)
    if status != expected:
        fail(f"wheelfarm {words[0]} exits {status}, expected {expected}")


def wheelfarm_json(*words: str) -> dict[str, Any]:
    """Run one verb with ``--json`` and return its document."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        status = exit_status([*words, "--json"])
    if status != 0:
        fail(f"wheelfarm {shown(words)} exits {status}")
    document: dict[str, Any] = json.loads(out.getvalue())
    return document


def exit_status(words: Sequence[str]) -> int:
    """Run one verb in this process and return what the command line would exit with."""
    try:
        return main(words)
    except WheelfarmError as error:
        print(f"wheelfarm: {error}", file=sys.stderr)
        return error.exit_code


def say(text: str) -> None:
    """Print a heading."""
    print(f"\n== {text}", flush=True)


def fail(text: str) -> None:
    """Stop: the demonstration does not hold."""
    sys.exit(f"demo: {text}")


if __name__ == "__main__":
    sys.exit(demonstrate())
