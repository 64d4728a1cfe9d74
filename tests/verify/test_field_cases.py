"""Cases from public reports: each with the answer that would have spared it."""

import re
import zipfile
from pathlib import Path

import pytest

from tests.binaries import library, run
from tests.verify.helpers import MODULE, NAME, judge, report_of, whole
from tests.wheels import INIT, make_wheel
from wheelfarm.verify.gate import verify_wheel
from wheelfarm.verify.report import Report
from wheelfarm.verify.subject import Expected

#: RECORD of this wheel says what its METADATA did not (cuda-wheels#2).
BARE = "cc_torch-0.2+cu130torch29-cp312-cp312-linux_x86_64.whl"
CASED = "flash_attn-2.8.3+cu12torch2.6cxx11abiTRUE-cp310-cp310-linux_x86_64.whl"


def failed(report: Report) -> set[str]:
    return {check.id for check in report.with_status("fail")}


# A file name with a local version that METADATA does not have (mjun0812#55, sglang#21437).


def test_a_bare_rename_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, BARE, version="0.2", dist_info="cc_torch-0.2.dist-info")
    check = judge(wheel, "metadata")
    assert check.status == "fail"
    assert "'0.2'" in check.summary
    assert "'0.2+cu130torch29'" in check.summary
    assert "the folder cc_torch-0.2.dist-info says version '0.2'" in whole(check)


def test_its_correct_twin_passes(tmp_path: Path) -> None:
    assert judge(make_wheel(tmp_path, BARE), "metadata").status == "pass"


def test_local_parts_compare_as_pep_440_does(tmp_path: Path) -> None:
    lower = "2.8.3+cu12torch2.6cxx11abitrue"
    for folder in (lower, "2.8.3+cu12torch2.6cxx11abiTRUE"):
        wheel = make_wheel(
            tmp_path / folder, CASED, version=lower, dist_info=f"flash_attn-{folder}.dist-info"
        )
        assert judge(wheel, "metadata").status == "pass"


def test_a_data_folder_of_another_version_is_refused(tmp_path: Path) -> None:
    """uv leaves such a folder in site-packages, and installs no script."""
    files = {"demo/__init__.py": INIT, "demo-1.0.data/scripts/demo": b"#!python\n"}
    check = judge(make_wheel(tmp_path, NAME, files), "metadata")
    assert check.status == "fail"
    assert "demo-1.0.data" in check.summary


# A plain linux tag hides what glibc is needed (flash-attention#1708, #1762, #2225).


def needing(folder: Path, *symbols: str, flags: tuple[str, ...] = ()) -> Path:
    return library(folder / "module.so", takes=symbols, flags=flags)


def test_a_plain_tag_promises_nothing(tmp_path: Path) -> None:
    module = needing(tmp_path, "pthread_create")
    report = verify_wheel(
        make_wheel(tmp_path, "x-1.0-cp312-cp312-linux_x86_64.whl", {"x.so": module})
    )
    tag, glibc = report.check("platform-tag"), report.check("glibc")
    assert tag is not None
    assert glibc is not None
    assert tag.status == "warn"
    assert "promises nothing; the lowest true tag is manylinux_2_34_x86_64" in tag.summary
    assert glibc.summary.startswith("needs glibc 2.34")
    assert "x.so: pthread_create needs GLIBC_2.34 of libc.so.6" in glibc.evidence
    assert report.facts.linkage.glibc is not None
    assert str(report.facts.linkage.glibc) == "2.34"


def test_a_tag_that_is_not_true_is_an_error(tmp_path: Path) -> None:
    module = needing(tmp_path, "pthread_create")
    name = "x-1.0-cp312-cp312-manylinux_2_28_x86_64.whl"
    check = judge(make_wheel(tmp_path, name, {"x.so": module}), "platform-tag")
    assert check.status == "fail"
    assert (
        "manylinux_2_28_x86_64 is not true: x.so needs GLIBC_2.34 (pthread_create)" in check.summary
    )
    assert "the lowest true tag is manylinux_2_34_x86_64" in check.evidence


def test_the_lowest_true_tag_passes(tmp_path: Path) -> None:
    module = needing(tmp_path, "pthread_create")
    name = "x-1.0-cp312-cp312-manylinux_2_34_x86_64.whl"
    assert judge(make_wheel(tmp_path, name, {"x.so": module}), "platform-tag").status == "pass"


def test_auditwheel_names_the_same_tag(tmp_path: Path) -> None:
    module = needing(tmp_path, "pthread_create")
    wheel = make_wheel(tmp_path, "x-1.0-cp312-cp312-linux_x86_64.whl", {"x.so": module})
    text = " ".join(run("auditwheel", "show", wheel).split())
    found = re.search(r'constrains the platform tag to "(\w+)"', text)
    assert found is not None
    assert found[1] in judge(wheel, "platform-tag").summary


