"""What an installed torch's files say: labels, snapshots, source builds, ABI; never imported."""

from pathlib import Path

import pytest
from packaging.version import Version

from tests.fake_environment import install, install_torch, make_environment, site_packages
from wheelfarm import interpreter
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.resolve.torch_files import TorchFiles, official_cxx_abi, read_torch


@pytest.fixture
def python(tmp_path: Path) -> Path:
    return make_environment(tmp_path / "environment")


def look(python: Path) -> TorchFiles:
    return read_torch(interpreter.ask(str(python)))


def test_pypis_torch_has_no_label_in_its_metadata(python: Path) -> None:
    install_torch(python, "2.14.1+cu130", metadata="2.14.1")
    found = look(python)
    assert found.version.value == Version("2.14.1+cu130")
    assert found.metadata.value == "2.14.1"
    assert found.accelerator.value == Accelerator.parse("cu130")
    assert found.cxx_abi.value == 1


def test_without_version_py_the_requirements_tell(python: Path) -> None:
    install(python, "torch", "2.14.1", requires=("cuda-toolkit[cudart]==13.0.3; os_name == 'x'",))
    assert look(python).accelerator.value == Accelerator.parse("cu130")


def test_the_cu12_requirements_tell_too(python: Path) -> None:
    install(python, "torch", "2.8.0", requires=("nvidia-cuda-runtime-cu12==12.8.90",))
    assert look(python).accelerator.value == Accelerator.parse("cu128")


@pytest.mark.parametrize(
    ("version", "cuda", "expected"),
    [
        ("2.10.0+cu128.nv", "12.8", "cu128"),
        ("2.10.0a0+b4e4ee81d3.nv25.12", "13.1", "cu131"),
        ("2.4.0a0+07cecf4168", "12.4", "cu124"),
        ("2.9.0a0+gitabcdef0", "12.9", "cu129"),
        ("2.12.0.dev20260530+cu130", "13.0", "cu130"),
        ("2.14.1+cpu", None, "cpu"),
    ],
)
def test_snapshots_and_vendor_builds(
    python: Path, version: str, cuda: str | None, expected: str
) -> None:
    install_torch(python, version, cuda=cuda)
    found = look(python)
    assert found.version.value == Version(version)
    assert str(found.accelerator.value) == expected


def test_rocm_and_xpu(python: Path) -> None:
    stated = "__version__ = '2.9.0+rocm6.4'\ncuda = None\nhip = '6.4.43482-0f2d60242'\n"
    install(python, "torch", "2.9.0+rocm6.4", files={"version": stated, "__init__": ""})
    assert look(python).accelerator.value == Accelerator("rocm", 6, 4)


def test_no_torch_is_a_fact_with_its_source(python: Path) -> None:
    found = look(python)
    assert found.version.value is None
    assert "no torch on the path" in found.version.source


def test_a_version_that_is_none_is_said(python: Path) -> None:
    install_torch(python, "parrot")
    assert "no version" in look(python).version.problem


@pytest.mark.parametrize(
    ("symbol", "abi"),
    [
        (b"_ZN3c106detail14torchCheckFailEPKcS2_jRKSs", 0),
        (b"_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcE", 1),
    ],
)
def test_the_abi_is_confirmed_by_libc10(python: Path, symbol: bytes, abi: int) -> None:
    install_torch(python, "2.9.0a0+gitabcdef0")
    library = site_packages(python) / "torch/lib/libc10.so"
    library.parent.mkdir()
    library.write_bytes(b"\x7fELF" + symbol + b"\0")
    found = look(python).cxx_abi
    assert found.value == abi
    assert "libc10.so" in found.source


@pytest.mark.parametrize(
    ("version", "accelerator", "platform", "abi"),
    [
        ("2.5.1", "cu124", "linux_x86_64", 0),
        ("2.6.0", "cu124", "linux_x86_64", 0),
        ("2.6.0", "cu126", "linux_x86_64", 1),
        ("2.6.0", "cu126", "linux_aarch64", 1),
        ("2.7.0", "cu118", "linux_x86_64", 1),
        ("2.10.0", "cu130", "linux_x86_64", 1),
        ("2.10.0", "cu130", "windows_amd64", None),
    ],
)
def test_official_wheels_abis(
    version: str, accelerator: str, platform: str, abi: int | None
) -> None:
    found = official_cxx_abi(Version(version), Accelerator.parse(accelerator), platform)
    assert found.value == abi


@pytest.mark.torch
def test_the_real_torch(torch_python: Path) -> None:
    found = look(torch_python)
    assert found.version.value == Version("2.14.1+cu130")
    assert found.metadata.value == "2.14.1"
    assert found.cxx_abi.value == 1
    assert "libc10.so" in found.cxx_abi.source
