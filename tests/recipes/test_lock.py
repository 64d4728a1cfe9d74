"""The lock: real git repositories and an index on loopback; what changes is refused."""

import gzip
import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.loopback import Loopback, serving
from tests.recipes.farms import recipe, write_farm
from wheelfarm.cli import main
from wheelfarm.errors import BadInputError, CouldNotLookError, FaultsError
from wheelfarm.http import Client
from wheelfarm.recipes.load import load_farm
from wheelfarm.recipes.lock import load_lock, read_lock
from wheelfarm.recipes.pypi import index_url, list_sdists
from wheelfarm.recipes.source_version import read_source_version

SETUP = """\
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
__version__ = "2.1.2"
setup(
    name="one",
    version=__version__,
    ext_modules=[CUDAExtension("one._C", ["one.cu"])],
    cmdclass={"build_ext": BuildExtension},
)
"""


def sdist(version: str = "1.0", setup: str = SETUP) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, text in {
            "setup.py": setup,
            "one.cu": "",
            "PKG-INFO": f"Version: {version}\n",
        }.items():
            info = tarfile.TarInfo(f"one-{version}/{name}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return gzip.compress(data.getvalue(), mtime=0)


def put_project(server: Loopback, files: dict[str, bytes], *, html: bool = False) -> None:
    page = server.folder / "simple" / "one"
    page.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (server.folder / name).write_bytes(data)
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    if html:
        anchors = [
            f'<a href="../../{name}#sha256={sha}">{name}</a>' for name, sha in hashes.items()
        ]
        (page / "index.html").write_text("\n".join(anchors))
        return
    entries = [
        {"filename": name, "url": f"../../{name}", "hashes": {"sha256": sha}}
        for name, sha in hashes.items()
    ]
    entries[0]["yanked"] = "broken" if "0.9" in entries[0]["filename"] else False  # type: ignore[assignment]
    body = json.dumps({"meta": {"api-version": "1.1"}, "name": "one", "files": entries}).encode()
    content_type = "application/vnd.pypi.simple.v1+json"
    server.actions["/simple/one/"] = [
        lambda handler: handler.answer(200, body, {"Content-Type": content_type})
    ] * 20


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    folder = tmp_path / "index"
    folder.mkdir()
    with serving(folder) as server:
        for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}simple/")
        yield server


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example"]
    argv = ["git", "-C", str(folder), *identity, *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository_url(tmp_path: Path) -> str:
    folder = tmp_path / "upstream"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "release")
    (folder / "setup.py").write_text(SETUP)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    git(folder, "tag", "-a", "v1.2", "-m", "annotated")
    git(folder, "tag", "plain-1.3")
    return folder.as_uri()


def lock(farm: Path, *words: str) -> int:
    return main(["lock", "--farm", str(farm), *words])


@pytest.mark.parametrize("html", [False, True])
def test_an_sdist_is_locked_and_another_hash_is_refused(
    tmp_path: Path, index: Loopback, capsys: pytest.CaptureFixture[str], *, html: bool
) -> None:
    put_project(index, {"one-1.0.tar.gz": sdist(), "one-1.0-py3-none-any.whl": b""}, html=html)
    farm = write_farm(tmp_path / "farm", {"one": recipe("one", "links_torch: true")})
    assert lock(farm) == 0
    entry = load_lock(load_farm(farm)).entries["one"]
    assert entry.source.identity == f"sha256 {hashlib.sha256(sdist()).hexdigest()}"
    assert entry.survey == "linked"
    assert entry.evidence.startswith("setup.py:7: ")
    before = (farm / "farm.lock").read_text()
    assert lock(farm) == 0
    assert "unchanged" in capsys.readouterr().out

    put_project(index, {"one-1.0.tar.gz": sdist(setup=SETUP + "# new")}, html=html)
    with pytest.raises(FaultsError, match="the source changed under its name") as raised:
        lock(farm)
    assert raised.value.exit_code == 4
    assert (farm / "farm.lock").read_text() == before
    assert lock(farm, "--update") == 0
    assert (farm / "farm.lock").read_text() != before


def test_tags_are_locked_to_their_commit_and_a_moved_one_is_refused(
    tmp_path: Path, repository_url: str
) -> None:
    folder = tmp_path / "upstream"
    commit = git(folder, "rev-parse", "HEAD")
    recipes = {
        "a": f"name: a\nlinks_torch: true\nsource: {{git: {repository_url}, tag: v1.2}}\n",
        "b": f"name: b\nlinks_torch: true\nsource: {{git: {repository_url}, commit: {commit}}}\n",
    }
    farm = write_farm(tmp_path / "farm", recipes)
    assert lock(farm) == 0
    entries = load_lock(load_farm(farm)).entries
    assert {name: entry.source.identity for name, entry in entries.items()} == {
        "a": f"commit {commit}",
        "b": f"commit {commit}",
    }
    # A commit tells no version, so it is read from the source, whose constants are followed.
    assert {name: str(entry.version) for name, entry in entries.items()} == {
        "a": "1.2",
        "b": "2.1.2",
    }
    (folder / "setup.py").write_text(SETUP + "# moved")
    git(folder, "commit", "-qam", "second")
    git(folder, "tag", "-f", "v1.2")
    with pytest.raises(FaultsError, match=f"was commit {commit} and is now commit"):
        lock(farm)
    assert lock(farm, "b") == 0
    assert lock(farm, "a", "--update") == 0