def test_the_floor_of_libstdcxx_is_reported_and_judged(tmp_path: Path) -> None:
    symbol = "_ZSt21__glibcxx_assert_failPKciS0_S0_"  # since GLIBCXX_3.4.30
    module = needing(tmp_path, symbol, flags=("-lstdc++",))
    name = "x-1.0-cp312-cp312-manylinux_2_28_x86_64.whl"
    report = verify_wheel(make_wheel(tmp_path, name, {"x.so": module}))
    assert report.facts.linkage.glibcxx == "GLIBCXX_3.4.30"
    check = report.check("platform-tag")
    assert check is not None
    assert check.status == "fail"
    assert "GLIBCXX_3.4.30" in check.summary


# A repair step that grafts gigabytes (aiter#5318, auditwheel#580).


def test_only_the_ordinary_library_may_be_grafted(tmp_path: Path, others: Path) -> None:
    packed: dict[str, bytes | Path] = {
        "demo/__init__.py": INIT,
        "demo.libs/libordinary-1a2b3c4d.so.4": others / "libordinary.so.4",
        "demo.libs/libcublas-1a2b3c4d.so.13.1.0": others / "libcublas.so.13",
    }
    check = judge(make_wheel(tmp_path, NAME, packed), "grafted", Expected())
    assert check.status == "fail"
    assert "libcublas-1a2b3c4d.so.13.1.0 is a library that torch or an NVIDIA wheel" in whole(check)
    assert "libordinary-1a2b3c4d.so.4 was packed, but is not in the list" in whole(check)
    packed.pop("demo.libs/libcublas-1a2b3c4d.so.13.1.0")
    fine = Expected(grafted=("libordinary.so.*",))
    assert judge(make_wheel(tmp_path, NAME, packed), "grafted", fine).status == "pass"
    loose = Expected(grafted=("libordinary.so.*", "librocblas.so"))
    check = judge(make_wheel(tmp_path, NAME, packed), "grafted", loose)
    assert check.status == "warn"
    assert "'librocblas.so' of grafted libraries matches nothing" in check.summary


@pytest.mark.parametrize(
    ("soname", "requirement"),
    [
        ("libcudart.so.13", "nvidia-cuda-runtime"),
        ("libcudart.so.12", "nvidia-cuda-runtime-cu12"),
        ("libcufft.so.12", "nvidia-cufft"),
    ],
)
def test_a_vendor_library_needs_its_requirement(
    soname: str, requirement: str, tmp_path: Path, others: Path
) -> None:
    module = library(tmp_path / "m.so", needs=[others / soname])
    name = "x-1.0-py3-none-linux_x86_64.whl"
    check = judge(make_wheel(tmp_path, name, {"x.so": module}), "libraries")
    assert check.status == "warn"
    assert f"the wheel should require {requirement}" in check.summary
    wheel = make_wheel(tmp_path, name, {"x.so": module}, requires=[requirement])
    assert judge(wheel, "libraries").status == "pass"


# The build machine's path in RUNPATH (flash-attention#1548, PR #1634).

TOOL_CACHE = "/opt/hostedtoolcache/Python/3.12.9/x64/lib"
RELATIVE = "$ORIGIN/../torch/lib:$ORIGIN/../nvidia/cuda_runtime/lib:$ORIGIN/../nvidia/cu13/lib"


@pytest.mark.parametrize(
    ("runpath", "finding"),
    [
        (TOOL_CACHE, "leads to the build host"),
        ("/usr/local/cuda/lib64", "leads to the build host"),
        ("$ORIGIN:lib", "is the working directory's"),
        ("$ORIGIN::$ORIGIN", "is the working directory's"),
        ("$ORIGIN/../../../lib", "leaves site-packages"),
        (RELATIVE, ""),
        ("$ORIGIN", ""),
        ("${ORIGIN}/../demo.libs", "which is not in the wheel"),
    ],
)
def test_search_paths_are_relative_to_the_file(
    runpath: str, finding: str, tmp_path: Path, others: Path
) -> None:
    needs = [others / name for name in ("libc10.so", "libtorch_cpu.so", "libcudart.so.13")]
    module = library(tmp_path / "m.so", needs=needs)
    run("patchelf", "--set-rpath", runpath, module)
    check = judge(make_wheel(tmp_path, NAME, {MODULE: module}), "search-paths")
    expected = "warn" if "not in the wheel" in finding else "fail" if finding else "pass"
    assert check.status == expected
    assert finding in check.summary


