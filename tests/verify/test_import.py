"""Wheels are imported in child processes: a crash, a hang or a missing torch is an answer."""

import sys
import sysconfig
from pathlib import Path

import pytest

from tests.binaries import fake, run
from tests.wheels import INIT, make_wheel
from wheelfarm.facts.wheel import read_wheel
from wheelfarm.model.cell import CellId
from wheelfarm.verify.gate import verify_wheel
from wheelfarm.verify.import_check import check_import
from wheelfarm.verify.import_child import ImportRequest
from wheelfarm.verify.report import Check, Knob
from wheelfarm.verify.subject import Expected, Subject

TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"
NAME = f"demo-1.0-{TAG}-{TAG}-linux_x86_64.whl"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
MODULE = """
#include <Python.h>
#include <stdlib.h>
%s
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_C", 0, -1, 0};
PyMODINIT_FUNC PyInit__C(void) { %s; return PyModule_Create(&definition); }
"""


def module(folder: Path, body: str = "", *, declare: str = "", flags: tuple[str, ...] = ()) -> Path:
    """Make a real Python module whose initialisation does what ``body`` says."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "module.c"
    source.write_text(MODULE % (declare, body))
    out = folder / "module.so"
    include = sysconfig.get_path("include")
    run("gcc", "-shared", "-fPIC", "-w", f"-I{include}", "-o", out, source, *flags)
    return out


def wheel_of(folder: Path, made: Path, init: bytes = b"from demo import _C\n") -> Path:
    return make_wheel(folder, NAME, {"demo/__init__.py": init, f"demo/_C{SUFFIX}": made})


def imported(
    wheel: Path,
    expected: Expected | None = None,
    *,
    stub: Path | None = None,
    time_limit: float = 60,
    cell: CellId | None = None,
    python: Path | None = None,
) -> Check:
    subject = Subject(facts=read_wheel(wheel), expected=expected, cell=cell)
    request = ImportRequest(
        wheel=wheel,
        environment=python or Path(sys.executable),
        driver_stub=stub,
        time_limit=time_limit,
    )
    check = check_import(subject, request, sound=True)
    assert isinstance(check, Check)
    return check


def test_a_good_wheel_imports(tmp_path: Path) -> None:
    check = imported(wheel_of(tmp_path, module(tmp_path)))
    assert (check.status, check.summary) == ("pass", "imports demo, demo._C")


def test_nobody_asked(tmp_path: Path) -> None:
    report = verify_wheel(wheel_of(tmp_path, module(tmp_path)))
    assert report.check("import") is None
    reason = "no environment was given in which to import the wheel"
    assert report.not_asked == (("import", reason),)
    assert report.to_dict(facts=False)["not_asked"] == {"import": reason}


@pytest.mark.parametrize(
    ("body", "finding"),
    [
        ("abort()", "killed by SIGABRT"),
        ("*(volatile int *)0 = 1", "killed by SIGSEGV"),
        ("exit(3)", "exit status 3"),
        (
            'PyErr_SetString(PyExc_RuntimeError, "bad weather"); return 0',
            "RuntimeError: bad weather",
        ),
        ("PyErr_SetNone(PyExc_SystemExit); return 0", "SystemExit"),
    ],
)
def test_whatever_stops_the_child_is_the_wheels_failure(
    body: str, finding: str, tmp_path: Path
) -> None:
    check = imported(wheel_of(tmp_path, module(tmp_path, body)))
    assert check.status == "fail"
    assert finding in check.summary


def test_an_endless_import_is_stopped(tmp_path: Path) -> None:
    check = imported(wheel_of(tmp_path, module(tmp_path, "for (;;) sleep(1)")), time_limit=3)
    assert check.status == "fail"
    assert "killed by SIGKILL" in check.summary
    assert "killed after 3 s" in check.summary


def test_a_compiled_module_is_imported_though_the_facade_does_not(tmp_path: Path) -> None:
    wheel = wheel_of(tmp_path, module(tmp_path, "abort()"), INIT)
    check = imported(wheel)
    assert check.status == "fail"
    assert check.summary.startswith("demo._C does not import: killed by SIGABRT")
    twin = Expected(no_direct_import=("demo._C",))
    assert imported(wheel, twin).status == "pass"


def test_a_requirement_that_is_absent_is_not_the_wheels_fault(tmp_path: Path) -> None:
    check = imported(wheel_of(tmp_path, module(tmp_path), b"import surely_absent_module\n"))
    assert check.status == "could-not-look"
    assert "surely_absent_module, which the environment does not have" in check.summary


def test_a_module_that_the_wheel_itself_lacks_is_its_fault(tmp_path: Path) -> None:
    check = imported(wheel_of(tmp_path, module(tmp_path), b"from demo import _D\n"))
    assert check.status == "fail"
    check = imported(wheel_of(tmp_path, module(tmp_path), b"import demo._D\n"))
    assert check.status == "fail"


DRIVER = {"declare": "extern int cuInit(unsigned);", "body": "cuInit(0)"}


def test_a_linked_driver_needs_a_stub(tmp_path: Path) -> None:
    """Never "failed" for want of a driver, and never silently "passed"."""
    stub = fake(tmp_path / "stub", "libcuda.so.1", ["cuInit"])
    wheel = wheel_of(tmp_path, module(tmp_path, **DRIVER, flags=(str(stub),)))
    check = imported(wheel)
    assert check.status == "could-not-look"
    assert check.summary.startswith("skipped: needs a driver")
    check = imported(wheel, stub=stub.parent)
    assert (check.status, check.summary) == ("pass", "imports demo, demo._C with a stub driver")


def test_a_device_error_is_forgiven_only_where_the_recipe_says_so(tmp_path: Path) -> None:
    said = b"raise RuntimeError('Found no NVIDIA driver on your system.')\n"
    wheel = make_wheel(tmp_path, "demo-1.0-py3-none-any.whl", {"demo/__init__.py": said})
    assert imported(wheel).status == "fail"
    knob = Knob(field="forgive_device_errors", value="true", reason="it counts devices")
    check = imported(wheel, Expected(forgive_device_errors=True, knobs=(knob,)))
    assert check.status == "warn"
    assert "forgiven (it counts devices)" in check.summary


def test_a_skipped_import_shows_its_reason(tmp_path: Path) -> None:
    knob = Knob(field="skip_import", value="true", reason="needs a licence server")
    check = imported(
        wheel_of(tmp_path, module(tmp_path)), Expected(skip_import=True, knobs=(knob,))
    )
    assert check.status == "warn"
    assert "needs a licence server" in check.summary


def test_another_python_is_not_the_wheels_fault(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo-1.0-cp38-cp38-linux_x86_64.whl")
    check = imported(wheel)
    assert check.status == "could-not-look"
    assert "the wheel is for cp38" in check.summary


def test_a_python_that_does_not_run_is_not_the_wheels_fault(tmp_path: Path) -> None:
    wheel = wheel_of(tmp_path, module(tmp_path))
    check = imported(wheel, python=tmp_path / "absent")
    assert check.status == "could-not-look"


def test_an_unsound_file_is_not_unpacked(tmp_path: Path) -> None:
    subject = Subject(facts=read_wheel(wheel_of(tmp_path, module(tmp_path))))
    request = ImportRequest(wheel=tmp_path / NAME, environment=Path(sys.executable))
    check = check_import(subject, request, sound=False)
    assert isinstance(check, Check)
    assert check.status == "could-not-look"


@pytest.fixture(scope="module")
def torch_module(torch_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A module that needs libc10, and can find it only once torch has loaded it."""
    folder = tmp_path_factory.mktemp("torch")
    library = next(torch_python.parents[1].glob("lib/python3*/site-packages/torch/lib/libc10.so"))
    flags = ("-Wl,--no-as-needed", f"-L{library.parent}", "-l:libc10.so")
    return module(folder, flags=flags)


