"""Every check of the gate: a wheel that fails it, and the sentence that says why."""

from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.version import Version

from tests.binaries import dll, fatbin, library, run
from tests.verify.helpers import CELL, MODULE, NAME, archs, judge, minor, report_of, whole
from tests.verify.packed import zipped
from tests.wheels import INIT, make_wheel
from wheelfarm.model.cell import CellId
from wheelfarm.values import replace
from wheelfarm.verify.gate import CHECKS, verify_wheel
from wheelfarm.verify.report import Check, Report
from wheelfarm.verify.subject import Expected

UNSTABLE = "_ZNK2at10TensorBase8data_ptrIfEEPT_v"
NEW_STRING = (
    "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
)
OLD_STRING = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"


def wheel_of(
    folder: Path,
    module: Path,
    *,
    name: str = NAME,
    path: str = MODULE,
    requires: tuple[str, ...] = (),
) -> Path:
    return make_wheel(folder, name, {"demo/__init__.py": INIT, path: module}, requires=requires)


def python_module(folder: Path, *takes: str, needs: tuple[Path, ...] = ()) -> Path:
    return library(
        folder / "module.so", takes=("PyModule_Create2", *takes), gives=["PyInit__C"], needs=needs
    )


def linked(folder: Path, others: Path, *takes: str) -> Path:
    return python_module(folder, *takes, needs=(others / "libc10.so", others / "libtorch_cpu.so"))


# torch's axis


def test_false_but_linked_fails(tmp_path: Path, others: Path) -> None:
    wheel = wheel_of(tmp_path, linked(tmp_path, others, UNSTABLE))
    for axis in ("free", "abi_flag"):
        check = judge(wheel, "torch-axis", Expected(torch_axis=axis, torch_axis_stated=True))
        assert check.status == "fail"
        assert "needs libc10.so" in check.summary


def test_a_needed_library_alone_is_a_link(tmp_path: Path, others: Path) -> None:
    wheel = wheel_of(tmp_path, linked(tmp_path, others))
    assert judge(wheel, "torch-axis", Expected(torch_axis="free")).status == "fail"


def test_a_symbol_alone_is_a_link(tmp_path: Path) -> None:
    """A module built without torch among its libraries resolves the symbol at run time."""
    wheel = wheel_of(tmp_path, python_module(tmp_path, UNSTABLE))
    check = judge(wheel, "torch-axis", Expected(torch_axis="free"))
    assert check.status == "fail"
    assert UNSTABLE in check.summary


def test_true_but_unlinked_fails_where_stated(tmp_path: Path) -> None:
    wheel = wheel_of(tmp_path, python_module(tmp_path))
    stated = Expected(torch_axis="linked", torch_axis_stated=True)
    assert judge(wheel, "torch-axis", stated).status == "fail"
    defaulted = Expected(torch_axis="linked", torch_axis_stated=False)
    check = judge(wheel, "torch-axis", defaulted)
    assert check.status == "warn"
    assert "links_torch: false" in check.summary


def test_linked_as_declared_passes(tmp_path: Path, others: Path) -> None:
    wheel = wheel_of(tmp_path, linked(tmp_path, others, UNSTABLE))
    assert judge(wheel, "torch-axis", Expected(torch_axis="linked")).status == "pass"


def test_a_stable_module_declared_as_linked_is_told(tmp_path: Path, others: Path) -> None:
    wheel = wheel_of(tmp_path, linked(tmp_path, others, "torch_call_dispatcher"))
    check = judge(wheel, "torch-axis", Expected(torch_axis="linked"))
    assert check.status == "warn"
    assert "torch_axis: stable_abi, from_torch: '2.10'" in check.summary


def test_an_unstable_symbol_is_named(tmp_path: Path, others: Path) -> None:
    wheel = wheel_of(tmp_path, linked(tmp_path, others, "torch_call_dispatcher", UNSTABLE))
    check = judge(wheel, "torch-axis", Expected(torch_axis="stable_abi"))
    assert check.status == "fail"
    assert UNSTABLE in check.summary


def test_a_stable_symbol_that_is_too_new_is_named(tmp_path: Path, others: Path) -> None:
    wheel = wheel_of(tmp_path, linked(tmp_path, others, "aoti_torch_dtype_float8_e8m0fnu"))
    old = Expected(torch_axis="stable_abi", from_torch=minor("2.10"))
    check = judge(wheel, "torch-axis", old)
    assert check.status == "fail"
    assert "aoti_torch_dtype_float8_e8m0fnu is there since torch 2.12" in check.summary
    new = Expected(torch_axis="stable_abi", from_torch=minor("2.12"))
    assert judge(wheel, "torch-axis", new).status == "pass"