@pytest.mark.parametrize(
    ("ref", "message"),
    [("release", "'release' is a branch"), ("v9", "has no tag 'v9'")],
)
def test_a_branch_and_an_unknown_tag_are_refused(
    tmp_path: Path, repository_url: str, ref: str, message: str
) -> None:
    text = f"name: a\nversion: '1'\nsource: {{git: {repository_url}, tag: {ref}}}\n"
    farm = write_farm(tmp_path / "farm", {"a": text})
    with pytest.raises(BadInputError, match=message):
        lock(farm)
    assert not (farm / "farm.lock").exists()


def test_a_repository_that_does_not_answer_is_could_not_look(tmp_path: Path) -> None:
    url = (tmp_path / "nowhere").as_uri()
    farm = write_farm(tmp_path / "farm", {"a": f"name: a\nsource: {{git: {url}, tag: v1}}\n"})
    with pytest.raises(CouldNotLookError, match="could not be read"):
        lock(farm)


def test_one_bad_source_does_not_lose_the_others(
    tmp_path: Path, index: Loopback, repository_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put_project(index, {"one-1.0.tar.gz": sdist()})
    nowhere = (tmp_path / "nowhere").as_uri()
    recipes = {
        "a": f"name: a\nsource: {{git: {repository_url}, tag: v9}}\n",
        "b": f"name: b\nsource: {{git: {nowhere}, tag: v1}}\n",
        "one": recipe("one"),
        "two": recipe("two"),
    }
    farm = write_farm(tmp_path / "farm", recipes)
    with pytest.raises(FaultsError) as raised:
        lock(farm)
    assert [fault.context for fault in raised.value.faults] == ["a", "two", "b"]
    assert str(raised.value).startswith("3 sources were not locked\n  a: ")
    assert set(load_lock(load_farm(farm)).entries) == {"one"}
    assert "one" in capsys.readouterr().out


def test_unknown_projects_and_versions_are_bad_input(tmp_path: Path, index: Loopback) -> None:
    farm = write_farm(tmp_path / "farm", {"two": recipe("two")})
    with pytest.raises(BadInputError, match="there is no project 'two'"):
        lock(farm)
    put_project(index, {"one-0.9.tar.gz": sdist("0.9")})
    farm = write_farm(tmp_path / "other", {"one": recipe("one")})
    with pytest.raises(BadInputError, match=r"one 1\.0 has no sdist on .*; sdists: 0\.9"):
        lock(farm)


def test_init_makes_a_farm_that_lints_clean(
    tmp_path: Path,
    index: Loopback,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    files = {
        "one-0.9.tar.gz": sdist("0.9"),
        "one-1.0.tar.gz": sdist("1.0"),
        "one-2.0rc1.tar.gz": sdist("2.0rc1"),
    }
    put_project(index, files)
    farm = Path("farm")
    assert main(["init", "One", "--farm", str(farm)]) == 0
    assert "wrote farm/farm.lock" in capsys.readouterr().out
    text = (farm / "recipes" / "one" / "recipe.yml").read_text()
    assert "source: {pypi: one==1.0}" in text
    assert "# The survey says linked: setup.py:7: " in text
    assert "\nlinks_torch: true\n" in text
    assert main(["lint", "--farm", str(farm)]) == 0
    assert "1 recipe: 0 faults" in capsys.readouterr().out
    with pytest.raises(BadInputError, match="there is a recipe of one already"):
        main(["init", "one==0.9", "--farm", str(farm)])


def test_init_guesses_nothing(tmp_path: Path, index: Loopback) -> None:
    put_project(index, {"one-1.0.tar.gz": sdist(setup="import machinery; machinery.build()\n")})
    farm = tmp_path / "farm"
    assert main(["init", "one", "--farm", str(farm)]) == 0
    text = (farm / "recipes" / "one" / "recipe.yml").read_text()
    assert "# To be decided" in text
    assert "\n# links_torch: true\n" in text
    assert main(["lint", "--farm", str(farm)]) == 4


@pytest.mark.parametrize("name", ["../one", "one?x=1", "o ne", "-one", "one/", "öne"])
def test_init_asks_for_no_name_that_is_none(tmp_path: Path, index: Loopback, name: str) -> None:
    farm = tmp_path / "farm"
    with pytest.raises(BadInputError, match="is no project's name"):
        main(["init", "--farm", str(farm), "--", name])
    assert not farm.exists()
    assert not index.requests


def test_damaged_locks_say_where(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="is no valid JSON"):
        read_lock("{", "farm.lock")
    text = '{"schema": "wheelfarm.farm-lock/1", "packages": {"a": {"source": "x", "sha256": "12"}}}'
    with pytest.raises(FaultsError, match=r"packages\.a\.sha256: expected 64 hexadecimal"):
        read_lock(text, "farm.lock")


def test_an_edited_source_needs_a_new_lock(tmp_path: Path, index: Loopback) -> None:
    put_project(index, {"one-1.0.tar.gz": sdist()})
    farm = write_farm(tmp_path / "farm", {"one": recipe("one", "links_torch: true")})
    lock(farm)
    edited = "name: one\nsource: {pypi: one==1.1}\nlinks_torch: true\n"
    write_farm(tmp_path / "farm", {"one": edited})
    loaded = load_farm(farm)
    with pytest.raises(BadInputError, match=r"has one from pypi one==1\.0, not pypi one==1\.1"):
        load_lock(loaded).source_of(loaded.recipes["one"])


def test_a_version_that_the_source_does_not_say_is_told_before_a_build(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "setup.py").write_text(SETUP)
    (source / "pyproject.toml").write_text("[project]\nname = 'one'\nversion = '1.0'\n")
    text = "name: one\nversion: '1.1'\nsource: {path: ../../../source}\nlinks_torch: true\n"
    farm = write_farm(tmp_path / "farm", {"one": text})
    assert lock(farm) == 0
    assert str(load_lock(load_farm(farm)).entries["one"].says) == "1.0"
    capsys.readouterr()
    assert main(["lint", "--farm", str(farm)]) == 0
    assert "the source's files say 1.0, the recipe 1.1" in capsys.readouterr().out
    # A folder is the author's own, and is read again each time.
    (source / "pyproject.toml").write_text("[project]\nname = 'one'\nversion = '1.1+local'\n")
    assert lock(farm) == 0
    assert load_lock(load_farm(farm)).entries["one"].says is None
    capsys.readouterr()
    assert main(["lint", "--farm", str(farm)]) == 0
    assert "1 recipe: 0 faults, 0 warnings" in capsys.readouterr().out


def test_the_version_is_compared_again_where_the_recipe_states_another(
    tmp_path: Path, repository_url: str
) -> None:
    def says(version: str) -> str:
        text = f"name: one\nversion: '{version}'\nlinks_torch: true\n"
        text += f"source: {{git: '{repository_url}', tag: v1.2}}\n"
        farm = write_farm(tmp_path / "farm", {"one": text})
        assert lock(farm) == 0
        return str(load_lock(load_farm(farm)).entries["one"].says)

    stated = says("9.9")
    assert stated != "None"
    assert says("9.9") == stated
    assert says(stated) == "None"
    assert says("9.8") == stated


def test_the_index_is_the_one_that_is_configured() -> None:
    assert index_url({}) == "https://pypi.org/simple"
    assert index_url({"PIP_INDEX_URL": "https://a.example/s/"}) == "https://a.example/s"
    both = {"UV_INDEX_URL": "https://u.example", "PIP_INDEX_URL": "https://p.example"}
    assert index_url(both) == "https://u.example"


def test_a_page_of_rubbish_is_no_list_of_files(index: Loopback) -> None:
    put_project(index, {"one-.tar.gz": b"", "one-1.0.tar.gz.exe": b""}, html=True)
    assert list_sdists("one", client=Client(), index=f"{index.url}simple") == ()


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("pyproject.toml", '[project]\nname = "x"\nversion = "1.2"\n', "1.2"),
        ("pyproject.toml", '[project]\nname = "x"\ndynamic = ["version"]\n', "None"),
        ("setup.cfg", "[metadata]\nversion = 1.3\n", "1.3"),
        ("setup.cfg", "[metadata]\nversion = attr: x.__version__\n", "None"),
        ("setup.py", "setup(version='1.4')", "1.4"),
        ("setup.py", "V = '1.5'\nsetup(version=V)", "1.5"),
        ("setup.py", "setup(version=read())", "None"),
        ("setup.py", "setup(", "None"),
        ("PKG-INFO", "Name: x\nVersion: 1.6\n\nVersion: 9\n", "1.6"),
    ],
)
def test_versions_are_read_and_never_run(
    tmp_path: Path, name: str, text: str, version: str
) -> None:
    (tmp_path / name).write_text(text)
    assert str(read_source_version(tmp_path)) == version
