"""Every lock format: installed by the real tool where it is here, held to its schema where not."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from tests.fake_environment import install_torch, make_environment
from tests.farm_site import FarmSite
from tests.resolve.locks import (
    CELL,
    PIXI,
    PROJECT,
    PYTHON,
    Writer,
    host_file,
    installed,
    pip,
    uv,
    validate,
)
from wheelfarm.cli import main
from wheelfarm.reading import parse_toml


def tampered(text: str, site: FarmSite) -> str:
    digest: str = site.wheels["diso"][0]["sha256"]
    return text.replace(digest, digest[::-1])


EXPECTED = [
    "diso-0.1.4+cu130torch2.14.dist-info",
    "gsplat-1.5.3+cu130torch2.14.dist-info",
    "torch-2.14.1.dist-info",
]


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_requirements_install_and_a_wrong_hash_is_refused(
    write: Writer, site: FarmSite, python: Path, tmp_path: Path, tool: str
) -> None:
    text = write("requirements.txt")
    bad = tmp_path / "bad.txt"
    bad.write_text(tampered(text, site), encoding="utf-8")
    words = ["--no-deps", "--require-hashes", "-r"]

    def install(path: Path) -> subprocess.CompletedProcess[str]:
        if tool == "uv":
            return uv("pip", "install", "--python", python, *words, path)
        return pip(python, "install", "--no-cache-dir", *words, path)

    assert install(bad).returncode != 0
    good = install(tmp_path / "requirements.txt")
    assert good.returncode == 0, good.stderr
    assert installed(python) == EXPECTED


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_pylock_installs_and_a_wrong_hash_is_refused(
    write: Writer, site: FarmSite, python: Path, tmp_path: Path, tool: str
) -> None:
    from packaging.pylock import Pylock

    text = write("pylock.toml")
    Pylock.from_dict(parse_toml(text, "pylock.toml")).validate()
    bad = tmp_path / "pylock.bad.toml"
    bad.write_text(tampered(text, site), encoding="utf-8")

    def install(path: Path) -> subprocess.CompletedProcess[str]:
        if tool == "uv":
            return uv("pip", "install", "--python", python, "-r", path)
        return pip(python, "install", "--no-cache-dir", "-r", path)

    assert install(bad).returncode != 0
    good = install(tmp_path / "pylock.toml")
    assert good.returncode == 0, good.stderr
    assert installed(python) == EXPECTED


def test_a_name_that_is_no_pylock_is_refused(write: Writer) -> None:
    from wheelfarm.errors import BadInputError

    with pytest.raises(BadInputError, match=r"pylock\.<name>\.toml"):
        write("pylock.a.b.toml")


def test_uv_locks_the_project_with_our_hashes(
    write: Writer, site: FarmSite, tmp_path: Path
) -> None:
    path = tmp_path / "pyproject.toml"
    override = "[tool.uv]\noverride-dependencies = [\"torch; sys_platform == 'never'\"]\n"
    path.write_text(PROJECT + override, encoding="utf-8")
    text = write("pyproject.toml")
    assert "# my project" in text
    assert "kept = true # as it is" in text
    document = parse_toml(text, "pyproject.toml")
    digest = site.wheels["diso"][0]["sha256"]
    assert any(digest in line for line in document["project"]["dependencies"])
    assert "torch==2.14.1" in document["project"]["dependencies"]
    path.write_text(text.replace('    "torch==2.14.1",\n', ""), encoding="utf-8")
    locked = uv("lock", "--python", sys.executable, cwd=tmp_path)
    assert locked.returncode == 0, locked.stderr
    assert digest in (tmp_path / "uv.lock").read_text(encoding="utf-8")
    again = write("pyproject.toml")
    assert again.count("diso @") == 1


def test_uv_takes_a_labelled_torch_from_its_explicit_index(
    write: Writer, python: Path, tmp_path: Path
) -> None:
    other = make_environment(tmp_path / "labelled")
    install_torch(other, "2.14.1+cu130")
    document = parse_toml(write("pyproject.toml", "--python", str(other)), "pyproject.toml")
    assert "torch==2.14.1+cu130" in document["project"]["dependencies"]
    sources = document["tool"]["uv"]["sources"]
    assert sources["torch"] == {"index": "pytorch-cu130"}
    index = document["tool"]["uv"]["index"][0]
    assert index["explicit"] is True
    assert index["url"].endswith("/whl/cu130")


def test_constraints_hold_torch_and_wheels(write: Writer, site: FarmSite) -> None:
    text = write("constraints.txt")
    assert "torch==2.14.1\n" in text
    assert f"#sha256={site.wheels['diso'][0]['sha256']}" in text


@pytest.mark.parametrize("version", ["0.50", "0.71"])
@pytest.mark.parametrize("existing", ["", PIXI])
def test_pixi_is_valid_and_keeps_what_is_there(
    write: Writer, schema: dict[str, Any], tmp_path: Path, version: str, existing: str
) -> None:
    if existing:
        (tmp_path / "pixi.toml").write_text(existing, encoding="utf-8")
    text = write("pixi.toml", "--pixi-version", version)
    document = validate(text, schema)
    if existing:
        assert "# the user's own words" in text
        assert 'numpy = "*" # kept' in text
    platforms = document["workspace"]["platforms"]
    if version == "0.50":
        assert platforms == ["linux-64"]
        assert document["system-requirements"]["libc"] == {"family": "glibc", "version": "2.31"}
        assert document["system-requirements"]["cuda"] == "13"
    else:
        assert platforms == [{"platform": "linux-64", "glibc": "2.31", "cuda": "13"}]
    packages = document["pypi-dependencies"]
    assert packages["torch"] == {"version": "==2.14.1"}
    assert "#sha256=" in packages["diso"]["url"]
    assert packages["cuda-toolkit"]["version"] == "==13.0.*"
    assert document["dependencies"]["cxx-compiler"] == "*"


def test_pixi_into_a_feature(write: Writer, schema: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "pixi.toml").write_text(PIXI, encoding="utf-8")
    document = validate(write("pixi.toml", "--feature", "cuda"), schema)
    assert set(document["pypi-dependencies"]) == {"numpy"}
    assert "diso" in document["feature"]["cuda"]["pypi-dependencies"]
    assert document["environments"]["cuda"] == {"features": ["cuda"]}


def test_pixis_addresses_and_hashes_install_through_uv(
    write: Writer, site: FarmSite, python: Path, tmp_path: Path
) -> None:
    """Its engine for packages of PyPI is uv, so uv is asked what it makes of them."""
    document = parse_toml(write("pixi.toml"), "pixi.toml")
    lines = [
        f"{name} @ {entry['url']}"
        for name, entry in document["pypi-dependencies"].items()
        if isinstance(entry, dict) and "url" in entry
    ]
    path = tmp_path / "from-pixi.txt"
    words = ["pip", "install", "--python", python, "--no-deps", "--require-hashes", "-r", path]
    path.write_text(tampered("\n".join(lines), site), encoding="utf-8")
    assert uv(*words).returncode != 0
    path.write_text("\n".join(lines), encoding="utf-8")
    good = uv(*words)
    assert good.returncode == 0, good.stderr
    assert installed(python) == EXPECTED


@pytest.fixture
def two_hosts(
    site: FarmSite, write: Writer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    """Two machines that differ in nothing but their GPU, and a wheel for each."""
    name = f"flash_attn-2.8.3{{}}+cu130torch2.14-{CELL}"
    for post, arch in (("", "8.6"), (".post1", "12.0")):
        modules = [{"path": "flash.so", "sass": [arch]}]
        site.add(name.format(post), requires=("torch",), modules=modules)
    site.write()
    common = ["--torch", "2.14.1+cu130", "--libc", "2.36", "--driver", "580.65"]
    old = host_file(tmp_path / "old.json", "--gpu", "8.6", *common, capsys=capsys)
    new = host_file(tmp_path / "new.json", "--gpu", "12.0", *common, capsys=capsys)
    return ["--profile", f"old={old}", "--profile", f"new={new}"]


def test_a_pylock_of_two_gpus_never_shares_an_unmarked_entry(
    write: Writer, two_hosts: list[str], tmp_path: Path
) -> None:
    from packaging.pylock import Pylock

    text = write("pylock.toml", *two_hosts, packages=("diso", "flash-attn"))
    lock = Pylock.from_dict(parse_toml(text, "pylock.toml"))
    markers = {(package.name, str(package.version)): package.marker for package in lock.packages}
    assert all(marker is not None for marker in markers.values())
    by_extra = {
        extra: sorted(
            str(package.version)
            for package, _ in lock.select(extras=[extra], environment=None)
            if package.name == "flash-attn"
        )
        for extra in ("old", "new")
    }
    assert by_extra == {
        "old": ["2.8.3+cu130torch2.14"],
        "new": ["2.8.3.post1+cu130torch2.14"],
    }


def test_other_formats_of_two_gpus(
    write: Writer, two_hosts: list[str], schema: dict[str, Any], tmp_path: Path
) -> None:
    document = validate(write("pixi.toml", *two_hosts, packages=("flash-attn",)), schema)
    for name, version in (("old", "2.8.3%2B"), ("new", "2.8.3.post1%2B")):
        assert version in document["feature"][name]["pypi-dependencies"]["flash-attn"]["url"]
        assert document["environments"][name]["features"] == [name]
    assert "pypi-dependencies" not in document
    project = parse_toml(write("pyproject.toml", *two_hosts, packages=("flash-attn",)), "p")
    extras = project["project"]["optional-dependencies"]
    assert "2.8.3%2B" in extras["old"][-1]
    assert "2.8.3.post1%2B" in extras["new"][-1]
    assert project["tool"]["uv"]["conflicts"] == [[{"extra": "old"}, {"extra": "new"}]]
    main_words = ["--output", str(tmp_path / "requirements.txt"), "-q", *two_hosts]
    index = project["tool"]["wheelfarm"]["lock"]["index"]
    assert main(["resolve", "flash-attn", "--index", index, *main_words]) == 0
    assert "post1" not in (tmp_path / "requirements-old.txt").read_text(encoding="utf-8")
    assert "post1" in (tmp_path / "requirements-new.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name", ["requirements.txt", "pylock.toml", "pixi.toml", "pyproject.toml", "constraints.txt"]
)
def test_a_lock_is_checked_kept_and_upgraded(
    write: Writer,
    site: FarmSite,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    first = write(name)
    path = str(tmp_path / name)
    assert main(["resolve", "--check", path]) == 0
    site.add(f"diso-0.2.0+cu130torch2.14-{CELL}", requires=("torch",))
    site.write()
    assert main(["resolve", "--check", path]) == 0
    assert write(name) == first
    assert "diso-0.2.0" in write(name, "--upgrade")
    site.wheels["diso"].pop()
    site.write()
    capsys.readouterr()
    assert main(["resolve", "--check", path]) == 1
    assert "diso-0.2.0+cu130torch2.14" in capsys.readouterr().out


def test_a_check_asks_the_locks_own_index(
    write: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("pylock.toml")
    empty = FarmSite(tmp_path / "empty").write_empty()
    words = ["resolve", "--check", str(tmp_path / "pylock.toml")]
    monkeypatch.setenv("WHEELFARM_INDEX", str(empty))
    assert main(words) == 0
    assert main([*words, "--index", str(empty)]) == 1


def test_a_check_names_changed_bytes(
    write: Writer, site: FarmSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("pylock.toml")
    site.wheels["diso"][0]["sha256"] = "0" * 64
    site.write()
    assert main(["resolve", "--check", str(tmp_path / "pylock.toml")]) == 1
    assert "has other bytes now" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["pixi.toml", "pyproject.toml"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_users_file_keeps_its_line_ends_its_mark_and_its_mode(
    write: Writer, tmp_path: Path, name: str, mark: str, end: str
) -> None:
    path = tmp_path / name
    mine = PIXI if name == "pixi.toml" else PROJECT
    path.write_bytes((mark + mine.replace("\n", end)).encode())
    path.chmod(0o640)
    write(name)
    data = path.read_bytes().decode()
    assert data.startswith(mark + mine.partition("\n")[0] + end)
    assert data.count("\ufeff") == len(mark)
    assert data.count("\n") == data.count(end)
    assert path.stat().st_mode & 0o777 == 0o640
    assert "#sha256=" in data
    assert main(["resolve", "--check", str(path)]) == 0
    write(name)
    assert path.read_bytes().decode() == data


def test_a_file_with_both_line_ends_keeps_each(write: Writer, tmp_path: Path) -> None:
    path = tmp_path / "pixi.toml"
    path.write_bytes(PIXI.replace("[workspace]\n", "[workspace]\r\n").encode())
    write("pixi.toml")
    assert b'[workspace]\r\nname = "mine"\n' in path.read_bytes()


@pytest.mark.parametrize(
    "packages",
    [
        *("3", "[3]", '[{name = "diso", tool = "x"}]', '[{name = "diso", wheels = 3}]'),
        *('[{name = "diso", wheels = [3]}]', '[{name = "diso", wheels = [{hashes = 3}]}]'),
        *('[{name = "diso", tool = {wheelfarm = 3}}]', '[{name = "diso", marker = 3}]'),
        '[{name = "diso", wheels = [{path = "a.whl", hashes = {sha512 = "0"}}]}]',
    ],
)
def test_a_damaged_pylock_is_bad_input(write: Writer, tmp_path: Path, packages: str) -> None:
    from wheelfarm.errors import BadInputError
    from wheelfarm.resolve.locked import read_lock

    write("pylock.toml")
    path = tmp_path / "pylock.toml"
    document = tomlkit.parse(path.read_text(encoding="utf-8"))
    assert len(read_lock(path).wheels) == len(document["packages"])
    del document["packages"]
    note = tomlkit.dumps(document)
    path.write_text(note.replace("[tool", f"packages = {packages}\n[tool", 1), encoding="utf-8")
    with pytest.raises(BadInputError, match="packages"):
        read_lock(path)


@pytest.mark.parametrize("name", ["requirements.txt", "constraints.txt", "pylock.toml"])
def test_a_file_that_is_not_ours_is_not_replaced(write: Writer, tmp_path: Path, name: str) -> None:
    from wheelfarm.errors import BadInputError

    path = tmp_path / name
    mine = 'lock-version = "1.0"\n' if name == "pylock.toml" else "numpy>=1 # mine\n"
    path.write_text(mine, encoding="utf-8")
    with pytest.raises(BadInputError, match="was not written by wheelfarm"):
        write(name)
    assert path.read_text(encoding="utf-8") == mine
    path.write_text("", encoding="utf-8")
    write(name)


@pytest.mark.parametrize("name", ["pixi.toml", "pyproject.toml", "requirements.txt"])
def test_a_file_that_is_no_text_is_bad_input(write: Writer, tmp_path: Path, name: str) -> None:
    from wheelfarm.errors import BadInputError

    path = tmp_path / name
    data = "# mine\n".encode("utf-16")
    path.write_bytes(data)
    with pytest.raises(BadInputError, match="is UTF-16 text"):
        write(name)
    assert path.read_bytes() == data


def test_other_spellings_of_a_name_are_replaced_and_not_repeated(
    write: Writer, schema: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "pixi.toml"
    path.write_text(PIXI + '# mine\nDiso = ">=0.1"\nTorch = "*"\n', encoding="utf-8")
    packages = validate(write("pixi.toml"), schema)["pypi-dependencies"]
    assert set(packages) == {"numpy", "Diso", "Torch", "gsplat", "cuda-toolkit"}
    assert packages["Torch"] == {"version": "==2.14.1"}
    assert "#sha256=" in packages["Diso"]["url"]
    assert main(["resolve", "--check", str(path)]) == 0


@pytest.mark.parametrize("target", ["linux-64", "linux", "unix"])
def test_a_target_that_would_count_more_is_said(write: Writer, tmp_path: Path, target: str) -> None:
    from wheelfarm.errors import BadInputError

    path = tmp_path / "pixi.toml"
    mine = f'{PIXI}[target.{target}.pypi-dependencies]\nTorch = "*"\n'
    path.write_text(mine, encoding="utf-8")
    with pytest.raises(BadInputError, match=f"target.{target}.pypi-dependencies.Torch"):
        write("pixi.toml")
    assert path.read_text(encoding="utf-8") == mine
    path.write_text(mine.replace(f"target.{target}", "target.osx-arm64"), encoding="utf-8")
    write("pixi.toml")


def test_requirements_of_a_project_keep_extras_markers_and_other_systems(
    write: Writer, site: FarmSite, tmp_path: Path
) -> None:
    path = tmp_path / "pyproject.toml"
    mine = """\