def test_a_windows_module_is_judged_by_its_imports(tmp_path: Path) -> None:
    module = dll(tmp_path / "_C.pyd", imports={"c10.dll": ["?foo@c10@@YAXXZ"]})
    name = "demo-1.0+cu130torch2.14-cp311-cp311-win_amd64.whl"
    wheel = make_wheel(tmp_path, name, {"demo/_C.cp311-win_amd64.pyd": module})
    cell = CellId.parse("demo-1.0-cu130-torch2.14-cp311-windows_amd64")
    report = verify_wheel(wheel, cell=cell, expected=Expected(torch_axis="free"))
    check = report.check("torch-axis")
    assert check is not None
    assert check.status == "fail"
    assert "needs c10.dll" in check.summary


# C++ ABI and CUDA


@pytest.mark.parametrize(("symbol", "abi"), [(NEW_STRING, 1), (OLD_STRING, 0)])
def test_the_label_of_the_cxx_abi_must_be_true(
    symbol: str, abi: int, tmp_path: Path, others: Path
) -> None:
    module = linked(tmp_path, others, symbol)
    words = {1: "TRUE", 0: "FALSE"}
    for claim in (0, 1):
        name = f"demo-1.0+cu13torch2.14cxx11abi{words[claim]}-cp311-cp311-linux_x86_64.whl"
        check = judge(wheel_of(tmp_path / str(claim), module, name=name), "cxx-abi")
        assert check.status == ("pass" if claim == abi else "fail")
        assert symbol in whole(check)


def test_cuda_of_another_major_than_the_label_fails(tmp_path: Path, others: Path) -> None:
    module = python_module(tmp_path, needs=(others / "libcudart.so.12",))
    check = judge(wheel_of(tmp_path, module), "cuda")
    assert check.status == "fail"
    assert "claims CUDA 13, but needs CUDA 12" in check.summary


def test_cuda_of_two_majors_fails(tmp_path: Path, others: Path) -> None:
    module = python_module(tmp_path, needs=(others / "libcudart.so.12", others / "libcublas.so.13"))
    check = judge(wheel_of(tmp_path, module), "cuda")
    assert check.status == "fail"
    assert "different CUDA majors" in check.summary


def test_cufft_of_cuda_13_is_number_12(tmp_path: Path, others: Path) -> None:
    module = python_module(tmp_path, needs=(others / "libcufft.so.12",))
    assert judge(wheel_of(tmp_path, module), "cuda").status == "pass"


# GPU architectures


