"""Cases from public reports: machines and wheels that resolvers got wrong, and what is right."""

import pytest

from tests.resolve.shelf import Shelf, host, names, reasons
from wheelfarm.errors import BadInputError, NegativeVerdictError
from wheelfarm.index.model import Combination
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.versions import Minor
from wheelfarm.values import replace

CELL = "cp311-cp311-manylinux_2_28_x86_64.whl"


def code(*sass: str, ptx: tuple[str, ...] = (), path: str = "x/_C.so") -> list[dict[str, object]]:
    return [{"path": path, "sass": list(sass), "ptx": list(ptx)}]


# Several GPUs: every one counts.


def test_a_wheel_must_cover_all_gpus_and_the_one_left_out_is_named() -> None:
    shelf = Shelf().add(f"x-1.0+cu130torch2.14-{CELL}", modules=code("8.6", "12.0"))
    both = shelf.resolve(host(gpu="12.0,6.1", driver="580.65"), "x")
    assert not both.answer.ok
    assert "no code for GPU 6.1" in reasons(both)
    assert shelf.resolve(host(gpu="12.0", driver="580.65"), "x").answer.ok


# Driver new enough, GPU too old, and the reverse.


def torches() -> Shelf:
    shelf = Shelf()
    for line in ("cu126", "cu128", "cu130"):
        for minor in ("2.7", "2.8", "2.9", "2.10", "2.13", "2.14"):
            shelf.add(f"x-1.0+{line}torch{minor}-{CELL}")
    return shelf


@pytest.mark.parametrize(
    ("gpu", "driver", "line"),
    [
        ("6.1", "570.26", "cu126"),
        ("12.0", "570.26", "cu128"),
        ("8.6", "535.54", "cu12"),
        ("9.0", "580.65", "cu130"),
    ],
)
def test_torch_is_chosen_by_driver_and_gpu_together(gpu: str, driver: str, line: str) -> None:
    found = torches().resolve(host(torch="none", gpu=gpu, driver=driver), "x")
    assert found.answer.ok, reasons(found)
    assert str(found.answer.target.accelerator).startswith(line)
    assert found.torch is not None
    assert not found.torch.installed


def test_an_extension_for_newer_gpus_alone_gets_no_answer_and_no_fallback() -> None:
    shelf = Shelf()
    for line in ("cu126", "cu128"):
        shelf.add(f"x-1.0+{line}torch2.8-{CELL}", modules=code("8.0", ptx=("8.0",)))
    found = shelf.resolve(host(torch="none", gpu="6.1", driver="570.26"), "x")
    assert not found.answer.ok
    assert "no code for GPU 6.1" in reasons(found)
    assert any("has no code for GPU 6.1" in each.reason for each in found.refused)


def test_what_torch_itself_lacks_is_told() -> None:
    found = torches().resolve(host(torch="none", gpu="3.5", driver="470.42"), "x")
    assert not found.answer.ok
    assert found.refused
    assert all(each.reason for each in found.refused)


# torch that is not the torch it seems to be.


@pytest.mark.parametrize(
    "torch", ["2.4.0a0+07cecf4168", "2.9.0a0+gitabcdef0", "2.12.0.dev20260530+cu130"]
)
def test_a_snapshot_is_no_release(torch: str) -> None:
    minor = ".".join(torch.split(".")[:2])
    shelf = Shelf(tells=False).add(
        f"torch_scatter-2.1.2+pt{minor.replace('.', '')}cu130-cp311-cp311-linux_x86_64.whl",
        proven=False,
    )
    machine = host(torch=torch, accelerator="cu130")
    found = shelf.resolve(machine, "torch-scatter")
    assert not found.answer.ok
    assert "is a snapshot, no release" in reasons(found)
    assert "a local build" in reasons(found)


def test_a_snapshot_takes_what_pins_it_and_a_stable_abi_in_range() -> None:
    torch = "2.12.0.dev20260530+cu130"
    pinned = Shelf().add(f"x-1.0+cu130torch2.12-{CELL}", requires_dist=[f"torch=={torch}"])
    assert pinned.resolve(host(torch=torch), "x").answer.ok
    stable = Shelf().add(f"x-1.0+cu130torch2.10-{CELL}", torch_axis="stable_abi", from_torch="2.10")
    assert stable.resolve(host(torch=torch), "x").answer.ok
    before = host(torch="2.10.0a0+gitabc", accelerator="cu130")
    assert not stable.resolve(before, "x").answer.ok


# glibc.


