"""The verbs, from a real wheel and the gate's real report to a site that lists it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.index.test_importing import HERE, compiled_wheel
from tests.loopback import serving
from wheelfarm.cli import main
from wheelfarm.errors import BadInputError, CouldNotLookError, UsageError
from wheelfarm.index.guard import ShorterIndexError

pytestmark = pytest.mark.compile


class Shell:
    """Runs verbs in one farm's folder and reads their JSON."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def __call__(self, *words: str, status: int = 0) -> Any:
        self._capsys.readouterr()
        assert main([*words, "--json"]) == status
        return json.loads(self._capsys.readouterr().out)


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path, capsys)


def verified(shell: Shell, version: str) -> Path:
    """Make a wheel and its report, as ``verify --report`` writes it."""
    (shell.folder / "wheels").mkdir(exist_ok=True)
    wheel = compiled_wheel(shell.folder / "wheels", version)
    shell("verify", "--report", "--no-cache", str(wheel))
    return wheel


def test_from_a_wheel_to_a_site_and_back(shell: Shell) -> None:
    first = verified(shell, "1.0")
    done = shell("publish", str(first))
    assert done["schema"] == "wheelfarm.publish/1"
    assert [each["outcome"] for each in done["wheels"]] == ["published"]
    built = shell("index", "build", "--title", "Mine")
    assert (built["schema"], built["wheels"]) == ("wheelfarm.index/1", 1)
    assert first.name in (shell.folder / "site/simple/some-tool/index.html").read_text()

    second = verified(shell, "2.0")
    assert shell("publish", "wheels")["wheels"][1]["outcome"] == "published"
    shell("index", "build")
    yanked = shell("yank", first.name, "--reason", "slow")
    assert yanked["wheels"] == [{"wheel": first.name, "yanked": "slow"}]
    shell("index", "build")
    assert 'data-yanked="slow"' in (shell.folder / "site/simple/some-tool/index.html").read_text()
    shell("unyank", first.name)
    shell("index", "build")

    with serving(shell.folder / "site") as server:
        checked = shell("index", "check", server.url)
        assert checked["findings"] == []
        assert checked["files"] == 2

    proposed = shell("prune")
    assert [each["wheel"] for each in proposed["wheels"]] == [first.name]
    assert not proposed["applied"]
    assert len(list((shell.folder / "store/files").rglob("*.whl"))) == 2
    assert shell("prune", "--apply")["applied"]
    assert len(list((shell.folder / "store/files").rglob("*.whl"))) == 1
    with pytest.raises(ShorterIndexError) as caught:
        main(["index", "build"])
    assert caught.value.lost == (first.name,)
    shell("index", "build", "--allow-removal", first.name)
    assert second.name in (shell.folder / "site/simple/some-tool/index.html").read_text()
    builds = shell("rollback", "--list")["builds"]
    assert [each["number"] for each in builds] == [1, 2, 3, 4, 5]


def test_what_the_gate_refuses_is_not_published(shell: Shell) -> None:
    wheel = verified(shell, "1.0")
    renamed = wheel.rename(wheel.with_name(wheel.name.replace("1.0", "9.0")))
    shell("verify", "--report", "--no-cache", str(renamed), status=1)
    good = verified(shell, "1.1")
    done = shell("publish", str(renamed), str(good), status=1)
    assert [each["wheel"] for each in done["refused"]] == [renamed.name]
    assert "metadata" in done["refused"][0]["cause"]
    assert [each["wheel"] for each in done["wheels"]] == [good.name]


