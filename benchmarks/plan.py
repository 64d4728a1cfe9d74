"""Plan a farm of 44 packages over the full grid, as a cold process, beside a plain generator.

The farm has an existing farm's shape (one folder per package with ``package.yml`` and overrides),
is brought over with ``wheelfarm migrate``, and plans about 29,000 jobs. The other side is what such
farms do: read the same files with PyYAML's safe loader, loop over rows, Pythons and platforms, and
print indented JSON.

Usage: python benchmarks/plan.py [REPETITIONS]
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
LINES = ("12.4", "12.6", "12.8", "12.9", "13.0", "13.2")
ARCHS = "8.0;8.6;9.0+PTX"

PLAIN = """\
import json, sys
from pathlib import Path
import yaml
old, facts = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
policy = yaml.safe_load((old / "defaults/python_cuda_torch_os_policy.yml").read_text())
archs = yaml.safe_load((old / "defaults/arch_policy.yml").read_text())
rows = {}
for release in facts["releases"]:
    minor = release["torch"].rsplit(".", 1)[0]
    rows[release["accelerator"], minor] = release
jobs = []
for path in sorted((old / "packages").glob("*/package.yml")):
    package = yaml.safe_load(path.read_text())
    for (cuda, minor), release in rows.items():
        for platform, pythons in release["pythons"].items():
            for python in pythons.split():
                if python.endswith("t"):
                    continue
                shards = package.get("sharding", 1)
                if platform not in ("linux_x86_64", "linux_aarch64"):
                    shards = 1
                for shard in range(shards + (shards > 1)):
                    jobs.append({
                        "id": f"{package['name']}-{cuda}-{minor}-{python}-{platform}-{shard}",
                        "package": package["name"], "cuda": cuda, "torch": release["torch"],
                        "python": python, "platform": platform, "shard": shard, "shards": shards,
                        "archs": archs["arch_policy"]["12.4"], "max_jobs": policy["defaults"],
                    })
json.dump({"jobs": jobs}, sys.stdout, indent=2)
"""


def packages() -> Iterator[tuple[str, dict[str, object]]]:
    """Yield 44 packages in the proportions of a real farm: name and table."""
    for number in range(44):
        name = f"package_{number:02}"
        table: dict[str, object] = {
            "name": name,
            "links_torch": number % 4 != 3,  # noqa: PLR2004 - a quarter of them are torch-free
            "source_repo": f"owner/{name}",
            "source_tag": "v1.0",
            "version": "1.0",
            "extra_deps": "ninja cmake",
            "max_jobs": 2,
        }
        shards = {0: 20, 1: 20, 4: 8, 3: 10}.get(number)
        if shards is not None:
            table |= {"sharding": shards, "sharding_platforms": ["linux", "linux_aarch64"]}
        yield name, table


def write_old(folder: Path) -> None:
    """Write the farm as it stood."""
    defaults = folder / "defaults"
    defaults.mkdir(parents=True)
    policy = {
        "supported_cudas": list(LINES),
        "python_min": "3.10",
        "platforms": ["linux", "windows", "linux_aarch64"],
        "defaults": {"max_jobs": 3},
    }
    tables = {
        "arch_policy": dict.fromkeys(LINES, ARCHS),
        "arch_policy_aarch64": dict.fromkeys(LINES[1:], "8.0;9.0+PTX"),
    }
    (defaults / "python_cuda_torch_os_policy.yml").write_text(yaml.safe_dump(policy))
    (defaults / "arch_policy.yml").write_text(yaml.safe_dump(tables))
    for name, table in packages():
        own = folder / "packages" / name
        own.mkdir(parents=True)
        (own / "package.yml").write_text(yaml.safe_dump(table, sort_keys=False))


def wheelfarm(*words: str | Path) -> list[str]:
    """Return the command line of a verb."""
    return [sys.executable, "-m", "wheelfarm", *map(str, words)]


def seconds(argv: list[str], times: int) -> tuple[float, float, bytes]:
    """Return the best wall and the best CPU time of a whole process, and its output."""
    walls: list[float] = []
    processors: list[float] = []
    output = b""
    for _ in range(times):
        start = time.perf_counter()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        output = subprocess.run(argv, check=True, capture_output=True, cwd=ROOT).stdout
        walls.append(time.perf_counter() - start)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processors.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(walls), min(processors), output


def main() -> None:
    """Measure both sides and print them with their ratio."""
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_old(folder / "old")
        migrate = wheelfarm("migrate", folder / "old", "--out", folder / "farm", "-q")
        subprocess.run(migrate, check=True, capture_output=True, cwd=ROOT)
        facts = ROOT / "src" / "wheelfarm" / "upstream" / "facts.json"
        plain = [sys.executable, "-c", PLAIN, str(folder / "old"), str(facts)]
        sides = {
            "plan (table)": wheelfarm("plan", "--farm", folder / "farm"),
            "plan --json": wheelfarm("plan", "--farm", folder / "farm", "--json"),
            "plain generator": plain,
        }
        results = {side: seconds(argv, times) for side, argv in sides.items()}
    document = json.loads(results["plan --json"][2])
    print(f"{document['cells']} cells, {document['job_count']} jobs of 44 packages")
    reference = results["plain generator"][1]
    for side, (wall, processor, _) in results.items():
        ratio = processor / reference
        print(f"{side:16} {wall:6.2f} s, CPU {processor:5.2f} s, over the plain one {ratio:.2f}")


if __name__ == "__main__":
    main()
