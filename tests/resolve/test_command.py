"""``wheelfarm resolve`` as a user meets it: a real index on loopback, real pip and uv."""

import json
import sys
from pathlib import Path

import pytest

from tests.fake_environment import install, install_torch, make_environment, site_packages
from tests.farm_site import FarmSite
from tests.loopback import Loopback
from wheelfarm.cli import main
from wheelfarm.errors import UsageError

CELL = "cp311-cp311-manylinux_2_28_x86_64.whl"
DISO = f"diso-0.1.4+cu130torch2.14-{CELL}"


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """An environment with PyPI's torch 2.14.1, whose metadata has no label."""
    found = make_environment(tmp_path / "environment")
    install_torch(found, "2.14.1+cu130", metadata="2.14.1")
    return found


def here(*words: str) -> list[str]:
    """Return the words of a resolve for the test's Python, whichever version runs it."""
    return ["resolve", *words, "--python-version", "3.11"]


def test_the_answer_is_one_hash_pinned_requirement(
    site: FarmSite, server: Loopback, python: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = site.add(DISO, requires=("torch==2.14.*",))
    site.add(f"diso-0.1.4+cu130torch2.13-{CELL}")
    site.write()

    code = main(here("diso", "--index", server.url, "--python", str(python)))

    out = capsys.readouterr().out
    assert code == 0
    assert f"diso @ {server.url}files/diso-0.1.4%2Bcu130torch2.14-{CELL}" in out
    assert f"--hash=sha256:{entry['sha256']}" in out
    assert "torch2.13" not in out


def test_torch_of_another_minor_gets_a_reason_and_exit_1(
    site: FarmSite, server: Loopback, python: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add(f"diso-0.1.4+cu130torch2.1-{CELL}")
    site.write()

    code = main(here("diso", "--index", server.url, "--python", str(python)))

    out = capsys.readouterr().out
    assert code == 1
    assert "is built for torch 2.1, this is 2.14.1" in out
    assert "would help: torch 2.1\n" in out


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_install_leaves_torch_as_it_is(
    site: FarmSite, server: Loopback, python: Path, tool: str
) -> None:
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    name = f"diso-0.1.4+cu130torch2.14-{tag}-{tag}-linux_x86_64.whl"
    site.add(name, requires=("torch>=2.4", "there"))
    site.write()
    install(python, "there", "1.0")

    code = main(
        [
            *("resolve", "diso", "--index", server.url, "--python", str(python)),
            *("--install", "--installer", tool),
        ]
    )

    assert code == 0
    folder = site_packages(python)
    assert (folder / "diso" / "__init__.py").is_file()
    assert (folder / "torch-2.14.1.dist-info").is_dir()


def test_a_lock_to_standard_output_says_what_should_be_said_beside_it(
    site: FarmSite, server: Loopback, python: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add(DISO, requires=("torch==2.14.*",), runtime_jit=True)
    site.write()
    words = here("diso", "--index", server.url, "--python", str(python), "--format", "pylock")
    assert main(words) == 0
    said = capsys.readouterr()
    assert said.out.startswith('lock-version = "1.0"')
    assert "note: diso: compiles kernels at run time" in said.err
    assert "note: GPU coverage was not checked" in said.err
    assert main([*words, "--json"]) == 0
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert document["lock"]["pylock.toml"].startswith('lock-version = "1.0"')
    assert document["wheels"][0]["filename"] == DISO


def test_a_dry_run_of_nothing_is_a_usage_error(
    site: FarmSite, server: Loopback, python: Path, tmp_path: Path
) -> None:
    site.add(DISO)
    site.write()
    lock = tmp_path / "pylock.toml"
    words = here("diso", "--index", server.url, "--python", str(python), "--output", str(lock))
    with pytest.raises(UsageError, match="--install is not given"):
        main([*words, "--dry-run"])
    assert not lock.exists()
