"""Archives inside a wheel: code in them is named, what was not looked into is never fine."""

import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.binaries import library
from tests.verify.helpers import NAME, judge, report_of, whole
from tests.verify.packed import COMPRESS, Content, tarred, zipped
from tests.wheels import make_wheel
from wheelfarm.facts import inner
from wheelfarm.facts.document import facts_from_dict, facts_to_dict
from wheelfarm.facts.wheel import read_wheel
from wheelfarm.verify.report import Check, Knob
from wheelfarm.verify.subject import Expected

TEXT = b"only text, and a lot of it\n" * 100
FORMS: dict[str, Callable[[Mapping[str, Content]], bytes]] = {
    "zip": zipped,
    "whl": zipped,
    "tar": tarred,
}


def _compressed_tar(
    pack: Callable[[bytes], bytes],
) -> Callable[[Mapping[str, Content]], bytes]:
    return lambda members: pack(tarred(members))


FORMS.update({f"tar.{name}": _compressed_tar(pack) for name, pack in COMPRESS.items()})


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library(tmp_path_factory.mktemp("binary") / "a.so")


def judged(folder: Path, data: bytes, name: str, expected: Expected | None = None) -> Check:
    return judge(make_wheel(folder, NAME, {name: data}), "archives", expected)


@pytest.mark.parametrize("form", FORMS)
def test_code_in_an_archive_is_named(form: str, tmp_path: Path, binary: Path) -> None:
    data = FORMS[form]({"deep/a.so": binary, "notes.txt": TEXT, "b.bin": binary})
    check = judged(tmp_path, data, f"demo/more.{form}", Expected())
    assert check.status == "fail"
    assert check.summary == (
        f"demo/more.{form} holds 2 binaries that no check looks at: b.bin, deep/a.so"
    )
    # Nobody promised anything of a stranger's wheel, but it is no pass either.
    assert judged(tmp_path, data, f"demo/more.{form}").status == "could-not-look"


@pytest.mark.parametrize("form", COMPRESS)
def test_one_compressed_binary_is_named(form: str, tmp_path: Path, binary: Path) -> None:
    data = COMPRESS[form](binary.read_bytes())
    check = judged(tmp_path, data, f"demo/a.so.{form}", Expected())
    assert check.status == "fail"
    assert f"demo/a.so.{form} holds 1 binary" in check.summary
    assert judged(tmp_path, COMPRESS[form](TEXT), "demo/data", Expected()).status == "pass"


@pytest.mark.parametrize("form", FORMS)
def test_an_archive_of_data_is_fine(form: str, tmp_path: Path) -> None:
    data = FORMS[form]({"notes.txt": TEXT, "empty": b""})
    check = judged(tmp_path, data, "demo/data.bin", Expected())
    assert (check.status, check.summary) == ("pass", "1 archive inside, without compiled code")


def test_launchers_of_an_installer_are_no_modules(tmp_path: Path) -> None:
    program = b"MZ" + bytes(200)
    data = zipped({"pip/_vendor/distlib/t64.exe": program, "notes.txt": TEXT})
    assert judged(tmp_path, data, "demo/pip.whl", Expected()).status == "pass"
    data = zipped({"demo/_C.pyd": program})
    assert judged(tmp_path, data, "demo/more.whl", Expected()).status == "fail"


def test_a_wheel_without_archives_is_not_asked(tmp_path: Path) -> None:
    report = report_of(
        make_wheel(tmp_path, NAME, {"demo/MZ.txt": b"MZ", "demo/b": b"BZh is no bzip2"})
    )
    assert report.check("archives") is None


def encrypted(data: bytes) -> bytes:
    """Return a zip whose members claim to be encrypted, in both of their headers."""
    raw = bytearray(data)
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        raw[raw.index(mark) + flags] |= 1
    return bytes(raw)