[project]
name = "mine"
version = "1"
requires-python = "==PYTHON.*"
dependencies = [
    "torch==2.1 ; sys_platform == 'darwin'",
    "torch==2.2 ; sys_platform == 'linux'",
    "Diso[all]>=0.1 ; python_version > '3'", # the mesh extractor
    "gsplat>1 ; sys_platform == 'win32'",
]

[tool.uv]
override-dependencies = ["torch; sys_platform == 'never'"]

[tool.uv.sources]
Diso = { git = "https://git.invalid/diso" }
"""
    path.write_text(mine.replace("PYTHON", PYTHON), encoding="utf-8")
    text = write("pyproject.toml")
    lines = parse_toml(text, "pyproject.toml")["project"]["dependencies"]
    assert lines[0] == "torch==2.1 ; sys_platform == 'darwin'"
    assert lines[1] == 'torch==2.14.1 ; sys_platform == "linux"'
    assert lines[2].startswith("diso[all] @ http")
    assert lines[2].endswith(' ; python_version > "3"')
    assert lines[3] == "gsplat>1 ; sys_platform == 'win32'"
    assert lines[4].endswith(' ; sys_platform == "linux" and platform_machine == "x86_64"')
    assert len(lines) == 5
    assert "# the mesh extractor" in text
    assert "git.invalid" not in text
    assert main(["resolve", "--check", str(path)]) == 0
    assert write("pyproject.toml") == text
    ours = json.dumps([lines[2], lines[4]])
    start, end = text.index("dependencies = ["), text.index("[tool.uv]")
    path.write_text(f"{text[:start]}dependencies = {ours}\n{text[end:]}", encoding="utf-8")
    locked = uv("lock", "--python", sys.executable, cwd=tmp_path)
    assert locked.returncode == 0, locked.stderr
    lock = (tmp_path / "uv.lock").read_text(encoding="utf-8")
    assert all(site.wheels[name][0]["sha256"] in lock for name in ("diso", "gsplat"))


@pytest.mark.parametrize(
    "mine",
    ['[build-system]\nrequires = ["setuptools"]\n', '[tool.poetry]\nname = "x"\nversion = "1"\n'],
)
def test_a_package_whose_name_stands_elsewhere_is_not_renamed(
    write: Writer, tmp_path: Path, mine: str
) -> None:
    from wheelfarm.errors import BadInputError

    path = tmp_path / "pyproject.toml"
    path.write_text(mine, encoding="utf-8")
    with pytest.raises(BadInputError, match=r"has no \[project\]"):
        write("pyproject.toml")
    assert path.read_text(encoding="utf-8") == mine
    # A file of other tools' settings alone becomes a project.
    path.write_text("[tool.ruff]\nline-length = 100\n", encoding="utf-8")
    assert "[project]" in write("pyproject.toml")


def test_dynamic_dependencies_are_refused(write: Writer, tmp_path: Path) -> None:
    from wheelfarm.errors import BadInputError

    path = tmp_path / "pyproject.toml"
    mine = '[project]\nname = "mine"\nversion = "1"\ndynamic = ["dependencies"]\n'
    path.write_text(mine, encoding="utf-8")
    with pytest.raises(BadInputError, match=r"project\.dependencies is dynamic"):
        write("pyproject.toml")
    assert path.read_text(encoding="utf-8") == mine


@pytest.mark.parametrize("name", ["requirements.txt", "constraints.txt"])
def test_each_profiles_file_is_checked_kept_and_upgraded(
    write: Writer, site: FarmSite, two_hosts: list[str], tmp_path: Path, name: str
) -> None:
    def written() -> list[str]:
        main(["resolve", "flash-attn", *words])
        return [path.read_text(encoding="utf-8") for path in paths]

    stem = name.removesuffix(".txt")
    paths = [tmp_path / f"{stem}-{profile}.txt" for profile in ("old", "new")]
    index = parse_toml(write("pylock.toml", *two_hosts), "pylock")["tool"]["wheelfarm"]["index"]
    words = ["--index", index, "--output", str(tmp_path / name), "-q", *two_hosts]
    first = written()
    assert all(main(["resolve", "--check", str(path)]) == 0 for path in paths)
    modules = [{"path": "flash.so", "sass": ["8.6", "12.0"]}]
    site.add(f"flash_attn-3.0+cu130torch2.14-{CELL}", requires=("torch",), modules=modules)
    site.write()
    assert written() == first
    words.append("--upgrade")
    assert all("flash_attn-3.0" in text for text in written())


def test_a_profile_that_has_an_answer_is_told_beside_one_that_has_none(
    write: Writer, two_hosts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = parse_toml(write("pylock.toml", *two_hosts), "pylock")["tool"]["wheelfarm"]["index"]
    capsys.readouterr()
    words = ["--index", index, *two_hosts]
    assert main(["resolve", "flash-attn==2.8.3", *words]) == 1
    out = capsys.readouterr().out
    assert (
        "old: for torch 2.14.1, cu130 there is an answer\nnew:\nflash-attn==2.8.3: no wheel" in out
    )


def test_a_feature_keeps_its_spelling_and_an_environment_that_has_it(
    write: Writer, schema: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "pixi.toml"
    mine = f'{PIXI}\n[feature.GPU.dependencies]\nffmpeg = "*"\n\n[environments]\nprod = ["GPU"]\n'
    path.write_text(mine, encoding="utf-8")
    document = validate(write("pixi.toml", "--feature", "GPU"), schema)
    assert set(document["feature"]) == {"GPU"}
    assert "diso" in document["feature"]["GPU"]["pypi-dependencies"]
    assert document["environments"] == {"prod": ["GPU"]}
    assert document["feature"]["GPU"]["platforms"] == ["linux-64-gpu"]
    path.write_text(PIXI, encoding="utf-8")
    document = validate(write("pixi.toml", "--feature", "My GPU"), schema)
    assert document["environments"] == {"my-gpu": {"features": ["My GPU"]}}
    assert document["feature"]["My GPU"]["platforms"] == ["linux-64-my-gpu"]


HEAD = '[workspace]\nname = "x"\nchannels = []\n'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pixi.toml", "workspace = 3\n"),
        ("pixi.toml", HEAD + 'platforms = "linux-64"\n'),
        ("pixi.toml", HEAD + "[other]\n[workspace.x]\n" + "pypi-dependencies = 3\n[y]\n"),
        ("pixi.toml", "pypi-dependencies = 3\n" + HEAD),
        ("pixi.toml", "target = 3\n" + HEAD),
        ("pixi.toml", "feature = 3\nenvironments = 3\n" + HEAD),
        ("pyproject.toml", "project = 3\n"),
        ("pyproject.toml", '[project]\nname = "x"\ndependencies = "torch"\n'),
        ("pyproject.toml", '[project]\nname = "x"\noptional-dependencies = 3\n'),
        ("pyproject.toml", '[project]\nname = "x"\n[tool]\nuv = 3\n'),
        ("pyproject.toml", '[project]\nname = "x"\n[tool.uv]\nsources = [1]\n'),
        ("pyproject.toml", '[project]\nname = "x"\n[tool.uv]\nindex = { a = 1 }\n'),
        ("pyproject.toml", '[project]\nname = "x"\n[tool.uv]\nconflicts = 3\n'),
        ("pyproject.toml", '[project]\nname = "x"\ndependencies = [3, { a = 1 }]\n'),
        ("pyproject.toml", 'tool = { uv = {}, x = {} }\nproject = { name = "x" }\n'),
        ("pyproject.toml", '[project]\nname = "x"\n[tool.uv]\nindex = [{ name = "a" }]\n'),
        ("pixi.toml", 'workspace = { name = "x", channels = [] }\nfeature = { b = {} }\n'),
        ("pyproject.toml", 'project = { name = "x" }\ntool.uv.conflicts = []\ntool.x = 1\n'),
    ],
)
@pytest.mark.parametrize("more", [(), ("--feature", "a"), ("profiles",)])
def test_a_file_of_another_shape_is_bad_input_or_whole(
    write: Writer,
    two_hosts: list[str],
    tmp_path: Path,
    *,
    name: str,
    text: str,
    more: tuple[str, ...],
) -> None:
    from wheelfarm.errors import BadInputError

    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    before = parse_toml(text, name)
    words = two_hosts if more == ("profiles",) else more
    try:
        write(name, *words, packages=("flash-attn",) if words is two_hosts else ("diso",))
    except BadInputError:
        assert path.read_text(encoding="utf-8") == text
        return
    after = parse_toml(path.read_text(encoding="utf-8"), name)
    assert set(before) <= set(after)
    assert set(before.get("tool", {})) <= set(after["tool"])
    assert main(["resolve", "--check", str(path)]) == 0
