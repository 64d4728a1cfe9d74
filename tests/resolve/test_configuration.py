"""The user's settings file, logins, the second transport without a flag, folders that are none."""

import base64
import json
import os
import shutil
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

import pytest

from tests.farm_site import FarmSite
from tests.loopback import Handler, Loopback, serving
from tests.resolve.test_indexes import CELL, DISO, releases, resolve
from wheelfarm.cli import main
from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.http import UnreachableError
from wheelfarm.resolve.configuration import (
    Configuration,
    config_file,
    config_place,
    read_configuration,
)

__all__ = ["releases"]

HOST = ["--python-version", "3.11", "--platform", "linux_x86_64", "--libc", "2.36", "--gpu", "9.0"]
TORCH = ["--torch", "2.14.1+cu130", "--driver", "580.65.06"]
SECRET = "s3cret"  # noqa: S105 - a test's own


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of the user's settings, empty."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    path = tmp_path / "settings" / "wheelfarm" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


def guarded(server: Loopback) -> list[str]:
    """Let a server answer those alone who log in; return the paths that it refused."""
    wanted = "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode()
    refused: list[str] = []

    def check(handler: Handler) -> bool:
        if handler.headers.get("Authorization") == wanted:
            return True
        refused.append(handler.path)
        handler.answer(401, b"who are you?")
        return False

    server.guard = check
    return refused


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["resolve", "diso", *HOST, *TORCH, *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_index_of_the_settings_is_the_last_resort(
    site: FarmSite, server: Loopback, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add(DISO)
    site.write()
    config.write_text(f'index = "{server.url}"\n', encoding="utf-8")
    code, out, _ = run(capsys, "--json")
    assert code == 0
    assert json.loads(out)["wheels"][0]["filename"] == DISO
    with pytest.raises(BadInputError):
        run(capsys, "--index", "/nowhere")


def test_a_login_in_the_index_address_opens_its_files_and_stands_nowhere(
    site: FarmSite,
    server: Loopback,
    config: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert not config.exists()
    site.add(DISO)
    site.write()
    refused = guarded(server)
    index = server.url.replace("://", f"://me:{SECRET}@")
    for name in ("pylock.toml", "requirements.txt", "constraints.txt", "pixi.toml"):
        lock = tmp_path / name
        code, out, err = run(capsys, "--index", index, "--output", str(lock), "--explain")
        assert code == 0
        assert "with a login, which no lock holds" in err
        assert SECRET not in out + err + lock.read_text(encoding="utf-8")
    code, out, err = run(capsys, "--index", index, "--json")
    assert SECRET not in out + err
    assert refused == []
    kept = b"".join(
        path.read_bytes() for path in (tmp_path / "cache/wheelfarm/pages").glob("*.page")
    )
    assert SECRET.encode() not in kept


def test_a_login_of_the_settings_is_told_to_its_host_alone(
    site: FarmSite,
    server: Loopback,
    config: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    site.add(DISO)
    site.write()
    refused = guarded(server)
    folder = tmp_path / "elsewhere"
    shutil.copytree(site.folder, folder)
    with serving(folder) as other:
        config.write_text(
            f'[credentials."{server.url}"]\nuser = "me"\npassword = "{SECRET}"\n', encoding="utf-8"
        )
        assert run(capsys, "--index", server.url)[0] == 0
        assert run(capsys, "--index", other.url)[0] == 0
        assert other.requests
        assert all("authorization" not in request.headers for request in other.requests)
    assert refused == []


@pytest.mark.parametrize(
    "text",
    [
        "indx = 1\n",
        "index = 3\n",
        'indexes = { nonsense = "https://x.example.org/" }\n',
        '[credentials."a.example.org"]\n',
        '[credentials."a.example.org"]\ntoken = "s3cret"\npassword = "s3cret"\n',
        "credentials = 3\n",
        '[credentials."http://[::1"]\ntoken = "s3cret"\n',
        '[credentials."a.example.org:99999"]\ntoken = "s3cret"\n',
        '[credentials."ftp://a.example.org"]\ntoken = "s3cret"\n',
        "no toml",
    ],
)
def test_faulty_settings_are_bad_input_that_shows_no_secret(config: Path, text: str) -> None:
    config.write_text(text, encoding="utf-8")
    with pytest.raises(BadInputError) as caught:
        read_configuration()
    assert SECRET not in str(caught.value)


def test_logins_are_not_shown(config: Path) -> None:
    config.write_text('[credentials."a.example.org"]\ntoken = "s3cret"\n', encoding="utf-8")
    found = read_configuration()
    assert found.logins["https://a.example.org"].header == f"Bearer {SECRET}"
    assert SECRET not in repr(found)
    assert SECRET not in repr(found.logins)


POSIX, WINDOWS = PurePosixPath("/home/me"), PureWindowsPath(r"C:\Users\me")


@pytest.mark.parametrize(
    ("system", "variables", "home", "place"),
    [
        ("linux", {}, POSIX, "/home/me/.config/wheelfarm/config.toml"),
        ("linux", {"XDG_CONFIG_HOME": "/x"}, POSIX, "/x/wheelfarm/config.toml"),
        ("linux", {"LOCALAPPDATA": "/x"}, POSIX, "/home/me/.config/wheelfarm/config.toml"),
        ("linux", {"WHEELFARM_CONFIG": "/etc/wf.toml"}, POSIX, "/etc/wf.toml"),
        ("darwin", {}, POSIX, "/home/me/Library/Application Support/wheelfarm/config.toml"),
        ("darwin", {"XDG_CONFIG_HOME": "/x"}, POSIX, "/x/wheelfarm/config.toml"),
        ("windows", {}, WINDOWS, r"C:\Users\me\AppData\Local\wheelfarm\config.toml"),
        ("windows", {"LOCALAPPDATA": r"D:\own"}, WINDOWS, r"D:\own\wheelfarm\config.toml"),
        (
            "windows",
            {"XDG_CONFIG_HOME": r"D:\x"},
            WINDOWS,
            r"C:\Users\me\AppData\Local\wheelfarm\config.toml",
        ),
        ("windows", {"WHEELFARM_CONFIG": r"D:\wf.toml"}, WINDOWS, r"D:\wf.toml"),
    ],
)
def test_the_file_lies_where_the_system_has_such_files(
    system: str, variables: dict[str, str], home: PurePath, place: str
) -> None:
    assert str(config_place(system, variables, home)) == place


def test_this_machines_own_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", "/h")
    assert config_file() == tmp_path / "wheelfarm" / "config.toml"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setattr("sys.platform", "linux")
    assert str(config_file()) == "/h/.config/wheelfarm/config.toml"


def without_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this user one of whom the system knows nothing, as a container's bare number is."""

    def unknown() -> Path:
        message = "Could not determine home directory."
        raise RuntimeError(message)

    monkeypatch.setattr(Path, "home", staticmethod(unknown))


def test_a_user_without_a_home_has_no_settings_and_no_netrc(
    site: FarmSite,
    server: Loopback,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    site.add(DISO)
    site.write()
    for name in ("XDG_CONFIG_HOME", "WHEELFARM_CONFIG", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    without_home(monkeypatch)
    assert run(capsys, "--index", server.url)[0] == 0
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert run(capsys, "--index", server.url, "--no-cache")[0] == 0
    with pytest.raises(CouldNotLookError, match=r"set HOME, or WHEELFARM_CACHE$"):
        run(capsys, "--index", server.url)


def test_a_file_that_is_named_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHEELFARM_CONFIG", "/nonexistent/config.toml")
    with pytest.raises(BadInputError):
        read_configuration()


def test_a_folder_that_holds_no_index_could_not_be_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "downloads"
    folder.mkdir()
    (folder / DISO).write_bytes(b"")
    with pytest.raises(CouldNotLookError, match="holds no index") as caught:
        run(capsys, "--index", str(folder))
    assert caught.value.exit_code == 2


def test_a_folder_of_simple_pages_is_an_index(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "mirror" / "diso" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text(f'<a href="{DISO}#sha256={"0" * 64}">{DISO}</a>', encoding="utf-8")
    code, out, _ = run(capsys, "--index", str(tmp_path / "mirror"), "--json")
    assert code == 0
    assert json.loads(out)["wheels"][0]["filename"] == DISO


def test_the_manifest_names_the_second_transport_for_later(
    site: FarmSite,
    releases: Loopback,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("wheelfarm.http.transport.time.sleep", lambda _: None)
    monkeypatch.setenv("GITHUB_API_URL", releases.url)
    site.add(DISO)
    site.write()
    manifest = site.folder / "manifest" / "index.json"
    document = json.loads(manifest.read_text(encoding="utf-8"))
    manifest.write_text(json.dumps({**document, "releases": "me/farm"}), encoding="utf-8")
    with serving(site.folder) as server:
        url = server.url
        code, answer = resolve(url, capsys, "diso")
        assert (code, answer["notes"]) == (0, [])
        assert releases.requests == []
    code, answer = resolve(url, capsys, "diso")
    assert code == 0
    assert "second transport" in answer["notes"][0]
    assert answer["wheels"][0]["filename"] == DISO


@pytest.mark.parametrize("named", ["https://evil.example.org/x", "a/b/c", "../x", ""])
def test_a_manifest_names_repositories_alone(
    site: FarmSite,
    named: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("wheelfarm.http.transport.time.sleep", lambda _: None)
    site.add(DISO)
    site.write()
    manifest = site.folder / "manifest" / "index.json"
    document = json.loads(manifest.read_text(encoding="utf-8"))
    manifest.write_text(json.dumps({**document, "releases": named}), encoding="utf-8")
    with serving(site.folder) as server:
        url = server.url
        assert resolve(url, capsys, "diso")[0] == 0
    with pytest.raises(UnreachableError) as caught:
        resolve(url, capsys, "diso")
    assert "evil" not in str(caught.value)


def test_the_settings_name_the_second_transport(
    releases: Loopback,
    config: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("wheelfarm.http.transport.time.sleep", lambda _: None)
    config.write_text(f'releases = "{releases.url}repos/me/farm/releases"\n', encoding="utf-8")
    with serving(Path("/nonexistent")) as gone:
        url = gone.url
    code, answer = resolve(url, capsys, "diso")
    assert code == 0
    assert "second transport" in answer["notes"][0]
    assert CELL in answer["wheels"][0]["filename"]


def test_a_folder_in_the_place_of_the_settings_is_said(config: Path) -> None:
    config.unlink(missing_ok=True)
    config.mkdir()
    with pytest.raises(BadInputError, match="could not be read"):
        read_configuration()


def test_the_empty_device_is_a_file_without_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHEELFARM_CONFIG", os.devnull)
    assert read_configuration() == Configuration()


def test_settings_of_a_windows_editor_are_read(config: Path) -> None:
    config.write_bytes(b'\xef\xbb\xbfindex = "https://wheels.example.org/"\r\n')
    assert read_configuration().indexes == {"": "https://wheels.example.org/"}
    config.write_text('index = "https://wheels.example.org/"\n', encoding="utf-16")
    with pytest.raises(BadInputError, match="is UTF-16 text"):
        read_configuration()
