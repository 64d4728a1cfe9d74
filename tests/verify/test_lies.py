"""Wheels that say less than they do: hidden links, files in other places, names nobody has."""

import warnings
import zipfile
from pathlib import Path

import pytest

from tests.binaries import dll, fake, library, run
from tests.verify.helpers import MODULE, NAME, judge, report_of, whole
from tests.wheels import INIT, make_wheel
from wheelfarm.errors import BadInputError
from wheelfarm.facts.document import facts_from_dict, facts_to_dict
from wheelfarm.facts.wheel import read_wheel
from wheelfarm.verify.mend import mend_wheel
from wheelfarm.verify.subject import Expected

STEM = "demo-1.0+cu130torch2.14"
FREE = Expected(torch_axis="free", torch_axis_stated=True)
OPENER = """
#include <dlfcn.h>
int open_it(void) { return dlopen("%s", RTLD_NOW) != 0; }
"""


def compiled(folder: Path, text: str, *flags: str) -> Path:
    source = folder / "made.c"
    source.write_text(text)
    run("gcc", "-shared", "-fPIC", "-w", "-o", folder / "made.so", source, *flags)
    return folder / "made.so"


def holding(folder: Path, files: dict[str, bytes | Path], *, purelib: str = "false") -> Path:
    members = {"demo/__init__.py": INIT, **files}
    return make_wheel(folder / "wheel", NAME, members, purelib=purelib)


@pytest.mark.parametrize("name", ["libtorch_cpu.so", "/opt/torch/lib/libc10.so", "libtorch.so.2"])
def test_a_library_that_is_opened_by_name_is_a_link(name: str, tmp_path: Path) -> None:
    wheel = holding(tmp_path, {MODULE: compiled(tmp_path, OPENER % name)})
    check = judge(wheel, "torch-axis", FREE)
    assert check.status == "fail"
    assert f"opens {name.rpartition('/')[2].removesuffix('.2')} at run time" in whole(check)
    assert judge(wheel, "torch-axis").status == "pass"


@pytest.mark.parametrize("name", ["libcuda.so.1", "libtorchvision.so", "libtorch_cpu.so.txt"])
def test_other_libraries_may_be_opened(name: str, tmp_path: Path) -> None:
    wheel = holding(tmp_path, {MODULE: compiled(tmp_path, OPENER % name)})
    assert judge(wheel, "torch-axis", FREE).status == "pass"


def test_a_name_that_nothing_opens_is_text(tmp_path: Path) -> None:
    text = 'const char *name = "libtorch_cpu.so";\n'
    wheel = holding(tmp_path, {MODULE: compiled(tmp_path, text)})
    assert judge(wheel, "torch-axis", FREE).status == "pass"


def test_an_opened_library_may_be_allowed(tmp_path: Path) -> None:
    wheel = holding(tmp_path, {MODULE: compiled(tmp_path, OPENER % "libc10.so")})
    allowed = Expected(torch_axis="free", allowed_needed=("libc10.so",))
    assert judge(wheel, "torch-axis", allowed).status == "pass"


def test_opened_libraries_are_in_the_document(tmp_path: Path) -> None:
    wheel = holding(tmp_path, {MODULE: compiled(tmp_path, OPENER % "libc10.so")})
    (binary,) = facts_from_dict(facts_to_dict(read_wheel(wheel))).binaries
    assert binary.opens == ("libc10.so",)


@pytest.mark.parametrize("option", ["-f", "-F"])
def test_a_filter_is_a_link(option: str, tmp_path: Path) -> None:
    wheel = holding(tmp_path, {MODULE: compiled(tmp_path, "", f"-Wl,{option},libtorch_cpu.so")})
    check = judge(wheel, "torch-axis", FREE)
    assert check.status == "fail"
    assert "needs libtorch_cpu.so" in check.summary


def test_torchs_own_code_inside_is_told(tmp_path: Path) -> None:
    module = library(tmp_path / "m.so", gives=["_ZN3c106detail5firstEv"])
    check = judge(holding(tmp_path, {MODULE: module}), "torch-axis", FREE)
    assert check.status == "warn"
    assert "_ZN3c106detail5firstEv" in check.summary


@pytest.mark.parametrize(
    "path", ["demo/weights.bin", "demo/core", f"{STEM}.data/scripts/tool", "demo/CORE.SO"]
)
def test_a_link_is_found_wherever_the_binary_lies(path: str, tmp_path: Path, others: Path) -> None:
    module = library(tmp_path / "m.so", needs=(others / "libtorch_cpu.so",))
    assert judge(holding(tmp_path, {path: module}), "torch-axis", FREE).status == "fail"


@pytest.mark.parametrize(
    ("path", "finding"),
    [
        ("torch/version.py", "torch's own files"),
        ("torch.py", "torch's own files"),
        ("nvidia/cu13/lib/extra.txt", "nvidia's own files"),
        ("numpy/evil.py", "numpy's own files"),
        (f"{STEM}.data/platlib/torch/version.py", "torch's own files"),
        (f"{STEM}.data/data/lib/python3.11/site-packages/torch/a.py", "torch's own files"),
        ("sitecustomize.py", "whenever Python starts"),
        ("usercustomize/__init__.py", "whenever Python starts"),
    ],
)
def test_files_go_into_the_wheels_own_place(path: str, finding: str, tmp_path: Path) -> None:
    check = judge(holding(tmp_path, {path: b""}), "places")
    assert check.status == "fail"
    assert path in check.summary
    assert finding in check.summary