@pytest.mark.torch
def test_the_report_says_which_import_needs_torch(
    torch_module: Path, torch_python: Path, tmp_path: Path
) -> None:
    wheel = wheel_of(tmp_path, torch_module)
    expected = Expected(import_names=("demo",), expect_ops=("aten::add",))
    cell = CellId.parse(f"demo-1.0-cu130-torch2.14-{TAG}-linux_x86_64")
    check = imported(wheel, expected, cell=cell, python=torch_python)
    assert check.status == "pass", check
    assert "demo imports after torch only (ImportError: libc10.so" in check.evidence[0]
    absent = Expected(import_names=("demo",), expect_ops=("demo::absent",))
    check = imported(wheel, absent, cell=cell, python=torch_python)
    assert check.status == "fail"
    assert "demo::absent does not import: AttributeError" in check.summary


@pytest.mark.torch
def test_a_search_path_to_torch_is_followed(
    torch_module: Path, torch_python: Path, tmp_path: Path
) -> None:
    found = tmp_path / "found.so"
    found.write_bytes(torch_module.read_bytes())
    run("patchelf", "--set-rpath", "$ORIGIN/../torch/lib", found)
    check = imported(wheel_of(tmp_path, found), python=torch_python)
    assert check.status == "pass", check
    assert check.evidence[0] == "demo imports alone and after torch"


@pytest.mark.torch
@pytest.mark.parametrize(
    ("cell", "finding"),
    [
        (f"demo-1.0-cu130-torch2.1-{TAG}-linux_x86_64", "its torch is 2.14.1"),
        (f"demo-1.0-cu128-torch2.14-{TAG}-linux_x86_64", "its torch is built for CUDA 13.0"),
    ],
)
def test_an_environment_that_is_not_the_cells_is_not_the_wheels_fault(
    cell: str, finding: str, torch_python: Path, tmp_path: Path
) -> None:
    """torch 2.14 does not begin with "2.1", though its text does."""
    wheel = wheel_of(tmp_path, module(tmp_path))
    check = imported(wheel, Expected(), cell=CellId.parse(cell), python=torch_python)
    assert check.status == "could-not-look"
    assert finding in check.summary
