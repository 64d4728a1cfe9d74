"""What symbols say of torch: stable or not, since when, and which C++ ABI."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.binaries import fake, library, run
from wheelfarm.facts.torch_symbols import cxx_abi_of, is_torch_symbol, stable_symbols
from wheelfarm.facts.wheel import read_binary_file
from wheelfarm.model.versions import Minor

NEW = "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
OLD = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"
UNSTABLE = [
    NEW,
    OLD,
    "_ZNK2at10TensorBase8data_ptrIfEEPT_v",
    "_ZTIN3c105ErrorE",
    "_ZTVN3c105ErrorE",
    "_ZN5torch8autograd8NodeBaseE",
    "_ZGVN3c104cuda12devicesE",
    "THPVariable_Wrap",
    "THPVariableClass",
    "?data_ptr@TensorBase@at@@QEBAPEAXXZ",
]
FOREIGN = [
    "_ZNSt6vectorIN2at6TensorESaIS1_EE9push_backEOS1_",
    "_ZN6c10foo3barEv",
    "PyModule_Create2",
    "cudaMalloc",
    "_Znwm",
    "_ZSt4cout",
    "THREADS_init_x",
    "_ZN4atom3fooEv",
]


@pytest.mark.parametrize("name", UNSTABLE)
def test_torchs_symbols_are_known(name: str) -> None:
    assert is_torch_symbol(name)
    assert name not in stable_symbols()


@pytest.mark.parametrize("name", FOREIGN)
def test_other_symbols_are_not_torchs(name: str) -> None:
    assert not is_torch_symbol(name)


def test_the_stable_functions_have_their_first_torch() -> None:
    known = stable_symbols()
    assert known["torch_call_dispatcher"] == Minor(2, 10)
    assert known["aoti_torch_dtype_float8_e8m0fnu"] == Minor(2, 12)
    assert known["aoti_torch_get_data_ptr"] <= Minor(2, 4)


@pytest.mark.torch
def test_the_data_holds_every_function_that_torch_exports(torch_python: Path) -> None:
    """A function that torch exports and the data lacks would be called unstable."""
    folders = list(torch_python.parents[1].glob("lib/python3*/site-packages/torch/lib"))
    names: set[str] = set()
    for part in ("libtorch_cuda.so", "libtorch_cpu.so"):
        text = run("nm", "-D", "--defined-only", folders[0] / part)
        names |= {line.split()[-1] for line in text.splitlines()}
    shim = {name for name in names if name.startswith(("aoti_torch_", "torch_"))}
    assert len(shim) > 400
    assert shim <= set(stable_symbols())


@pytest.mark.parametrize(
    ("name", "abi"),
    [
        (NEW, 1),
        (OLD, 0),
        ("_ZN3c104impl3fooEv", None),
        # Ss inside an identifier, and behind a literal, is no std::string.
        ("_ZN3c107ClassSs3fooEv", None),
        ("_ZN3c103fooILi16EEEvSs", 0),
        ("_ZN2at3fooERKNS_6TensorES2_", None),
        ("plain_c_name", None),
        # Constructors and destructors have digits that are no lengths; nor are an array's bounds.
        ("_ZN3c105ErrorC2ESs", 0),
        ("_ZN3c105ErrorC1ENS_14SourceLocationESs", 0),
        ("_ZN5torch3jit6ModuleCI2NS0_6ObjectEESs", 0),
        ("_ZN3c105ErrorD0Ev", None),
        ("_ZN3c103fooERA16_KcSs", 0),
        ("_ZN3c103fooEDv4_fSs", 0),
    ],
)
def test_the_cxx_abi_is_read_from_names(name: str, abi: int | None) -> None:
    assert cxx_abi_of([name]) == (abi, name if abi is not None else "")


identifiers = st.text(st.sampled_from("SsCD2E_N"), min_size=1, max_size=6).filter(
    lambda text: not text[0].isdigit()
)
#: What a function of a nested name may be, and what it may take beside a string.
_LAST = ("", "C1", "C2", "C3", "D0", "D1", "D2", "CI2NS_4BaseE")
_OTHERS = ("i", "RKS_", "S0_", "PKc", "RA16_Kc", "Dv4_f", "N2at6TensorE", "Li16E")


@given(
    st.lists(identifiers, min_size=1, max_size=4),
    st.sampled_from(_LAST),
    st.lists(st.sampled_from((*_OTHERS, "Ss", "RKSs")), min_size=1, max_size=4),
)
def test_a_string_is_found_behind_every_kind_of_name(
    parts: list[str], last: str, types: list[str]
) -> None:
    nested = "".join(f"{len(part)}{part}" for part in ["c10", *parts])
    name = f"_ZN{nested}{last}E{''.join(types)}"
    assert (cxx_abi_of([name])[0] == 0) == any("Ss" in each for each in types)


def test_a_stripped_module_is_judged_by_its_dynamic_symbols(tmp_path: Path) -> None:
    """Readers of .symtab see nothing here, and call the module stable."""
    torch = fake(tmp_path, "libtorch_cpu.so")
    made = library(
        tmp_path / "_C.so", needs=[torch], takes=["torch_call_dispatcher", "THPVariable_Wrap"]
    )
    run("strip", "--strip-all", made)
    use = read_binary_file(made).torch
    assert use is not None
    assert use.libraries == ("libtorch_cpu.so",)
    assert use.unstable == ("THPVariable_Wrap",)
    assert (use.from_torch, use.from_symbol) == (Minor(2, 10), "torch_call_dispatcher")
