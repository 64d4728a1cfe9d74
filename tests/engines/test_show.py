"""One farm of three packages, built by three engines: the same wheels, byte for byte."""

import shutil
from pathlib import Path

import pytest

from tests.engines.cluster import cluster
from tests.engines.conftest import CELLS, Farm, wheels_of, write_farm
from tests.engines.workflow_runner import Runner
from wheelfarm.build.environment import Environment
from wheelfarm.places import cache_root

pytestmark = [pytest.mark.full, pytest.mark.compile, pytest.mark.torch]


@pytest.fixture(scope="module")
def made(compilers: Environment, tmp_path_factory: pytest.TempPathFactory) -> Farm:
    return write_farm(tmp_path_factory.mktemp("show") / "farm")


@pytest.fixture(scope="module")
def by_local(made: Farm) -> dict[str, bytes]:
    plan = made.plan()
    made.call("run", plan)
    return wheels_of(made.root / "wheelhouse")


def fresh(farm: Farm, root: Path) -> Farm:
    """Return the farm in another folder, with nothing built."""
    ignored = shutil.ignore_patterns(".wheelfarm", "wheelhouse", "plan.json")
    shutil.copytree(farm.root, root, ignore=ignored)
    return Farm(root)


def test_local(by_local: dict[str, bytes], made: Farm) -> None:
    assert len(by_local) == 3
    status = made.json("status")
    assert status["outcomes"] == {"done": 5}
    assert {result["cell"] for result in status["results"]} == set(CELLS.values())


def test_dask(by_local: dict[str, bytes], made: Farm, tmp_path: Path) -> None:
    farm = fresh(made, tmp_path / "farm")
    plan = farm.plan()
    with cluster(tmp_path / "cluster", cache_root()) as dask:
        for name in ("one", "two", "three"):
            dask.worker(name)
        words = ("--engine", "dask", "--scheduler", dask.address)
        done = farm.json("run", plan, *words, "--exchange", tmp_path / "exchange")
    assert done["outcomes"] == {"done": 5}
    assert len({job["worker"] for job in done["jobs"]}) > 1
    assert wheels_of(farm.root / "wheelhouse") == by_local


def test_github(by_local: dict[str, bytes], made: Farm, shims: Path, tmp_path: Path) -> None:
    farm = fresh(made, tmp_path / "farm")
    farm.call("ci", "render")
    # One machine stands for all: the environments, minutes to make, are there on each of them.
    (farm.root / ".wheelfarm-cache").mkdir()
    (farm.root / ".wheelfarm-cache/environments").symlink_to(cache_root() / "environments")
    runner = Runner(repository=farm.root, folder=tmp_path / "github", path=shims)
    jobs = runner.run("wheels.yml")
    text = "\n".join(ran.text for ran in runner.ran)
    assert {name: ran.result for name, ran in jobs.items()} == {
        "plan": "success",
        "build": "success",
        "publish": "success",
    }, text
    assert runner.containers == {"quay.io/pypa/manylinux_2_28_x86_64"}
    store = runner.workspace("publish and index") / "store"
    found = {path.name: path.read_bytes() for path in store.rglob("*.whl")}
    assert found == by_local
    site = tmp_path / "github/artifacts/site"
    assert {path.parent.name for path in site.glob("simple/*/index.html")} >= {"tiny-sharded"}
