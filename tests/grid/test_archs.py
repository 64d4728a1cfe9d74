"""Architectures: which list wins, how it is normalised, and what is refused before any compile."""

from typing import Any

import pytest

from tests.grid.grids import grid_of, make_policy, make_recipe
from wheelfarm.grid.archs import check_archs, normalised, policy_archs, recipe_archs
from wheelfarm.model.arch import Arch, ArchList
from wheelfarm.model.axis import TorchAxis
from wheelfarm.model.platform import LINUX_AARCH64, LINUX_X86_64, Platform
from wheelfarm.model.versions import Minor
from wheelfarm.upstream.facts import committed_facts

A, B, C, D = (ArchList.parse(text) for text in ("8.0", "8.6", "8.9", "9.0"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8.0 9.0", "8.0;9.0+PTX"),
        ("9.0;8.0+PTX", "8.0+PTX;9.0+PTX"),
        ("9.0+PTX;10.0;12.0+PTX", "9.0+PTX;10.0;12.0+PTX"),
        ("9.0;9.0a;12.0a", "9.0+PTX;9.0a;12.0a"),
        ("9.0a;10.0f", "9.0a;10.0f"),
        ("9.0a+PTX", "9.0a+PTX"),
    ],
)
def test_the_highest_plain_arch_carries_ptx(text: str, expected: str) -> None:
    assert str(normalised(ArchList.parse(text))) == expected


def test_a_list_without_plain_archs_says_that_it_has_no_ptx() -> None:
    recipe = make_recipe(arch_list=ArchList.parse("9.0a;12.0a"), arch_list_aarch64=D)
    grid = grid_of(recipe, make_policy("13.0"), committed_facts())
    assert grid.cells[0].coverage == (
        "machine code for 9.0a, 12.0a; no PTX, so GPUs outside these are not served"
    )


@pytest.mark.parametrize(
    ("fields", "platform", "expected"),
    [
        ({}, LINUX_X86_64, None),
        ({"arch_list": A}, LINUX_X86_64, "8.0+PTX"),
        ({"arch_list": A, "arch_list_by_cuda": {Minor(12, 8): B}}, LINUX_X86_64, "8.6+PTX"),
        (
            {"arch_list_by_cuda": {Minor(12, 8): B}, "arch_list_by_combination": {"12.8/2.9": C}},
            LINUX_X86_64,
            "8.9+PTX",
        ),
        (
            {"arch_list_by_combination": {"12.8/2.9": C, "12.8/2.9/linux_x86_64": D}},
            LINUX_X86_64,
            "9.0+PTX",
        ),
        ({"arch_list": A, "arch_list_by_combination": {"12.8/2.9": C}}, LINUX_AARCH64, None),
        ({"arch_list": A, "arch_list_aarch64": B}, LINUX_AARCH64, "8.6+PTX"),
        (
            {"arch_list_aarch64": B, "arch_list_by_cuda_aarch64": {Minor(12, 8): C}},
            LINUX_AARCH64,
            "8.9+PTX",
        ),
        ({"arch_list_by_combination": {"12.8/2.9/linux_aarch64": D}}, LINUX_AARCH64, "9.0+PTX"),
    ],
)
def test_the_more_specific_list_wins_and_aarch64_has_its_own(
    fields: dict[str, Any], platform: Platform, expected: str | None
) -> None:
    found = recipe_archs(make_recipe(**fields), Minor(12, 8), Minor(2, 9), platform)
    assert (None if found is None else str(found)) == expected


def test_policy_exceptions_are_per_cuda_and_torch() -> None:
    policy = make_policy("12.8", arch_exceptions={(Minor(12, 8), Minor(2, 9)): C})
    assert str(policy_archs(policy, Minor(12, 8), Minor(2, 9), LINUX_X86_64)) == "8.9+PTX"
    assert str(policy_archs(policy, Minor(12, 8), Minor(2, 10), LINUX_X86_64)) == "8.0;9.0+PTX"
    assert str(policy_archs(policy, Minor(12, 8), Minor(2, 9), LINUX_AARCH64)) == "9.0+PTX"
    assert policy_archs(policy, Minor(12, 6), Minor(2, 9), LINUX_X86_64) is None


@pytest.mark.parametrize(
    ("arch", "cuda", "torch", "expected"),
    [
        ("10.1", "13.0", "2.9", "10.1 is not known to CUDA 13.0: use 11.0 for CUDA 13"),
        ("10.1a", "13.0", "2.9", "10.1a is not known to CUDA 13.0: use 11.0a for CUDA 13"),
        ("11.0", "12.9", "2.9", "11.0 is not known to CUDA 12.9: use 10.1 for CUDA 12"),
        ("7.0", "13.0", "2.9", "7.0 is gone in CUDA 13: the last with it is CUDA 12.x"),
        ("12.0", "12.6", "2.7", "12.0 needs CUDA 12.8 or later, not 12.6"),
        ("10.3", "12.8", "2.9", "10.3 needs CUDA 12.9 or later, not 12.8"),
        ("8.4", "12.8", "2.9", "8.4 is an architecture of no known CUDA"),
        ("9.0", "11.8", "2.4", ("no nvcc of CUDA 11.8 is known, so its architectures cannot be "
                               "checked")),
        ("10.1", "12.9", "2.9", "torch 2.9 does not know 10.1: it knows 11.0"),
        ("12.1", "12.9", "2.7", "torch 2.7 does not know the architecture 12.1"),
        ("8.8", "13.0", "2.14", "torch 2.14 does not know the architecture 8.8"),
        ("10.0f", "12.9", "2.9",
         ("torch's arch list has no family targets such as 10.0f: take it out of the list and give "
         "nvcc_flags: -gencode=arch=compute_100f,code=sm_100f")),
        ("9.0", "12.4", "2.3", "torch 2.3 is older than any whose architectures are known"),
        ("12.0a", "12.8", "2.7", ""),
        ("10.1", "12.8", "2.7", ""),
        ("11.0", "13.0", "2.9", ""),
        ("9.0a", "12.4", "2.4", ""),
    ],
)  # fmt: skip
def test_lists_are_checked_against_nvcc_and_torch(
    arch: str, cuda: str, torch: str, expected: str
) -> None:
    archs = ArchList.parse(arch)
    found = check_archs(archs, committed_facts(), Minor.parse(cuda), Minor.parse(torch), "linked")
    assert found == expected


@pytest.mark.parametrize(("axis", "fine"), [("free", True), ("linked", False)])
def test_torch_has_no_say_where_torch_is_not_linked(axis: TorchAxis, *, fine: bool) -> None:
    archs = ArchList.parse("10.1")
    found = check_archs(archs, committed_facts(), Minor(12, 9), Minor(2, 13), axis)
    assert (found == "") is fine


def test_suffixes_are_kept() -> None:
    recipe = make_recipe(arch_list=ArchList.parse("9.0a 10.0"), arch_list_aarch64=D)
    grid = grid_of(recipe, make_policy("13.0"), committed_facts())
    assert str(grid.cells[0].archs) == "9.0a;10.0+PTX"
    assert grid.cells[0].archs.archs == (Arch(9, 0, "a"), Arch(10, 0))
