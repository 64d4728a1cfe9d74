"""A repaired wheel passes, installs with pip and uv, and stays; nothing is invented."""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.binaries import library, run
from tests.wheels import INIT, make_wheel
from wheelfarm.cli import main
from wheelfarm.errors import BadInputError
from wheelfarm.facts.wheel import read_wheel
from wheelfarm.verify.mend import mend_wheel

TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"
NAME = f"demo-1.0+cu130torch2.14-{TAG}-{TAG}-linux_x86_64.whl"
MENDED = f"demo-1.0+cu130torch2.14-{TAG}-{TAG}-manylinux_2_34_x86_64.whl"
MODULE = f"demo/_C.cpython-{TAG[2:]}-x86_64-linux-gnu.so"


@pytest.fixture
def renamed(tmp_path: Path) -> Path:
    """A wheel that was renamed after its build, with a script, and with the build host's path."""
    module = library(tmp_path / "m.so", takes=["pthread_create"], flags=["-Wl,-rpath,/opt/x/lib"])
    files: dict[str, bytes | Path] = {"demo/__init__.py": INIT, MODULE: module}
    files["demo-1.0.data/scripts/demo-tool"] = b"#!python\nprint('demo')\n"
    return make_wheel(
        tmp_path / "in",
        NAME,
        files,
        version="1.0",
        dist_info="demo-1.0.dist-info",
        tags=["-linux_x86_64"],
        replaced={"RECORD": b"demo/__init__.py,sha256=x,1,2,3,4\n"},
    )


def test_what_can_be_mended_is(renamed: Path, tmp_path: Path) -> None:
    before = renamed.read_bytes()
    mended = mend_wheel(renamed, tmp_path / "out")
    assert renamed.read_bytes() == before
    assert mended.wheel.name == MENDED
    assert mended.before.verdict == "fail"
    assert mended.after.verdict == "pass", mended.after.with_status("fail")
    facts = read_wheel(mended.wheel)
    assert facts.version == "1.0+cu130torch2.14"
    assert facts.dist_info == "demo-1.0+cu130torch2.14.dist-info"
    names = {member.name for member in facts.members}
    assert "demo-1.0+cu130torch2.14.data/scripts/demo-tool" in names
    assert facts.binaries[0].runpath == ()
    text = "\n".join(mended.done)
    for word in ("METADATA", "WHEEL", "RECORD", "manylinux_2_34", "relative", "stripped"):
        assert word in text


def test_the_result_installs_with_pip_and_uv_and_stays(renamed: Path, tmp_path: Path) -> None:
    wheel = mend_wheel(renamed, tmp_path / "out").wheel
    target = tmp_path / "pip"
    words = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    run(sys.executable, "-m", "pip", "install", *words, "--target", target, wheel)
    assert (target / "demo/__init__.py").is_file()
    assert (target / "bin/demo-tool").is_file()
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed")
    venv = tmp_path / "venv"
    subprocess.run(
        [uv, "venv", "--quiet", "--offline", "--python", sys.executable, venv], check=True
    )
    listed = tmp_path / "requirements.txt"
    listed.write_text(f"demo @ {wheel.as_uri()}\n")
    words = ["pip", "sync", "--offline", "--python", str(venv / "bin/python"), str(listed)]
    first = subprocess.run([uv, *words], capture_output=True, text=True, check=True)
    assert "demo==1.0+cu130torch2.14" in first.stderr
    second = subprocess.run([uv, *words], capture_output=True, text=True, check=True)
    assert "+ demo" not in second.stderr
    assert (venv / "bin/demo-tool").is_file()


def test_mending_twice_changes_nothing(renamed: Path, tmp_path: Path) -> None:
    once = mend_wheel(renamed, tmp_path / "one").wheel
    twice = mend_wheel(once, tmp_path / "two")
    assert twice.done == ()
    assert twice.wheel.read_bytes() == once.read_bytes()


def test_a_missing_wheel_file_is_written(tmp_path: Path) -> None:
    wheel = make_wheel(
        tmp_path / "in", NAME, {MODULE: library(tmp_path / "m.so")}, without=["WHEEL"]
    )
    mended = mend_wheel(wheel, tmp_path / "out")
    assert mended.after.verdict == "pass"
    assert any("wrote a WHEEL file" in line for line in mended.done)


def test_nothing_is_invented(tmp_path: Path) -> None:
    """No METADATA, a duplicate member: what they should say is not known."""
    wheel = make_wheel(tmp_path / "in", NAME, without=["METADATA"])
    with pytest.raises(BadInputError, match="no METADATA"):
        mend_wheel(wheel, tmp_path / "out")
    wheel = make_wheel(tmp_path / "in", NAME)
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("demo/__init__.py", b"x = 1\n")
    with pytest.raises(BadInputError, match="twice"):
        mend_wheel(wheel, tmp_path / "out")
    assert not list((tmp_path / "out").glob("*.whl"))


def test_a_driver_inside_stays_a_failure(tmp_path: Path, others: Path) -> None:
    files = {"demo.libs/libcuda.so.1": others / "libcuda.so.1"}
    wheel = make_wheel(tmp_path / "in", NAME, files)
    assert mend_wheel(wheel, tmp_path / "out").after.verdict == "fail"


def test_the_wheels_own_folder_is_refused(renamed: Path) -> None:
    with pytest.raises(BadInputError, match="own folder"):
        mend_wheel(renamed, renamed.parent)


def test_the_verb_shows_what_was_done(
    renamed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["repair", str(renamed), "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert f"{out / MENDED}  fail -> pass" in text
    assert "mended: retagged linux_x86_64 as manylinux_2_34_x86_64" in text


def test_of_several_wheels_the_readable_ones_are_mended(
    renamed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken-1.0-py3-none-any.whl"
    broken.write_bytes(b"no zip")
    out = tmp_path / "out"
    assert main(["repair", str(broken), str(renamed), "--out", str(out), "--json"]) == 4
    document = json.loads(capsys.readouterr().out)
    assert [Path(each["wheel"]).parent for each in document["wheels"]] == [out]
    (refused,) = document["refused"]
    assert refused["wheel"] == str(broken)
    assert refused["reason"]
    with pytest.raises(BadInputError):
        main(["repair", str(broken), "--out", str(out)])


def test_two_wheels_of_one_name_are_not_mended_into_one(renamed: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    copy = tmp_path / "other" / renamed.name
    copy.write_bytes(renamed.read_bytes())
    with pytest.raises(BadInputError, match="would replace the other"):
        main(["repair", str(renamed), str(copy), "--out", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()