def test_glibc_of_tag_and_of_fact() -> None:
    shelf = Shelf().add("vllm-0.13.0+cu130torch2.14-cp38-abi3-manylinux_2_31_x86_64.whl")
    assert shelf.resolve(host(libc="2.35"), "vllm").answer.ok
    old = shelf.resolve(host(libc="2.28"), "vllm")
    assert "needs glibc 2.31, this system has 2.28" in reasons(old)
    plain = Shelf().add("x-1.0+cu130torch2.14-cp311-cp311-linux_x86_64.whl", glibc="2.32")
    assert not plain.resolve(host(libc="2.28"), "x").answer.ok
    assert plain.resolve(host(libc="2.36"), "x").answer.ok
    assert not shelf.resolve(host(libc="musl 1.2"), "vllm").answer.ok


# No wheel for the newest torch.


def test_nearest_minor_is_told_and_claims_are_not_believed() -> None:
    shelf = Shelf()
    shelf.add(f"x-1.0+cu130torch2.10-{CELL}")
    shelf.add(f"x-1.0+cu130torch2.12-{CELL}")
    shelf.add(
        "x-1.0+torch2.9.0andhigher.cu130-cp39-abi3-manylinux_2_28_x86_64.whl",
        proven=False,
    )
    found = shelf.resolve(host(torch="2.13.0+cu130"), "x")
    text = reasons(found)
    assert not found.answer.ok
    assert "would help: torch 2.12" in text
    assert "or higher (a claim that nobody proved)" in text


def test_a_stable_abi_of_cuda_12_is_refused_on_a_torch_of_cuda_13() -> None:
    shelf = Shelf().add(
        f"x-1.0+cu128torch2.10-{CELL}",
        torch_axis="stable_abi",
        from_torch="2.10",
        libraries=["libcudart.so.12"],
    )
    found = shelf.resolve(host(torch="2.13.0+cu130"), "x")
    assert "is for cu128, this torch is for cu130" in reasons(found)
    assert "torch's stable ABI does not reach across" in reasons(found)
    assert shelf.resolve(host(torch="2.10.0+cu128"), "x").answer.ok


def test_an_empty_page_is_told_as_such() -> None:
    shelf = Shelf(tells=False)
    found = shelf.resolve(host(), "flash-attn")
    assert "has no package of that name" in reasons(found)


# The add-on and the user's torch.


@pytest.mark.parametrize("requirement", ["torch", "torch>=2.4"])
def test_loose_requirements_leave_torch_as_it_is(requirement: str) -> None:
    shelf = Shelf().add(f"x-1.0+cu130torch2.10-{CELL}", requires_dist=[requirement])
    found = shelf.resolve(host(torch="2.10.0+cu130"), "x")
    assert found.torch is not None
    assert found.torch.requirement == "torch==2.10.0+cu130"
    assert found.choices[0].outside == ()


def test_a_contradicting_requirement_is_named() -> None:
    shelf = Shelf().add(
        f"x-1.0+cu130torch2.10-{CELL}", torch_axis="free", requires_dist=["torch==2.9.*"]
    )
    found = shelf.resolve(host(torch="2.10.0+cu130"), "x")
    assert "requires torch==2.9.*, this is 2.10.0+cu130" in reasons(found)


def test_an_asked_torch_that_is_not_the_installed_one_is_a_named_conflict() -> None:
    with pytest.raises(NegativeVerdictError, match=r"torch==2\.9\.\* is asked for"):
        torches().resolve(host(), "x", "torch==2.9.*")


# Bugs of other resolvers.


def test_minors_are_numbers() -> None:
    shelf = Shelf().add(f"x-1.0+cu130torch2.10-{CELL}").add(f"x-1.0+cu130torch2.1-{CELL}")
    assert names(shelf.resolve(host(torch="2.1.0+cu130"), "x")) == [f"x-1.0+cu130torch2.1-{CELL}"]


def test_the_newest_version_wins_whatever_the_pages_order() -> None:
    for order in ((2, 3, 10), (10, 3, 2)):
        shelf = Shelf()
        for minor in order:
            shelf.add(f"x-1.{minor}.0+cu130torch2.14-{CELL}")
        assert names(shelf.resolve(host(), "x")) == [f"x-1.10.0+cu130torch2.14-{CELL}"]


