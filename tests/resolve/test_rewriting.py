"""A user's own file that is written again: what is ours follows the answer, the rest stays."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from tests.farm_site import FarmSite
from tests.loopback import Loopback
from tests.resolve.locks import PIXI, Writer, host_file, validate
from tests.resolve.shelf import Shelf, host
from wheelfarm.cli import main
from wheelfarm.errors import BadInputError
from wheelfarm.reading import parse_toml
from wheelfarm.resolve.lock import Profile, Question, stated_facts
from wheelfarm.resolve.session import FORMATS, lock_files

SHELF = (
    Shelf()
    .add("diso-0.1.4+cu130torch2.14-cp311-cp311-linux_x86_64.whl")
    .add("gsplat-1.5.3+cu130torch2.14-cp311-cp311-manylinux_2_31_x86_64.whl", runtime_jit=True)
)


def rewritten(kind: str, text: str, profiles: tuple[str, ...], feature: str = "") -> str:
    """Return what becomes of a user's text; ``profiles`` are names, none for one host."""
    answers = [
        Profile(name=name, resolution=SHELF.resolve(host(), "diso", "gsplat"))
        for name in profiles or ("",)
    ]
    question = Question(
        index="https://wheels.invalid/",
        packages=("diso", "gsplat"),
        profiles={each.name: stated_facts(each.resolution.host) for each in answers},
    )
    name = FORMATS[kind]
    written = lock_files(answers, question, kind, Path(name), existing=text, feature=feature)
    return written.texts[name]


PIXI_PARTS = (
    '[workspace]\nname = "x"\nchannels = []\nplatforms = ["linux-64"] # one\n',
    'workspace = {name = "x", channels = [], platforms = ["linux-64"]}\n',
    '[workspace]\nname = "x"\nchannels = []\nplatforms = [\n"linux-64",\n"osx-64", # two\n]\n',
    '[pypi-dependencies]\nnumpy = "*" # n\n',
    '[pypi-dependencies]\ndiso = ">=0.1"\n\n\n',
    '[dependencies]\npython = ">=3.9"\n',
    '[feature.a.dependencies]\nninja = "*"\n',
    '[feature.a]\nplatforms = ["linux-64"]\n[feature.a.pypi-dependencies]\ndiso = "*"\n',
    '[environments]\na = ["a"]\n',
    "[tool.mine]\nx = 1\n",
    '[tasks]\nx = """\n[y]\n"""\n\n# the end of tasks\n',
    '[target.linux-64]\n[target.osx-arm64.pypi-dependencies]\ntorch = "*"\n',
    '[system-requirements]\ncuda = "12"\n',
)
UV_PARTS = (
    '[project]\nname = "x"\nversion = "1"\nrequires-python = ">=3.9"\n',
    '[project]\nname = "x"\nversion = "1"\ndependencies = [\n  "numpy", # n\n  # after\n]\n',
    'project = {name = "x", version = "1"}\n',
    '[project.optional-dependencies]\na = ["diso"]\n',
    "[tool.uv]\npackage = false\n",
    '[tool.uv.sources]\ntorch = {index = "x"}\n[[tool.uv.index]]\nname = "x"\nurl = "https://x"\n',
    '[dependency-groups]\ndev = ["a"]\n',
    "[tool.mine]\nx = 1\n",
    "[tool]\nuv.package = true\n",
    "[tool.uv]\nenvironments = [\"sys_platform == 'linux'\"]\n",
    '[tool.wheelfarm]\npackages = ["diso"]\n',
    "# the end\n",
)


@given(
    kind_and_parts=st.sampled_from([("pixi", PIXI_PARTS), ("uv", UV_PARTS)]).flatmap(
        lambda pair: st.tuples(st.just(pair[0]), st.permutations(pair[1]))
    ),
    count=st.integers(0, 5),
    between=st.sampled_from(["", "\n"]),
    into=st.sampled_from([((), ""), ((), "a"), (("a", "b"), "")]),
)
def test_a_second_writing_changes_no_byte(
    kind_and_parts: tuple[str, list[str]],
    count: int,
    between: str,
    into: tuple[tuple[str, ...], str],
) -> None:
    kind, parts = kind_and_parts
    profiles, feature = into
    text = between.join(parts[:count])
    try:
        parse_toml(text, "x")
        once = rewritten(kind, text, profiles, feature)
    except BadInputError:
        return
    assert rewritten(kind, once, profiles, feature) == once
    before = {line for line in text.splitlines() if line.startswith("#")}
    assert before <= set(once.splitlines())


def test_new_tables_stand_apart() -> None:
    lines = rewritten("uv", "[tool.uv]\npackage = false\n[tool.mine]\nx = 1\n", ()).splitlines()
    places = [number for number, line in enumerate(lines) if line.startswith("[")]
    assert all(number == 0 or lines[number - 1] == "" for number in places)


