"""What is chosen before a compile: jobs, requirements, variables, the isolation."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wheels import make_wheel
from wheelfarm.build.compile import cmake_archs
from wheelfarm.build.dependencies import installable
from wheelfarm.build.environment import install_or_fail
from wheelfarm.build.isolation import OFFLINE_ENVIRONMENT, network_namespace
from wheelfarm.build.prebuild import parse_github_env
from wheelfarm.build.requirements import build_requirements
from wheelfarm.build.resources import Machine, choose_jobs, read_machine
from wheelfarm.build.workspace import require_space
from wheelfarm.engines.project import ProjectOptions, project_identity
from wheelfarm.errors import BadInputError, BuildError, CouldNotLookError
from wheelfarm.model.arch import ArchList
from wheelfarm.run import run

GIB = 1 << 30


@given(cores=st.integers(1, 256), memory=st.integers(0, 1 << 42), most=st.integers(1, 64))
def test_jobs_are_never_none_and_never_too_many(cores: int, memory: int, most: int) -> None:
    jobs = choose_jobs(Machine(cores=cores, memory=memory), most=most)
    assert 1 <= jobs <= min(cores, most)


def test_jobs_follow_memory() -> None:
    assert choose_jobs(Machine(cores=16, memory=9 * GIB)) == 3
    assert choose_jobs(Machine(cores=2, memory=64 * GIB)) == 2
    assert choose_jobs(Machine(cores=16, memory=1)) == 1


def fake_root(tmp_path: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_a_container_s_limits_bind(tmp_path: Path) -> None:
    root = fake_root(
        tmp_path,
        {
            "proc/meminfo": "MemTotal: 99999999 kB\nMemAvailable: 90000000 kB\n",
            "sys/fs/cgroup/memory.max": str(4 * GIB),
            "sys/fs/cgroup/memory.current": str(GIB),
            "sys/fs/cgroup/cpu.max": "100000 100000\n",
        },
    )
    assert read_machine(root) == Machine(cores=1, memory=3 * GIB)


def test_no_limit_is_no_limit(tmp_path: Path) -> None:
    root = fake_root(
        tmp_path,
        {
            "proc/meminfo": "MemAvailable: 1048576 kB\n",
            "sys/fs/cgroup/memory.max": "max\n",
            "sys/fs/cgroup/cpu.max": "max 100000\n",
        },
    )
    assert read_machine(root).memory == GIB


def test_a_tree_never_chooses_its_torch(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[build-system]\nrequires = ['setuptools', 'setuptools>=70', 'torch==2.1', "
        "'nvidia-cuda-runtime', 'pybind11', 'x; python_version < \"3\"']\n",
        encoding="utf-8",
    )
    assert build_requirements(tmp_path, ("cmake>=3.20", "pybind11")) == (
        "setuptools>=70",
        "pybind11",
        "cmake>=3.20",
    )
    with pytest.raises(BadInputError, match="is no requirement"):
        build_requirements(tmp_path, ("cmake ninja",))


def test_only_what_an_index_has_is_installed_for_the_import() -> None:
    requirements = ("numpy", "not a requirement", "cumm==1.0", "x; extra == 'all'", "torch==2.14.*")
    assert installable(requirements, frozenset({"cumm"})) == ("numpy", "torch==2.14.*")


def test_the_file_of_github_env() -> None:
    text = "A=1\nB<<END\ntwo = 2\nlines\nEND\nC=x=<<y\n"
    assert parse_github_env(text) == {"A": "1", "B": "two = 2\nlines", "C": "x=<<y"}
    with pytest.raises(BuildError, match="sets no variable"):
        parse_github_env("oops")
    with pytest.raises(BuildError, match="has no end"):
        parse_github_env("A<<END\nx\n")


def test_archs_for_cmake() -> None:
    assert (
        cmake_archs(ArchList.parse("8.0;9.0a;12.0+PTX")) == "80-real;90a-real;120-real;120-virtual"
    )


def test_the_compile_has_no_network() -> None:
    words = network_namespace()
    if not words:
        pytest.skip("this kernel grants no network namespace")
    devices = run([*words, "cat", "/proc/net/dev"]).stdout
    assert "eth" not in devices
    assert OFFLINE_ENVIRONMENT["PIP_NO_INDEX"] == "1"


def test_too_little_disk_is_said_before(tmp_path: Path) -> None:
    with pytest.raises(CouldNotLookError, match=r"needs 1000000000000\.0 GB"):
        require_space(tmp_path / "not/there/yet", 10**21, "the environment")


def test_a_constraint_of_pips_own_settings_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wheel(tmp_path / "links", "demo-2.0-py3-none-any.whl")
    (tmp_path / "constraints.txt").write_text("demo<2\n", encoding="utf-8")
    for variable, value in (("NO_INDEX", "1"), ("FIND_LINKS", str(tmp_path / "links"))):
        monkeypatch.setenv(f"PIP_{variable}", value)
    monkeypatch.setenv("PIP_CONSTRAINT", str(tmp_path / "constraints.txt"))
    words = ("--dry-run", "demo==2.0")
    with pytest.raises(BuildError) as caught:
        install_or_fail(Path(sys.executable), words, "demo", log=tmp_path / "log")
    assert "(constraint) demo<2" in caught.value.cause
    assert "pip config list" in caught.value.hint


@pytest.mark.parametrize("name", ["../x", "a/b", "a b", "-x", "ü", "x\n"])
def test_a_projects_name_is_one(tmp_path: Path, name: str) -> None:
    (tmp_path / "setup.py").write_text("from setuptools import setup\nsetup()\n", encoding="utf-8")
    with pytest.raises(BadInputError, match="no valid package name"):
        project_identity(tmp_path, ProjectOptions(name=name, version="1.0"))
    (tmp_path / "setup.py").write_text(f"setup(name={name!r}, version='1.0')\n", encoding="utf-8")
    with pytest.raises(BadInputError, match="no valid package name"):
        project_identity(tmp_path, ProjectOptions())