def test_abi3_and_py3_wheels_are_found_and_free_threading_is_kept_apart() -> None:
    shelf = Shelf()
    shelf.add("torchao-0.14+cu130torch2.14-cp310-abi3-manylinux_2_28_x86_64.whl")
    shelf.add("llama_cpp_python-0.3.35+cu130torch2.14-py3-none-manylinux_2_28_x86_64.whl")
    shelf.add("x-1.0+cu130torch2.14-cp313-cp313t-manylinux_2_28_x86_64.whl")
    shelf.add("y-1.0+cu130torch2.14-cp313-cp313-manylinux_2_28_x86_64.whl")
    assert len(names(shelf.resolve(host(), "torchao", "llama-cpp-python"))) == 2
    assert not shelf.resolve(host(python_version="3.9"), "torchao").answer.ok
    gil, free = host(python_version="3.13"), host(python_version="3.13t")
    assert not shelf.resolve(gil, "x").answer.ok
    assert shelf.resolve(free, "x").answer.ok
    assert not shelf.resolve(free, "y").answer.ok
    assert not shelf.resolve(free, "torchao").answer.ok


def test_foreign_platforms_yanked_files_and_pre_releases_are_out() -> None:
    shelf = Shelf()
    shelf.add("x-2.0+cu130torch2.14-cp311-cp311-manylinux_2_28_aarch64.whl")
    shelf.add(f"x-1.5+cu130torch2.14-{CELL}", yanked="broken kernels")
    shelf.add(f"x-1.4rc1+cu130torch2.14-{CELL}")
    shelf.add(f"x-1.3+cu130torch2.14-{CELL}")
    assert names(shelf.resolve(host(), "x")) == [f"x-1.3+cu130torch2.14-{CELL}"]
    pinned = shelf.resolve(host(), "x==1.5")
    assert names(pinned) == [f"x-1.5+cu130torch2.14-{CELL}"]
    assert "it was yanked, and is taken as its version is pinned" in pinned.choices[0].remarks
    assert "1.4rc1" in names(shelf.resolve(host(), "x", prereleases=True))[0]
    assert "1.4rc1" in names(shelf.resolve(host(), "x>=1.4rc1,<1.5"))[0]
    jetson = host(platform="linux_aarch64")
    assert "2.0" in names(shelf.resolve(jetson, "x"))[0]


def test_windows_names() -> None:
    shelf = Shelf().add("x-1.0+cu130torch2.14-cp311-cp311-win_amd64.whl")
    assert shelf.resolve(host(platform="windows_amd64"), "x").answer.ok
    assert not shelf.resolve(host(), "x").answer.ok


def test_a_cpu_torch_gets_no_cuda_wheel() -> None:
    shelf = Shelf().add(f"x-1.0+cu130torch2.14-{CELL}")
    found = shelf.resolve(host(torch="2.14.1+cpu"), "x")
    assert "is for cu130, this torch is a CPU build" in reasons(found)


# CUDA lines.


def test_the_exact_line_wins_and_an_earlier_minor_is_taken_and_said() -> None:
    torch = host(torch="2.9.0+cu129")
    earlier = f"x-2.0+cu128torch2.9-{CELL}"
    shelf = Shelf().add(earlier, libraries=["libcudart.so.12", "libcublas.so.12"])
    found = shelf.resolve(torch, "x")
    assert names(found) == [earlier]
    assert any("same major" in remark for remark in found.choices[0].remarks)
    exact = f"x-1.0+cu129torch2.9-{CELL}"
    assert names(shelf.add(exact).resolve(torch, "x")) == [exact]


@pytest.mark.parametrize(
    ("name", "facts", "why"),
    [
        (f"x-1.0+cu130torch2.9-{CELL}", {}, "newer than this torch's cu128|is for cu130"),
        (f"x-1.0+cu129torch2.9-{CELL}", {}, "newer than this torch's cu128"),
        (f"x-1.0+cu126torch2.9-{CELL}", {"libraries": ["libnvjpeg.so.12"]}, "libnvjpeg.so.12"),
        (f"x-1.0+cu126torch2.9-{CELL}", {"libraries": ["libcudart.so.13"]}, "libcudart.so.13"),
        (f"x-1.0+cu126torch2.9-{CELL}", {"proven": False}, "not proven"),
        (f"x-1.0+cu118torch2.9-{CELL}", {}, "is for cu118"),
    ],
)
def test_other_lines_are_refused(name: str, facts: dict[str, object], why: str) -> None:
    found = Shelf().add(name, **facts).resolve(host(torch="2.9.0+cu128"), "x")
    assert not found.answer.ok
    assert any(word in reasons(found) for word in why.split("|")), reasons(found)


# Code for a GPU.


