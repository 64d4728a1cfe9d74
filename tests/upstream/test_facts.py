"""The committed facts: current in form, complete against the reference, and what they answer."""

import json
from importlib import resources
from pathlib import Path

import pytest
from packaging.version import Version

from wheelfarm.errors import BadInputError, FaultsError
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.arch import Arch
from wheelfarm.model.platform import LINUX_AARCH64, LINUX_X86_64, WINDOWS_AMD64, Platform
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor
from wheelfarm.upstream.cxx_abi import cxx_abi
from wheelfarm.upstream.facts import committed_facts, dump_facts, read_facts, read_sources

TEXT = resources.files("wheelfarm.upstream").joinpath("facts.json").read_text("utf-8")


def test_the_file_is_in_its_one_form() -> None:
    assert dump_facts(read_facts(TEXT, "facts"), read_sources(TEXT)) == TEXT


def test_everything_of_the_reference_matrix_is_there(shared_reference: Path) -> None:
    facts = committed_facts()
    for row in json.loads((shared_reference / "torch_matrix.json").read_text()):
        release = facts.release(Accelerator.parse(row["cuda"]), Version(row["torch"]))
        assert release is not None
        for word in ("linux_x86_64", "linux_aarch64", "windows"):
            tags = release.pythons.get(Platform.parse(word), ())
            exact = [tag.dotted for tag in tags if not tag.free_threaded]
            assert exact == row.get(word, []), (row["cuda"], row["torch"], word)


@pytest.mark.parametrize(
    ("line", "torch", "first", "last", "free_threaded"),
    [
        ("cu130", "2.14.1", "3.10", "3.14", ["3.14t"]),
        ("cu132", "2.15.0", "3.11", "3.15", ["3.14t", "3.15t"]),
    ],
)
def test_the_newest_releases_are_those_of_pypi(
    line: str, torch: str, first: str, last: str, free_threaded: list[str]
) -> None:
    facts = committed_facts()
    release = facts.release(Accelerator.parse(line), Version(torch))
    assert release is not None
    # PyPI's Windows wheels are for the CPU: they are no release of a CUDA line.
    assert set(release.pythons) == {LINUX_X86_64, LINUX_AARCH64}
    tags = [tag.dotted for tag in release.pythons[LINUX_X86_64]]
    exact = [tag for tag in tags if not tag.endswith("t")]
    assert (exact[0], exact[-1]) == (first, last)
    assert [tag for tag in tags if tag.endswith("t")] == free_threaded
    assert str(facts.pypi_accelerator(Version(torch), LINUX_AARCH64)) == line
    assert str(facts.pypi_accelerator(Version(torch), WINDOWS_AMD64)) == "cpu"


@pytest.mark.parametrize(
    ("line", "torch", "platform", "gpu", "known"),
    [
        ("cu130", "2.14", LINUX_X86_64, Arch(6, 1), False),
        ("cu126", "2.14", LINUX_X86_64, Arch(6, 1), True),
        ("cu126", "2.13", LINUX_X86_64, Arch(12, 0), False),
        ("cu128", "2.9", LINUX_X86_64, Arch(12, 0), True),
        ("cu130", "2.14", LINUX_X86_64, Arch(9, 0), True),
        ("cu130", "2.14", LINUX_X86_64, Arch(7, 0), False),
        ("cu128", "2.9", LINUX_X86_64, Arch(7, 0), True),
        ("cu128", "2.7", LINUX_X86_64, Arch(7, 0), False),
        ("cu130", "2.14", LINUX_AARCH64, Arch(11, 0), True),
        ("cu130", "2.14", LINUX_AARCH64, Arch(7, 5), False),
    ],
)
def test_which_gpus_torch_itself_has_code_for(
    line: str, torch: str, platform: Platform, gpu: Arch, known: bool
) -> None:
    archs = committed_facts().torch_arch_list(Accelerator.parse(line), Minor.parse(torch), platform)
    assert archs is not None
    assert any(arch.sass_runs_on(gpu) for arch in archs.archs) is known


def test_what_is_not_known_is_none() -> None:
    facts = committed_facts()
    assert facts.torch_arch_list(Accelerator.parse("cu118"), Minor(2, 7), LINUX_X86_64) is None
    assert facts.torch_arch_list(Accelerator.parse("cu130"), Minor(2, 8), LINUX_X86_64) is None
    assert facts.release(Accelerator.parse("cu130"), Version("2.8.0")) is None
    assert facts.pypi_accelerator(Version("2.99.0"), LINUX_X86_64) is None
    assert facts.known_to_torch(Minor(2, 3)) is None
    assert facts.known_to_compiler(Minor(11, 8)) is None
    assert facts.known_to_compiler(Minor(12, 6)) == facts.known_to_compiler(Minor(12, 4))


@pytest.mark.parametrize(
    ("line", "torch", "platform", "expected"),
    [
        ("cu124", "2.5", LINUX_X86_64, 0),
        ("cu118", "2.6", LINUX_X86_64, 0),
        ("cu124", "2.6", LINUX_X86_64, 0),
        ("cu126", "2.6", LINUX_X86_64, 1),
        ("cu124", "2.6", LINUX_AARCH64, 1),
        ("cu126", "2.7", LINUX_X86_64, 1),
        ("cu126", "2.6", WINDOWS_AMD64, None),
    ],
)
def test_the_cxx_abi_of_official_wheels(
    line: str, torch: str, platform: Platform, expected: int | None
) -> None:
    assert cxx_abi(Accelerator.parse(line), Minor.parse(torch), platform) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT[: len(TEXT) // 2], "is no valid JSON"),
        ("[]", "expected a table"),
        ('{"schema": "wheelfarm.upstream/1", "releases": []}', "there is no release at all"),
        (TEXT.replace("wheelfarm.upstream/1", "wheelfarm.upstream/2"), "expected 'wheelfarm.up"),
        (TEXT.replace('"torch": "2.4.1"', '"torch": "2.4.0"', 1), "stands here twice"),
        (TEXT.replace('"linux_x86_64": "3.10', '"linux_x86_64": "310', 1), "is no Python version"),
        (TEXT.replace('"compiler_archs"', '"compiler_arcs"'), "unknown key 'compiler_arcs'"),
    ],
)
def test_a_damaged_file_is_refused(text: str, message: str) -> None:
    with pytest.raises((BadInputError, FaultsError), match=message):
        read_facts(text, "facts")


def test_free_threaded_pythons_are_their_own() -> None:
    release = committed_facts().release(Accelerator.parse("cu130"), Version("2.14.1"))
    assert release is not None
    assert release.ships(PythonTag.of_version("3.14t"), LINUX_X86_64)
    assert not release.ships(PythonTag.of_version("3.13t"), LINUX_X86_64)
