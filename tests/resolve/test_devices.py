"""GPUs and drivers as fake tools and kernel files tell them, on a machine that has none."""

import json
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from wheelfarm.cli import main
from wheelfarm.model.arch import Arch
from wheelfarm.model.versions import Minor
from wheelfarm.resolve import devices, kernel_files
from wheelfarm.resolve import nvml as nvml_room
from wheelfarm.resolve.drivers import cuda_of_driver
from wheelfarm.resolve.host import Gpu
from wheelfarm.resolve.smi import read_banner
from wheelfarm.values import replace

Smi = Callable[..., None]

OLD = "| NVIDIA-SMI 450.66       Driver Version: 418.67       CUDA Version: 10.1     |"
WSL = "| NVIDIA-SMI 570.133.07     Driver Version: 572.83     CUDA Version: 12.8     |"
NEW = "| NVIDIA-SMI 610.43.02     KMD Version: 610.43.02     CUDA UMD Version: 13.3     |"
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch"
TALK = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running."
)


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Smi:
    """Return a function that puts a fake nvidia-smi first on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")

    def make(
        rows: str = "",
        banner: str = "",
        *,
        code: int = 0,
        knows_capability: bool = True,
        end: str = "\n",
    ) -> None:
        (folder / "rows").write_bytes(rows.replace("\n", end).encode())
        (folder / "banner").write_bytes(banner.replace("\n", end).encode())
        complaint = 'echo "Field compute_cap is not a valid field to query."; exit 2;;'
        refuse = "" if knows_capability else f"*compute_cap*) {complaint}"
        script = folder / "nvidia-smi"
        script.write_text(
            f'#!/bin/sh\ncd {folder}\ncase "$*" in\n{refuse}\n'
            f"*--query-gpu*) cat rows; exit {code};;\n*) cat banner; exit {code};;\nesac\n",
            encoding="utf-8",
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)

    return make


@pytest.fixture
def machine() -> Path:
    """The folder that stands for the machine's root."""
    return Path(os.environ["WHEELFARM_ROOT"])


def kernel_driver(machine: Path, text: str) -> None:
    path = machine / "proc/driver/nvidia/version"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")


TWO = "0, RTX 5090, GPU-aaaa1111, 12.0, 572.60\n1, GTX 1080 Ti, GPU-bbbb2222, 6.1, 572.60\n"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("tail", ["", "\n", "\n\n"])
def test_several_gpus_are_all_read(smi: Smi, end: str, tail: str) -> None:
    smi(TWO + tail, WSL.replace("572.83", "572.60"), end=end)
    found = devices.look("linux_x86_64")
    assert found.state.value == "present"
    assert found.driver.value == "572.60"
    assert [gpu.capability for gpu in found.gpus.value or ()] == [Arch(12, 0), Arch(6, 1)]
    assert found.driver_cuda.value == Minor(12, 8)


