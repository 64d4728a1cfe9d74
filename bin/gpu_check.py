"""What a GPU alone can show: the driver's facts, and code built here running on the device.

Exit status 0 where all of it holds, 1 where something does not, 2 where there is no GPU.
"""

import sys
import tempfile
import zipfile
from pathlib import Path

from wheelfarm.build.pipeline import build_cell
from wheelfarm.build.workspace import Workspace
from wheelfarm.engines.project import ProjectOptions, read_project
from wheelfarm.resolve.detect import detect
from wheelfarm.resolve.host import Host
from wheelfarm.run import run

TINY = Path(__file__).resolve().parents[1] / "tests" / "data" / "tiny_cuda"
CODE = """
import sys
sys.path.insert(0, sys.argv[1])
import tiny_cuda
print("devices:", tiny_cuda.device_count())
assert tiny_cuda.add(1.0, 2.0) == 3.0
"""


def main() -> int:
    """Show what was detected, build a kernel for every GPU here, and run it."""
    host = detect({})
    print(f"driver {host.driver.value} (CUDA {host.driver_cuda.value}), from {host.driver.source}")
    archs = capabilities(host)
    if not archs:
        print(f"there is no GPU here: {host.gpus.source} {host.gpus.problem}", file=sys.stderr)
        return 2
    print(f"GPUs {', '.join(archs)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = ProjectOptions(
            torch="2.14.1", archs=";".join(archs), links_torch=False, python_axis="abi3",
            from_python="3.9",
        )  # fmt: skip
        built = build_cell(read_project(TINY, options).request, Workspace.of(folder))
        with zipfile.ZipFile(built.wheel) as wheel:
            wheel.extractall(folder / "site")
        runtime = built.environment.interpreter.site_packages / "nvidia"
        (folder / "site" / "nvidia").symlink_to(runtime)
        command = (built.environment.python, "-c", CODE, folder / "site")
        done = run(command, check=False, timeout=60)
    print(done.stdout, end="")
    print("a kernel ran on the device" if done.ok else done.stderr)
    return 0 if done.ok else 1


def capabilities(host: Host) -> list[str]:
    """Return the capabilities of the GPUs that were seen, each once."""
    found = {str(gpu.capability) for gpu in host.gpus.value or () if gpu.capability is not None}
    return sorted(found)


if __name__ == "__main__":
    sys.exit(main())
