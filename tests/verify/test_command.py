"""The verbs verify and diff: tables, documents, exit statuses, GitHub, cache, many wheels."""

import errno
import json
import sys
from pathlib import Path

import pytest

from tests.binaries import library
from tests.verify.helpers import MODULE, NAME
from tests.wheels import INIT, make_wheel
from wheelfarm.cli import main
from wheelfarm.errors import BadInputError, UsageError
from wheelfarm.facts.wheel import read_wheel
from wheelfarm.values import replace
from wheelfarm.verify import facts_cache, gpu_check, import_child
from wheelfarm.verify.facts_cache import cached_facts
from wheelfarm.verify.gate import verify_wheel
from wheelfarm.verify.report import Check, Report, report_path
from wheelfarm.verify.subject import Expected, Subject, cell_of
from wheelfarm.verify.summary import annotations, markdown


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("GITHUB_STEP_SUMMARY", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    module = library(tmp_path / "m.so", gives=["PyInit__C"])
    name = "demo-1.0+cu130torch2.14-cp311-cp311-manylinux_2_28_x86_64.whl"
    return make_wheel(tmp_path / "good", name, {"demo/__init__.py": INIT, MODULE: module})


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    return make_wheel(tmp_path / "bad", NAME, version="1.0")


def test_the_document_has_what_tools_rely_on(
    good: Path, bad: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "--json", str(good), str(bad)]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "wheelfarm.verify/1"
    first, second = document["wheels"]
    assert (first["wheel"], first["verdict"]) == (good.name, "pass")
    assert (second["wheel"], second["verdict"]) == (bad.name, "fail")
    for check in first["checks"] + second["checks"]:
        assert set(check) == {"id", "status", "summary", "evidence"}
        assert check["status"] in {"pass", "warn", "fail", "could-not-look"}
    assert "facts" not in first
    assert main(["verify", "--json", "--facts", str(good)]) == 0
    facts = json.loads(capsys.readouterr().out)["wheels"][0]["facts"]
    assert facts["schema"] == "wheelfarm.facts/1"
    assert facts["linkage"]["torch"] == "none"


def test_exit_statuses(good: Path, bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(good)]) == 0
    assert "could-not-look" not in capsys.readouterr().out
    cell = "demo-1.0-cu130-torch2.14-cp311-linux_x86_64"
    assert main(["verify", "--cell", cell, str(good)]) == 2
    assert "no environment was given" in capsys.readouterr().out
    assert main(["verify", "--cell", cell, str(good), str(bad)]) == 1


def test_a_report_lies_beside_the_wheel_and_is_read_back(good: Path) -> None:
    assert main(["verify", "--report", str(good)]) == 0
    document = json.loads(report_path(good).read_text())
    report = Report.from_dict(document)
    assert report.verdict == "pass"
    assert report.to_dict() == document
    assert report.sha256 == read_wheel(good).sha256


def test_a_wheel_is_held_against_its_farm(
    tmp_path: Path, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The demonstration's recipe says that diso links torch; this one does not."""
    name = "diso-0.1.4+cu130torch2.14-cp311-cp311-manylinux_2_34_x86_64.whl"
    module = library(tmp_path / "m.so")
    path = "diso/_C.cpython-311-x86_64-linux-gnu.so"
    wheel = make_wheel(tmp_path, name, {"diso/__init__.py": INIT, path: module})
    farm = repository / "examples/demo-farm"
    assert main(["verify", "--json", "--farm", str(farm), str(wheel)]) == 1
    (document,) = json.loads(capsys.readouterr().out)["wheels"]
    assert document["cell"] == "diso-0.1.4-cu130-torch2.14-cp311-linux_x86_64"
    failed = {check["id"] for check in document["checks"] if check["status"] == "fail"}
    assert {"torch-axis", "torch-pin", "architectures"} <= failed


def test_a_name_that_says_no_cell_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="does not say of which cell"):
        cell_of("demo-1.0-py3-none-any.whl")


def test_github_gets_a_summary_and_annotations(
    bad: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    main(["verify", str(bad)])
    text = summary.read_text()
    assert f"### ❌ <code>{bad.name}</code>" in text
    assert "| metadata | ❌ fail |" in text
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("::")]
    assert any(line.startswith("::error title=demo-1.0") for line in lines)


def test_foreign_text_becomes_neither_markup_nor_command(good: Path) -> None:
    nasty = "<img src=x> | **b** `c`\n::error::x\x1b[31m"
    check = Check(id="name", status="fail", summary=nasty)
    report = Report(wheel="a<b>", sha256="", cell="", checks=(check,), facts=read_wheel(good))
    text = markdown([report])
    assert "<img" not in text
    assert "a&lt;b&gt;" in text
    row = next(line for line in text.splitlines() if line.startswith("| name"))
    assert "\\|" in row
    assert "\\*\\*b" in row
    (command,) = annotations([report])
    assert "\n" not in command
    assert "%0A::error::x" in command


