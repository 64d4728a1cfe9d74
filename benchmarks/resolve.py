"""Resolve five packages against an index of 30,000 wheels, beside comfy-env's resolver.

Both sides ask the same static server on loopback, as cold processes of one environment, in turns.
comfy-env 0.4.46 comes from PyPI (with tomli and numpy, which its package imports); wheelfarm is
installed from this checkout. The index has 44 packages over versions, CUDA and torch lines, Pythons
and platforms, a manifest and simple pages; both sides are asked for torch 2.9 of CUDA 12.8.

Usage: python benchmarks/resolve.py [REPETITIONS]
"""

import functools
import hashlib
import http.server
import itertools
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import venv
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[1]
PEER = "comfy-env==0.4.46"
PACKAGES = 44
ASKED = [f"package{number:02}" for number in range(5)]
VERSIONS = ("1.2.0", "1.10.0")
LINES = ("cu124torch2.6", "cu126torch2.8", "cu128torch2.9", "cu128torch2.10", "cu130torch2.14")
PYTHONS = ("cp310", "cp311", "cp312", "cp313", "cp314")
EXTRA = ("cu126torch2.7", "cu129torch2.9")
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "win_amd64")
BUILDS = ("", "-1", "-2", "-3")
MODULES = [
    {"path": f"kernels/k{number}.so", "sass": ["7.5", "8.0", "8.6", "9.0"], "ptx": ["9.0"]}
    for number in range(2)
]
PEER_CODE = """\
import sys
from comfy_env.packages.cuda_wheels import get_wheel_url
for name in sys.argv[1:]:
    print(get_wheel_url(name, "2.9.1", "12.8", "3.11"))
"""


def entries(package: str) -> list[dict[str, Any]]:
    """Return a package's part of the manifest."""
    grid = itertools.product(VERSIONS, (*LINES, *EXTRA), PYTHONS, PLATFORMS, BUILDS)
    return [entry(package, cell) for cell in grid]


def entry(package: str, cell: tuple[str, ...]) -> dict[str, Any]:
    """Return one wheel's entry, with the facts that a farm proves."""
    version, line, python, platform, build = cell
    name = f"{package}-{version}+{line}{build}-{python}-{python}-{platform}.whl"
    cuda, _, torch = line.partition("torch")
    return {
        "filename": name,
        "url": f"../../files/{quote(name)}",
        "sha256": hashlib.sha256(name.encode()).hexdigest(),
        "size": 12_345_678,
        "requires_python": ">=3.10",
        "requires_dist": [f"torch=={torch}.*", "numpy"],
        "torch_axis": "linked",
        "cxx_abi": 1,
        "glibc": "2.28",
        "toolkit": f"{cuda[2:4]}.{cuda[4]}",
        "libraries": [f"libcudart.so.{cuda[2:4]}"],
        "modules": MODULES,
    }


def write_site(folder: Path) -> int:
    """Write the manifest and the simple pages; return how many wheels there are."""
    (folder / "manifest/packages").mkdir(parents=True)
    parts, count = {}, 0
    for number in range(PACKAGES):
        package = f"package{number:02}"
        wheels = entries(package)
        # The rest of 30,000 wheels is spread over the packages evenly.
        wheels = wheels[: 30_000 // PACKAGES + 1] if len(wheels) > 30_000 // PACKAGES else wheels
        count += len(wheels)
        # One entry a line, as a site writes it.
        head = json.dumps({"schema": "wheelfarm.package/1", "package": package})[:-1]
        lines = ",\n".join(map(json.dumps, wheels))
        data = f'{head}, "wheels": [\n{lines}\n]}}\n'.encode()
        (folder / f"manifest/packages/{package}.json").write_bytes(data)
        parts[package] = {
            "url": f"packages/{package}.json",
            "sha256": hashlib.sha256(data).hexdigest(),
            "versions": list(VERSIONS),
            "wheels": len(wheels),
        }
        page = folder / "simple" / package / "index.html"
        page.parent.mkdir(parents=True)
        links = "".join(
            f'<a href="../../files/{quote(each["filename"])}#sha256={each["sha256"]}">'
            f"{each['filename']}</a><br>\n"
            for each in wheels
        )
        page.write_text(f"<!DOCTYPE html><html><body>\n{links}</body></html>", encoding="utf-8")
    index = {"schema": "wheelfarm.manifest/1", "packages": parts, "combinations": []}
    (folder / "manifest/index.json").write_text(json.dumps(index), encoding="utf-8")
    return count


class Handler(http.server.SimpleHTTPRequestHandler):
    """A static file server that keeps connections open and says nothing."""

    protocol_version = "HTTP/1.1"
    # As web servers have it: else what follows the headers waits for the client's delayed word.
    disable_nagle_algorithm = True
    requests = 0

    def log_message(self, *_: Any) -> None:
        """Count instead of logging."""
        Handler.requests += 1


def environment(folder: Path) -> Path:
    """Make an environment with both sides in it; return its Python."""
    venv.EnvBuilder(with_pip=True).create(folder)
    python = folder / "bin/python"
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", PEER], check=True)
    subprocess.run([*pip, "tomli", "numpy", str(ROOT)], check=True)
    return python


def timed(argv: list[str], env: dict[str, str]) -> tuple[float, float, str]:
    """Run a cold process; return its wall and processor time (seconds) and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    done = subprocess.run(argv, check=False, capture_output=True, text=True, env=env)
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{argv[:3]} failed:\n{done.stdout}{done.stderr}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, used, done.stdout


def versions(text: str) -> list[str]:
    """Return the versions of the wheels that an answer names."""
    return sorted(set(re.findall(r"package\d\d-([\d.]+)%2B", text)))


def main() -> None:
    """Print both sides' times, the ratio, the versions that each took, and the requests."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        count = write_site(folder / "site")
        python = environment(folder / "environment")
        handler = functools.partial(Handler, directory=str(folder / "site"))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        env = {
            **{key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
            "COMFY_ENV_CUDA_WHEELS_INDEX": f"{url}simple/",
        }
        ours = [
            *(str(python.with_name("wheelfarm")), "resolve", *ASKED, "--index", url, "--no-cache"),
            *("--torch", "2.9.1+cu128", "--python-version", "3.11", "--gpu", "8.6", "-q"),
        ]
        theirs = [str(python), "-c", PEER_CODE, *ASKED]
        timed(ours, env), timed(theirs, env)
        mine: list[tuple[float, float]] = []
        peer: list[tuple[float, float]] = []
        asked, said, said_peer = 0, "", ""
        for _ in range(repetitions):
            before = Handler.requests
            wall, used, said = timed(ours, env)
            asked = Handler.requests - before
            mine.append((wall, used))
            wall, used, said_peer = timed(theirs, env)
            peer.append((wall, used))
        print(f"{count} wheels, {len(ASKED)} packages, {asked} requests of ours")
        for kind, index in (("wall", 0), ("processor", 1)):
            one = statistics.median(each[index] for each in mine)
            other = statistics.median(each[index] for each in peer)
            print(
                f"{kind}: wheelfarm {one:.2f} s, {PEER} {other:.2f} s, ratio {one / other:.2f}"
                " (target 0.50)"
            )
        print("wheelfarm took", versions(said), "and comfy-env took", versions(said_peer))
        server.shutdown()


if __name__ == "__main__":
    main()
