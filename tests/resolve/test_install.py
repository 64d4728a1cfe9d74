"""``--install`` where files open to us alone, and where the installer's settings lead astray."""

import base64
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.fake_environment import install_torch, make_environment, site_packages
from tests.farm_site import FarmSite, make_wheel
from tests.loopback import Handler, Loopback, redirect, serving
from wheelfarm import run as programs
from wheelfarm.cli import main
from wheelfarm.errors import BadInputError, BuildError, UsageError
from wheelfarm.http import HashMismatchError
from wheelfarm.http.errors import RefusedError

TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"
CELL = f"cu130torch2.14-{TAG}-{TAG}-linux_x86_64.whl"
DISO, GSPLAT = f"diso-0.1.4+{CELL}", f"gsplat-1.5.3+{CELL}"
SECRET = "s3cret!%/ü"  # noqa: S105 - a test's own
TOOLS = pytest.mark.parametrize("tool", ["uv", "pip"])


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("WHEELFARM_CONFIG", os.devnull)
    monkeypatch.setenv("NETRC", os.devnull)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)


@pytest.fixture
def python(tmp_path: Path) -> Path:
    found = make_environment(tmp_path / "environment")
    install_torch(found, "2.14.1+cu130")
    return found


@pytest.fixture
def locked(site: FarmSite, server: Loopback) -> Loopback:
    """A farm's site that answers nobody without the one login."""
    site.add(DISO, requires=("torch==2.14.*",))
    site.add(GSPLAT)
    site.write()
    return guarded(server, "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode())


def guarded(server: Loopback, wanted: str) -> Loopback:
    def check(handler: Handler) -> bool:
        if handler.headers.get("Authorization") == wanted:
            return True
        handler.answer(401, b"who are you?", {"WWW-Authenticate": "Basic"})
        return False

    server.guard = check
    return server


def refusing(handler: Handler) -> bool:
    handler.answer(403, b"no")
    return False


def host_variable(kind: str, server: Loopback) -> str:
    port = server.url.rstrip("/").rpartition(":")[2]
    return f"WHEELFARM_{kind}_127_0_0_1_{port}"


class Calls:
    """Every program that is run, with what it is given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.words: list[str] = []
        original = programs.run

        def spy(argv: Sequence[str | Path], **options: Any) -> programs.Completed:
            self.words += map(str, argv)
            self.words += (options.get("env") or {}).values()
            for path in Path(os.environ["TMPDIR"]).rglob("*.txt"):
                self.words.append(path.read_text(encoding="utf-8"))
            return original(argv, **options)

        monkeypatch.setattr(programs, "run", spy)

    def tell_nothing(self) -> bool:
        return bool(self.words) and not any(
            secret in word for word in self.words for secret in (SECRET, "s3cret", "t0k3n")
        )


def words(index: str, python: Path, tool: str, *packages: str) -> list[str]:
    return [
        *("resolve", *(packages or ("diso",)), "--index", index),
        *("--python", str(python), "--install", "--installer", tool),
    ]


@TOOLS
@pytest.mark.parametrize("way", ["address", "settings", "variable", "token"])
def test_a_wheel_behind_a_login_is_installed_and_the_login_told_to_nobody(
    locked: Loopback,
    python: Path,
    *,
    tool: str,
    way: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    index = locked.url
    if way == "address":
        index = index.replace("://", "://me:s3cret!%25%2F%C3%BC@")
    elif way == "settings":
        config = tmp_path / "config.toml"
        login = f'[credentials."{locked.url}"]\nuser = "me"\npassword = "{SECRET}"\n'
        config.write_text(login, encoding="utf-8")
        monkeypatch.setenv("WHEELFARM_CONFIG", str(config))
    elif way == "variable":
        monkeypatch.setenv(host_variable("LOGIN", locked), f"me:{SECRET}")
    else:
        guarded(locked, "Bearer t0k3n")
        monkeypatch.setenv(host_variable("TOKEN", locked), "t0k3n")
    calls = Calls(monkeypatch)
    assert main(words(index, python, tool, "diso", "gsplat")) == 0
    said = capsys.readouterr()
    assert said.out.count("download and install ") == 2
    assert SECRET not in said.out + said.err
    assert calls.tell_nothing()
    for name in ("diso", "gsplat"):
        assert (site_packages(python) / name / "__init__.py").is_file()
        assert not list(site_packages(python).glob(f"{name}-*.dist-info/direct_url.json"))
    assert list((tmp_path / "temporary").iterdir()) == []


@TOOLS
def test_a_login_of_netrc_is_the_installers_own_to_read(
    locked: Loopback, python: Path, tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded(locked, "Basic " + base64.b64encode(b"me:simple").decode())
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password simple\n", encoding="utf-8")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    assert main(words(locked.url, python, tool)) == 0
    assert (site_packages(python) / "diso").is_dir()
    assert list(site_packages(python).glob("diso-*.dist-info/direct_url.json"))


@TOOLS
def test_files_of_an_open_host_beside_files_of_a_locked_one(
    locked: Loopback, site: FarmSite, python: Path, tool: str, tmp_path: Path
) -> None:
    with serving(site.folder) as opened:
        site.wheels["gsplat"][0]["url"] = f"{opened.url}files/{GSPLAT.replace('+', '%2B')}"
        site.write()
        index = locked.url.replace("://", "://me:s3cret!%25%2F%C3%BC@")
        assert main(words(index, python, tool, "diso", "gsplat")) == 0
        assert any(path.startswith("/files/gsplat") for path in opened.paths())
        assert all("authorization" not in each.headers for each in opened.requests)
    assert (site_packages(python) / "diso").is_dir()
    assert (site_packages(python) / "gsplat").is_dir()


def test_nothing_is_changed_where_a_download_fails(
    locked: Loopback, site: FarmSite, python: Path
) -> None:
    before = sorted(path.name for path in site_packages(python).iterdir())
    index = locked.url.replace("://", "://me:s3cret!%25%2F%C3%BC@")
    path = site.folder / "files" / DISO
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(HashMismatchError):
        main(words(index, python, "uv"))
    with serving(site.folder) as other:
        locked.plan(f"/files/{DISO.replace('+', '%2B')}", redirect(f"{other.url}files/{DISO}"))
        other.guard = refusing
        with pytest.raises(RefusedError):
            main(words(index, python, "uv"))
    assert sorted(path.name for path in site_packages(python).iterdir()) == before


@pytest.mark.parametrize("variable", ["PIP_DRY_RUN", "PIP_TARGET", "PIP_PYTHON"])
def test_variables_that_lead_the_installer_astray_are_left_out(
    site: FarmSite,
    server: Loopback,
    python: Path,
    *,
    variable: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site.add(DISO)
    site.write()
    monkeypatch.setenv(variable, "1" if variable == "PIP_DRY_RUN" else str(tmp_path / "astray"))
    assert main(words(server.url, python, "pip")) == 0
    assert (site_packages(python) / "diso").is_dir()
    assert not (tmp_path / "astray").exists()


def test_an_installer_that_did_nothing_is_found_out(
    site: FarmSite,
    server: Loopback,
    python: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site.add(DISO)
    site.write()
    config = tmp_path / "pip.conf"
    config.write_text("[install]\ndry-run = true\n", encoding="utf-8")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    with pytest.raises(BuildError, match="it has no such package"):
        main(words(server.url, python, "pip"))


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--torch", "2.13.0+cu130"], r"torch is 2.13.0\+cu130 \(--torch\)"),
        (
            ["--torch", "none", "--gpu", "9.0", "--driver", "580"],
            r"torch is none \(--torch says so\)",
        ),
        (["--platform", "linux_aarch64"], r"platform is linux_aarch64 \(--platform\)"),
    ],
)
def test_an_answer_for_other_facts_is_not_installed(
    site: FarmSite, server: Loopback, python: Path, flags: list[str], said: str
) -> None:
    cell = f"{TAG}-{TAG}-manylinux_2_17_x86_64.whl"
    for minor in ("2.13", "2.14"):
        site.add(f"diso-0.1.4+cu130torch{minor}-{cell}")
        site.add(f"diso-0.1.4+cu130torch{minor}-{cell.replace('x86_64', 'aarch64')}")
    site.write()
    with pytest.raises(BadInputError, match=said):
        main([*words(server.url, python, "uv"), *flags])
    assert not (site_packages(python) / "diso").exists()


def test_a_saved_host_is_another_machine_whatever_its_python_is_called(
    site: FarmSite, server: Loopback, python: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add(DISO)
    site.write()
    main(["host", "--json", "--python", str(python)])
    saved = python.parent / "host.json"
    saved.write_text(capsys.readouterr().out, encoding="utf-8")
    flags = ["--index", server.url, "--host", str(saved)]
    assert main(["resolve", "diso", *flags]) == 0
    with pytest.raises(BadInputError, match="another machine"):
        main(["resolve", "diso", *flags, "--install"])
    assert not (site_packages(python) / "diso").exists()
    with pytest.raises(UsageError, match="of this machine"):
        main(["doctor", "--host", str(saved)])
    with pytest.raises(UsageError, match="--python is"):
        main(["resolve", "diso", *flags, "--python", str(python)])
    profile = ["--index", server.url, "--profile", f"a={saved}"]
    assert main(["resolve", "diso", *profile]) == 0
    for extra in (["--gpu", "9.0"], ["--python", str(python)], ["--host", str(saved)]):
        with pytest.raises(UsageError, match=f"{extra[0]} would change none"):
            main(["resolve", "diso", *profile, *extra])
    for name in ("default", "a-", "A", "a_b", "é", ""):
        with pytest.raises(UsageError, match="not of the form"):
            main(["resolve", "diso", "--index", server.url, "--profile", f"{name}={saved}"])


@TOOLS
@pytest.mark.parametrize("asked", [("diso", "torchvision"), ("diso",)])
def test_what_torchs_family_lacks_is_installed_beside_the_torch_that_stays(
    site: FarmSite,
    server: Loopback,
    python: Path,
    *,
    tool: str,
    asked: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = site.folder / "whl/cu130/torchvision/index.html"
    page.parent.mkdir(parents=True)
    for version in ("0.29.2+cu130", "0.29.9+cu130"):
        make_wheel(page.parent, f"torchvision-{version}-py3-none-any.whl", ("torch==2.14.1",))
    links = (f'<a href="{path.name}">{path.name}</a>' for path in page.parent.glob("*.whl"))
    page.write_text("".join(links).replace("+", "%2B"), encoding="utf-8")
    site.add(DISO, requires=() if "torchvision" in asked else ("torchvision>=0.20",))
    site.write()
    monkeypatch.setenv("WHEELFARM_TORCH_INDEX", f"{server.url}whl")
    lock = tmp_path / "requirements.txt"
    assert (
        main(
            [
                "resolve",
                *asked,
                *words(server.url, python, tool)[2:4],
                "--python",
                str(python),
                "--output",
                str(lock),
            ]
        )
        == 0
    )
    assert "torchvision==0.29.2 goes with this torch" in capsys.readouterr().err
    assert f"# torchvision==0.29.2 goes with it and is not in this file (from {server.url}" in (
        lock.read_text(encoding="utf-8")
    )
    assert main(words(server.url, python, tool, *asked)) == 0
    assert "install torchvision==0.29.2 from " in capsys.readouterr().out
    found = sorted(path.name for path in site_packages(python).glob("torch*.dist-info"))
    assert found == ["torch-2.14.1+cu130.dist-info", "torchvision-0.29.2+cu130.dist-info"]
    assert (site_packages(python) / "diso").is_dir()
    capsys.readouterr()
    assert main([*words(server.url, python, tool, *asked), "--dry-run"]) == 0
    assert "install torchvision" not in capsys.readouterr().out
