"""Broken wheels: each gives its finding, none a traceback, and none hangs."""

import io
import random
import struct
import zipfile
from pathlib import Path

import pytest

from tests.binaries import dll, library
from tests.verify.helpers import MODULE, NAME, report_of
from tests.wheels import INIT, make_wheel
from wheelfarm.errors import BadInputError
from wheelfarm.facts.wheel import read_wheel
from wheelfarm.verify.archive_checks import check_record
from wheelfarm.verify.batch import Task, verify_many
from wheelfarm.verify.gate import verify_wheel
from wheelfarm.verify.report import Report
from wheelfarm.verify.subject import Subject


def says(report: Report, identifier: str, finding: str) -> None:
    """Assert that a check fails with a finding."""
    check = report.check(identifier)
    assert check is not None
    assert check.status == "fail", check
    assert finding in "\n".join((check.summary, *check.evidence))


def test_a_file_that_does_not_exist_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="does not exist"):
        verify_wheel(tmp_path / NAME)
    with pytest.raises(BadInputError, match="is not a file"):
        verify_wheel(tmp_path)


def test_one_absent_wheel_among_several_is_bad_input(tmp_path: Path) -> None:
    """The error of a worker's process arrives as it was raised."""
    good = make_wheel(tmp_path, NAME)
    tasks = [Task(wheel=good), Task(wheel=tmp_path / "absent.whl")]
    with pytest.raises(BadInputError, match="does not exist"):
        verify_many(tasks, workers=2)


def test_no_zip(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"hello")
    says(report_of(tmp_path / NAME), "zip", "not a readable zip")


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"")
    says(report_of(tmp_path / NAME), "zip", "not a readable zip")


def test_a_zip_without_members(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / NAME, "w"):
        pass
    report = report_of(tmp_path / NAME)
    says(report, "metadata", "there is no dist-info folder")
    says(report, "record", "there is no RECORD")


def test_a_truncated_wheel(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, NAME)
    data = wheel.read_bytes()
    wheel.write_bytes(data[: len(data) // 2])
    says(report_of(wheel), "zip", "not a readable zip")


def test_no_metadata(tmp_path: Path) -> None:
    report = report_of(make_wheel(tmp_path, NAME, without=["METADATA"]))
    says(report, "metadata", "there is no METADATA")
    says(report, "record", "which is not in the wheel")


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "demo/../../x", "..\\x", "C:/x", "demo\\x"])
def test_a_member_that_would_leave_its_folder(name: str, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, NAME)
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr(name, b"x")
    says(report_of(wheel), "zip", "would be written outside of the environment")


def test_a_member_that_claims_four_gigabytes(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, NAME)
    data = bytearray(wheel.read_bytes())
    at = data.index(b"PK\x01\x02")
    struct.pack_into("<I", data, at + 24, 0xFFFFFFF0)
    wheel.write_bytes(bytes(data))
    says(report_of(wheel), "zip", "claims 4294967280 bytes")


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    """Many members that each claim a few gigabytes: the sum is what counts."""
    wheel = make_wheel(tmp_path, NAME)
    with zipfile.ZipFile(wheel, "a", zipfile.ZIP_DEFLATED) as archive:
        for index in range(4):
            archive.writestr(f"demo/{index}.bin", b"\0" * 5_000_000)
    data = bytearray(wheel.read_bytes())
    at = 0
    while (at := data.find(b"PK\x01\x02", at + 1)) > 0:
        if struct.unpack_from("<I", data, at + 24)[0] == 5_000_000:
            struct.pack_into("<I", data, at + 24, 0xC0000000)
    wheel.write_bytes(bytes(data))
    says(report_of(wheel), "zip", "not unpacked")


def test_a_hidden_member_is_found(tmp_path: Path) -> None:
    """A local header without an entry in the directory: a streaming installer would write it."""
    wheel = make_wheel(tmp_path, NAME)
    data = wheel.read_bytes()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("demo/hidden.py", b"x = 1\n")
    hidden = stream.getvalue()
    hidden = hidden[: hidden.index(b"PK\x01\x02")]
    wheel.write_bytes(hidden + data)
    says(report_of(wheel), "zip", f"{len(hidden)} bytes before")


def test_bytes_behind_the_end(tmp_path: Path) -> None:
    """uv refuses them; a second archive could stand there."""
    wheel = make_wheel(tmp_path, NAME)
    wheel.write_bytes(wheel.read_bytes() + b"more")
    says(report_of(wheel), "zip", "bytes behind the end of the zip")