def test_bad_input_is_named(shell: Shell) -> None:
    (shell.folder / "wheels").mkdir()
    wheel = compiled_wheel(shell.folder / "wheels", "1.0")
    with pytest.raises(BadInputError, match="there is no report"):
        main(["publish", str(wheel)])
    report = wheel.with_name(wheel.name + ".report.json")
    for text in ("{", "[]", '{"schema": "other/1"}'):
        report.write_text(text)
        with pytest.raises(BadInputError):
            main(["publish", str(wheel)])
    assert not (shell.folder / "store").exists()
    with pytest.raises(BadInputError, match="no wheel"):
        main(["publish", str(shell.folder)])
    with pytest.raises(UsageError):
        main(["publish", str(wheel), str(wheel), "--report", str(report)])
    with pytest.raises(BadInputError, match="no kind of store"):
        main(["publish", str(wheel), "--store", "ftp://x/y"])
    with pytest.raises(BadInputError, match="names no repository"):
        main(["index", "build", "--store", "github://owner"])
    with pytest.raises(BadInputError, match="does not exist"):
        main(["publish", "absent.whl"])
    with pytest.raises(BadInputError, match="is a file, or lies in one"):
        main(["publish", str(wheel), "--store", f"{report}/store"])
    with pytest.raises(BadInputError, match="is a folder; an import reads"):
        main(["index", "import", str(shell.folder)])
    for verb in (["prune"], ["yank", wheel.name, "--reason", "x"], ["unyank", wheel.name]):
        with pytest.raises(CouldNotLookError, match="there is no store"):
            main(verb)
    with pytest.raises(BadInputError, match="no earlier index"):
        main(["rollback"])
    with pytest.raises(BadInputError, match="build 99 is not kept"):
        main(["rollback", "--to", "99"])
    with pytest.raises(BadInputError, match="is no site"):
        main(["serve", "nowhere"])
    with pytest.raises(CouldNotLookError):
        main(["index", "import", "http://127.0.0.1:9/x"])
    assert HERE in wheel.name


@pytest.mark.parametrize("option", ["--files-url", "--base-url", "--live"])
@pytest.mark.parametrize("text", ["javascript:alert(1)", "files", "https://", "https://[x/"])
def test_an_address_that_is_none_is_refused(shell: Shell, option: str, text: str) -> None:
    (shell.folder / "store").mkdir()
    with pytest.raises(BadInputError, match="is no http or https address"):
        main(["index", "build", option, text])
    assert not (shell.folder / "site").exists()


@pytest.mark.parametrize("option", ["--files-url", "--base-url"])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("https://me:secret@host.test/x", "which everybody would read"),
        ("https://secret@host.test/", "which everybody would read"),
        ("https://host.test/x?token=secret", "has more than a path"),
        ("https://host.test/x#secret", "has more than a path"),
    ],
)
def test_no_secret_goes_into_public_pages(shell: Shell, option: str, text: str, words: str) -> None:
    (shell.folder / "store").mkdir()
    with pytest.raises(BadInputError, match=words) as caught:
        main(["index", "build", option, text])
    assert "secret" not in str(caught.value).replace("#secret", "")
    assert not (shell.folder / "site").exists()


@pytest.mark.parametrize("port", ["-1", "65536", "http", "²"])
def test_a_port_that_is_none_is_a_usage_error(shell: Shell, port: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["serve", str(shell.folder), "--port", port])
    assert stopped.value.code == 64


def test_all_that_is_named_or_nothing(shell: Shell) -> None:
    first = verified(shell, "1.0")
    second = compiled_wheel(shell.folder / "wheels", "2.0")
    with pytest.raises(BadInputError, match="there is no report"):
        main(["publish", str(first), str(second)])
    assert not (shell.folder / "store").exists()
    shell("publish", str(first))
    with pytest.raises(BadInputError, match="is not in store"):
        main(["yank", first.name, second.name, "--reason", "bad"])
    catalogue = (shell.folder / "store/catalogue/some-tool.json").read_text()
    assert '"yanked"' not in catalogue
    with pytest.raises(BadInputError, match="has no package 'other'"):
        main(["prune", "other"])


def test_a_report_of_other_bytes_is_refused(shell: Shell) -> None:
    wheel = verified(shell, "1.0")
    with wheel.open("ab") as stream:
        stream.write(b"x")
    done = shell("publish", str(wheel), status=1)
    assert "not about" in done["refused"][0]["reason"]
