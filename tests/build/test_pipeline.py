"""Real builds of a tiny CUDA extension: the steps, the gate, and what stops them."""

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest
from packaging.version import Version

from tests.processes import running
from wheelfarm.build.environment import Environment, EnvironmentSpec, make_environment
from wheelfarm.build.pipeline import build_cell
from wheelfarm.build.request import BuildRequest, BuiltWheel
from wheelfarm.build.source import FolderSource
from wheelfarm.build.workspace import Workspace
from wheelfarm.engines.cell_job import CellResult, run_cell
from wheelfarm.errors import BuildError
from wheelfarm.facts.wheel import read_wheel
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.arch import ArchList
from wheelfarm.model.cell import Cell, CellId
from wheelfarm.model.python import PythonTag
from wheelfarm.values import replace
from wheelfarm.verify.subject import Expected

pytestmark = [pytest.mark.compile, pytest.mark.torch]

TINY = Path(__file__).parents[1] / "data" / "tiny_cuda"
TORCH = Version("2.14.1")
ARCHS = ArchList.parse("8.0+PTX")


def this_python() -> PythonTag:
    return PythonTag.of_version(f"{sys.version_info.major}.{sys.version_info.minor}")


def cell_of(python: str = "cp39.abi3", name: str = "tiny_cuda") -> Cell:
    return Cell(CellId.parse(f"{name}-1.0-cu130-torch2.14-{python}-linux_x86_64"), TORCH)


def request_of(folder: Path, *, python: str = "cp39.abi3") -> BuildRequest:
    return BuildRequest(
        cell=cell_of(python),
        python=this_python(),
        source=FolderSource(folder=folder),
        archs=ARCHS,
        torch_axis="free",
    )


EXPECTED = Expected(torch_axis="free", torch_axis_stated=True, archs=ARCHS, requirements="pinned")


@pytest.fixture(scope="session")
def environment(torch_environment: Environment) -> Environment:
    return torch_environment