def test_an_encrypted_member(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, NAME)
    data = bytearray(wheel.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    wheel.write_bytes(bytes(data))
    says(report_of(wheel), "zip", "is encrypted")


def test_a_library_that_is_cut_in_half(tmp_path: Path) -> None:
    data = library(tmp_path / "m.so").read_bytes()
    files = {"demo/__init__.py": INIT, MODULE: data[: len(data) // 2]}
    report = report_of(make_wheel(tmp_path, NAME, files))
    says(report, "binaries", "cut short")
    assert report.verdict == "fail"
    # What a binary did not tell is not known; that it links no torch is no fact.
    for identifier in ("torch-axis", "libraries", "driver", "version-needs"):
        check = report.check(identifier)
        assert check is not None
        assert (check.status, check.summary) == ("could-not-look", f"{MODULE} could not be read")


def test_a_windows_module_that_imports_nothing(tmp_path: Path) -> None:
    module = dll(tmp_path / "_C.pyd", gives=["PyInit__C"])
    name = "demo-1.0+cu130torch2.14-cp311-cp311-win_amd64.whl"
    report = report_of(make_wheel(tmp_path, name, {"demo/_C.cp311-win_amd64.pyd": module}))
    says(report, "binaries", "imports nothing")


def test_a_library_of_another_machine(tmp_path: Path) -> None:
    data = bytearray(library(tmp_path / "m.so").read_bytes())
    data[18] = 183
    report = report_of(make_wheel(tmp_path, NAME, {MODULE: bytes(data)}))
    says(report, "binaries", "is ELF for aarch64, the wheel for linux_x86_64")


def test_a_pure_wheel_of_a_cuda_package(tmp_path: Path) -> None:
    says(report_of(make_wheel(tmp_path, NAME)), "compiled-code", "holds no compiled code")


def test_terminal_escapes_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from wheelfarm.cli import main

    wheel = make_wheel(tmp_path, NAME, {"demo/\x1b[31mred.py": INIT}, without=["RECORD"])
    main(["verify", str(wheel)])
    assert "\x1b" not in capsys.readouterr().out


def mutate(wheel: Path, target: Path, rounds: int, seed: int) -> tuple[int, int]:
    """Change bytes of a wheel again and again; return how many were judged, and how many passed."""
    data = wheel.read_bytes()
    source = random.Random(seed)  # noqa: S311 - a repeatable test
    passed = 0
    for _ in range(rounds):
        changed = bytearray(data)
        for _ in range(source.randint(1, 3)):
            at = source.randrange(len(changed))
            way = source.random()
            if way < 0.6:
                changed[at] = source.randrange(256)
            elif way < 0.8:
                del changed[at : at + source.randint(1, 40)]
            else:
                changed[at:at] = source.randbytes(source.randint(1, 40))
            if not changed:
                break
        target.write_bytes(bytes(changed))
        report = verify_wheel(target)
        record = report.check("record")
        assert record is not None
        zipped = report.check("zip")
        assert zipped is not None
        if record.status == "pass" and zipped.status == "pass":
            passed += 1
            assert holds(target), "the gate passed a wheel whose RECORD does not hold"
    return rounds, passed


def holds(wheel: Path) -> bool:
    """Compare RECORD with the bytes without any code of the gate's."""
    import base64
    import csv
    import hashlib

    with zipfile.ZipFile(wheel) as archive:
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
        own = next(name for name in names if name.endswith(".dist-info/RECORD"))
        rows = list(csv.reader(io.StringIO(archive.read(own).decode())))
        for path, digest, size in rows:
            if path == own:
                continue
            body = archive.read(path)
            found = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
            if digest != f"sha256={found}" or (size and int(size) != len(body)):
                return False
        return {row[0] for row in rows} | {own} == set(names)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    module = library(folder / "m.so", takes=["PyModule_Create2", "pthread_create"])
    wheel = make_wheel(folder, NAME, {"demo/__init__.py": INIT, MODULE: module})
    facts = read_wheel(wheel)
    assert check_record(Subject(facts=facts)).status == "pass"
    return wheel


def test_changed_bytes_never_crash_the_gate(sound: Path, tmp_path: Path) -> None:
    judged, _ = mutate(sound, tmp_path / NAME, 700, seed=1)
    assert judged == 700


@pytest.mark.full
@pytest.mark.parametrize("seed", range(10))
def test_many_changed_bytes_never_crash_the_gate(sound: Path, tmp_path: Path, seed: int) -> None:
    mutate(sound, tmp_path / NAME, 500, seed=100 + seed)