def test_every_needed_library_is_classed(tmp_path: Path, others: Path) -> None:
    names = ("libc10.so", "libcudart.so.13", "libcuda.so.1", "libgomp.so.1", "libordinary.so.4")
    module = library(tmp_path / "m.so", needs=[others / name for name in names])
    files: dict[str, bytes | Path] = {
        MODULE: module,
        "demo/libordinary.so.4": others / "libordinary.so.4",
    }
    check = judge(make_wheel(tmp_path, NAME, files), "libraries")
    assert check.status == "pass"
    assert check.evidence == (
        "NVIDIA, loaded by torch: libcudart.so.13",
        "driver: libcuda.so.1",
        "in the wheel: libordinary.so.4",
        "system: libc.so.6",
        "torch: libc10.so, libgomp.so.1",
    )


def test_an_unexplained_library_fails(tmp_path: Path, others: Path) -> None:
    module = library(tmp_path / "m.so", needs=[others / "libordinary.so.4"])
    wheel = make_wheel(tmp_path, NAME, {MODULE: module})
    check = judge(wheel, "libraries")
    assert check.status == "fail"
    assert "libordinary.so.4: nothing known provides it" in check.summary
    allowed = Expected(allowed_needed=("libordinary.so.*",))
    assert judge(wheel, "libraries", allowed).status == "pass"


# The driver's library packed into the wheel (ao#2927).


@pytest.mark.parametrize(
    "name", ["libcuda-984fdb42.so.570.133.07", "libnvidia-ml-0a1b2c3d.so.570.1", "nvcuda.dll"]
)
def test_a_packed_driver_is_refused(name: str, tmp_path: Path, others: Path) -> None:
    files: dict[str, bytes | Path] = {"demo/__init__.py": INIT}
    files |= {f"demo.libs/{name}": others / "libcuda.so.1"}
    check = judge(make_wheel(tmp_path, NAME, files), "driver")
    assert check.status == "fail"
    assert name in check.summary


def test_a_linked_driver_is_remarked(tmp_path: Path, others: Path) -> None:
    module = library(tmp_path / "m.so", needs=[others / "libcuda.so.1"])
    report = report_of(make_wheel(tmp_path, NAME, {MODULE: module}))
    check = report.check("driver")
    assert check is not None
    assert (check.status, check.summary) == ("pass", "needs a driver to import")
    assert report.facts.linkage.needs_driver


# RECORD, WHEEL and dist-info malformed (uv#2149, #15136, #19528; vllm-windows-build#5).


def test_a_record_row_with_six_fields_is_named(tmp_path: Path) -> None:
    row = b"demo/__init__.py,sha256=x,10,b.py,sha256=y,5\n"
    check = judge(make_wheel(tmp_path, NAME, replaced={"RECORD": row}), "record")
    assert check.status == "fail"
    assert "RECORD line 1 has 6 fields, not 3" in check.summary


def test_a_partial_tag_line_is_named(tmp_path: Path) -> None:
    check = judge(make_wheel(tmp_path, NAME, tags=["-manylinux_2_17_x86_64"]), "tags")
    assert check.status == "fail"
    assert "'Tag: -manylinux_2_17_x86_64'" in check.summary


def test_tags_must_be_the_file_names(tmp_path: Path) -> None:
    check = judge(make_wheel(tmp_path, NAME, tags=["cp311-cp311-win_amd64"]), "tags")
    assert check.status == "fail"
    assert "WHEEL lacks the file name's tag cp311-cp311-linux_x86_64" in whole(check)


def test_a_missing_wheel_file_is_named(tmp_path: Path) -> None:
    info = "demo-1.0+cu130torch2.14.dist-info"
    report = report_of(make_wheel(tmp_path, NAME, without=["WHEEL"]))
    assert {"tags", "record"} <= failed(report)
    check = report.check("tags")
    assert check is not None
    assert check.summary == f"there is no WHEEL in {info}"


def test_a_wrong_hash_is_named(tmp_path: Path) -> None:
    check = judge(make_wheel(tmp_path, NAME, replaced={"demo/__init__.py": b"x = 2\n"}), "record")
    assert check.status == "fail"
    assert "another hash for 'demo/__init__.py'" in whole(check)


def test_a_duplicate_member_is_named(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, NAME)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("demo/__init__.py", b"other = 1\n")
    check = judge(wheel, "zip")
    assert check.status == "fail"
    assert "2 members are named 'demo/__init__.py'" in check.summary


def test_a_zip64_header_is_fine(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, NAME)
    with zipfile.ZipFile(wheel) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            with archive.open(name, "w", force_zip64=True) as stream:
                stream.write(data)
    report = report_of(wheel)
    assert not failed(report) & {"zip", "name", "metadata", "tags", "record"}