@pytest.fixture(scope="session")
def tiny(environment: Environment, shared_folder: Path) -> CellResult:
    """The one build of the tiny extension that all tests here look at."""
    return run_cell(
        request_of(TINY),
        EXPECTED,
        Workspace.of(shared_folder / "tiny"),
        wheelhouse=shared_folder / "wheelhouse",
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose setup.py a test writes itself."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def build_project(project: Path, tmp_path: Path, setup: str, **changes: object) -> BuiltWheel:
    (project / "setup.py").write_text(setup, encoding="utf-8")
    exact = f"cp{sys.version_info.major}{sys.version_info.minor}"
    request = replace(request_of(project, python=exact), **changes)  # type: ignore[arg-type] # fields
    return build_cell(request, Workspace.of(tmp_path / "work"))


def test_the_wheel_passes_the_gate(tiny: CellResult) -> None:
    statuses = {check.id: check.status for check in tiny.report.checks}
    assert tiny.report.verdict == "pass", tiny.report.to_dict(facts=False)
    assert statuses["import"] == "pass"
    assert statuses["torch-axis"] == "pass"
    assert statuses["architectures"] == "pass"
    assert tiny.wheel.parent.name == "wheelhouse"
    assert json.loads(tiny.report_path.read_text(encoding="utf-8"))["verdict"] == "pass"


def test_the_wheel_says_what_is_true(tiny: CellResult) -> None:
    facts = read_wheel(tiny.wheel)
    assert tiny.wheel.name.startswith("tiny_cuda-1.0+cu130torch2.14-cp39-abi3-manylinux")
    assert facts.requires_dist == ("nvidia-cuda-runtime==13.*",)
    (binary,) = facts.binaries
    assert "libcudart.so.13" in binary.needed
    assert binary.runpath == ("$ORIGIN/../nvidia/cu13/lib",)
    assert sorted((code.kind, str(code.arch)) for code in binary.device_code) == [
        ("ptx", "8.0"),
        ("sass", "8.0"),
    ]


def test_all_of_cuda_is_the_environments_own(tiny: CellResult) -> None:
    assert tiny.built.toolkit.outside(tiny.built.environment.folder) == {}
    assert tiny.built.toolkit.nvcc is not None


def test_a_second_run_does_nothing_again(tiny: CellResult, shared_folder: Path) -> None:
    again = build_cell(request_of(TINY), Workspace.of(shared_folder / "tiny"))
    assert {name: step.reused for name, step in again.steps.items()} == dict.fromkeys(
        again.steps, True
    )
    assert read_wheel(again.wheel).sha256 == tiny.report.sha256


def test_newer_code_repairs_names_and_judges_again(
    tiny: CellResult, shared_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "tiny"
    shutil.copytree(shared_folder / "tiny", copy, symlinks=True)
    monkeypatch.setattr("wheelfarm.build.pipeline.code_identity", lambda *_rooms: "newer")
    monkeypatch.setattr("wheelfarm.engines.cell_job.code_identity", lambda *_rooms: "newer")
    again = run_cell(
        request_of(TINY), EXPECTED, Workspace.of(copy), wheelhouse=tmp_path / "wheelhouse"
    )
    made = {name for name, step in again.built.steps.items() if not step.reused}
    assert made == {"repair", "retag"}
    reports = list((copy / ".wheelfarm").rglob("verify/*.json"))
    assert len(reports) == 2
    assert again.report.sha256 == tiny.report.sha256


def test_a_new_folder_gives_the_same_bytes(
    tiny: CellResult, environment: Environment, tmp_path: Path
) -> None:
    other = build_cell(request_of(TINY), Workspace.of(tmp_path / "elsewhere"))
    assert not other.steps["compile"].reused
    assert read_wheel(other.wheel).sha256 == tiny.report.sha256


def test_the_seat_saw_every_compile(tiny: CellResult) -> None:
    lines = tiny.built.steps["compile"].path("calls").read_text(encoding="utf-8").splitlines()
    calls = [json.loads(line) for line in lines]
    units = {call["unit"] for call in calls if call["action"] == "compile"}
    assert {Path(unit).name for unit in units} == {"kernel.cu", "module.c"}


def test_a_false_declaration_is_refused(
    environment: Environment, shared_folder: Path, tmp_path: Path
) -> None:
    # The linker is made to need libc10, as a package that links torch does.
    assert environment.torch is not None
    library = environment.torch.folder / "lib"
    flags = f"-Wl,--no-as-needed -L{library} -lc10 -Wl,--as-needed"
    request = replace(request_of(TINY), environment={"LDFLAGS": flags})
    wheelhouse = tmp_path / "wheelhouse"
    result = run_cell(request, EXPECTED, Workspace.of(tmp_path), wheelhouse=wheelhouse)
    check = result.report.check("torch-axis")
    assert check is not None
    assert check.status == "fail"
    assert result.report.verdict == "fail"
    assert not wheelhouse.exists()
    assert result.report_path.is_file()


COMPILE_ERROR = """
from setuptools import Extension, setup
setup(name="tiny-cuda", version="1.0", ext_modules=[Extension("broken", ["broken.c"])])
"""


def test_a_compile_error_says_where(
    environment: Environment, project: Path, tmp_path: Path
) -> None:
    (project / "broken.c").write_text("int f(void) { return undeclared; }\n", encoding="utf-8")
    with pytest.raises(BuildError) as caught:
        build_project(project, tmp_path, COMPILE_ERROR)
    text = str(caught.value)
    assert "broken.c" in text
    assert "undeclared" in text
    assert "log:" in text
    log = Path(text.partition("log: ")[2].split("\n")[0].strip())
    assert "error:" in log.read_text(encoding="utf-8")


def test_a_build_that_compiles_nothing_is_none(
    environment: Environment, project: Path, tmp_path: Path
) -> None:
    setup = "from setuptools import setup\nsetup(name='tiny-cuda', version='1.0', py_modules=[])\n"
    with pytest.raises(BuildError, match="compiled nothing"):
        build_project(project, tmp_path, setup)


DOWNLOADS = """
import urllib.request
from setuptools import setup
urllib.request.urlopen("http://127.0.0.1:9/prebuilt.whl", timeout=20)
setup(name="tiny-cuda", version="1.0")
"""


def test_a_download_in_a_build_fails(
    environment: Environment, project: Path, tmp_path: Path
) -> None:
    with pytest.raises(BuildError, match="FORCE_BUILD"):
        build_project(project, tmp_path, DOWNLOADS)


def test_a_torch_that_pip_cannot_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("WHEELFARM_CACHE", str(tmp_path / "cache"))
    spec = EnvironmentSpec(
        python=this_python(), accelerator=Accelerator.parse("cu130"), torch=Version("2.14.1")
    )
    with pytest.raises(BuildError):
        make_environment(spec, Workspace.of(tmp_path), log=tmp_path / "log")


ASKS_THE_GPU = """
import os, subprocess, torch
from setuptools import Extension, setup
count = torch.cuda.device_count()
if not torch.cuda.is_available() or count == 0:
    raise RuntimeError("No GPUs found")
command = [os.environ["CUDACXX"], "-Xcompiler", "-fPIC", "-c", "src/kernel.cu", "-o", "kernel.o"]
for index in range(count):
    number = "%d%d" % torch.cuda.get_device_capability(index)
    command += ["-gencode", f"arch=compute_{number},code=sm_{number}"]
subprocess.run(command, check=True)
extension = Extension(
    "tiny_cuda", ["src/module.c"], extra_objects=["kernel.o"], language="c++",
    library_dirs=[os.environ["CUDA_HOME"] + "/lib64"], libraries=["cudart"],
)
setup(name="tiny-cuda", version="1.0", ext_modules=[extension])
"""


def test_a_build_that_asks_the_gpu_gets_the_arch_list(
    environment: Environment, project: Path, tmp_path: Path
) -> None:
    shutil.copytree(TINY / "src", project / "src")
    built = build_project(project, tmp_path, ASKS_THE_GPU, archs=ArchList.parse("8.0;9.0"))
    (binary,) = read_wheel(built.wheel).binaries
    assert {str(code.arch) for code in binary.device_code} == {"8.0", "9.0"}


SLOW = """
import os, time
from setuptools import Extension, setup
marker = {marker!r}
if not os.path.exists(marker):
    open(marker, "w").close()
    time.sleep(60)
setup(name="tiny-cuda", version="1.0", ext_modules=[Extension("fine", ["fine.c"])])
"""


def command_line(project: Path, wheelhouse: Path) -> list[str]:
    words = ["build", str(project), "--torch", "2.14.1", "--links-torch", "false"]
    words += ["--arch-list", "8.0", "--out", str(wheelhouse)]
    return [sys.executable, "-m", "wheelfarm", *words]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_second_run_finishes_what_a_kill_left(
    environment: Environment, project: Path, tmp_path: Path, number: signal.Signals
) -> None:
    marker = tmp_path / "compiling"
    (project / "setup.py").write_text(SLOW.format(marker=str(marker)), encoding="utf-8")
    (project / "fine.c").write_text(
        "#include <Python.h>\n"
        'static struct PyModuleDef m = {PyModuleDef_HEAD_INIT, "fine", 0, -1, 0};\n'
        "PyMODINIT_FUNC PyInit_fine(void) { return PyModule_Create(&m); }\n",
        encoding="utf-8",
    )
    wheelhouse = tmp_path / "wheelhouse"
    with running(command_line(project, wheelhouse)) as process:
        while not marker.exists():
            assert process.poll() is None, "the build ended before it compiled"
            time.sleep(0.05)
        os.kill(process.pid, number)
        status = process.wait(timeout=60)
    assert status == (130 if number == signal.SIGINT else -signal.SIGKILL)
    assert not list(tmp_path.rglob("*.whl"))
    with running(command_line(project, wheelhouse)) as process:
        assert process.wait(timeout=300) == 1  # no device code: the gate says so
    steps = project / ".wheelfarm/cells"
    assert list(steps.rglob("retag/*.whl"))