@pytest.mark.parametrize(
    ("modules", "gpu", "driver", "serves"),
    [
        (code("8.0"), "8.6", "580.65", True),
        (code("8.6"), "8.0", "580.65", False),
        (code("9.0a"), "9.0", "580.65", True),
        (code("9.0a"), "10.0", "580.65", False),
        (code("10.0f"), "10.3", "580.65", True),
        (code("8.7"), "8.9", "580.65", False),
        (code("8.0", ptx=("9.0",)), "12.0", "580.65", True),
        (code("8.0", ptx=("9.0",)), "12.0", "570.26", False),
        (code("8.0", ptx=("9.0",)), "8.9", "535.54", False),
        (code("8.0") + code("9.0", path="x/other.so"), "9.0", "580.65", False),
        (
            code("8.0", path="q/_qattn_sm80.so") + code("9.0a", path="q/_qattn_sm90.so"),
            "8.6",
            "580.65",
            True,
        ),
        (code("9.0a", path="q/_qattn_sm90.so"), "8.6", "580.65", False),
        ([], "3.5", "580.65", True),
    ],
)
def test_every_module_must_have_code(
    modules: list[dict[str, object]], gpu: str, driver: str, serves: bool
) -> None:
    shelf = Shelf().add(f"x-1.0+cu130torch2.14-{CELL}", modules=modules, toolkit="13.0")
    assert shelf.resolve(host(gpu=gpu, driver=driver), "x").answer.ok is serves


def test_ptx_of_a_newer_toolkit_needs_a_newer_driver_within_the_major() -> None:
    modules = code("8.0", ptx=("9.0",))
    shelf = Shelf().add(f"x-1.0+cu132torch2.15-{CELL}", modules=modules, toolkit="13.2")
    torch = "2.15.0+cu132"
    assert shelf.resolve(host(torch=torch, gpu="8.6", driver="580.65"), "x").answer.ok
    found = shelf.resolve(host(torch=torch, gpu="12.0", driver="580.65"), "x")
    assert "its PTX is of CUDA 13.2, newer than this driver's 13.0" in reasons(found)
    assert shelf.resolve(host(torch=torch, gpu="12.0", driver="595.45"), "x").answer.ok


# The joint choice.


def test_dependencies_in_the_same_index_resolve_to_the_same_cell() -> None:
    shelf = Shelf()
    shelf.add(
        f"spconv-2.3.8+cu130torch2.14-{CELL}",
        requires_dist=["cumm==0.7.11+cu130torch2.14", "numpy", "torch"],
    )
    for line in ("cu128torch2.14", "cu130torch2.13", "cu130torch2.14"):
        shelf.add(f"cumm-0.7.11+{line}-{CELL}")
    shelf.add(f"cumm-0.8.0+cu130torch2.14-{CELL}")
    found = shelf.resolve(host(), "spconv")
    assert names(found) == [
        f"cumm-0.7.11+cu130torch2.14-{CELL}",
        f"spconv-2.3.8+cu130torch2.14-{CELL}",
    ]
    assert [str(each) for each in found.choices[1].outside] == ["numpy"]
    assert found.choices[0].wanted.because == "spconv"


def test_an_older_version_is_taken_where_the_newer_ones_dependency_is_missing() -> None:
    shelf = Shelf()
    shelf.add(f"a-2.0+cu130torch2.14-{CELL}", requires_dist=["b>=2"])
    shelf.add(f"a-1.0+cu130torch2.14-{CELL}", requires_dist=["b>=1"])
    shelf.add(f"b-1.0+cu130torch2.14-{CELL}")
    assert names(shelf.resolve(host(), "a")) == [
        f"a-1.0+cu130torch2.14-{CELL}",
        f"b-1.0+cu130torch2.14-{CELL}",
    ]


def test_all_packages_share_one_published_combination() -> None:
    shelf = Shelf()
    shelf.add(f"a-1.0+cu130torch2.14-{CELL}").add(f"a-1.0+cu128torch2.8-{CELL}")
    shelf.add(f"b-1.0+cu130torch2.10-{CELL}").add(f"b-1.0+cu128torch2.8-{CELL}")
    found = shelf.resolve(host(torch="none", gpu="8.6", driver="580.65"), "a", "b")
    assert names(found) == [f"a-1.0+cu128torch2.8-{CELL}", f"b-1.0+cu128torch2.8-{CELL}"]
    assert found.torch is not None
    assert found.torch.requirement == "torch==2.8.0" or "cu128" in found.torch.requirement


def test_a_combination_that_pytorch_did_not_publish_is_never_taken() -> None:
    shelf = Shelf().add(f"a-1.0+cu131torch2.14-{CELL}").add(f"a-1.0+cu126torch2.1-{CELL}")
    found = shelf.resolve(host(torch="none", gpu="8.6", driver="590.44"), "a")
    assert not found.answer.ok