@pytest.mark.parametrize(
    ("visible", "order", "expected"),
    [
        ("1", "PCI_BUS_ID", [Arch(6, 1)]),
        ("1", "", [Arch(6, 1)]),
        ("1,0", "PCI_BUS_ID", [Arch(6, 1), Arch(12, 0)]),
        ("GPU-bbbb", "", [Arch(6, 1)]),
        ("0,7,1", "", [Arch(12, 0)]),
    ],
)
def test_only_visible_gpus_count_and_it_is_said(
    smi: Smi, monkeypatch: pytest.MonkeyPatch, visible: str, order: str, expected: list[Arch]
) -> None:
    smi(TWO, WSL)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setenv("CUDA_DEVICE_ORDER", order)
    found = devices.look("linux_x86_64")
    assert [gpu.capability for gpu in found.gpus.value or ()] == expected
    assert f"leaves {len(expected)} of 2" in found.visible.problem
    unsure = order != "PCI_BUS_ID" and not visible.startswith("GPU-")
    assert ("nvidia-smi's order" in found.visible.problem) is unsure


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        ("1gpu2,0ampere", [1, 0]),
        (" 1 , 0 ", [1, 0]),
        ("+1", [1]),
        ("1,-1,0", [1]),
        ("0,0", []),
        ("²", []),
        ("GPU-aaaa1111,GPU-bbbb", [0, 1]),
        ("GPU-aaaa,0", [0]),
        ("0,GPU-bbbb2222", [0]),
        ("GPU-", []),
        ("GPU-aaaa,GPU-aaaa1111", []),
        ("MIG-GPU-bbbb2222/3/0", [1]),
        ("MIG-GPU-bbbb2222/3/0,MIG-GPU-bbbb2222/4/0", [1]),
        ("MIG-8f7d1c5e-0a52-5fcb-9e0e-4f5a1a8c9d3b", [0, 1]),
    ],
)
def test_the_variable_means_what_the_runtime_makes_of_it(
    smi: Smi, monkeypatch: pytest.MonkeyPatch, visible: str, expected: list[int]
) -> None:
    smi(TWO, WSL)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = devices.look("linux_x86_64")
    assert [gpu.index for gpu in found.gpus.value or ()] == expected
    assert found.state.value == ("present" if expected else "none")
    assert ("may be of any" in found.visible.problem) is (visible.startswith("MIG-8"))


@pytest.mark.parametrize("visible", ["", "-1", "none"])
def test_all_gpus_hidden_is_none_and_not_broken(
    smi: Smi, monkeypatch: pytest.MonkeyPatch, visible: str
) -> None:
    smi(TWO, WSL)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = devices.look("linux_x86_64")
    assert found.state.value == "none"
    assert "hides every GPU" in found.state.problem


@pytest.mark.parametrize(
    ("banner", "driver", "cuda"),
    [
        (OLD, "418.67", Minor(10, 1)),
        (WSL, "572.83", Minor(12, 8)),
        (NEW, "610.43.02", Minor(13, 3)),
        ("| NVIDIA-SMI 331.62     Driver Version: 331.62         |", "331.62", None),
        ("| NVIDIA-SMI 575.0  Driver Version: 575.57  CUDA Version: N/A |", "575.57", None),
        (MISMATCH, "", None),
        ("", "", None),
    ],
)
def test_banners_of_all_generations(banner: str, driver: str, cuda: Minor | None) -> None:
    assert read_banner(banner) == (driver, cuda)


