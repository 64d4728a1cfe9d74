"""The doctor over environments with real, small binaries that are wrong in one way each."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fake_environment import install, install_torch, make_environment, site_packages
from tests.farm_site import make_wheel
from wheelfarm.cli import main
from wheelfarm.doctor.pasted import explain

Compile = Callable[..., Path]

ERROR_NEW = "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcEE"
ERROR_OLD = "_ZN3c105ErrorC2ENS_14SourceLocationESs"
GONE = "_ZN2at6Tensor9gone_thisEv"
TORCH = f"""
void {ERROR_NEW}(void) {{}}
void _ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcE(void) {{}}
void _ZN2at6Tensor4sizeEv(void) {{}}
"""


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "machine/sys/bus/pci/devices").mkdir(parents=True)
    monkeypatch.setenv("WHEELFARM_ROOT", str(tmp_path / "machine"))
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """An environment with a small torch of which two functions are there."""
    found = make_environment(tmp_path / "environment")
    install_torch(found, "2.14.1+cu130", metadata="2.14.1")
    folder = site_packages(found) / "torch/lib"
    folder.mkdir()
    build(folder / "libc10.so", TORCH, "-Wl,-soname,libc10.so")
    return found


def build(path: Path, text: str, *words: str) -> Path:
    source = path.with_suffix(".c")
    source.write_text(text, encoding="utf-8")
    argv = ["gcc", "-shared", "-fPIC", "-o", str(path), str(source), *words]
    subprocess.run(argv, check=True, capture_output=True)
    source.unlink()
    return path


@pytest.fixture
def package(python: Path) -> Compile:
    """Return a function that installs a compiled package with what its C text needs."""

    def make(
        text: str,
        *words: str,
        name: str = "diso",
        version: str = "0.1.4+cu130torch2.14",
        module: str = "_C.so",
    ) -> Path:
        install(python, name, version, files={"__init__": ""})
        path = site_packages(python) / name / module
        torch = site_packages(python) / "torch/lib"
        build(path, text, *words, f"-L{torch}", "-Wl,--no-as-needed", "-l:libc10.so")
        record = site_packages(python) / f"{name}-{version}.dist-info/RECORD"
        record.write_text(f"{record.read_text()}{name}/{module},,\n", encoding="utf-8")
        return path

    return make


def calls(*symbols: str) -> str:
    """Return C that needs those symbols."""
    lines = [f"extern void {name}(void);" for name in symbols]
    body = " ".join(f"{name}();" for name in symbols)
    return "\n".join([*lines, f"void run(void) {{ {body} }}", ""])


def doctor(
    python: Path, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main(["doctor", "--python", str(python), "--json", *words])
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "wheelfarm.doctor/1"
    return code, {each["package"]: each for each in document["diagnoses"]}


def only_finding(diagnoses: dict[str, Any], name: str = "diso") -> dict[str, Any]:
    findings: list[dict[str, Any]] = diagnoses[name]["findings"]
    assert len(findings) == 1, findings
    return findings[0]


@pytest.mark.compile
def test_a_package_that_loads_is_fine(
    python: Path, package: Compile, capsys: pytest.CaptureFixture[str]
) -> None:
    package(calls(ERROR_NEW))
    code, found = doctor(python, capsys)
    assert code == 0
    assert found["diso"]["status"] == "ok"


@pytest.mark.compile
def test_built_for_another_torch_with_the_symbol(
    python: Path, package: Compile, capsys: pytest.CaptureFixture[str]
) -> None:
    package(calls(ERROR_NEW, GONE), version="0.1.4+cu130torch2.13")
    code, found = doctor(python, capsys)
    finding = only_finding(found)
    assert code == 1
    assert finding["kind"] == "torch"
    assert "torch 2.13" in finding["summary"]
    assert finding["evidence"] == [f"undefined symbol: {GONE}"]
    assert finding["command"] == "wheelfarm resolve diso --install"


@pytest.mark.compile
def test_built_for_the_other_abi(
    python: Path, package: Compile, capsys: pytest.CaptureFixture[str]
) -> None:
    package(calls(ERROR_OLD))
    _, found = doctor(python, capsys)
    assert {finding["kind"] for finding in found["diso"]["findings"]} == {"torch", "abi"}


@pytest.mark.compile
def test_another_cuda_runtime(
    python: Path, package: Compile, capsys: pytest.CaptureFixture[str]
) -> None:
    runtime = site_packages(python) / "nvidia/cuda_runtime/lib/libcudart.so.12"
    runtime.parent.mkdir(parents=True)
    build(runtime, "void cudaFree(void) {}\n", "-Wl,-soname,libcudart.so.12")
    package(calls("cudaFree"), f"-L{runtime.parent}", "-l:libcudart.so.12")
    install(python, "nvidia_cuda_runtime_cu12", "12.8.90")
    install(python, "nvidia_cuda_runtime", "13.0.96")
    code, found = doctor(python, capsys)
    finding = only_finding(found)
    assert code == 1
    assert finding["kind"] == "cuda"
    assert "libcudart.so.12" in finding["summary"]
    mixed = only_finding(found, "")
    assert mixed["kind"] == "mixed"
    assert mixed["command"] == "pip uninstall nvidia-cuda-runtime-cu12"


@pytest.mark.compile
def test_a_library_that_nobody_supplies(
    python: Path, package: Compile, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in ("libcudart.so.13", "libstrange.so.4", "libcuda.so.1"):
        build(tmp_path / name, "void f(void) {}\n", f"-Wl,-soname,{name}")
    words = [f"-L{tmp_path}", "-Wl,--no-as-needed"]
    words += ["-l:libcudart.so.13", "-l:libstrange.so.4", "-l:libcuda.so.1"]
    package(calls(ERROR_NEW), *words)
    _, found = doctor(python, capsys)
    findings = found["diso"]["findings"]
    said = {each["summary"].removeprefix("diso/_C.so "): each["command"] for each in findings}
    assert said == {
        "needs libcudart.so.13, which nobody supplies": "pip install nvidia-cuda-runtime",
        "needs libstrange.so.4, which nobody supplies": "",
        "needs libcuda.so.1 of the NVIDIA driver, which is not here": "",
    }


@pytest.mark.compile
def test_a_library_found_by_the_packages_own_path_is_supplied(
    python: Path, package: Compile, capsys: pytest.CaptureFixture[str]
) -> None:
    own = site_packages(python) / "diso.libs"
    own.mkdir()
    build(own / "libown.so.1", "void f(void) {}\n", "-Wl,-soname,libown.so.1")
    words = [f"-L{own}", "-Wl,--no-as-needed", "-l:libown.so.1"]
    package(calls(ERROR_NEW), *words, "-Wl,-rpath,$ORIGIN/../diso.libs")
    code, _ = doctor(python, capsys)
    assert code == 0


@pytest.mark.compile
def test_too_new_a_glibc_names_the_symbol(
    python: Path, package: Compile, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "#include <pthread.h>\n" + calls(ERROR_NEW)
    text += "int more(pthread_t t) { return pthread_join(t, 0); }\n"
    package(text)
    code, found = doctor(python, capsys, "--libc", "2.17")
    finding = only_finding(found)
    assert code == 1
    assert finding["kind"] == "glibc"
    assert "this system has glibc 2.17" in finding["summary"]


@pytest.mark.compile
def test_another_python(python: Path, package: Compile, capsys: pytest.CaptureFixture[str]) -> None:
    package(calls(ERROR_NEW), module="_C.cpython-39-x86_64-linux-gnu.so")
    _, found = doctor(python, capsys)
    assert only_finding(found)["kind"] == "python"


FATBIN = """
__asm__(".section .nv_fatbin,\\"a\\"\\n"
  ".long 0xBA55ED50\\n.short 1\\n.short 16\\n.quad 80\\n"
  ".short 2\\n.short 0x101\\n.long 64\\n.quad 16\\n.long 0\\n.long 0\\n"
  ".short 8\\n.short 6\\n.long 86\\n.zero 32\\n.zero 16\\n.previous\\n");
