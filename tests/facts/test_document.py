"""A wheel's facts are written and read back; symbols stay in memory."""

import json
from pathlib import Path

import pytest

from tests.binaries import fake, library
from tests.wheels import INIT, make_wheel
from wheelfarm.errors import FaultsError
from wheelfarm.facts.document import facts_from_dict, facts_to_dict
from wheelfarm.facts.wheel import read_wheel
from wheelfarm.model.versions import Minor

NAME = "demo-1.0+cu130torch2.14-cp311-cp311-linux_x86_64.whl"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    torch = fake(tmp_path, "libtorch_cpu.so")
    cudart = fake(tmp_path, "libcudart.so.13")
    module = library(
        tmp_path / "_C.so",
        needs=[torch, cudart],
        takes=["aoti_torch_get_data_ptr", "PyModule_Create2", "pthread_create"],
        gives=["PyInit__C"],
    )
    return make_wheel(tmp_path, NAME, {"demo/__init__.py": INIT, "demo/_C.abi3.so": module})


def test_facts_are_read_back(wheel: Path) -> None:
    facts = read_wheel(wheel)
    document = facts_to_dict(facts)
    again = facts_from_dict(json.loads(json.dumps(document)))
    assert facts_to_dict(again) == document
    assert again.linkage == facts.linkage
    assert again.members == facts.members
    assert not again.binaries[0].undefined
    assert again.binaries[0].torch == facts.binaries[0].torch


def test_the_linkage_is_derived_with_its_evidence(wheel: Path) -> None:
    linkage = read_wheel(wheel).linkage
    assert (linkage.torch, linkage.stable_torch) == ("stable_abi", Minor(2, 4))
    assert linkage.cuda_major == 13
    assert linkage.glibc == Minor(2, 34)
    assert (linkage.python, linkage.python_floor) == ("stable", Minor(3, 2))
    lines = {f"{entry.fact}: {entry.path}: {entry.detail}" for entry in linkage.evidence}
    assert "glibc: demo/_C.abi3.so: pthread_create needs GLIBC_2.34 of libc.so.6" in lines
    assert "cuda_major: demo/_C.abi3.so: needs libcudart.so.13, of CUDA 13" in lines


def test_a_foreign_document_is_bad_input(wheel: Path) -> None:
    document = facts_to_dict(read_wheel(wheel))
    document["size"] = "much"
    document["schema"] = "other/1"
    with pytest.raises(FaultsError) as caught:
        facts_from_dict(document)
    assert len(caught.value.faults) == 2


@pytest.mark.parametrize(
    ("symbol", "abi"),
    [
        ("_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_appendEPKcm", 1),
        ("_ZNSs6appendEPKcm", 0),
        ("_ZdlPvm", None),
    ],
)
def test_the_abi_flag_is_read_without_torch(symbol: str, abi: int | None, tmp_path: Path) -> None:
    """A package of the axis abi_flag links no torch, and yet was compiled with its flag."""
    module = library(tmp_path / "m.so", takes=[symbol], flags=["-lstdc++"])
    facts = read_wheel(make_wheel(tmp_path, NAME, {"demo/_C.so": module}))
    assert facts.linkage.torch == "none"
    assert facts.linkage.cxx_abi == abi