def test_a_machine_that_decides_nothing_gets_the_known_good_one_said_aloud() -> None:
    good = Combination(Accelerator.parse("cu128"), Minor(2, 9))
    shelf = torches()
    shelf.fallback_combination = good
    found = shelf.resolve(host(torch="none", gpu="none"), "x")
    assert names(found) == [f"x-1.0+cu128torch2.9-{CELL}"]
    assert any("known-good combination" in note for note in found.notes)
    shelf.fallback_combination = None
    assert names(shelf.resolve(host(torch="none"), "x")) == [f"x-1.0+cu128torch2.8-{CELL}"]


def test_a_fallback_that_the_machine_speaks_against_is_none() -> None:
    shelf = Shelf().add(f"x-1.0+cu128torch2.8-{CELL}")
    found = shelf.resolve(host(torch="none", gpu="none", driver="470.42"), "x")
    assert not found.answer.ok


def test_choose_torch_keeps_an_installed_torch_that_is_the_best() -> None:
    machine = host(gpu="8.6", driver="580.65")
    found = torches().resolve(machine, "x", choose_torch=True)
    assert found.torch is not None
    assert found.answer.target.torch is not None
    assert str(found.answer.target.torch.public) == "2.14.1"


# torch's family.


def test_family_members_get_the_version_that_belongs_to_torch() -> None:
    found = torches().resolve(host(torch="2.10.0+cu130"), "x", "torchvision", "torchaudio")
    assert found.torch is not None
    assert dict(found.torch.family) == {"torchvision": "0.25.0", "torchaudio": "2.10.0"}


def test_a_torch_newer_than_the_table_is_said_and_a_named_version_taken() -> None:
    shelf = Shelf().add(f"x-1.0+cu130torch2.99-{CELL}")
    for asked in ("torchvision", "torchvision>=1", "torchvision==0.99.*"):
        with pytest.raises(NegativeVerdictError, match="not known which torchvision"):
            shelf.resolve(host(torch="2.99.0+cu130"), "x", asked)
    found = shelf.resolve(host(torch="2.99.0+cu130"), "x", "torchvision==0.99.1")
    assert found.torch is not None
    assert dict(found.torch.family) == {"torchvision": "0.99.1"}


def test_another_family_version_than_torchs_is_a_named_conflict() -> None:
    with pytest.raises(NegativeVerdictError, match=r"torchvision 0\.25\.0 belongs to torch 2\.10"):
        torches().resolve(host(torch="2.10.0+cu130"), "x", "torchvision<0.20")


def test_a_newly_chosen_torch_takes_its_own_family_and_not_the_installed_one() -> None:
    machine = replace(
        host(torch="2.13.0+cu130", gpu="8.6", driver="580.65"), installed={"torchvision": "0.28.0"}
    )
    found = torches().resolve(machine, "x", "torchvision", choose_torch=True)
    assert found.torch is not None
    assert not found.torch.installed
    assert dict(found.torch.family) == {"torchvision": "0.29.2"}


# Other accelerators.


def test_a_rocm_index_serves_a_rocm_torch_without_a_line_of_code() -> None:
    shelf = Shelf()
    shelf.add(f"x-1.0+rocm6.4torch2.9-{CELL}").add(f"x-2.0+cu130torch2.9-{CELL}")
    shelf.add(f"x-3.0+rocm7.0torch2.9-{CELL}")
    found = shelf.resolve(host(torch="2.9.0+rocm6.4"), "x")
    assert names(found) == [f"x-1.0+rocm6.4torch2.9-{CELL}"]


# C++ ABI.


def test_the_abi_class_counts_for_wheels_that_bake_it_in() -> None:
    shelf = Shelf()
    shelf.add(f"x-1.0+cu124torch2.5-{CELL}", torch_axis="abi_flag", cxx_abi=1)
    shelf.add("y-1.0+cu12torch2.6cxx11abiTRUE-cp311-cp311-linux_x86_64.whl", proven=False)
    old = host(torch="2.6.0+cu124")
    assert "built for C++ ABI 1, this torch has 0" in reasons(shelf.resolve(old, "x"))
    assert "built for C++ ABI 1, this torch has 0" in reasons(shelf.resolve(old, "y"))
    new = host(torch="2.6.0+cu126")
    assert shelf.resolve(new, "y").answer.ok


def test_nothing_asked_is_bad_input() -> None:
    with pytest.raises(BadInputError):
        Shelf().resolve(host())