"""


@pytest.mark.compile
@pytest.mark.parametrize(("gpu", "code"), [("8.9", 0), ("9.0", 1), ("6.1", 1)])
def test_no_code_for_this_gpu(
    python: Path, package: Compile, capsys: pytest.CaptureFixture[str], gpu: str, code: int
) -> None:
    package(FATBIN + calls(ERROR_NEW))
    status, found = doctor(python, capsys, "--gpu", gpu, "--driver", "580.65")
    assert status == code, found
    if code:
        finding = only_finding(found)
        assert finding["kind"] == "gpu"
        assert f"no code for GPU {gpu} (it has 8.6)" in finding["summary"]


@pytest.mark.compile
def test_a_file_that_is_cut_short_is_could_not_look(
    python: Path, package: Compile, capsys: pytest.CaptureFixture[str]
) -> None:
    path = package(calls(ERROR_NEW))
    path.write_bytes(path.read_bytes()[:5000])
    code, found = doctor(python, capsys)
    assert code == 2
    assert only_finding(found)["kind"] == "unreadable"


def test_a_package_that_is_not_there_is_said(
    python: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "flash-attn", "--python", str(python)]) == 2
    assert "flash-attn: no compiled package of that name" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "kind", "words"),
    [
        (f"ImportError: /x/_C.so: undefined symbol: {GONE}", "torch", "another torch"),
        ("x.so: undefined symbol: cudaGetDriverEntryPointByVersion", "cuda", "CUDA library"),
        ("x.so: undefined symbol: _PyThreadState_UncheckedGet", "python", "another Python"),
        (
            "libcudart.so.12: cannot open shared object file: No such file or directory",
            "library",
            "CUDA 12",
        ),
        ("libcuda.so.1: cannot open shared object file: No such file", "driver", "driver"),
        ("libc10.so: cannot open shared object file: No such file", "torch", "import torch"),
        ("/lib/libc.so.6: version `GLIBC_2.32' not found (required by x.so)", "glibc", "2.32"),
        ("version `GLIBCXX_3.4.30' not found", "glibc", "GLIBCXX_3.4.30"),
        (
            "RuntimeError: CUDA error: no kernel image is available for execution on the device",
            "gpu",
            "no code for this GPU",
        ),
        ("the provided PTX was compiled with an unsupported toolchain.", "driver", "PTX"),
        ("CUDA driver version is insufficient for CUDA runtime version", "driver", "older"),
        ("Failed to initialize NVML: Driver/library version mismatch", "driver", "updated"),
        (
            "detected CUDA version (12.6) mismatches the version that built PyTorch (11.8).",
            "toolkit",
            "12.6",
        ),
        ("OSError: CUDA_HOME environment variable is not set.", "toolkit", "toolkit"),
        (
            "sageattn-1.0-cp312-cp312-linux_x86_64.whl is not a supported wheel on this platform",
            "python",
            "another Python",
        ),
        ("AssertionError: Torch not compiled with CUDA enabled", "torch", "CPU build"),
        ("ERROR: Failed to build flash-attn", "source-build", "compiled from source"),
        ("ImportError: x.so: file too short", "unreadable", "damaged"),
        (
            (
                "UserWarning: NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible"
                " with the current PyTorch installation."
            ),
            "gpu",
            "no code for this GPU (sm_120)",
        ),
        (
            (
                "FATAL: kernel `fmha_cutlassF_f32_aligned_64x64_rf_sm80` is for sm80-sm100, but was"
                " built for sm50"
            ),
            "gpu",
            "sm80-sm100",
        ),
        ("RuntimeError: CUDA error: device kernel image is invalid", "gpu", "can load"),
        (
            "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
            "driver",
            "knows CUDA 11.4",
        ),
        ("RuntimeError: Found no NVIDIA driver on your system.", "driver", "no NVIDIA driver"),
        (
            (
                "ImportError: DLL load failed while importing _C: The specified module could not be"
                " found."
            ),
            "library",
            "a DLL that _C needs",
        ),
        (
            (
                "ImportError: DLL load failed while importing _C:"
                " The specified procedure could not be found."
            ),
            "torch",
            "another torch",
        ),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_70'", "source-build", "compute_70"),
        ("ValueError: Unknown CUDA arch (10.1) or GPU not supported", "source-build", "10.1"),
        ("ModuleNotFoundError: No module named 'torch'", "source-build", "no torch in the Python"),
        ("RuntimeError: operator torchvision::nms does not exist", "torch", "torchvision"),
        (
            (
                "RuntimeError: Detected that PyTorch and torchvision were compiled with"
                " different CUDA major versions."
            ),
            "torch",
            "torchvision was built for another torch",
        ),
        (
            "A module that was compiled using NumPy 1.x cannot be run in NumPy 2.0.0",
            "other",
            "another NumPy",
        ),
        (
            (
                "Requested cc_torch has inconsistent version: expected '0.2+cu130torch29',"
                " but metadata has '0.2'"
            ),
            "other",
            "its metadata 0.2",
        ),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
            "other",
            "another one than the lock",
        ),
        ("libgomp.so.1: cannot allocate memory in static TLS block", "other", "LD_PRELOAD"),
        ("error: externally-managed-environment", "other", "package manager"),
        ("/bin/sh: 1: nvcc: not found", "toolkit", "finds none"),
        ("[Errno 2] No such file or directory: '/usr/local/cuda/bin/nvcc'", "toolkit", "nvcc"),
        ("x.cpp:1:10: fatal error: cuda_runtime.h: No such file or directory", "toolkit", "me.h"),
        ("cuda_fp16.h:4: fatal error: nv/target: No such file or directory", "toolkit", "/target"),
        ("x.cpp:1:10: fatal error: 'cublas_v2.h' file not found", "toolkit", "cublas_v2.h"),
        ("/usr/bin/ld: cannot find -lcudart: No such file or directory", "toolkit", "cudart"),
        (
            "#error -- unsupported GNU version! gcc versions later than 15 are not supported!",
            "toolkit",
            "newer than 15",
        ),
        ("error: command '/x/bin/nvcc' failed with exit code 1", "source-build", "above that line"),
        ("RuntimeError: Ninja is required to load C++ extensions", "source-build", "ninja"),
    ],
)
def test_pasted_lines(line: str, kind: str, words: str) -> None:
    findings = explain(line.replace("\n", " "))
    assert [finding.kind for finding in findings] == [kind]
    assert words in findings[0].summary


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (
            (
                "ERROR: Flash_Attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl"
                " is not a supported wheel on this platform."
            ),
            "wheelfarm resolve flash-attn --install",
        ),
        (
            "ERROR: Failed to build 'Torch_Scatter' when getting requirements to build wheel",
            "wheelfarm resolve torch-scatter --explain",
        ),
        (
            "  ERROR: Failed building wheel for diso\nFailed to build diso",
            "wheelfarm resolve diso --explain",
        ),
        (
            "ERROR: No matching distribution found for Flash_Attn==2.8",
            "wheelfarm resolve flash-attn --explain",
        ),
        ("x.so: undefined symbol: _PyThreadState_Gone", "wheelfarm resolve PACKAGE --install"),
        ("torchvision were compiled", ""),
    ],
)
def test_the_command_names_the_package_where_the_line_does(line: str, command: str) -> None:
    commands = {finding.command for finding in explain(line)}
    assert commands == ({command} if command else set())


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_what_an_installer_says_of_a_wheel_of_another_python(tmp_path: Path, tool: str) -> None:
    make_wheel(tmp_path, "torch_scatter-2.1-cp27-cp27mu-linux_x86_64.whl")
    words = ["install", "--no-index", "--find-links", str(tmp_path), "torch-scatter"]
    python = ["--python", sys.executable]
    argv = {
        "pip": [sys.executable, "-m", "pip", *words],
        "uv": [str(Path(sys.executable).parent / "uv"), "pip", *words, *python],
    }
    done = subprocess.run(argv[tool], check=False, capture_output=True, text=True)
    assert done.returncode != 0
    (finding,) = explain(done.stderr)
    assert finding.kind == "python"
    assert finding.command == "wheelfarm resolve torch-scatter --explain"


def test_the_family_member_that_goes_with_torch_is_named(
    python: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "RuntimeError: operator torchvision::nms does not exist"
    assert main(["doctor", "--python", str(python), "--error", line]) == 0
    said = capsys.readouterr().out
    assert "mend: pip install --no-deps torchvision==0.29.2" in said


def test_the_path_of_an_installed_module_names_its_package(
    python: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = site_packages(python)
    info = folder / "flash_attn-2.8.3.dist-info"
    info.mkdir()
    (info / "RECORD").write_text("flash_attn_2_cuda.so,,\n", encoding="utf-8")
    line = f"ImportError: {folder}/flash_attn_2_cuda.so: undefined symbol: PyGone_X"
    assert main(["doctor", "--python", str(python), "--error", line]) == 0
    assert "mend: wheelfarm resolve flash-attn --install" in capsys.readouterr().out


def test_an_unknown_line_is_not_explained_away(
    python: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--python", str(python), "--error", "it is broken"]) == 1
    assert "not known" in capsys.readouterr().out


@pytest.mark.compile
def test_a_pasted_symbol_is_held_against_the_environment(
    python: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--python", str(python), "--error", f"undefined symbol: {GONE}"]) == 0
    assert "does not have it" in capsys.readouterr().out
    assert (
        main(["doctor", "--python", str(python), "--error", f"undefined symbol: {ERROR_OLD}"]) == 0
    )
    assert "built for C++ ABI 0, this torch has 1" in capsys.readouterr().out
    main(["doctor", "--python", str(python), "--error", f"undefined symbol: {ERROR_NEW}"])
    assert "has it" in capsys.readouterr().out


@pytest.mark.torch
def test_the_real_torch_has_its_own_symbols(
    torch_python: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sys.version_info >= (3, 10)
    line = "undefined symbol: _ZN2at4_ops10zeros_like4callERKNS_6TensorE"
    main(["doctor", "--python", str(torch_python), "--error", line])
    assert "does not have it" in capsys.readouterr().out