def bomb() -> bytes:
    return COMPRESS["gz"](tarred({"zeros": bytes(5 << 20)}))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (encrypted(zipped({"a.so": b"x"})), "its member 'a.so' is encrypted"),
        (
            zipped({"a.so": b"x"}, zipfile.ZIP_LZMA),
            "its member 'a.so' is packed in a way that is not read",
        ),
        (b"7z\xbc\xaf\x27\x1c" + bytes(100), "7z archives are not read"),
        (zipped({"a.zip": zipped({"a": TEXT})}), "it holds archives of its own, such as 'a.zip'"),
        (COMPRESS["gz"](zipped({"a": TEXT})), "it holds archives of its own"),
        (COMPRESS["gz"](tarred({"a": TEXT}))[:-30], "EOFError"),
        (COMPRESS["xz"](tarred({"a": TEXT}))[:-40], "EOFError"),
        (COMPRESS["zst"](tarred({"a": TEXT}))[:40], "EOFError"),
        (COMPRESS["zst"](b"short")[:-3], "EOFError"),
        (COMPRESS["gz"](b"short")[:-9], "EOFError"),
        (zipped({"a": TEXT})[:-30], "BadZipFile"),
        (zipped({str(number): b"" for number in range(40)}), "it claims 40 members"),
        (tarred({str(number): b"" for number in range(40)}), "it has more than 30 members"),
        (bomb(), "it unpacks to more than 4 MiB"),
    ],
    # Archives hold the time of their making: no two workers would have the same names of tests.
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_was_not_looked_into_is_said(
    data: bytes, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inner, "MOST_MEMBERS", 30)
    monkeypatch.setattr(inner, "LARGEST_UNPACKED", 4 << 20)
    for expected in (None, Expected()):
        check = judged(tmp_path, data, "demo/odd.bin", expected)
        assert check.status == "could-not-look"
        assert f"demo/odd.bin was not looked into: {words}" in whole(check)


def test_a_recipe_may_leave_an_archive_out_with_its_reason(tmp_path: Path, binary: Path) -> None:
    wheel = make_wheel(tmp_path, NAME, {"demo/fixtures/more.zip": zipped({"a.so": binary})})
    knob = Knob(field="allowed_archives", value="*/more.zip", reason="a fixture of its tests")
    expected = Expected(allowed_archives=("demo/fixtures/*.zip",), knobs=(knob,))
    report = report_of(wheel, expected)
    check, exemptions = report.check("archives"), report.check("exemptions")
    assert check is not None
    assert exemptions is not None
    assert check.status == exemptions.status == "pass"
    assert "demo/fixtures/more.zip: not asked, by the recipe" in whole(check)
    assert "a fixture of its tests" in whole(exemptions)


def test_facts_keep_what_archives_hold(tmp_path: Path, binary: Path) -> None:
    members = {"a.zip": zipped({"a.so": binary}), "b.7z": b"7z\xbc\xaf\x27\x1c"}
    facts = read_wheel(make_wheel(tmp_path, NAME, members))
    assert facts_from_dict(facts_to_dict(facts)).inner == facts.inner
    assert [each.path for each in facts.inner] == ["a.zip", "b.7z"]


@given(
    st.sampled_from([*FORMS, *COMPRESS]),
    st.integers(0, 400),
    st.binary(max_size=6),
    st.integers(0, 400),
)
def test_no_damage_breaks_the_reader(form: str, at: int, damage: bytes, cut: int) -> None:
    pack = FORMS.get(form)
    data = COMPRESS[form](TEXT) if pack is None else pack({"a": TEXT, "b": b"x"})
    broken = data[:at] + damage + data[at + len(damage) :]
    found = inner.read_inner("it", io.BytesIO(broken[: max(0, len(broken) - cut)]))
    assert found.path == "it"


def test_a_zip_named_like_a_binary_is_a_zip(tmp_path: Path, binary: Path) -> None:
    target = tmp_path / "a.zip"
    with zipfile.ZipFile(target, "w") as archive:
        archive.write(binary, "a.so")
    check = judged(tmp_path, target.read_bytes(), "demo/_C.so", Expected())
    assert check.status == "fail"
