"""A project that takes more Pythons than its wheels serve: what is written locks, or it is said."""

import json
import sys
from pathlib import Path

import pytest
import tomlkit

from tests.farm_site import FarmSite
from tests.loopback import Loopback
from tests.resolve.locks import PYTHON, Writer, host_file, uv
from wheelfarm.cli import main
from wheelfarm.errors import BadInputError
from wheelfarm.reading import parse_toml

ONLY = f"python_version == '{PYTHON}'"
NEXT = f"3.{sys.version_info.minor + 1}"
#: uv is to lock our wheels, and not to fetch torch.
NO_TORCH = "override-dependencies = [\"torch; sys_platform == 'never'\"]\n"


def project(path: Path, requires: str, uv_lines: str = "") -> None:
    path.write_text(
        f'[project]\nname = "mine"\nversion = "1"\n{requires}dependencies = []\n\n'
        f"[tool.uv]\n{NO_TORCH}{uv_lines}",
        encoding="utf-8",
    )


def locked(path: Path) -> str:
    """Let uv lock a project without torch, and return its lock."""
    document = tomlkit.parse(path.read_text(encoding="utf-8")).unwrap()
    project = document["project"]
    extras = project.get("optional-dependencies", {})
    places = [(project, "dependencies"), *((extras, name) for name in extras)]
    for table, key in places:
        table[key] = [line for line in table.get(key, []) if not line.startswith("torch")]
    document["tool"]["uv"].pop("sources", None)
    path.write_text(tomlkit.dumps(document), encoding="utf-8")
    done = uv("lock", "--python", sys.executable, cwd=path.parent)
    assert done.returncode == 0, done.stderr
    return (path.parent / "uv.lock").read_text(encoding="utf-8")


@pytest.mark.parametrize("requires", ["", f'requires-python = ">={PYTHON}"\n', ">=3.8"])
def test_uv_locks_a_project_that_takes_more_pythons(
    write: Writer, tmp_path: Path, capsys: pytest.CaptureFixture[str], requires: str
) -> None:
    path = tmp_path / "pyproject.toml"
    project(path, f'requires-python = "{requires}"\n' if requires.startswith(">") else requires)
    text = write("pyproject.toml")
    assert parse_toml(text, "p")["tool"]["uv"]["environments"] == [ONLY]
    assert f"limits uv's lock to {ONLY}" in capsys.readouterr().err
    assert write("pyproject.toml") == text
    assert "gsplat" in locked(path)


def test_the_limit_goes_when_the_project_takes_no_more(write: Writer, tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    project(path, 'requires-python = ">=3.8"\n')
    text = write("pyproject.toml")
    path.write_text(text.replace(">=3.8", f"=={PYTHON}.*"), encoding="utf-8")
    assert "environments" not in write("pyproject.toml")


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        (ONLY, False),
        (f"python_full_version < '{NEXT}' and python_version >= '{PYTHON}'", False),
        ("sys_platform == 'linux'", True),
        (f"sys_platform == 'darwin' or {ONLY}", True),
    ],
)
def test_a_users_own_environments_stay(
    write: Writer, tmp_path: Path, capsys: pytest.CaptureFixture[str], stated: str, said: bool
) -> None:
    path = tmp_path / "pyproject.toml"
    project(path, 'requires-python = ">=3.8"\n', f"environments = [{json.dumps(stated)}]\n")
    text = write("pyproject.toml")
    assert parse_toml(text, "p")["tool"]["uv"]["environments"] == [stated]
    assert ("uv locks once it says" in capsys.readouterr().err) is said


@pytest.mark.parametrize(
    ("requires", "message"),
    [
        (f">={NEXT}", f"requires Python >={NEXT}, and these wheels are for {PYTHON}"),
        ("^3.9", "is no version specifier"),
    ],
)
def test_a_project_that_takes_none_of_the_pythons_is_refused(
    write: Writer, tmp_path: Path, requires: str, message: str
) -> None:
    path = tmp_path / "pyproject.toml"
    project(path, f'requires-python = "{requires}"\n')
    before = path.read_text(encoding="utf-8")
    with pytest.raises(BadInputError, match=message):
        write("pyproject.toml")
    assert path.read_text(encoding="utf-8") == before


def test_wheels_that_serve_all_pythons_limit_nothing(
    write: Writer, site: FarmSite, tmp_path: Path
) -> None:
    site.add(
        "wide-1.0+cu130torch2.14-cp310-abi3-linux_x86_64.whl",
        torch_axis="stable_abi",
        from_torch="2.10",
    )
    site.write()
    path = tmp_path / "pyproject.toml"
    project(path, 'requires-python = ">=3.10"\n')
    assert "environments" not in write("pyproject.toml", packages=("wide",))
    # Torch 2.14 has no wheel for 3.9, nor is this one for it.
    project(path, 'requires-python = ">=3.9"\n')
    limit = parse_toml(write("pyproject.toml", packages=("wide",)), "p")["tool"]["uv"]
    assert limit["environments"][0].startswith("python_version >= '3.10' and python_version <= ")


def test_profiles_of_two_pythons_lock_in_one_file(
    write: Writer, site: FarmSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for tag in ("cp310", "cp312", "cp313"):
        site.add(f"two-1.0+cu130torch2.14-{tag}-{tag}-linux_x86_64.whl", requires=("torch",))
    site.write()

    def profile(name: str, python: str) -> str:
        path = tmp_path / f"{name}.json"
        words = ("--torch", "2.14.1+cu130", "--libc", "2.36", "--python-version", python)
        return f"{name}={host_file(path, *words, capsys=capsys)}"

    def words(old: str, new: str) -> list[str]:
        return ["--profile", profile("old", old), "--profile", profile("new", new)]

    path = tmp_path / "pyproject.toml"
    text = write("pyproject.toml", *words("3.10", "3.12"), packages=("two",))
    document = parse_toml(text, "p")
    assert document["project"]["requires-python"] == ">=3.10,<3.13"
    extras = document["project"]["optional-dependencies"]
    assert all(line.endswith(" ; python_version == '3.10'") for line in extras["old"])
    assert all(line.endswith(" ; python_version == '3.12'") for line in extras["new"])
    # 3.11 lies between and has no wheel.
    only = ["python_version == '3.10'", "python_version == '3.12'"]
    assert document["tool"]["uv"]["environments"] == only
    assert main(["resolve", "--check", str(path)]) == 0
    assert write("pyproject.toml", *words("3.10", "3.12"), packages=("two",)) == text
    other = write("pyproject.toml", *words("3.12", "3.12"), packages=("two",))
    assert "cp310" not in other
    path.write_text(text.replace("[tool.uv]\n", f"[tool.uv]\n{NO_TORCH}"), encoding="utf-8")
    lock = locked(path)
    assert "cp310" in lock
    assert "cp312" in lock


@pytest.mark.parametrize("platform", ["macosx_arm64", "linux_riscv64", "windows_arm64"])
def test_a_system_without_wheels_of_pytorchs_is_written_for_too(
    site: FarmSite, server: Loopback, tmp_path: Path, platform: str
) -> None:
    site.add("pure-1.0-py3-none-any.whl", torch_axis="free")
    site.write()
    path = tmp_path / "pyproject.toml"
    project(path, f'requires-python = ">={PYTHON}"\n')
    words = ["--platform", platform, "--python-version", PYTHON, "--torch", "2.14.1+cpu"]
    assert main(["resolve", "pure", "--index", server.url, *words, "-o", str(path)]) == 0
    assert "pure" in path.read_text(encoding="utf-8")
