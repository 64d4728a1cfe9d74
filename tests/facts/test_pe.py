"""DLLs are read: imports with their library, exports, and what is broken."""

import random
import struct
from pathlib import Path

import pytest

from tests.binaries import dll
from wheelfarm.facts.wheel import read_binary, read_binary_file
from wheelfarm.model.versions import Minor


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    imports = {
        "torch_cpu.dll": ["?data_ptr@TensorBase@at@@QEBAPEAXXZ", "aoti_torch_get_data_ptr"],
        "python311.dll": ["PyModule_Create2", "_PyType_Lookup"],
        "cudart64_13.dll": ["cudaMalloc"],
    }
    return dll(tmp_path_factory.mktemp("pe") / "_C.pyd", imports=imports, gives=["PyInit__C"])


def test_imports_and_exports_are_read(module: Path) -> None:
    facts = read_binary_file(module)
    assert (facts.kind, facts.machine, facts.problem) == ("pe", "x86_64", "")
    assert facts.needed == ("torch_cpu.dll", "python311.dll", "cudart64_13.dll")
    assert "cudart64_13.dll!cudaMalloc" in facts.undefined
    assert "PyInit__C" in facts.defined


def test_torch_and_python_use_is_derived(module: Path) -> None:
    facts = read_binary_file(module)
    assert facts.torch is not None
    assert facts.torch.libraries == ("torch_cpu.dll",)
    assert facts.torch.unstable == ("?data_ptr@TensorBase@at@@QEBAPEAXXZ",)
    assert facts.torch.from_torch == Minor(2, 4)
    assert facts.python is not None
    assert facts.python.module == "_C"
    assert facts.python.unstable == ("_PyType_Lookup",)


def test_delayed_imports_are_read(tmp_path: Path) -> None:
    """A delay-loaded DLL is needed too. binutils cannot make one, so the directory is written."""
    pefile = pytest.importorskip("pefile")
    made = dll(tmp_path / "m.dll", imports={"torch_python.dll": ["later"]})
    pe = pefile.PE(str(made))
    entry = pe.DIRECTORY_ENTRY_IMPORT[0].struct
    section = pe.sections[0]
    free = section.PointerToRawData + section.SizeOfRawData - 64
    descriptor = struct.pack(
        "<8I", 1, entry.Name, 0, entry.FirstThunk, entry.OriginalFirstThunk, 0, 0, 0
    )
    pe.set_bytes_at_offset(free, descriptor + bytes(32))
    rva = section.VirtualAddress + section.SizeOfRawData - 64
    pe.OPTIONAL_HEADER.DATA_DIRECTORY[13].VirtualAddress = rva
    pe.OPTIONAL_HEADER.DATA_DIRECTORY[13].Size = 64
    pe.OPTIONAL_HEADER.DATA_DIRECTORY[1].VirtualAddress = 0
    pe.OPTIONAL_HEADER.DATA_DIRECTORY[1].Size = 0
    out = tmp_path / "delayed.dll"
    pe.write(str(out))
    pe.close()
    facts = read_binary_file(out)
    assert (facts.needed, facts.delayed, facts.problem) == ((), ("torch_python.dll",), "")
    assert facts.torch is not None


def test_a_dll_without_imports_is_read(tmp_path: Path) -> None:
    facts = read_binary_file(dll(tmp_path / "alone.dll", gives=["something"]))
    assert (facts.needed, facts.problem) == ((), "")


def test_a_dll_that_is_cut_in_half_is_a_problem(module: Path) -> None:
    data = module.read_bytes()
    for part in (2, 64, 300, len(data) // 2):
        assert read_binary(data[:part], "half.dll").problem


def test_a_changed_byte_never_crashes(module: Path) -> None:
    data = module.read_bytes()
    source = random.Random(11)  # noqa: S311 - a repeatable test
    for _ in range(400):
        changed = bytearray(data)
        for _ in range(source.randint(1, 4)):
            changed[source.randrange(2, len(data))] = source.randrange(256)
        read_binary(bytes(changed), "x.dll")
