"""A folder with dependencies installs on a machine without a network, torch included."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.bundle.test_bundle import NAME, TAG, UV
from tests.fake_environment import install_torch, make_environment, site_packages
from tests.farm_site import FarmSite
from tests.loopback import Loopback, serving
from tests.wheels import make_wheel
from wheelfarm.cli import main
from wheelfarm.reading import parse_toml
from wheelfarm.run import ProgramFailedError

TORCH = f"torch-2.14.1-{TAG}-{TAG}-manylinux_2_28_x86_64.whl"
#: The tag of another Python than this one, and that Python.
THEIRS, THEIR_PYTHON = ("cp312", "3.12") if TAG != "cp312" else ("cp311", "3.11")
OTHER = f"torch-2.14.1-{THEIRS}-{THEIRS}-manylinux_2_28_x86_64.whl"
NUMPY = "numpy-1.26.0-py3-none-any.whl"
DEEP = "deep-1.0-py3-none-any.whl"


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WHEELFARM_ROOT", str(tmp_path / "nowhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def pypi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """A local stand-in of PyPI with tiny wheels: torch, numpy and what numpy requires."""
    folder = tmp_path / "pypi"
    for name, requires in ((TORCH, ()), (OTHER, ()), (NUMPY, ("deep",)), (DEEP, ())):
        page = folder / "simple" / name.partition("-")[0]
        page.mkdir(parents=True, exist_ok=True)
        make_wheel(page, name, requires=requires)
    for page in (folder / "simple").iterdir():
        links = [
            f'<a href="{path.name}#sha256={hashlib.sha256(path.read_bytes()).hexdigest()}">'
            f"{path.name}</a>"
            for path in sorted(page.glob("*.whl"))
        ]
        (page / "index.html").write_text(f"<html><body>{''.join(links)}</body></html>")
    with serving(folder) as server:
        monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}simple/")
        yield server


@pytest.fixture
def site(tmp_path: Path) -> FarmSite:
    found = FarmSite(tmp_path / "site")
    found.add(NAME, requires=("torch==2.14.*", "numpy>=1"))
    found.add(NAME.replace(TAG, THEIRS), requires=("torch==2.14.*", "numpy>=1"))
    found.write()
    return found


def bundle(site: FarmSite, folder: Path, *words: str) -> int:
    with serving(site.folder) as server:
        flags = ["--index", server.url, "--output", str(folder), "--with-dependencies"]
        return main(["bundle", "diso", *flags, *words])


def pins(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.partition(" ")[0] for line in lines if line[0] not in "#-"]


def install_all(tool: str, folder: Path, *words: str, cwd: Path) -> None:
    """Install into a new environment with uv or pip; all of the bundle must be there then."""
    there = make_environment(folder)
    if tool == "uv":
        argv = [str(UV), "pip", "install", "--python", str(there), "--no-cache", "--offline"]
    else:
        argv = [sys.executable, "-m", "pip", "--python", str(there), "install"]
    done = subprocess.run([*argv, *words], check=False, capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stderr
    for name in ("diso", "torch", "numpy", "deep"):
        assert list(site_packages(there).glob(f"{name}-*.dist-info")), name


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_the_folder_installs_with_all_that_is_needed(
    site: FarmSite, pypi: Loopback, tmp_path: Path, tool: str
) -> None:
    here = make_environment(tmp_path / "here")
    install_torch(here, "2.14.1+cu130", metadata="2.14.1")
    assert bundle(site, tmp_path / "made", "--python", str(here)) == 0
    folder = (tmp_path / "made").rename(tmp_path / "carried")
    assert pins(folder / "dependencies.txt") == ["deep==1.0", "numpy==1.26.0", "torch==2.14.1"]
    document = json.loads((folder / "bundle.json").read_text(encoding="utf-8"))
    assert "dependencies.txt" in document["locks"]
    assert document["outside"] == []
    asked = len(pypi.requests)
    both = ["-r", str(folder / "dependencies.txt"), "-r", str(folder / "requirements.txt")]
    install_all(tool, tmp_path / "there", "--no-deps", "--require-hashes", *both, cwd=folder)
    assert len(pypi.requests) == asked


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_the_pylock_alone_installs_all_that_is_needed(
    site: FarmSite, pypi: Loopback, tmp_path: Path, tool: str
) -> None:
    from packaging.pylock import Pylock

    here = make_environment(tmp_path / "here")
    install_torch(here, "2.14.1+cu130", metadata="2.14.1")
    with serving(site.folder) as server:
        flags = ["--index", server.url, "--output", str(tmp_path / "made"), "--with-dependencies"]
        assert main(["bundle", "diso", *flags, "--python", str(here)]) == 0
        folder = (tmp_path / "made").rename(tmp_path / "carried")
        assert main(["resolve", "--check", str(folder / "pylock.toml")]) == 0
    document = parse_toml((folder / "pylock.toml").read_text(encoding="utf-8"), "pylock.toml")
    Pylock.from_dict(document).validate()
    for package in document["packages"]:
        (wheel,) = package["wheels"]
        data = (folder / wheel["path"]).read_bytes()
        assert wheel["hashes"]["sha256"] == hashlib.sha256(data).hexdigest()
    asked = len(pypi.requests)
    lock = str(folder / "pylock.toml")
    install_all(tool, tmp_path / "there", "--no-index", "-r", lock, cwd=tmp_path)
    assert len(pypi.requests) == asked


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_a_pylock_of_two_hosts_marks_their_dependencies(
    site: FarmSite, pypi: Loopback, tmp_path: Path, capsys: pytest.CaptureFixture[str], tool: str
) -> None:
    profiles = []
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    monkeypatch = pytest.MonkeyPatch()
    for name, python in (("ours", ours), ("theirs", THEIR_PYTHON)):
        page = pypi.folder / "whl" / "cu130" / "torch"
        page.mkdir(parents=True, exist_ok=True)
        tag = "cp" + python.replace(".", "")
        make_wheel(page, f"torch-2.14.1+cu130-{tag}-{tag}-manylinux_2_28_x86_64.whl")
        wheels = sorted(path.name for path in page.glob("*.whl"))
        links = "".join(f'<a href="{quote(wheel)}">{wheel}</a>' for wheel in wheels)
        (page / "index.html").write_text(f"<html><body>{links}</body></html>")
        words = ["--python-version", python, "--platform", "linux_x86_64", "--libc", "2.36"]
        capsys.readouterr()
        main(["host", "--json", *words, "--torch", "2.14.1+cu130", "--gpu", "9.0"])
        saved = tmp_path / f"{name}.json"
        saved.write_text(capsys.readouterr().out, encoding="utf-8")
        profiles += ["--profile", f"{name}={saved}"]
    with monkeypatch.context() as patch:
        patch.setenv("WHEELFARM_TORCH_INDEX", f"{pypi.url}whl")
        assert bundle(site, tmp_path / "made", *profiles) == 0
    document = parse_toml((tmp_path / "made/pylock.toml").read_text(encoding="utf-8"), "pylock")
    markers = {
        (package["name"], package["wheels"][0]["name"].split("-")[2]): package["marker"]
        for package in document["packages"]
    }
    assert markers["torch", TAG] == "'ours' in extras"
    assert markers["torch", THEIRS] == "'theirs' in extras"
    assert markers["numpy", "py3"] == "'ours' in extras or 'theirs' in extras"
    lock = str(tmp_path / "made" / "pylock.toml")
    chosen = [lock, "--extra", "ours"] if tool == "uv" else [f"{lock}[ours]"]
    install_all(tool, tmp_path / "there", "--no-index", "-r", *chosen, cwd=tmp_path)


def test_dependencies_of_another_host_are_that_hosts(
    site: FarmSite, pypi: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = pypi.folder / "whl" / "cu130" / "torch"
    page.mkdir(parents=True)
    labelled = [
        f"torch-2.14.1+cu130-{tag}-{tag}-manylinux_2_{glibc}_x86_64.whl"
        for tag, glibc in ((THEIRS, 28), (THEIRS, 39), (TAG, 28))
    ]
    for name in labelled:
        make_wheel(page, name)
    links = "".join(f'<a href="{quote(name)}">{name}</a>' for name in labelled)
    (page / "index.html").write_text(f"<html><body>{links}</body></html>")
    monkeypatch.setenv("WHEELFARM_TORCH_INDEX", f"{pypi.url}whl")
    host = ["--python-version", THEIR_PYTHON, "--platform", "linux_x86_64", "--libc", "2.28"]
    torch = ["--torch", "2.14.1+cu130", "--gpu", "9.0", "--driver", "580.65.06"]
    assert bundle(site, tmp_path / "made", *host, *torch) == 0
    found = pins(tmp_path / "made" / "dependencies.txt")
    assert found == ["deep==1.0", "numpy==1.26.0", "torch==2.14.1+cu130"]
    wheels = {path.name for path in (tmp_path / "made" / "wheels").iterdir()}
    assert wheels == {NAME.replace(TAG, THEIRS), NUMPY, DEEP, labelled[0]}


def test_a_dependency_without_a_wheel_is_told(
    site: FarmSite, pypi: Loopback, tmp_path: Path
) -> None:
    (pypi.folder / "simple" / "deep" / DEEP).unlink()
    (pypi.folder / "simple" / "deep" / "index.html").write_text("<html></html>")
    here = make_environment(tmp_path / "here")
    install_torch(here, "2.14.1+cu130", metadata="2.14.1")
    with pytest.raises(ProgramFailedError) as caught:
        bundle(site, tmp_path / "made", "--python", str(here))
    assert "deep" in str(caught.value)
    assert not (tmp_path / "made" / "dependencies.txt").exists()