@pytest.fixture(scope="module")
def kernel(toolkit_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    targets = (
        "arch=compute_80,code=sm_80",
        "arch=compute_90a,code=sm_90a",
        "arch=compute_120,code=[sm_120,compute_120]",
    )
    return fatbin(toolkit_python, tmp_path_factory.mktemp("archs"), targets)


@pytest.mark.compile
@pytest.mark.parametrize(
    ("planned", "finding"),
    [
        ("8.0;9.0a;12.0+PTX", ""),
        ("8.0;8.6;9.0a;12.0+PTX", "lacks machine code for 8.6"),
        ("8.0;9.0;12.0+PTX", "lacks machine code for 9.0 (it has 9.0a instead)"),
        ("8.0;9.0a;12.0", "has PTX for 12.0, which was not planned"),
        ("8.0;9.0a+PTX;12.0+PTX", "lacks PTX for 9.0a"),
        ("9.0a;12.0+PTX", "has machine code for 8.0, which was not planned"),
    ],
)
def test_each_module_holds_exactly_the_plan(
    planned: str, finding: str, kernel: Path, tmp_path: Path
) -> None:
    check = judge(wheel_of(tmp_path, kernel), "architectures", Expected(archs=archs(planned)))
    assert check.status == ("fail" if finding else "pass")
    assert finding in check.summary


@pytest.mark.compile
def test_modules_are_not_joined(kernel: Path, toolkit_python: Path, tmp_path: Path) -> None:
    """A union over both modules would hold every planned architecture."""
    other = fatbin(toolkit_python, tmp_path, ("arch=compute_80,code=sm_80",))
    files = {MODULE: kernel, "demo/_D.so": other}
    planned = Expected(archs=archs("8.0;9.0a;12.0+PTX"))
    check = judge(make_wheel(tmp_path, NAME, files), "architectures", planned)
    assert check.status == "fail"
    assert "demo/_D.so lacks machine code for 9.0a" in whole(check)
    assert MODULE not in check.summary
    exempt = replace(planned, module_archs=(("demo/_D.so", archs("8.0")),))
    assert judge(make_wheel(tmp_path, NAME, files), "architectures", exempt).status == "pass"


# Python's ABI

ABI3 = "demo-1.0+cu130torch2.14-cp310-abi3-linux_x86_64.whl"


@pytest.mark.parametrize(
    ("symbol", "finding"),
    [
        ("PyObject_GetIter", ""),
        ("PyType_GetName", "in the stable ABI since Python 3.11; the wheel claims 3.10"),
        ("_PyThreadState_UncheckedGet", "which is not in the stable ABI"),
    ],
)
def test_an_abi3_wheel_takes_what_its_floor_has(symbol: str, finding: str, tmp_path: Path) -> None:
    module = python_module(tmp_path, symbol)
    check = judge(wheel_of(tmp_path, module, name=ABI3, path="demo/_C.abi3.so"), "python-abi")
    assert check.status == ("fail" if finding else "pass")
    assert finding in check.summary
    assert not finding or symbol in check.summary


def test_a_module_of_one_python_in_an_abi3_wheel_fails(tmp_path: Path) -> None:
    check = judge(wheel_of(tmp_path, python_module(tmp_path), name=ABI3), "python-abi")
    assert check.status == "fail"
    assert "is named for cp311 alone" in check.summary


def test_a_windows_abi3_module_must_not_need_python311(tmp_path: Path) -> None:
    module = dll(tmp_path / "_C.pyd", imports={"python311.dll": ["PyModule_Create2"]})
    name = "demo-1.0-cp310-abi3-win_amd64.whl"
    check = judge(make_wheel(tmp_path, name, {"demo/_C.pyd": module}), "python-abi")
    assert check.status == "fail"
    assert "python311.dll, which ties it to one Python" in check.summary


def test_a_free_threaded_tag_must_be_true(tmp_path: Path) -> None:
    name = "demo-1.0-cp313-cp313t-linux_x86_64.whl"
    path = "demo/_C.cpython-313t-x86_64-linux-gnu.so"
    locked = python_module(tmp_path / "locked", "_Py_Dealloc")
    free = python_module(tmp_path / "free", "_Py_DecRefShared")
    check = judge(wheel_of(tmp_path, locked, name=name, path=path), "free-threaded")
    assert check.status == "fail"
    assert "was built for Python with the lock" in check.summary
    assert judge(wheel_of(tmp_path, free, name=name, path=path), "free-threaded").status == "pass"
    check = judge(wheel_of(tmp_path, free), "free-threaded")
    assert check.status == "fail"


# Requirements


def test_requirements_must_be_the_curated_ones(tmp_path: Path) -> None:
    curated = Expected(requires_dist=("numpy>=1.20", "trimesh"))
    wheel = make_wheel(tmp_path, NAME, requires=["NumPy >= 1.20", "scipy"])
    check = judge(wheel, "requirements", curated)
    assert check.status == "fail"
    assert "the wheel requires 'scipy', which is not in the list" in whole(check)
    assert "the wheel lacks 'trimesh'" in whole(check)
    wheel = make_wheel(tmp_path, NAME, requires=["trimesh", "numpy>=1.20"])
    assert judge(wheel, "requirements", curated).status == "pass"


@pytest.mark.parametrize(
    ("axis", "requirement", "status"),
    [
        ("linked", "torch==2.14.*", "pass"),
        ("linked", "torch==2.14.1", "pass"),
        ("linked", "torch>=2.14", "fail"),
        ("linked", "torch==2.1.*", "fail"),
        ("linked", "", "fail"),
        ("stable_abi", "torch>=2.10", "pass"),
        ("stable_abi", "torch>=2.4", "fail"),
        ("stable_abi", "", "fail"),
        ("free", "", "pass"),
        ("free", "torch<2", "fail"),
    ],
)
def test_torch_is_pinned_as_policy_says(
    axis: str, requirement: str, status: str, tmp_path: Path
) -> None:
    axes = {"linked": "linked", "stable_abi": "stable_abi", "free": "free"}
    expected = Expected(
        torch_axis=axes[axis],  # type: ignore[arg-type] # a table of the words themselves
        from_torch=minor("2.10"),
        torch_release=Version("2.14.1+cu130"),
        requirements="pinned",
    )
    wheel = make_wheel(tmp_path, NAME, requires=[requirement] if requirement else [])
    assert judge(wheel, "torch-pin", expected).status == status


def test_a_blank_policy_means_no_requirement(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, NAME, requires=["numpy"])
    assert judge(wheel, "torch-pin", Expected(requirements="blank")).status == "fail"


# A wheel against its cell


@pytest.mark.parametrize(
    ("name", "finding"),
    [
        ("demo-1.0+cu130torch2.14-cp312-cp312-linux_x86_64.whl", "for cp312, the cell for cp311"),
        ("demo-1.0+cu130torch2.1-cp311-cp311-linux_x86_64.whl", "cu130torch2.1, the cell's is"),
        ("demo-1.0-cp311-cp311-linux_x86_64.whl", "the local version is None"),
        ("demo-1.1+cu130torch2.14-cp311-cp311-linux_x86_64.whl", "version 1.1, the cell 1.0"),
        ("other-1.0+cu130torch2.14-cp311-cp311-linux_x86_64.whl", "of other, the cell of demo"),
        ("demo-1.0+cu130torch2.14-cp311-cp311-win_amd64.whl", "for win_amd64, the cell for linux"),
        ("demo-1.0+cu130torch2.14-cp311-cp311t-linux_x86_64.whl", "for cp311t, the cell for"),
    ],
)
def test_the_name_must_be_the_cells(name: str, finding: str, tmp_path: Path) -> None:
    check = judge(make_wheel(tmp_path, name), "name", Expected())
    assert check.status == "fail"
    assert finding in check.summary


def test_a_file_that_is_no_wheels_name_fails(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, NAME)
    renamed = wheel.rename(tmp_path / "demo.whl")
    assert judge(renamed, "name").status == "fail"


@pytest.mark.parametrize(
    ("tag", "finding"),
    [
        ("manylinux_2_28_manylinux1_x86_64", "is no platform tag of Linux"),
        ("manylinux_2_28_x86_64x", "is no platform tag of Linux"),
        ("manylinux3_x86_64", "is no platform tag of Linux"),
        ("manylinux1_manylinux1_x86_64", "is no platform tag of Linux"),
        ("macosx_11_0_x86_64", "is no platform tag of Linux"),
        ("manylinux_2_28_x86_64.manylinux_2_28_aarch64", "manylinux_2_28_aarch64 is not true"),
        ("manylinux_2_28_i686", "manylinux_2_28_i686 is not true"),
        ("linux_riscv64", "linux_riscv64 is not true"),
        ("manylinux_2_28_ppc64le", "manylinux_2_28_ppc64le is not true"),
    ],
)
def test_a_platform_tag_must_be_one_that_installers_know(
    tag: str, finding: str, tmp_path: Path
) -> None:
    name = f"demo-1.0-cp311-cp311-{tag}.whl"
    check = judge(wheel_of(tmp_path, library(tmp_path / "m.so"), name=name), "platform-tag")
    assert check.status == "fail"
    assert finding in whole(check)


# Every check has a wheel that fails it: the table is complete.

Make = Callable[[Path, Path], Report]


def _truncated(folder: Path, others: Path) -> Report:
    data = library(folder / "m.so").read_bytes()
    half = folder / "half.so"
    half.write_bytes(data[: len(data) // 2])
    return report_of(wheel_of(folder, half))


def _half_rewritten(folder: Path, others: Path) -> Report:
    module = library(folder / "m.so", takes=["pthread_create"])
    run("patchelf", "--remove-needed", "libc.so.6", module)
    return report_of(wheel_of(folder, module))


def _too_new(folder: Path, others: Path) -> Report:
    module = library(folder / "m.so", takes=["pthread_create"])
    return report_of(wheel_of(folder, module), Expected(glibc=minor("2.28")))


def _bad_zip(folder: Path, others: Path) -> Report:
    path = folder / NAME
    path.write_bytes(b"PK not a zip")
    return report_of(path)


def _packed(folder: Path, others: Path) -> Report:
    files = {"demo.libs/libcudart-1a2b3c4d.so.13.0.96": others / "libcudart.so.13"}
    return report_of(make_wheel(folder, NAME, files), Expected())


def _driver(folder: Path, others: Path) -> Report:
    return report_of(make_wheel(folder, NAME, {"demo/libcuda.so.1": others / "libcuda.so.1"}))


def _any_platform(folder: Path, others: Path) -> Report:
    module = library(folder / "m.so")
    return report_of(wheel_of(folder, module, name="demo-1.0-py3-none-any.whl", path="demo/m.so"))


def _rpath(folder: Path, others: Path) -> Report:
    return report_of(wheel_of(folder, library(folder / "m.so", flags=["-Wl,-rpath,/opt/x"])))


def _locked(folder: Path, others: Path) -> Report:
    name = "demo-1.0-cp313-cp313t-linux_x86_64.whl"
    return report_of(wheel_of(folder, python_module(folder, "_Py_Dealloc"), name=name))


def _abi(folder: Path, others: Path) -> Report:
    name = "demo-1.0+torch2.14cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"
    return report_of(wheel_of(folder, linked(folder, others, NEW_STRING), name=name))


FAILING: dict[str, Make] = {
    "zip": _bad_zip,
    "name": lambda folder, _: report_of(make_wheel(folder, ABI3), Expected()),
    "metadata": lambda folder, _: report_of(make_wheel(folder, NAME, version="1.0")),
    "tags": lambda folder, _: report_of(make_wheel(folder, NAME, tags=["py3-none-any"])),
    "record": lambda folder, _: report_of(make_wheel(folder, NAME, without=["RECORD"])),
    "size": lambda folder, _: report_of(make_wheel(folder, NAME), Expected(max_size=10)),
    "places": lambda folder, _: report_of(make_wheel(folder, NAME, {"torch/version.py": INIT})),
    "requirements": lambda folder, _: report_of(
        make_wheel(folder, NAME), Expected(requires_dist=("numpy",))
    ),
    "compiled-code": lambda folder, _: report_of(make_wheel(folder, NAME)),
    "binaries": _truncated,
    "archives": lambda folder, _: report_of(
        make_wheel(folder, NAME, {"demo/more.zip": zipped({"a.so": library(folder / "a.so")})}),
        Expected(),
    ),
    "torch-axis": lambda folder, others: report_of(
        wheel_of(folder, linked(folder, others)), Expected(torch_axis="free")
    ),
    "torch-pin": lambda folder, _: report_of(
        make_wheel(folder, NAME, requires=["torch<2"]), Expected()
    ),
    "cxx-abi": _abi,
    "cuda": lambda folder, others: report_of(
        wheel_of(folder, python_module(folder, needs=(others / "libcudart.so.12",)))
    ),
    "libraries": lambda folder, others: report_of(
        wheel_of(folder, python_module(folder, needs=(others / "libordinary.so.4",)))
    ),
    "driver": _driver,
    "grafted": _packed,
    "search-paths": _rpath,
    "version-needs": _half_rewritten,
    "glibc": _too_new,
    "platform-tag": _any_platform,
    "architectures": lambda folder, _: report_of(
        wheel_of(folder, library(folder / "m.so")), Expected(archs=archs("9.0"))
    ),
    "python-abi": lambda folder, _: report_of(wheel_of(folder, python_module(folder), name=ABI3)),
    "free-threaded": _locked,
    "exemptions": lambda folder, _: report_of(
        make_wheel(folder, NAME), Expected(allowed_needed=("libx.so",))
    ),
}


def test_the_table_names_every_check() -> None:
    assert set(FAILING) == set(CHECKS)


@pytest.mark.parametrize("identifier", FAILING)
def test_each_check_can_fail(identifier: str, tmp_path: Path, others: Path) -> None:
    report = FAILING[identifier](tmp_path, others)
    check = report.check(identifier)
    assert check is not None
    assert check.status == "fail"
    assert check.summary
    assert report.verdict == "fail"


def test_a_right_wheel_passes_everything_but_the_import(tmp_path: Path, others: Path) -> None:
    module = linked(tmp_path, others, UNSTABLE, NEW_STRING)
    run("strip", module)
    name = "demo-1.0+cu130torch2.14-cp311-cp311-manylinux_2_24_x86_64.whl"
    wheel = wheel_of(tmp_path, module, name=name, requires=("torch==2.14.*",))
    expected = Expected(
        torch_axis="linked",
        torch_axis_stated=True,
        torch_release=Version("2.14.1"),
        glibc=minor("2.28"),
        requirements="pinned",
        requires_dist=("torch==2.14.*",),
    )
    report = verify_wheel(wheel, cell=CELL, expected=expected)
    assert {check.id: check.summary for check in report.checks if check.status != "pass"} == {
        "import": "no environment was given in which to import the wheel"
    }
    assert report.verdict == "could-not-look"


def test_strict_turns_warnings_into_failures(tmp_path: Path) -> None:
    wheel = wheel_of(tmp_path, library(tmp_path / "m.so"))
    assert verify_wheel(wheel).check("platform-tag") == Check(
        id="platform-tag",
        status="warn",
        summary="linux_x86_64 promises nothing; the lowest true tag is manylinux_2_5_x86_64",
    )
    assert verify_wheel(wheel).verdict == "pass"
    assert verify_wheel(wheel, strict=True).verdict == "fail"
