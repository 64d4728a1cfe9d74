"""Recipes and policy: what is read, and that every fault is said at once with its line."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from tests.recipes.farms import POLICY, recipe, write_farm
from wheelfarm.errors import BadInputError, FaultsError
from wheelfarm.model.platform import LINUX_AARCH64, LINUX_X86_64, WINDOWS_AMD64
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor
from wheelfarm.recipes import document
from wheelfarm.recipes.document import parse_document
from wheelfarm.recipes.load import load_farm, load_recipe
from wheelfarm.recipes.model import GitSource, PathSource, PyPISource

FULL = """\
name: Flash-Attn
version: 2.8.3
source_repo: Dao-AILab/flash-attention
source_tag: v2.8.3
clone_recursive: true
links_torch: true
build_subdir: csrc
patches: [patches/*.patch]
patch_script: patches/fix.py
extra_deps: [psutil, "ninja>=1.11"]
extra_cuda_components: [cublas, nvtx]
env: {FLASH_ATTENTION_FORCE_BUILD: "TRUE"}
arch_list: 8.0 9.0
arch_list_by_cuda: {"12.8": "8.0;12.0"}
arch_list_by_combination: {"12.8/2.9": "9.0", "12.8/2.9/linux_aarch64": "9.0a"}
min_pytorch: "2.10"
build_matrix:
  combinations: [{cuda: "12.9", pytorch: 2.9.0, python_versions: ["3.13t"]}]
  platforms: [linux, windows_amd64]
max_jobs: 1
nvcc_flags: -diag-suppress=221
sharding: 20
sharding_platforms: [linux]
shard_filter: source
objects_behind_seat: {"vendor/*.o": Fortran}
requires_dist: [torch, "cumm=={VER:cu-mm}+{LOCAL}"]
verify: {import_name: flash_attn, skip_arch: "kernels are made at run time"}
reasons: {arch_list: upstream is Ampere and later}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    own = tmp_path / "recipes" / "flash_attn"
    (own / "patches").mkdir(parents=True)
    for name in ("b.patch", "a.patch", "fix.py"):
        (own / "patches" / name).write_text("")
    return own


def faults_of(text: str, tmp_path: Path) -> list[str]:
    path = tmp_path / "recipe.yml"
    path.write_text(text)
    with pytest.raises(FaultsError) as raised:
        load_recipe(path)
    return [str(fault).removeprefix(f"{path}: ") for fault in raised.value.faults]


def test_reads_every_part_of_a_recipe(folder: Path) -> None:
    (folder / "recipe.yml").write_text(FULL)
    read = load_recipe(folder / "recipe.yml")
    assert read.package == "flash_attn"
    url = "https://github.com/Dao-AILab/flash-attention.git"
    assert read.source == GitSource(url=url, ref="v2.8.3", submodules=True)
    assert [path.name for path in read.patches] == ["a.patch", "b.patch"]
    assert read.patch_script == folder / "patches" / "fix.py"
    assert read.min_pytorch == Minor(2, 10)
    assert str(read.arch_list) == "8.0;9.0"
    assert {key: str(value) for key, value in read.arch_list_by_combination.items()} == {
        "12.8/2.9": "9.0",
        "12.8/2.9/linux_aarch64": "9.0a",
    }
    assert read.build_matrix is not None
    (row,) = read.build_matrix.combinations
    assert (row.torch, row.release) == (Minor(2, 9), Version("2.9.0"))
    assert row.pythons == (PythonTag("exact", Minor(3, 13), True),)
    assert read.build_matrix.platforms == (LINUX_X86_64, WINDOWS_AMD64)
    assert read.shards_on == {LINUX_X86_64: 20, LINUX_AARCH64: 1, WINDOWS_AMD64: 1}
    assert read.requires_dist == ("torch", "cumm=={VER:cu_mm}+{LOCAL}")
    assert read.verify.skip_arch == "kernels are made at run time"


@pytest.mark.parametrize(
    ("source", "expected", "version"),
    [
        ("{pypi: Diso==0.1.4}", PyPISource(project="diso", version=Version("0.1.4")), "0.1.4"),
        ("{git: 'https://a.example/x', tag: release-1.2}", None, "1.2"),
        ("{git: 'https://a.example/x', tag: v1.2rc1}", None, "1.2rc1"),
        (f"{{git: 'https://a.example/x', commit: {'a' * 40}}}", None, None),
        ("{path: ../checkout}", None, None),
    ],
)
def test_sources_and_the_version_that_they_tell(
    tmp_path: Path, source: str, expected: PyPISource | None, version: str | None
) -> None:
    path = tmp_path / "recipe.yml"
    path.write_text(f"name: x\nsource: {source}\n")
    read = load_recipe(path)
    assert expected is None or read.source == expected
    assert str(read.version) == str(version)
    if isinstance(read.source, PathSource):
        assert read.source.path == (tmp_path.parent / "checkout").resolve()
        assert str(read.source) == "path ../checkout"


@pytest.mark.parametrize(
    "ref", ["main", "master", "HEAD", "refs/heads/x", "origin/dev", "abc1234", "Latest", "-x", ""]
)
def test_floating_and_short_refs_are_refused(tmp_path: Path, ref: str) -> None:
    (fault,) = faults_of(f"name: x\nsource: {{git: 'https://a.example/x', tag: '{ref}'}}", tmp_path)
    assert fault.startswith("source.tag (line 2): ")


def test_an_object_behind_the_seat_needs_its_reason(tmp_path: Path) -> None:
    text = "name: x\nsource: {pypi: x==1.0}\nobjects_behind_seat: {'vendor/*.o': ' '}"
    (fault,) = faults_of(text, tmp_path)
    assert fault == "objects_behind_seat.vendor/*.o (line 3): the reason is empty"


def test_all_faults_of_a_file_are_said_at_once(tmp_path: Path) -> None:
    text = """\
name: x
source: {pypi: x>=1.0}
nmae: y
version: 2.10
links_torch: no
min_pytorch: 2.10
max_jobs: 0
arch_list: "9.0z"
patches: [none/*.patch, ../x.patch]
python_axis: abi3
build_matrix: {combinations: [{cuda: "12.8", pytorch: "2.9"}, {cuda: "12.8", pytorch: "2.9.1"}]}
reasons: {max_jobs: it is slow}
verify: {import_nam: x}
"""
    assert faults_of(text, tmp_path) == [
        (
            "links_torch (line 5): YAML reads the bare word no as a boolean; quote it, or "
            "write true or false"
        ),
        "source.pypi (line 2): expected name==version (one exact version), found 'x>=1.0'",
        (
            "version (line 4): expected a string, found 2.10; quote it (unquoted, 2.10 would "
            "be read as 2.1)"
        ),
        "patches[0] (line 9): no file matches 'none/*.patch'",
        "patches[1] (line 9): '../x.patch' does not lie inside its folder",
        (
            "arch_list (line 8): '9.0z' is no GPU architecture; expected one such as 9.0, 9.0a or "
            "10.0f"
        ),
        (
            "min_pytorch (line 6): expected a string, found 2.10; quote it (unquoted, 2.10 would "
            "be read as 2.1)"
        ),
        (
            "build_matrix.combinations[1] (line 11): CUDA 12.8 with torch 2.9 stands here twice; "
            "one wheel name cannot stand for two releases of one torch minor"
        ),
        "max_jobs (line 7): must be at least 1, found 0",
        "verify.import_nam (line 13): unknown key 'import_nam'; did you mean 'import_name'?",
        "from_python (line 1): from_python is required with python_axis: abi3",
        (
            "reasons.max_jobs (line 12): max_jobs overrides no policy; reasons are for arch_list, "
            "arch_list_by_cuda, arch_list_aarch64, arch_list_by_cuda_aarch64, "
            "arch_list_by_combination, min_pytorch, build_matrix, requirements, floor, libstdcxx, "
            "verify.no_direct_import, verify.allowed_needed, verify.allowed_archives, "
            "verify.expect_device_error"
        ),
        "nmae (line 3): unknown key 'nmae'; did you mean 'name'?",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\na: 2", "a (line 2): this key stands here twice"),
        ("a: 010", "a (line 1): YAML reads 010 as int, not as written; quote it"),
        ("a: 12:30", "a (line 1): YAML reads 12:30 as int, not as written; quote it"),
        ("a: 2026-01-01", "a (line 1): YAML reads 2026-01-01 as timestamp, not as written; quote "),
        ("a: .inf", "a (line 1): YAML reads .inf as float, not as written; quote it"),
        ("a: on", "a (line 1): YAML reads the bare word on as a boolean"),
        ("3.10: x", "the key 3.10 must be quoted: '3.10'"),
        ("a: &x [1]\nb: *x", "b (line 1): anchors and aliases are not read"),
        ("a: !!python/object/apply:os.system [x]", ""),
        ("<<: {a: 1}", "merges (<<) are not read"),
        ("a: [", "this is no valid YAML: "),
        ("a: {b: c", "this is no valid YAML: "),
    ],
)
@pytest.mark.parametrize("loader", [document._Loader, yaml.SafeLoader], ids=["C", "Python"])
def test_what_yaml_would_misread_is_a_fault(
    text: str, expected: str, loader: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "_Loader", loader)
    read = parse_document(text, "x.yml", [])
    if text.startswith("a: !!python"):
        # A tag only labels the node; nothing of it is ever called.
        assert read.value == {"a": ["x"]}
        return
    (fault,) = read.faults
    assert expected in str(fault)


def test_nothing_small_on_disk_is_large_in_memory() -> None:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60)]
    read = parse_document("\n".join(lines), "x.yml", [])
    assert len(read.faults) == 118
    deep = parse_document("a: " + "[" * 400 + "]" * 400, "x.yml", [])
    assert any("nested too deeply" in str(fault) for fault in deep.faults)


SCALARS = st.text(st.characters(codec="utf-8"), max_size=20)


@given(st.dictionaries(SCALARS, st.recursive(SCALARS, st.lists, max_leaves=5), max_size=5))
def test_what_yaml_writes_of_text_is_read_as_it_was(value: dict[str, object]) -> None:
    read = parse_document(yaml.safe_dump(value), "x.yml", [])
    assert read.faults == []
    assert read.value == value


def test_a_farm_says_the_faults_of_all_its_files(tmp_path: Path) -> None:
    policy = POLICY.replace('"13.2"]', '"13.2", "13.4"]') + "stroe: x\n"
    farm = write_farm(
        tmp_path,
        {
            "one": recipe("one", "links_torch: maybe"),
            "two": recipe("three"),
            "a": recipe("a", 'requires_dist: ["b=={VER:b}"]'),
            "b": recipe("b", 'requires_dist: ["a=={VER:a}", "c=={VER:c}", "d=={VER:d}"]'),
            "d": "name: d\nsource: {path: x}\n",
        },
        policy,
    )
    with pytest.raises(FaultsError) as raised:
        load_farm(farm)
    text = str(raised.value)
    assert f"the farm {farm} has 8 faults" in text
    for expected in (
        "farm.yml: arch_policy (line 4): the CUDA line 13.4 has no row of architectures",
        "farm.yml: stroe (line 18): unknown key 'stroe'; did you mean 'store'?",
        "recipes/one/recipe.yml: links_torch (line 3): expected true or false",
        "recipes/two/recipe.yml: name: the recipe is of 'three', so its folder must be 'three'",
        "recipes/a/recipe.yml: requires_dist: the packages need each other: a -> b -> a",
        "recipes/b/recipe.yml: requires_dist: {VER:c} names no recipe of this farm",
        "recipes/b/recipe.yml: requires_dist: {VER:d} needs a version, and the recipe 'd' states",
    ):
        assert expected in text


def test_two_folders_of_one_package_are_a_fault(tmp_path: Path) -> None:
    farm = write_farm(
        tmp_path, {"flash_attn": recipe("flash-attn"), "flash-attn": recipe("flash_attn")}
    )
    with pytest.raises(FaultsError, match="has a recipe in the folder 'flash-attn' too"):
        load_farm(farm)


def test_a_folder_without_policy_is_no_farm(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"there is no farm\.yml"):
        load_farm(tmp_path)


def test_stable_abi_and_abi3_need_their_floors(tmp_path: Path) -> None:
    assert faults_of(recipe("x", "torch_axis: stable_abi"), tmp_path) == [
        "from_torch (line 1): from_torch is required with torch_axis: stable_abi"
    ]
    assert faults_of(
        recipe("x", 'links_torch: true\ntorch_axis: free\nfrom_torch: "2.9"'), tmp_path
    ) == [
        "links_torch (line 3): give either links_torch or torch_axis",
        "from_torch (line 5): from_torch goes only with torch_axis: stable_abi",
    ]


@pytest.mark.parametrize(
    "line",
    [
        'patches: ["\\0"]',
        'patches: [""]',
        'patches: ["**x/["]',
        f"patches: [{'a' * 5000}]",
        'patch_script: "\\0"',
        f"patch_script: {'a' * 5000}",
        "patch_script: /etc/passwd",
        'build_subdir: "a/../../b"',
        'build_subdir: "a\\\\b"',
        'build_subdir: "\\e[31m"',
        'env: {A: "x\\0y"}',
    ],
)
def test_hostile_paths_and_values_are_faults(tmp_path: Path, line: str) -> None:
    assert len(faults_of(recipe("x", line), tmp_path)) == 1


@pytest.mark.parametrize("path", ['"\\0"', "a" * 5000, "~no-such-user/x", '""'])
def test_hostile_local_sources_are_faults(tmp_path: Path, path: str) -> None:
    assert len(faults_of(f"name: x\nsource: {{path: {path}}}\n", tmp_path)) == 1


def test_an_unreadable_file_hides_no_fault_of_the_others(tmp_path: Path) -> None:
    farm = write_farm(tmp_path, {"a": "a: [", "c": recipe("c", "links_torc: true")})
    (farm / "recipes" / "b").mkdir()
    (farm / "recipes" / "b" / "recipe.yml").write_bytes(b"name: \xff\n")
    (farm / "farm.yml").write_bytes(b"platforms: \0")
    with pytest.raises(FaultsError) as caught:
        load_farm(farm)
    # One fault for each file: that a key is absent only follows from a file that says nothing.
    faults = [(fault.context, fault.message.partition(":")[0]) for fault in caught.value.faults]
    assert faults == [
        ("farm.yml", "this is no valid YAML"),
        ("recipes/a/recipe.yml", "this is no valid YAML"),
        ("recipes/b/recipe.yml", f"{farm}/recipes/b/recipe.yml could not be read"),
        ("recipes/c/recipe.yml: links_torc", caught.value.faults[3].message.partition(":")[0]),
    ]
    assert "did you mean 'links_torch'" in caught.value.faults[3].message
    assert "\n" not in "".join(str(fault) for fault in caught.value.faults)


def test_no_recipe_is_lost_to_its_files_name(tmp_path: Path) -> None:
    farm = write_farm(tmp_path, {"a": recipe("a", 'requires_dist: ["b=={VER:b}"]')})
    recipes = farm / "recipes"
    (recipes / "one.yml").write_text(recipe("one"))
    (recipes / "two").mkdir()
    (recipes / "two" / "recipe.yaml").write_text(recipe("two"))
    (recipes / "b").mkdir()
    (recipes / "b" / "recipe.yml").symlink_to("nowhere")
    (recipes / "shared").mkdir()
    (recipes / "shared" / "fix.py").write_text("")
    (recipes / "a" / "extra.yml").write_text("data of its patches")
    with pytest.raises(FaultsError) as caught:
        load_farm(farm)
    assert [str(fault).removesuffix("; this is not read") for fault in caught.value.faults] == [
        f"recipes/b/recipe.yml: {recipes}/b/recipe.yml does not exist",
        "recipes/one.yml: a recipe is recipes/<package>/recipe.yml",
        "recipes/two/recipe.yaml: a recipe is recipes/<package>/recipe.yml",
    ]