@pytest.mark.parametrize("code", [0, 18])
@pytest.mark.parametrize("module", ["", "570.133.07"])
def test_a_driver_that_was_updated_without_a_reboot(
    smi: Smi, machine: Path, code: int, module: str
) -> None:
    smi(MISMATCH + "\n", MISMATCH, code=code)
    if module:
        kernel_driver(machine, f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {module}  Fri\n")
    found = devices.look("linux_x86_64")
    assert found.state.value == "broken"
    assert "reboot needed" in found.state.problem
    assert found.driver.value == (module or None)
    assert found.driver_cuda.value == (Minor(12, 8) if module else None)
    assert found.gpus.value in {None, ()}


def test_the_open_kernel_modules_line(smi: Smi, machine: Path) -> None:
    smi(TALK, TALK, code=9)
    kernel_driver(
        machine, "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release\n"
    )
    found = devices.look("linux_x86_64")
    assert found.state.value == "broken"
    assert found.driver.value == "580.65.06"


def test_a_tool_too_old_for_capabilities(smi: Smi) -> None:
    smi("0, GTX 680, GPU-1, 418.67\n", OLD, knows_capability=False)
    found = devices.look("linux_x86_64")
    assert found.state.value == "present"
    assert found.gpus.value == (Gpu(index=0, name="GTX 680", uuid="GPU-1"),)
    assert "does not tell the capability" in found.gpus.problem


@pytest.mark.parametrize("code", [0, 6])
def test_a_driver_without_a_gpu(smi: Smi, code: int) -> None:
    smi("No devices were found\n", WSL, code=code)
    found = devices.look("linux_x86_64")
    assert found.state.value == "none"
    assert found.gpus.value == ()


def test_no_gpu_broken_and_could_not_look_are_three_answers(
    machine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert devices.look("linux_x86_64").state.value == "none"
    card = machine / "sys/bus/pci/devices/0000:01:00.0"
    card.mkdir()
    for name, text in (("vendor", "0x10de"), ("class", "0x030000"), ("device", "0x2684")):
        (card / name).write_text(f"{text}\n", encoding="utf-8")
    assert devices.look("linux_x86_64").state.value == "broken"
    monkeypatch.setenv("WHEELFARM_ROOT", str(tmp_path / "nothing"))
    assert devices.look("linux_x86_64").state.value == "unknown"


@pytest.mark.parametrize(
    ("word", "capability"),
    [
        ("nvidia,tegra234", Arch(8, 7)),
        ("nvidia,tegra194", Arch(7, 2)),
        ("nvidia,tegra186", Arch(6, 2)),
        ("nvidia,tegra210", Arch(5, 3)),
        ("nvidia,tegra264", Arch(11, 0)),
    ],
)
def test_jetsons_by_their_device_tree(
    machine: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    word: str,
    capability: Arch,
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    tree = machine / "proc/device-tree"
    tree.mkdir(parents=True)
    (tree / "compatible").write_bytes(f"nvidia,p3767\0{word}\0".encode())
    found = devices.look("linux_aarch64")
    assert found.state.value == "present"
    assert [gpu.capability for gpu in found.gpus.value or ()] == [capability]


NVML = """
#include <string.h>
int nvmlInit_v2(void) { return STATUS; }
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *t, unsigned n) { strncpy(t, "580.65.06", n); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *v) { *v = 13000; return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) { *h = (void *)(long)(i + 1); return 0; }
int nvmlDeviceGetName(void *h, char *t, unsigned n) { strncpy(t, "H100", n); return 0; }
int nvmlDeviceGetUUID(void *h, char *t, unsigned n) { strncpy(t, "GPU-1", n); return 0; }
int nvmlDeviceGetCudaComputeCapability(void *h, int *a, int *b) {
  *a = 9; *b = (long)h == 1 ? 0 : 1; return 0;
}
"""


@pytest.fixture
def nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that compiles an NVML whose start answers a status."""

    def make(status: int) -> None:
        source, library = tmp_path / "nvml.c", tmp_path / f"nvml{status}.so"
        source.write_text(NVML, encoding="utf-8")
        subprocess.run(
            ["gcc", "-shared", "-fPIC", f"-DSTATUS={status}", "-o", library, source], check=True
        )
        monkeypatch.setenv("WHEELFARM_NVML", str(library))

    return make


@pytest.mark.compile
@pytest.mark.parametrize(
    ("found", "out"),
    [
        ((), True),
        (("dev/nvidiactl",), False),
        (("dev/dxg",), False),
        (("sys/module/nvidia/version",), False),
        (("sys/bus/pci/devices/0000:01:00.0/class",), False),
    ],
)
def test_only_a_machine_without_any_trace_of_nvidia_is_ruled_out(
    tmp_path: Path, found: tuple[str, ...], out: bool
) -> None:
    assert not kernel_files.look(tmp_path).rules_out_nvidia
    pci = tmp_path / "sys/bus/pci/devices/0000:01:00.0"
    pci.mkdir(parents=True)
    (pci / "vendor").write_text("0x10de\n")
    for name in found:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("0x030000\n" if name.endswith("class") else "580.65.06\n")
    assert kernel_files.look(tmp_path).rules_out_nvidia == out


def test_a_drivers_library_on_a_machine_without_a_gpu_is_not_a_broken_driver(
    monkeypatch: pytest.MonkeyPatch, smi: Smi
) -> None:
    """Images of clouds have the driver's packages on machines of every kind."""
    without = kernel_files.KernelFiles(
        readable=True, gpus=(), driver="", driver_source="", amd=False, nodes=False
    )
    monkeypatch.delenv("WHEELFARM_ROOT", raising=False)
    broken = nvml_room.Answer(problem="the NVIDIA kernel driver is not loaded")
    monkeypatch.setattr(nvml_room, "look", lambda: broken)
    monkeypatch.setattr(kernel_files, "look", lambda root: without)
    found = devices.look("linux_x86_64")
    assert (found.state.value, found.state.source) == ("none", "the kernel's files")
    monkeypatch.setattr(kernel_files, "look", lambda root: replace(without, nodes=True))
    assert devices.look("linux_x86_64").state.value == "broken"


def test_nvml_comes_first(nvml: Callable[[int], None], smi: Smi) -> None:
    smi(TWO, WSL)
    nvml(0)
    found = devices.look("linux_x86_64")
    assert found.gpus.source == "NVML"
    assert [gpu.capability for gpu in found.gpus.value or ()] == [Arch(9, 0), Arch(9, 1)]
    assert found.driver.value == "580.65.06"
    assert found.driver_cuda.value == Minor(13, 0)


@pytest.mark.compile
def test_a_broken_nvml_leaves_the_word_to_nvidia_smi(nvml: Callable[[int], None], smi: Smi) -> None:
    nvml(18)
    smi(MISMATCH, MISMATCH, code=18)
    assert "reboot needed" in devices.look("linux_x86_64").state.problem
    smi(TWO, WSL)
    assert devices.look("linux_x86_64").gpus.source == "nvidia-smi"


@pytest.mark.parametrize(
    ("driver", "platform", "cuda"),
    [
        ("570", "linux_x86_64", Minor(12, 8)),
        ("570.26", "linux_x86_64", Minor(12, 8)),
        ("570.25", "linux_x86_64", Minor(12, 7)),
        ("535.54.03", "linux_x86_64", Minor(12, 2)),
        ("579.99", "linux_x86_64", Minor(12, 9)),
        ("580", "linux_x86_64", Minor(13, 0)),
        ("999.1", "linux_x86_64", Minor(13, 4)),
        ("527.41", "windows_amd64", Minor(12, 0)),
        ("527.00", "windows_amd64", Minor(11, 8)),
        ("340.1", "linux_x86_64", None),
        ("Failed", "linux_x86_64", None),
    ],
)
def test_the_driver_table(driver: str, platform: str, cuda: Minor | None) -> None:
    assert cuda_of_driver(driver, platform).value == cuda


def test_host_prints_each_fact_with_its_source_and_reads_it_back(
    smi: Smi, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    smi(TWO, WSL)
    assert main(["host", "--json", "--torch", "2.14.1+cu130"]) == 0
    text = capsys.readouterr().out
    document = json.loads(text)
    assert document["schema"] == "wheelfarm.host/1"
    assert document["driver"] == {"value": "572.83", "source": "nvidia-smi"}
    assert document["torch"] == {"value": "2.14.1+cu130", "source": "--torch"}
    saved = tmp_path / "host.json"
    saved.write_text(text, encoding="utf-8")
    assert main(["host", "--json", "--host", str(saved)]) == 0
    again = json.loads(capsys.readouterr().out)
    for name in ("gpus", "driver", "driver_cuda", "torch", "accelerator", "libc", "python"):
        assert again[name]["value"] == document[name]["value"], name


def test_environment_and_flags_override(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHEELFARM_GPU", "8.6")
    monkeypatch.setenv("WHEELFARM_DRIVER", "535.54")
    assert main(["host", "--json", "--gpu", "12.0,6.1", "--libc", "2.28"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [gpu["capability"] for gpu in document["gpus"]["value"]] == ["12.0", "6.1"]
    assert document["gpus"]["source"] == "--gpu"
    assert document["driver_cuda"]["value"] == "12.2"
    assert document["driver"]["source"] == "WHEELFARM_DRIVER"
    assert document["libc"] == {"value": "glibc 2.28", "source": "--libc"}


def test_a_broken_driver_is_exit_2_and_no_gpu_is_exit_0(smi: Smi) -> None:
    smi(MISMATCH, MISMATCH, code=18)
    assert main(["host"]) == 2
    smi("No devices were found\n", WSL, code=6)
    assert main(["host"]) == 0
