"""A site that is rendered by several processes is the same site."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import pathlib, signal, sys
sys.path.insert(0, sys.argv[1])
signal.signal(signal.SIGTERM, signal.default_int_handler)
from tests.index.conftest import WORLD, Farm
from tests.many_wheels import fill_store
from wheelfarm.index import parallel

farm = Farm(pathlib.Path(sys.argv[2]), world=WORLD)
fill_store(farm.store, farm.world, 300, packages=6)
for limit, name in ((1, "many"), (10**9, "one")):
    parallel.WORTH_IT = limit
    other = Farm(pathlib.Path(sys.argv[2]) / name, world=WORLD)
    other.folder.mkdir()
    (other.folder / "store").symlink_to(farm.folder / "store")
    other.build()
"""


def test_many_processes_write_what_one_writes(repository: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, repository, tmp_path],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(repository / "src")},
    )
    assert (done.returncode, done.stderr) == (0, "")
    many, one = tmp_path / "many/site", tmp_path / "one/site"
    pages = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert pages == sorted(path.relative_to(many) for path in many.rglob("*") if path.is_file())
    assert len(pages) > 100
    assert all((one / path).read_bytes() == (many / path).read_bytes() for path in pages)


FAULTY = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
from tests.index.conftest import WORLD, Farm
from tests.many_wheels import fill_store
from wheelfarm.errors import WheelfarmError
from wheelfarm.index import package, parallel

farm = Farm(pathlib.Path(sys.argv[2]), world=WORLD)
fill_store(farm.store, farm.world, 40, packages=4)
for number in (1, 2):
    path = farm.folder / f"store/catalogue/package-0{number}.json"
    path.write_text(path.read_text().replace('"size": 12345678', '"size": "large"', 1))
parallel.WORTH_IT = 1
if sys.argv[3] == "dies":
    import os
    package.rows_of = lambda *words: os._exit(9)
try:
    farm.build()
except WheelfarmError as error:
    print(type(error).__name__, error)
print(sorted(path.name for path in (farm.folder / ".site.state").iterdir()))
"""


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("is told", "FaultsError catalogue of package-01 has 1 fault"),
        ("dies", "BuildError a process that rendered pages ended before it was done"),
    ],
)
def test_a_fault_in_a_process_is_the_first_of_all(
    repository: Path, tmp_path: Path, how: str, expected: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAULTY, repository, tmp_path, how],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(repository / "src")},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(expected), done.stdout
    assert done.stdout.endswith("['lock']\n")
    assert not (tmp_path / "site").exists()