def test_facts_are_read_once(good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "facts"
    first = cached_facts(good, folder)
    monkeypatch.setattr(facts_cache, "read_wheel", lambda path: pytest.fail("read again"))
    second = cached_facts(good, folder)
    assert second.linkage == first.linkage
    assert verify_wheel(good, facts=second).to_dict() == verify_wheel(good, facts=first).to_dict()
    copy = good.with_name("other.whl")
    copy.write_bytes(good.read_bytes())
    renamed = cached_facts(copy, folder)
    assert renamed.name is None
    assert renamed.problems[0].kind == "name"


def test_a_broken_cache_entry_is_read_anew(good: Path, tmp_path: Path) -> None:
    folder = tmp_path / "facts"
    facts = cached_facts(good, folder)
    (entry,) = folder.rglob("*.json")
    for text in ("", "{", "[]", '{"schema": "wheelfarm.facts/1"}'):
        entry.write_text(text)
        assert cached_facts(good, folder).linkage == facts.linkage


def test_every_check_answers_alike_from_cached_facts(good: Path, bad: Path, tmp_path: Path) -> None:
    """Symbols are not in the cache, so no check may need them."""
    expected = Expected(torch_axis="free")
    for wheel in (good, bad):
        cached_facts(wheel, tmp_path / "facts")
        again = cached_facts(wheel, tmp_path / "facts")
        fresh = verify_wheel(wheel, cell=cell_of(wheel.name), expected=expected)
        kept = verify_wheel(wheel, cell=cell_of(wheel.name), expected=expected, facts=again)
        assert kept.checks == fresh.checks


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--smoke-test", "smoke.py"], "--smoke-test goes with --gpu"),
        (["--driver-stub", "stub"], "--driver-stub goes with --python"),
        (["--driver-stub", "stub", "--python", "python"], "stub is no folder"),
    ],
)
def test_an_option_that_would_not_be_looked_at_is_refused(
    tmp_path: Path, words: list[str], said: str
) -> None:
    wheel = make_wheel(tmp_path, NAME)
    with pytest.raises((UsageError, BadInputError), match=said):
        main(["verify", str(wheel), *words])


def test_a_smoke_test_that_is_not_there_could_not_look(
    good: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "--gpu", str(good)]) == 2
    assert "there is no smoke test" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("script", "status", "finding"),
    [
        ("import demo, sys; sys.exit(0)", "pass", "smoke.py passes on this machine's GPU"),
        ("import demo; assert demo.__doc__ == 1", "fail", "AssertionError"),
        ("import os; os.abort()", "fail", "killed by SIGABRT"),
        ("raise RuntimeError('no CUDA-capable device is detected')", "could-not-look", "no CUDA"),
    ],
)
def test_a_smoke_test_is_run_where_a_gpu_is(
    script: str, status: str, finding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the driver is feigned here: the script runs against the unpacked wheel."""
    real = import_child.describe
    monkeypatch.setattr(gpu_check, "describe", lambda request: replace(real(request), driver=True))
    wheel = make_wheel(tmp_path, "demo-1.0-py3-none-any.whl", {"demo/__init__.py": INIT})
    smoke = tmp_path / "smoke.py"
    smoke.write_text(script)
    request = import_child.ImportRequest(wheel=wheel, environment=Path(sys.executable))
    check = gpu_check.check_gpu(Subject(facts=read_wheel(wheel)), request, smoke)
    assert check.status == status, check
    assert finding in check.summary


def test_a_machine_without_a_driver_could_not_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = import_child.describe
    monkeypatch.setattr(gpu_check, "describe", lambda request: replace(real(request), driver=False))
    wheel = make_wheel(tmp_path, "demo-1.0-py3-none-any.whl", {"demo/__init__.py": INIT})
    smoke = tmp_path / "smoke.py"
    smoke.write_text("import demo\n")
    request = import_child.ImportRequest(wheel=wheel, environment=Path(sys.executable))
    check = gpu_check.check_gpu(Subject(facts=read_wheel(wheel)), request, smoke)
    assert (check.status, check.summary) == (
        "could-not-look",
        "there is no GPU driver on this machine",
    )


def test_diff_shows_what_differs(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = library(tmp_path / "n.so", takes=["pthread_create"], gives=["PyInit__C"])
    name = "demo-1.0+cu130torch2.13-cp311-cp311-manylinux_2_28_x86_64.whl"
    other = make_wheel(tmp_path / "other", name, {"demo/__init__.py": INIT, MODULE: module})
    assert main(["diff", "--json", str(good), str(other)]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "wheelfarm.diff/1"
    found = {(entry["place"], entry["what"], entry["second"]) for entry in document["differences"]}
    assert ("wheel", "version", "1.0+cu130torch2.13") in found
    assert (MODULE, "takes", "pthread_create") in found
    assert ("derived", "glibc", "2.34") in found


def test_one_binary_for_every_torch_is_shown_to_be_one(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = tmp_path / "m.so"
    name = "demo-1.0+cu130torch2.13-cp311-cp311-manylinux_2_28_x86_64.whl"
    other = make_wheel(tmp_path / "other", name, {"demo/__init__.py": INIT, MODULE: module})
    assert main(["diff", str(good), str(other)]) == 0
    assert "1 binary: the same bytes" in capsys.readouterr().out


def test_what_is_no_wheel_is_not_compared(good: Path, tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("mine")
    for pair in ((good, text), (text, good), (text, text)):
        with pytest.raises(BadInputError, match=r"notes\.txt cannot be compared"):
            main(["diff", *map(str, pair)])
    with pytest.raises(BadInputError, match="results go into a folder"):
        main(["repair", str(good), "--out", str(text)])


def test_a_wheel_that_cannot_be_read_has_no_hash(
    good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path, *words: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(PermissionError):
        read_wheel(good)