@pytest.mark.parametrize(
    "path",
    [
        "demo/torch/version.py",
        "torch_demo/__init__.py",
        f"{STEM}.data/scripts/torch",
        f"{STEM}.data/data/share/torch/readme",
    ],
)
def test_a_like_name_elsewhere_is_ones_own(path: str, tmp_path: Path) -> None:
    assert judge(holding(tmp_path, {path: b""}), "places").status == "pass"


def test_a_project_brings_its_own_files(tmp_path: Path) -> None:
    name = "torch-2.14.1-cp311-cp311-linux_x86_64.whl"
    assert judge(make_wheel(tmp_path, name), "places").status == "pass"


def test_a_pth_file_is_told(tmp_path: Path) -> None:
    check = judge(holding(tmp_path, {"demo.pth": b"import os\n"}), "places")
    assert check.status == "warn"
    assert "demo.pth" in check.summary


@pytest.mark.parametrize(("platform", "status"), [("win_amd64", "fail"), ("linux_x86_64", "pass")])
def test_names_that_are_one_on_windows(platform: str, status: str, tmp_path: Path) -> None:
    files = {"demo/__init__.py": INIT, "Demo/__init__.py": INIT}
    wheel = make_wheel(tmp_path, f"demo-1.0-cp311-cp311-{platform}.whl", files)
    assert judge(wheel, "places").status == status


def test_compiled_code_is_not_called_pure(tmp_path: Path) -> None:
    wheel = holding(tmp_path, {MODULE: library(tmp_path / "m.so")}, purelib="true")
    assert judge(wheel, "tags").status == "warn"
    assert judge(wheel, "tags", FREE).status == "fail"
    mended = mend_wheel(wheel, tmp_path / "out")
    after = mended.after.check("tags")
    assert after is not None
    assert after.status == "pass"


def test_compiled_code_does_not_go_into_purelib(tmp_path: Path) -> None:
    path = f"{STEM}.data/purelib/{MODULE}"
    wheel = holding(tmp_path, {path: library(tmp_path / "m.so")})
    check = judge(wheel, "tags", FREE)
    assert check.status == "fail"
    assert "it lies in purelib" in check.summary


@pytest.mark.parametrize("requirement", ["torch @ https://host/torch.whl", "Torch@file:///t.whl"])
def test_torch_is_not_required_by_address(requirement: str, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, NAME, requires=(requirement,))
    assert judge(wheel, "torch-pin").status == "fail"


def test_a_requirement_by_address_is_told(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, NAME, requires=("numpy @ https://host/numpy.whl",))
    check = judge(wheel, "metadata")
    assert check.status == "warn"
    assert "one address" in whole(check)


def test_a_module_named_for_another_machine(tmp_path: Path) -> None:
    path = "demo/_C.cpython-311-aarch64-linux-gnu.so"
    module = library(tmp_path / "m.so", takes=["PyModule_Create2"], gives=["PyInit__C"])
    check = judge(holding(tmp_path, {path: module}), "python-abi")
    assert check.status == "fail"
    assert "no Python imports it" in check.summary


def test_a_windows_module_named_for_linux(tmp_path: Path) -> None:
    name = "demo-1.0-cp311-cp311-win_amd64.whl"
    module = dll(
        tmp_path / "m.pyd", imports={"python311.dll": ["PyModule_Create2"]}, gives=["PyInit__C"]
    )
    check = judge(make_wheel(tmp_path, name, {MODULE: module}), "python-abi")
    assert check.status == "fail"


@pytest.mark.parametrize(
    ("tags", "status"),
    [
        ("cp312-cp311", "fail"),
        ("py3-cp311", "fail"),
        ("cp311-cp311", "pass"),
        ("cp313-cp313t", "pass"),
        ("cp311.cp312-abi3", "pass"),
        ("py3-none", "pass"),
    ],
)
def test_a_python_has_its_own_abi(tags: str, status: str, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, f"demo-1.0-{tags}-linux_x86_64.whl")
    assert judge(wheel, "name").status == status


def test_a_copied_library_of_torch_is_packed(tmp_path: Path) -> None:
    for path in ("demo/libtorch_cpu.so", "demo/lib/core.so"):
        copy = fake(tmp_path / "copy", "libtorch_cpu.so")
        check = judge(holding(tmp_path, {path: copy}), "grafted")
        assert check.status == "fail"
        assert path in check.summary


def test_a_copied_library_of_nvidia_is_told(tmp_path: Path) -> None:
    wheel = holding(tmp_path, {"demo/lib/libcudart.so.13": fake(tmp_path, "libcudart.so.13")})
    assert judge(wheel, "grafted").status == "warn"
    assert judge(wheel, "grafted", FREE).status == "fail"


def test_nvidias_own_wheels_hold_their_libraries(tmp_path: Path) -> None:
    name = "nvidia_cuda_runtime-13.0.96-py3-none-linux_x86_64.whl"
    files: dict[str, bytes | Path] = {
        "nvidia/cu13/lib/libcudart.so.13": fake(tmp_path, "libcudart.so.13")
    }
    report = report_of(make_wheel(tmp_path / "wheel", name, files))
    assert {check.id: check.status for check in report.checks if check.status != "pass"} == {
        "platform-tag": "warn"
    }


def test_a_member_twice_is_not_mended(tmp_path: Path) -> None:

    wheel = holding(tmp_path, {})
    with warnings.catch_warnings(), zipfile.ZipFile(wheel, "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("demo/__init__.py", b"other")
    with pytest.raises(BadInputError):
        mend_wheel(wheel, tmp_path / "out")
