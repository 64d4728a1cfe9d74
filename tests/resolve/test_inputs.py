"""What a user may give: a list, requirements, pyproject.toml, comfy-env.toml; and faults."""

import json
import sys
from pathlib import Path

import pytest

from tests.fake_environment import install, install_torch, make_environment, site_packages
from tests.farm_site import FarmSite, make_wheel
from tests.loopback import Loopback
from wheelfarm.cli import main
from wheelfarm.errors import BadInputError, NegativeVerdictError, UsageError
from wheelfarm.reading import parse_toml
from wheelfarm.resolve.inputs import read_input

CELL = "cp311-cp311-manylinux_2_28_x86_64.whl"
MACHINE = [
    *("--platform", "linux_x86_64", "--python-version", "3.11", "--libc", "2.36"),
    *("--torch", "2.14.1+cu130"),
]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


@pytest.fixture
def index(site: FarmSite, server: Loopback) -> str:
    site.add(f"diso-0.1.4+cu130torch2.14-{CELL}")
    site.add(f"flash_attn-2.8.3+cu130torch2.14-{CELL}")
    site.write()
    return server.url


def test_requirements_leave_the_rest_to_the_installer(
    index: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("more.txt").write_text("flash-attn>=2 ; sys_platform == 'linux'\n", encoding="utf-8")
    Path("requirements.txt").write_text(
        "# comment\n--extra-index-url https://x.invalid\n-r more.txt\ndiso # here\n"
        "numpy>=1.26 --hash=sha256:0\ntorch>=2.4\ndiso ; sys_platform == 'win32'\n"
        "local @ file:///x.whl\n",
        encoding="utf-8",
    )
    words = ["--from", "requirements.txt", "--index", index, "--json", *MACHINE]
    assert main(["resolve", *words]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [wheel["name"] for wheel in document["wheels"]] == ["diso", "flash-attn"]
    assert "left to the installer: numpy>=1.26" in document["notes"]


def test_a_requirements_file_may_hold_all_that_pips_does(
    index: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("requirements.txt").write_bytes(
        b"--pre\r\n-i https://me:secret@x.invalid/simple\r\n--find-links=links\r\n"
        b"diso>=0.1 \\\r\n    --hash=sha256:0\r\n./local.whl\r\n.\r\n"
        b"sub/project ; python_version>'3'\r\n"
        b"-e git+https://token@x.invalid/y\r\nother@https://me:secret@x.invalid/z.whl\r\n"
    )
    words = ["--from", "requirements.txt", "--index", index, "--json", *MACHINE]
    assert main(["resolve", *words]) == 0
    text = capsys.readouterr().out
    document = json.loads(text)
    assert [wheel["name"] for wheel in document["wheels"]] == ["diso"]
    left, _, options = document["notes"][-3:]
    assert "./local.whl, ., sub/project ; python_version>'3', -e git+https://x.invalid/y" in left
    assert "other@https://x.invalid/z.whl" in left
    assert options.startswith("-i, --find-links of requirements.txt is for an installer")
    assert "secret" not in text
    assert "token" not in text


def test_pre_of_a_requirements_file_counts(
    index: str, site: FarmSite, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add("diso-9.0rc1+cu130torch2.14-cp311-cp311-manylinux_2_28_x86_64.whl")
    site.write()
    for text, version in (("diso\n", "0.1.4"), ("diso\n--pre\n", "9.0rc1")):
        Path("requirements.txt").write_text(text, encoding="utf-8")
        words = ["--from", "requirements.txt", "--index", index, "--json", *MACHINE]
        assert main(["resolve", *words]) == 0
        (wheel,) = json.loads(capsys.readouterr().out)["wheels"]
        assert wheel["version"].startswith(version)


def test_a_requirements_file_that_names_an_address_is_said(index: str) -> None:
    Path("requirements.txt").write_text("-r https://me:secret@x.invalid/y.txt\n", encoding="utf-8")
    with pytest.raises(BadInputError, match=r"names https://x\.invalid/y\.txt, and only files"):
        main(["resolve", "--from", "requirements.txt", "--index", index, *MACHINE])


def test_the_projects_own_settings_are_found(
    index: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("pyproject.toml").write_text(
        f'[tool.wheelfarm]\npackages = ["diso"]\nindex = "{index}"\n', encoding="utf-8"
    )
    assert main(["resolve", "--json", *MACHINE]) == 0
    assert json.loads(capsys.readouterr().out)["wheels"][0]["name"] == "diso"


def test_each_backend_may_have_its_index(
    site: FarmSite, server: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add(f"diso-0.1.4+rocm6.4torch2.9-{CELL}")
    site.write()
    Path("pyproject.toml").write_text(
        '[tool.wheelfarm]\npackages = ["diso"]\nindex = "https://cuda.invalid/"\n'
        f'indexes = {{ rocm = "{server.url}" }}\n',
        encoding="utf-8",
    )
    machine = [*MACHINE[:-1], "2.9.0+rocm6.4"]
    assert main(["resolve", "--json", *machine]) == 0
    assert "rocm6.4" in json.loads(capsys.readouterr().out)["wheels"][0]["filename"]


def test_the_environments_index_for_a_backend(
    site: FarmSite, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add(f"diso-0.1.4+rocm6.4torch2.9-{CELL}")
    site.write()
    monkeypatch.setenv("WHEELFARM_INDEX", "https://cuda.invalid/")
    monkeypatch.setenv("WHEELFARM_INDEX_ROCM", server.url)
    assert main(["resolve", "diso", *MACHINE[:-1], "2.9.0+rocm6.4"]) == 0


COMFY = """\
# a node pack
python = "3.11"

[cuda]
packages = ["diso", "flash-attn>=2"]

[dependencies]
ffmpeg = "*"

[pypi-dependencies]
trimesh = ">=4"
"""


def test_comfy_env_goes_into_pixi_with_its_other_tables(
    index: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path("comfy-env.toml")
    path.write_text(COMFY, encoding="utf-8")
    words = ["--from", "comfy-env.toml", "--index", index, "--output", "pixi.toml", *MACHINE]
    assert main(["resolve", *words]) == 0
    document = parse_toml(Path("pixi.toml").read_text(encoding="utf-8"), "pixi.toml")
    assert document["dependencies"]["ffmpeg"] == "*"
    assert document["pypi-dependencies"]["trimesh"] == ">=4"
    assert set(document["pypi-dependencies"]) >= {"diso", "flash-attn", "torch"}
    assert path.read_text(encoding="utf-8") == COMFY


def test_comfy_envs_other_tables_go_into_a_pixi_file_that_is_there(
    index: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("comfy-env.toml").write_text(COMFY, encoding="utf-8")
    Path("pixi.toml").write_text(
        '# mine\n[workspace]\nname = "x"\nchannels = ["conda-forge"]\nplatforms = []\n\n'
        '[pypi-dependencies]\ntrimesh = ">=3" # older\n',
        encoding="utf-8",
    )
    words = ["--from", "comfy-env.toml", "--index", index, "--output", "pixi.toml", *MACHINE]
    assert main(["resolve", *words]) == 0
    assert "pypi-dependencies.trimesh stays as pixi.toml has it" in capsys.readouterr().err
    text = Path("pixi.toml").read_text(encoding="utf-8")
    assert text.startswith("# mine\n")
    assert 'trimesh = ">=3" # older' in text
    document = parse_toml(text, "pixi.toml")
    assert document["dependencies"]["ffmpeg"] == "*"
    assert set(document["pypi-dependencies"]) >= {"diso", "flash-attn", "torch"}
    assert main(["resolve", *words]) == 0
    assert Path("pixi.toml").read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("pyproject.toml", "[tool.wheelfarm]\npackage = []\n", "did you mean 'packages'"),
        ("pyproject.toml", '[tool.wheelfarm]\npackages = ["a @ https://x/y"]\n', "address"),
        ("pyproject.toml", "[tool.wheelfarm]\npackages = 3\n", "expected a list"),
        ("pyproject.toml", "[tool.x]\n", "has no [tool.wheelfarm]"),
        ("pyproject.toml", "[tool", "no valid TOML"),
        ("comfy-env.toml", "[other]\n", "has no [cuda]"),
        ("requirements.txt", "???\n", "no requirement"),
        ("setup.cfg", "", "no requirements file"),
        ("requirements.txt", "\ufeff\x00", "no requirement"),
    ],
)
def test_faulty_input_is_named(name: str, text: str, said: str) -> None:
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInputError) as caught:
        read_input(path)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "words",
    [
        ["diso"],
        ["diso", "--index", "x", "--profile", "no-file"],
        ["diso", "--index", "x", "--profile", "UP=host.json"],
        ["diso", "--index", "INDEX", "--output", "lock.yaml"],
        ["diso", "--index", "INDEX", "--available", "--install"],
        ["diso", "--index", "INDEX", "--available", "--output", "pylock.toml"],
        ["diso", "--index", "INDEX", "--check", "pylock.toml"],
        ["--index", "INDEX", "--check", "pylock.toml", "--upgrade"],
    ],
)
def test_faulty_usage_is_exit_64(index: str, words: list[str]) -> None:
    with pytest.raises(UsageError):
        main(["resolve", *[index if word == "INDEX" else word for word in words], *MACHINE])


def test_a_repository_that_is_none_is_said_while_the_index_answers(index: str) -> None:
    words = ["resolve", "diso", "--index", index, "--releases", "farm", *MACHINE]
    with pytest.raises(BadInputError, match="expected owner/name"):
        main(words)


@pytest.mark.parametrize("words", [("--torch", "2.14.1+cu130"), ("--host", "host.json")])
def test_a_label_and_another_accelerator_contradict(
    words: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["host", "--json", *MACHINE])
    Path("host.json").write_text(capsys.readouterr().out, encoding="utf-8")
    common = ["--platform", "linux_x86_64", "--gpu", "none", *words]
    assert main(["host", *common, "--accelerator", "cu130"]) == 0
    with pytest.raises(BadInputError, match=r"says cu128, and torch 2\.14\.1\+cu130 is for cu130"):
        main(["host", *common, "--accelerator", "cu128"])


def test_the_projects_index_holds_for_words_too(
    index: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("pyproject.toml").write_text(
        f'[tool.wheelfarm]\npackages = ["flash-attn"]\nindex = "{index}"\n', encoding="utf-8"
    )
    assert main(["resolve", "diso", "--json", *MACHINE]) == 0
    wheels = json.loads(capsys.readouterr().out)["wheels"]
    assert [wheel["name"] for wheel in wheels] == ["diso"]


@pytest.mark.parametrize(
    "name", ["requirements.txt", "pylock.toml", "pixi.toml", "pyproject.toml", "constraints.txt"]
)
def test_a_login_in_the_indexs_address_reaches_no_lock_and_no_terminal(
    index: str, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    secret = index.replace("http://", "http://me:s3cret@")
    words = ["--index", secret, "--output", name, "--explain", *MACHINE]
    assert main(["resolve", "diso", *words]) == 0
    captured = capsys.readouterr()
    assert "s3cret" not in captured.out + captured.err
    assert "s3cret" not in Path(name).read_text(encoding="utf-8")
    assert main(["resolve", "absent", "--index", secret, *MACHINE]) == 1
    captured = capsys.readouterr()
    assert "s3cret" not in captured.out + captured.err


def test_a_lock_that_is_none_of_ours_is_named() -> None:
    Path("requirements.txt").write_text("diso\n", encoding="utf-8")
    with pytest.raises(BadInputError, match="no lock of ours"):
        main(["resolve", "--check", "requirements.txt"])


def test_explain_shows_every_candidate_and_available_every_cell(
    site: FarmSite, index: str, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add("diso-0.1.4+cu130torch2.14-cp312-cp312-win_amd64.whl")
    site.add(f"diso-0.1.4+cu128torch2.8-{CELL}")
    site.write()
    assert main(["resolve", "diso", "--explain", "--json", "--index", index, *MACHINE]) == 0
    decisions = json.loads(capsys.readouterr().out)["decisions"]["diso"]
    assert len(decisions) == 3
    assert [each["accepted"] for each in decisions] == [True, False, False]
    assert all(each["reason"] for each in decisions[1:])
    assert main(["resolve", "diso", "--explain", "--index", index, *MACHINE]) == 0
    assert "is for win_amd64" in capsys.readouterr().out
    assert main(["resolve", "--available", "--json", "--index", index, *MACHINE]) == 0
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert {(cell["package"], cell["accelerator"], cell["torch"]) for cell in cells} == {
        ("diso", "cu128", "2.8"),
        ("diso", "cu130", "2.14"),
        ("flash-attn", "cu130", "2.14"),
    }


# Installing.

TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"


@pytest.fixture
def python(tmp_path: Path) -> Path:
    found = make_environment(tmp_path / "environment")
    install_torch(found, "2.10.0+cu130")
    return found


def test_a_dry_run_and_the_real_one_print_the_same_plan(
    site: FarmSite, server: Loopback, python: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add(
        f"diso-0.1.4+cu130torch2.10-{TAG}-{TAG}-linux_x86_64.whl", requires=("torch>=1.9", "there")
    )
    site.write()
    install(python, "there", "1.0")
    words = ["--index", server.url, "--python", str(python), "--install", "--installer", "uv"]
    assert main(["resolve", "diso", *words, "--dry-run"]) == 0
    planned = capsys.readouterr().out
    assert not (site_packages(python) / "diso").exists()
    assert main(["resolve", "diso", *words]) == 0
    assert capsys.readouterr().out == planned
    assert "keep torch==2.10.0+cu130" in planned
    assert (site_packages(python) / "diso").is_dir()
    assert (site_packages(python) / "torch-2.10.0+cu130.dist-info").is_dir()


def test_a_requirement_that_would_move_torch_fails_and_changes_nothing(
    site: FarmSite, server: Loopback, python: Path
) -> None:
    from wheelfarm.run import ProgramFailedError

    page = site.folder / "others/torch-mover/index.html"
    page.parent.mkdir(parents=True)
    wheel = make_wheel(page.parent, "torch_mover-1.0-py3-none-any.whl", ("torch>=99",))
    page.write_text(f'<a href="{wheel.name}">{wheel.name}</a>', encoding="utf-8")
    cell = f"{TAG}-{TAG}-linux_x86_64.whl"
    site.add(f"diso-0.1.4+cu130torch2.10-{cell}", requires=("torch-mover",))
    site.write()
    before = sorted(path.name for path in site_packages(python).iterdir())
    words = ["--index", server.url, "--python", str(python), "--install", "--installer", "uv"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_DEFAULT_INDEX", f"{server.url}others/")
        with pytest.raises(ProgramFailedError) as caught:
            main(["resolve", "diso", *words])
    assert "torch" in str(caught.value)
    assert sorted(path.name for path in site_packages(python).iterdir()) == before


def test_an_answer_for_another_machine_is_not_installed_here(index: str) -> None:
    with pytest.raises(BadInputError, match="another machine"):
        main(["resolve", "diso", "--index", index, "--install", *MACHINE])


def test_the_target_interpreter_counts_and_not_the_one_that_runs(
    site: FarmSite, server: Loopback, python: Path, tmp_path: Path
) -> None:
    other = make_environment(tmp_path / "other")
    install_torch(other, "2.14.1+cu130")
    site.add(f"diso-0.1.4+cu130torch2.14-{TAG}-{TAG}-linux_x86_64.whl")
    site.write()
    assert main(["resolve", "diso", "--index", server.url, "--python", str(other)]) == 0
    assert main(["resolve", "diso", "--index", server.url, "--python", str(python)]) == 1


def test_a_conflict_with_an_asked_torch_is_a_negative_verdict(index: str) -> None:
    with pytest.raises(NegativeVerdictError):
        main(["resolve", "diso", "torch==2.9.*", "--index", index, *MACHINE])


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("# see [tool.wheelfarm]\n[project]\nname = 'x'\n", False),
        ("[tool.wheelfarm.lock]\nindex = 'x'\n", False),
        ("[tool]\nwheelfarm = { packages = ['flash-attn'] }\n", True),
        ("[tool . 'wheelfarm']\npackages = ['flash-attn']\n", True),
    ],
)
def test_the_projects_file_counts_where_it_has_our_table(
    index: str, text: str, asks: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("pyproject.toml").write_text(text, encoding="utf-8")
    assert main(["resolve", "diso", "--index", index, "--json", *MACHINE]) == 0
    capsys.readouterr()
    if asks:
        assert main(["resolve", "--index", index, "--json", *MACHINE]) == 0
        assert json.loads(capsys.readouterr().out)["wheels"][0]["name"] == "flash-attn"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", "diso\r\n"),
        ("pyproject.toml", "[tool.wheelfarm]\r\npackages = ['diso']\r\n"),
        ("comfy-env.toml", "[cuda]\r\npackages = ['diso']\r\n"),
    ],
)
def test_files_of_windows_editors_are_read(name: str, text: str) -> None:
    path = Path(name)
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert [str(each) for each in read_input(path).wanted] == ["diso"]
    path.write_text(text, encoding="utf-16")
    with pytest.raises(BadInputError, match="is UTF-16 text"):
        read_input(path)


def test_a_saved_host_with_a_byte_order_mark_is_read(
    index: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["host", "--json", *MACHINE, "--gpu", "9.0"])
    saved = Path("host.json")
    saved.write_bytes(b"\xef\xbb\xbf" + capsys.readouterr().out.encode())
    for words in (["--host", "host.json"], ["--profile", "a=host.json"]):
        assert main(["resolve", "diso", "--index", index, *words]) == 0
    saved.write_text("{}", encoding="utf-16")
    with pytest.raises(BadInputError, match="Out-File -Encoding utf8"):
        main(["resolve", "diso", "--index", index, "--host", "host.json"])


@pytest.mark.parametrize("word", ["linux-64", "win_amd64", "manylinux_2_28_x86_64", "linux", "mac"])
def test_a_platform_that_is_none_is_said(index: str, word: str) -> None:
    with pytest.raises(BadInputError, match=r"--platform: .* is no platform"):
        main(["resolve", "diso", "--index", index, *MACHINE, "--platform", word])


@pytest.mark.parametrize("text", ["{}", '{"name": "x"}', '{"schema": "wheelfarm.plan/1"}', "[]"])
def test_a_file_that_is_no_host_is_bad_input(index: str, text: str) -> None:
    Path("host.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadInputError, match=r"host\.json"):
        main(["resolve", "diso", "--index", index, "--host", "host.json"])


def test_constraints_narrow_and_what_counts_for_nothing_is_said(
    site: FarmSite, index: str, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add(f"diso-0.2.0+cu130torch2.14-{CELL}")
    site.add(f"flash_attn-2.9+cu130torch2.14-{CELL}")
    site.write()
    Path("limits.txt").write_text(
        "DISO<0.2\nflash-attn<1 ; sys_platform == 'win32'\nnumpy<2\nx @ https://x.invalid/x\n",
        encoding="utf-8",
    )
    Path("requirements.txt").write_text(
        "-c limits.txt\n-e .\nlocal @ file:///x.whl\nflash-attn\n"
        f"diso \\\n  --hash=sha256:{'0' * 64}\n--index-url https://x.invalid\n",
        encoding="utf-8",
    )
    words = ["--from", "requirements.txt", "--index", index, *MACHINE]
    assert main(["resolve", *words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    versions = {wheel["name"]: wheel["version"].partition("+")[0] for wheel in document["wheels"]}
    assert versions == {"diso": "0.1.4", "flash-attn": "2.9"}
    said = "\n".join(document["notes"])
    assert "left to the installer, of requirements.txt: -e ., local @ file:///x.whl" in said
    assert "hashes in requirements.txt are of other files" in said
    assert main(["resolve", *words, "--output", "pylock.toml"]) == 0
    assert main(["resolve", "--check", "pylock.toml"]) == 0


def test_what_a_marker_leaves_out_is_said(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["diso", "flash-attn; sys_platform == 'win32'", "--index", index, *MACHINE]
    assert main(["resolve", *words]) == 0
    said = capsys.readouterr()
    assert "flash" not in said.out
    assert "not asked for on this host, by its marker: flash-attn" in said.err
