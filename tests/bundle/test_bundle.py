"""An air-gapped folder installs with pip and uv, and answers as an index."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fake_environment import install_torch, make_environment, site_packages
from tests.farm_site import FarmSite
from tests.loopback import half, serving
from wheelfarm.cli import main
from wheelfarm.errors import BadInputError
from wheelfarm.http import HashMismatchError

TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"
NAME = f"diso-0.1.4+cu130torch2.14-{TAG}-{TAG}-linux_x86_64.whl"
UV = Path(sys.executable).parent / "uv"


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WHEELFARM_ROOT", str(tmp_path / "nowhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def python(tmp_path: Path) -> Path:
    found = make_environment(tmp_path / "environment")
    install_torch(found, "2.14.1+cu130", metadata="2.14.1")
    return found


@pytest.fixture
def site(tmp_path: Path) -> FarmSite:
    found = FarmSite(tmp_path / "site")
    found.add(NAME, requires=("torch==2.14.*", "numpy>=1"))
    found.add(f"diso-0.1.4+cu130torch2.13-{TAG}-{TAG}-linux_x86_64.whl")
    found.write()
    return found


def bundle(site: FarmSite, python: Path, folder: Path) -> int:
    with serving(site.folder) as server:
        server.plan(f"/files/{NAME.replace('+', '%2B')}", half)
        words = ["--index", server.url, "--python", str(python), "--output", str(folder)]
        return main(["bundle", "diso", *words])


@pytest.mark.parametrize("tool", ["uv", "pip"])
@pytest.mark.parametrize("lock", ["requirements.txt", "pylock.toml"])
def test_the_folder_installs_where_there_is_no_network(
    site: FarmSite, python: Path, tmp_path: Path, tool: str, lock: str
) -> None:
    folder = tmp_path / "made"
    assert bundle(site, python, folder) == 0
    carried = folder.rename(tmp_path / "carried")
    if tool == "uv":
        argv = [str(UV), "pip", "install", "--python", str(python), "--no-cache", "--offline"]
    else:
        argv = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-index"]
    done = subprocess.run(
        [*argv, "--no-deps", "-r", str(carried / lock)],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert (site_packages(python) / "diso" / "__init__.py").is_file()


def test_the_folder_is_an_index(
    site: FarmSite, python: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "made"
    bundle(site, python, folder)
    captured = capsys.readouterr()
    assert "not in it: numpy>=1" in captured.err
    assert "not in it: torch==2.14.1" in captured.err
    words = ["--index", str(folder), "--python", str(python), "--json"]
    assert main(["resolve", "diso", *words]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["wheels"][0]["filename"] == NAME
    assert document["wheels"][0]["url"].startswith("file://")
    assert main(["resolve", "gsplat", "--index", str(folder), "--python", str(python)]) == 1


def test_bytes_that_are_not_the_indexs_are_refused(
    site: FarmSite, python: Path, tmp_path: Path
) -> None:
    path = site.folder / "files" / NAME
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(HashMismatchError):
        bundle(site, python, tmp_path / "made")
    assert not list((tmp_path / "made").rglob("*.whl"))


def test_no_answer_is_no_bundle(site: FarmSite, tmp_path: Path) -> None:
    other = make_environment(tmp_path / "other")
    install_torch(other, "2.12.0+cu130")
    assert bundle(site, other, tmp_path / "made") == 1
    assert not (tmp_path / "made").exists()


def test_one_folder_for_two_hosts(
    site: FarmSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profiles = []
    for minor in ("2.13.0", "2.14.1"):
        capsys.readouterr()
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        words = ["--platform", "linux_x86_64", "--python-version", version]
        main(["host", "--json", *words, "--torch", f"{minor}+cu130"])
        saved = tmp_path / f"{minor}.json"
        saved.write_text(capsys.readouterr().out, encoding="utf-8")
        profiles += ["--profile", f"torch{minor[2:4]}={saved}"]
    folder = tmp_path / "made"
    assert main(["bundle", "diso", "--index", str(site.folder), "-o", str(folder), *profiles]) == 0
    assert len(list((folder / "wheels").iterdir())) == 2
    assert (folder / "requirements-torch13.txt").is_file()
    assert (folder / "requirements-torch14.txt").is_file()


def test_a_folder_of_somebody_elses_is_left_alone(
    site: FarmSite, python: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    mine = folder / "requirements.txt"
    mine.write_text("numpy\n", encoding="utf-8")
    with pytest.raises(BadInputError, match="is no bundle and not empty"):
        bundle(site, python, folder)
    assert [path.name for path in folder.iterdir()] == ["requirements.txt"]
    assert mine.read_text(encoding="utf-8") == "numpy\n"
    with pytest.raises(BadInputError, match="is no folder"):
        bundle(site, python, mine)
    mine.unlink()
    (folder / "wheels").mkdir()
    assert bundle(site, python, folder) == 0
    assert bundle(site, python, folder) == 0