def packages(text: str, name: str) -> set[str]:
    document = parse_toml(text, name)
    if name == "pixi.toml":
        return set(document.get("pypi-dependencies", {}))
    return {
        line.partition(" @")[0].partition("==")[0] for line in document["project"]["dependencies"]
    }


@pytest.mark.parametrize("name", ["pixi.toml", "pyproject.toml"])
def test_what_is_no_longer_asked_for_is_taken_out(
    write: Writer, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = tmp_path / name
    write(name)
    assert {"diso", "gsplat"} <= packages(path.read_text(encoding="utf-8"), name)
    text = write(name, packages=("diso",))
    assert not {"gsplat", "cuda-toolkit"} & packages(text, name)
    assert "gsplat out of" in capsys.readouterr().err
    assert main(["resolve", "--check", str(path)]) == 0
    assert write(name, packages=("diso",)) == text


@pytest.mark.parametrize("name", ["pixi.toml", "pyproject.toml"])
def test_what_the_user_had_is_not_taken_out(write: Writer, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    other = f"https://x.invalid/other-1-py3-none-any.whl#sha256={'0' * 64}"
    mine = {
        "pixi.toml": f'{PIXI}gsplat = ">=1"\nother = {{ url = "{other}" }}\n',
        "pyproject.toml": '[project]\nname = "x"\nversion = "1"\n'
        f'dependencies = ["gsplat>=1", "other @ {other}"]\n',
    }
    path.write_text(mine[name], encoding="utf-8")
    write(name)
    assert {"gsplat", "other"} <= packages(write(name, packages=("diso",)), name)
    # What is the user's own, by an address or not, is no question of the lock's.
    assert main(["resolve", "--check", str(path)]) == 0


def test_other_profiles_take_the_place_of_a_feature(
    write: Writer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pixi.toml"
    path.write_text(PIXI + '[feature.mine.dependencies]\ncmake = "*"\n', encoding="utf-8")
    write("pixi.toml", "--feature", "mine", packages=("diso",))
    facts = ("--torch", "2.14.1+cu130", "--libc", "2.36")
    saved = host_file(tmp_path / "a.json", *facts, capsys=capsys)
    write("pixi.toml", "--profile", f"old={saved}", "--profile", f"new={saved}", packages=("diso",))
    text = write("pixi.toml", "--profile", f"new={saved}", packages=("diso",))
    document = parse_toml(text, "pixi.toml")
    assert document["feature"]["mine"] == {"dependencies": {"cmake": "*"}}
    assert set(document["feature"]) == {"mine", "new"}
    assert document["environments"] == {"new": {"features": ["new"], "no-default-feature": True}}
    assert main(["resolve", "--check", str(path)]) == 0


WriteTwo = Callable[[str], str]


@pytest.fixture
def write_two(
    site: FarmSite, server: Loopback, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> WriteTwo:
    """Return a function that writes pixi.toml for a host of a Python, 3.10 or 3.12."""
    words_of = {}
    for tag, version in (("cp310", "3.10"), ("cp312", "3.12")):
        site.add(f"two-1.0+cu130torch2.14-{tag}-{tag}-linux_x86_64.whl", requires=("torch",))
        facts = ("--torch", "2.14.1+cu130", "--libc", "2.36", "--python-version", version)
        words_of[version] = str(host_file(tmp_path / f"{tag}.json", *facts, capsys=capsys))
    site.write()
    path = tmp_path / "pixi.toml"

    def run(version: str) -> str:
        words = ["--host", words_of[version], "--output", str(path), "-q"]
        assert main(["resolve", "two", "--index", server.url, *words]) == 0
        return path.read_text(encoding="utf-8")

    return run


@pytest.mark.parametrize("stated", ["", "*", ">=3.9", ">=3.9,<3.14", "3.10.*|3.12.*"])
def test_the_python_of_a_manifest_follows_the_wheels(
    write_two: WriteTwo, schema: dict[str, Any], tmp_path: Path, stated: str
) -> None:
    path = tmp_path / "pixi.toml"
    mine = f"\n[dependencies]\npython = {json.dumps(stated)}\n" if stated else ""
    path.write_text(PIXI + mine, encoding="utf-8")
    for version in ("3.10", "3.12"):
        document = validate(write_two(version), schema)
        found = document["target"]["linux-64"] if stated else document
        assert found["dependencies"]["python"] == f"{version}.*"
        assert document["dependencies"]["python"] == (stated or f"{version}.*")


@pytest.mark.parametrize(
    ("table", "stated"),
    [
        ("dependencies", "3.11.*"),
        ("target.linux-64.dependencies", ">=3.11"),
        ("dependencies", "<3.10"),
    ],
)
def test_a_manifest_of_other_pythons_is_refused(
    write_two: WriteTwo, tmp_path: Path, table: str, stated: str
) -> None:
    path = tmp_path / "pixi.toml"
    mine = f'{PIXI}\n[{table}]\npython = "{stated}"\n'
    path.write_text(mine, encoding="utf-8")
    with pytest.raises(BadInputError, match=r"and these wheels are for 3\.10"):
        write_two("3.10")
    assert path.read_text(encoding="utf-8") == mine


@pytest.mark.parametrize("stated", ["~=3", "3.11.* *_cpython", "==", "!=3.9.*|~=3"])
def test_a_python_that_only_conda_can_read_stays(
    write_two: WriteTwo, tmp_path: Path, stated: str
) -> None:
    path = tmp_path / "pixi.toml"
    path.write_text(f'{PIXI}\n[dependencies]\npython = "{stated}"\n', encoding="utf-8")
    write_two("3.10")
    assert f'python = "{stated}"' in path.read_text(encoding="utf-8")


def test_a_manifest_of_several_platforms_has_the_wheels_at_their_own(
    write: Writer, schema: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "pixi.toml"
    path.write_text(PIXI, encoding="utf-8")
    first = validate(write("pixi.toml"), schema)
    assert "diso" in first["pypi-dependencies"]
    document = tomlkit.parse(path.read_text(encoding="utf-8"))
    document["workspace"]["platforms"].append("osx-arm64")
    document["pypi-dependencies"]["gsplat"] = ">=1"
    path.write_text(tomlkit.dumps(document), encoding="utf-8")
    text = write("pixi.toml")
    found = validate(text, schema)
    own = found["target"]["linux-64"]
    assert set(own["pypi-dependencies"]) == {"torch", "diso", "gsplat", "cuda-toolkit"}
    assert set(own["dependencies"]) == {"python", "cxx-compiler", "ninja"}
    # What stood at the top was ours, and would be solved for the other platform too.
    assert set(found["pypi-dependencies"]) == {"numpy"}
    assert main(["resolve", "--check", str(path)]) == 0
    assert write("pixi.toml") == text


SOURCES = """
[tool.uv.sources]
torch = [
  { index = "cpu", marker = "sys_platform == 'darwin'" }, # at home
  { index = "old", marker = "sys_platform == 'linux'" },
]

[[tool.uv.index]]
name = "cpu"
url = "https://x.invalid/cpu"
explicit = true

[[tool.uv.index]]
name = "old"
url = "https://x.invalid/old"
explicit = true
"""


def test_sources_of_other_systems_stay() -> None:
    text = rewritten("uv", SOURCES, ())
    uv = parse_toml(text, "p")["tool"]["uv"]
    assert uv["sources"]["torch"] == [
        {"index": "cpu", "marker": "sys_platform == 'darwin'"},
        {"index": "pytorch-cu130", "marker": "sys_platform == 'linux'"},
    ]
    assert [index["name"] for index in uv["index"]] == ["cpu", "old", "pytorch-cu130"]
    assert "# at home" in text
    assert rewritten("uv", text, ()) == text
    alone = SOURCES.replace("""  { index = "old", marker = "sys_platform == 'linux'" },\n""", "")
    head = '[project]\nname = "x"\nversion = "1"\ndependencies = ["torch>=2"]\n'
    text = rewritten("uv", head + alone, ())
    document = parse_toml(text, "p")
    here = 'sys_platform == "linux" and platform_machine == "x86_64"'
    assert document["tool"]["uv"]["sources"]["torch"][1]["marker"] == here
    # What the project asks of torch elsewhere stays, and goes to its own source there.
    lines = [line for line in document["project"]["dependencies"] if "torch" in line[:5]]
    assert lines == ["torch>=2", f"torch==2.14.1+cu130 ; {here}"]
    assert rewritten("uv", text, ()) == text


def test_sources_of_other_extras_stay_or_are_said() -> None:
    mine = SOURCES.replace("marker = \"sys_platform == 'darwin'\"", 'extra = "cpu"')
    mine = mine.replace("marker = \"sys_platform == 'linux'\"", 'extra = "a"')
    with pytest.raises(BadInputError, match=r"sources\.torch has a source for the extra 'cpu'"):
        rewritten("uv", mine, ())
    uv = parse_toml(rewritten("uv", mine, ("a", "b")), "p")["tool"]["uv"]
    assert uv["sources"]["torch"] == [
        {"index": "cpu", "extra": "cpu"},
        {"index": "pytorch-cu130", "extra": "a"},
        {"index": "pytorch-cu130", "extra": "b"},
    ]
    tables = "".join(
        f'[[tool.uv.sources.torch]] # mine\nindex = "{index}"\nextra = "{extra}"\n\n'
        for index, extra in (("cpu", "cpu"), ("old", "a"))
    )
    text = rewritten("uv", tables, ("a", "b"))
    assert parse_toml(text, "p")["tool"]["uv"]["sources"] == uv["sources"]
    assert '[[tool.uv.sources.torch]] # mine\nindex = "cpu"\nextra = "cpu"\n' in text
    assert rewritten("uv", text, ("a", "b")) == text
