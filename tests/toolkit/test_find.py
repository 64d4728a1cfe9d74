"""Where CUDA is found, which root wins, and what is said of the others."""

from pathlib import Path

import pytest

from tests.toolkit import trees
from wheelfarm import interpreter
from wheelfarm.errors import BadInputError
from wheelfarm.model.versions import Minor
from wheelfarm.toolkit.environment import Environment
from wheelfarm.toolkit.find import find_toolkit
from wheelfarm.toolkit.model import CpuOnlyTorchError, NoToolkitError, Step, Toolkit
from wheelfarm.values import replace

DEVICE: tuple[Step, ...] = ("device", "link")


def find(
    environment: Environment, top: Path, cuda: Minor | int | str | None = None, **environ: str
) -> Toolkit:
    return find_toolkit(cuda, environment=environment, machine=trees.machine(top, **environ))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return tmp_path / "venv" / "lib" / "python3.11" / "site-packages"


def test_both_layouts_are_walked_not_imported(site: Path, tmp_path: Path) -> None:
    new, old = site, tmp_path / "user"
    trees.cu13(new)
    trees.cu12(old)
    assert find(trees.environment(new, old), tmp_path, 13).path == new / "nvidia" / "cu13"
    assert find(trees.environment(new, old), tmp_path, 12).path == old / "nvidia"
    # The regular package in front does not hide the namespace package behind it.
    assert find(trees.environment(old, new), tmp_path, 13).path == new / "nvidia" / "cu13"


def test_a_folder_called_nvidia_is_not_a_toolkit(site: Path, tmp_path: Path) -> None:
    trees.touch(site / "nvidia" / "nccl" / "lib" / "libnccl.so.2")
    (site / "nvidia" / "cu13").mkdir()
    with pytest.raises(NoToolkitError, match=r"it lacks cuda\.h"):
        find(trees.environment(site), tmp_path, 13)


@pytest.mark.parametrize(("cuda", "library"), [("12.6", ".so.12"), ("13.0", ".so.13")])
def test_torchs_major_decides_with_both_installed(
    site: Path, tmp_path: Path, cuda: str, library: str
) -> None:
    trees.cu13(site)
    trees.cu12(site)
    trees.torch(site, "2.9.0", cuda)
    toolkit = find(trees.environment(site), tmp_path)
    assert toolkit.libraries["cudart"].file_name == f"libcudart{library}"
    assert toolkit.major == Minor.parse(cuda).major


def test_a_minor_of_the_same_major_is_allowed_with_a_note(site: Path, tmp_path: Path) -> None:
    trees.cu12(site, "12.8")
    trees.torch(site, "2.7.0+cu126", "12.6")
    toolkit = find(trees.environment(site), tmp_path)
    assert "CUDA 12.8" in toolkit.notes[0]
    assert "serves CUDA 12.6" in toolkit.notes[0]


def test_torch_without_cuda_is_refused(site: Path, tmp_path: Path) -> None:
    trees.cu13(site)
    trees.torch(site, "2.14.1+cpu", None, hip=None, xpu=None)
    with pytest.raises(CpuOnlyTorchError, match="was built without CUDA"):
        find(trees.environment(site), tmp_path)


def test_missing_wheels_are_named_with_the_release_that_is_pinned(
    site: Path, tmp_path: Path
) -> None:
    trees.cu13(site, without=("cccl", "crt"))
    trees.dist_info(
        site,
        "cuda-toolkit",
        "13.0.3.0",
        ["nvidia-cuda-cccl==13.0.85.*; (sys_platform == 'linux') and extra == 'all'"],
    )
    with pytest.raises(NoToolkitError) as caught:
        find(trees.environment(site), tmp_path, 13)
    text = str(caught.value)
    assert "nvidia-cuda-cccl==13.0.85.*" in text
    # crt is in no pin here, and must be of nvcc's own release.
    assert "nvidia-cuda-crt==13.0.88" in text
    assert caught.value.hint.startswith("pip install")


def test_missing_wheels_of_cuda_12_carry_its_suffix(site: Path, tmp_path: Path) -> None:
    trees.cu12(site, without=("cccl", "crt"))
    with pytest.raises(NoToolkitError) as caught:
        find(trees.environment(site), tmp_path, 12)
    assert "nvidia-cuda-cccl-cu12==12.8.*" in str(caught.value)
    # CUDA 12's crt headers come with the nvcc wheel, which has no nvcc.
    assert "nvidia-cuda-nvcc-cu12==12.8.*" in str(caught.value)


def test_cuda_12_wheels_never_pass_for_a_compiler(site: Path, tmp_path: Path) -> None:
    trees.cu12(site)
    with pytest.raises(NoToolkitError, match=r"nvcc \(no wheel has it\)") as caught:
        find_toolkit(
            12,
            environment=trees.environment(site),
            machine=trees.machine(tmp_path),
            needs=DEVICE,
        )
    assert "set CUDA_HOME" in caught.value.hint


def test_a_compiler_of_several_releases_is_refused(site: Path, tmp_path: Path) -> None:
    trees.cu13(site, without=("crt",))
    trees.touch(site / "nvidia" / "cu13" / "include" / "crt" / "host_config.h")
    trees.dist_info(site, "nvidia-cuda-crt", "13.2.51")
    with pytest.raises(NoToolkitError, match="put together from several releases"):
        find_toolkit(
            13,
            environment=trees.environment(site),
            machine=trees.machine(tmp_path),
            needs=DEVICE,
        )


def test_a_compiler_of_another_minor_than_the_headers_is_refused(
    site: Path, tmp_path: Path
) -> None:
    trees.cu13(site, "13.2")
    trees.header(site / "nvidia" / "cu13" / "include", "13.0")
    with pytest.raises(NoToolkitError, match=r"headers are of CUDA 13\.0, its nvidia-cuda-nvcc"):
        find_toolkit(
            13,
            environment=trees.environment(site),
            machine=trees.machine(tmp_path),
            needs=DEVICE,
        )


def test_headers_and_nvrtc_of_two_minors_are_not_mixed(site: Path, tmp_path: Path) -> None:
    trees.cu13(site, "13.0", without=("nvrtc",))
    trees.touch(site / "nvidia" / "cu13" / "include" / "nvrtc.h")
    trees.touch(site / "nvidia" / "cu13" / "lib" / "libnvrtc.so.13")
    trees.dist_info(site, "nvidia-cuda-nvrtc", "13.2.51")
    with pytest.raises(NoToolkitError, match=r"its nvidia-cuda-nvrtc is 13\.2\.51"):
        find_toolkit(
            13,
            environment=trees.environment(site),
            machine=trees.machine(tmp_path),
            libraries=("cudart", "nvrtc"),
        )


def test_wheels_without_headers_never_borrow_the_systems(site: Path, tmp_path: Path) -> None:
    top = trees.system(tmp_path / "usr" / "local" / "cuda-13.0", "13.0")
    trees.cu13(site, "13.2", without=("headers", "crt", "cccl", "nvcc", "nvvm"))
    found = find(trees.environment(site), tmp_path, 13)
    assert found.path == top
    assert found.outside(top) == {}
    passed_over = found.candidates[0]
    assert "CUDA 13.2" in str(passed_over)
    assert "nvidia-cuda-runtime==13.2.*" in passed_over.reason

    trees.cu13(site, "13.2")
    whole = find(trees.environment(site), tmp_path, 13)
    assert whole.version == Minor(13, 2)
    assert whole.outside(site) == {}


def test_the_error_lists_every_root_with_its_version(site: Path, tmp_path: Path) -> None:
    trees.cu13(site, without=("cccl",))
    top = trees.system(tmp_path / "usr" / "local" / "cuda", "11.5")
    with pytest.raises(NoToolkitError) as caught:
        find(trees.environment(site), tmp_path, 13)
    lines = str(caught.value).splitlines()
    assert any(str(site) in line and "lacks" in line for line in lines)
    assert any(str(top) in line and "CUDA 11.5" in line and "is wanted" in line for line in lines)


def test_a_system_nvcc_of_another_major_is_refused_by_path(site: Path, tmp_path: Path) -> None:
    top = trees.system(tmp_path / "opt" / "cuda-12.6", "12.6")
    trees.torch(site, "2.4.0+cu118", "11.8")
    with pytest.raises(NoToolkitError) as caught:
        find(trees.environment(site), tmp_path, PATH=str(top / "bin"))
    assert f"{top} (CUDA 12.6, system, found by nvcc on PATH" in str(caught.value)
    assert "CUDA 11 is wanted" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "the variable is set and empty"),
        ("/nonexistent", "invalid variable: no such folder"),
        (":/usr/local/cuda-12.8", "invalid variable: a list of folders, not one folder"),
        ("/proc", "invalid variable: the folder holds neither"),
    ],
)
def test_an_invalid_variable_is_named_and_the_search_goes_on(
    tmp_path: Path, value: str, reason: str
) -> None:
    trees.system(tmp_path / "usr" / "local" / "cuda", "13.0")
    found = find(trees.environment(), tmp_path, 13, CUDA_HOME=value)
    assert found.path == tmp_path / "usr" / "local" / "cuda"
    first = found.candidates[0]
    assert first.place == f"CUDA_HOME={value}"
    assert reason in first.reason


def test_the_order_is_wheels_conda_system(site: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "conda"
    trees.system(tmp_path / "usr" / "local" / "cuda", "13.0")
    environment = trees.environment(site, prefix=prefix)
    assert find(environment, tmp_path, 13).source == "system"

    (prefix / "conda-meta").mkdir(parents=True)
    target = prefix / "targets" / "x86_64-linux"
    trees.system(target, "13.0")
    (target / "lib64").rename(target / "lib")
    conda = find(environment, tmp_path, 13)
    assert conda.source == "conda"
    assert conda.include_dirs == (target / "include",)
    assert find(trees.environment(site), tmp_path, 13, CONDA_PREFIX=str(prefix)).source == "conda"

    trees.cu13(site)
    assert find(environment, tmp_path, 13).source == "wheels"
    assert find_toolkit(
        13, "system", environment=environment, machine=trees.machine(tmp_path)
    ).path.is_relative_to(tmp_path / "usr")


def test_nvcc_on_path_may_be_a_script_that_calls_another(tmp_path: Path) -> None:
    top = trees.system(tmp_path / "elsewhere" / "cuda", "13.0")
    script = f"#!/bin/sh\necho '#$ TOP={top}/bin/..' >&2\n"
    trees.executable(tmp_path / "bin" / "nvcc", script)
    found = find(trees.environment(), tmp_path / "empty", 13, PATH=str(tmp_path / "bin"))
    assert found.path == top


def test_nvcc_that_fails_is_a_reason(tmp_path: Path) -> None:
    trees.executable(tmp_path / "bin" / "nvcc", "#!/bin/sh\nexit 1\n")
    with pytest.raises(NoToolkitError, match="does not say where its parts are"):
        find(trees.environment(), tmp_path / "empty", 13, PATH=str(tmp_path / "bin"))


def test_one_toolkit_under_two_names_is_judged_once(tmp_path: Path) -> None:
    top = trees.system(tmp_path / "usr" / "local" / "cuda-12.9", "12.9")
    (tmp_path / "usr" / "local" / "cuda").symlink_to(top)
    with pytest.raises(NoToolkitError) as caught:
        find(trees.environment(), tmp_path, 13, CUDA_HOME=str(top))
    assert len(caught.value.candidates) == 1


def test_lib_and_lib64_of_one_environment_are_one_root(tmp_path: Path) -> None:
    pure = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    platform = tmp_path / "env" / "lib64" / "python3.11" / "site-packages"
    trees.cu13(pure)
    library = pure / "nvidia" / "cu13" / "lib" / "libcudart.so.13"
    library.unlink()
    trees.touch(platform / "nvidia" / "cu13" / "lib" / "libcudart.so.13")
    found = find(trees.environment(platform, pure), tmp_path, 13)
    assert found.libraries["cudart"].folder == platform / "nvidia" / "cu13" / "lib"
    assert found.include_dirs[0] == pure / "nvidia" / "cu13" / "include"


def answer(*paths: Path, prefix: Path, base: Path, user: Path, user_on: bool) -> Environment:
    return Environment.of(
        replace(
            interpreter.here(),
            path=paths,
            prefix=prefix,
            base_prefix=base,
            user_site=user if user_on else None,
            disabled_user_site=None if user_on else user,
        )
    )


def test_a_venv_comes_before_the_users_before_the_systems(tmp_path: Path) -> None:
    venv, user, system = (tmp_path / name / "site-packages" for name in ("venv", "user", "base"))
    for folder in (venv, user, system):
        trees.cu13(folder)
    places = answer(
        system,
        user,
        venv,
        prefix=tmp_path / "venv",
        base=tmp_path / "base",
        user=user,
        user_on=True,
    )
    assert places.folders == (venv, user, system)
    assert find(places, tmp_path, 13).path.is_relative_to(venv)


def test_a_disabled_user_site_is_not_looked_at(tmp_path: Path) -> None:
    venv, user = tmp_path / "venv" / "site-packages", tmp_path / "user" / "site-packages"
    venv.mkdir(parents=True)
    trees.cu13(user)
    places = answer(
        user, venv, prefix=tmp_path / "venv", base=tmp_path / "base", user=user, user_on=False
    )
    assert places.folders == (venv,)
    with pytest.raises(NoToolkitError):
        find(places, tmp_path, 13)


def test_windows_wheels_of_both_layouts(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    trees.cu13(new)
    top = new / "nvidia" / "cu13"
    trees.touch(top / "lib" / "x64" / "cudart.lib")
    trees.touch(top / "bin" / "x86_64" / "cudart64_13.dll")
    found = find_toolkit(
        13, environment=trees.environment(new), machine=trees.windows(tmp_path / "c")
    )
    assert found.libraries["cudart"].file_name == "cudart.lib"
    assert found.libraries["cudart"].folder == top / "lib" / "x64"
    assert top / "bin" / "x86_64" in found.root.bin_dirs

    trees.cu12(old)
    runtime = old / "nvidia" / "cuda_runtime"
    trees.touch(runtime / "lib" / "x64" / "cudart.lib")
    trees.touch(runtime / "bin" / "cudart64_12.dll")
    found = find_toolkit(
        12, environment=trees.environment(old), machine=trees.windows(tmp_path / "c")
    )
    assert found.libraries["cudart"].folder == runtime / "lib" / "x64"


def test_windows_toolkits_newest_first(tmp_path: Path) -> None:
    base = tmp_path / "Program Files" / "NVIDIA GPU Computing Toolkit" / "CUDA"
    for version in ("12.9", "13.0"):
        top = trees.system(base / f"v{version}", version)
        trees.touch(top / "lib" / "x64" / "cudart.lib")
        trees.touch(top / "bin" / "nvcc.exe")
    machine = trees.windows(tmp_path)
    environment = trees.environment()
    assert find_toolkit(environment=environment, machine=machine).path == base / "v13.0"
    assert find_toolkit(12, environment=environment, machine=machine).path == base / "v12.9"


@pytest.mark.parametrize("text", ["", "def x(:", "cuda = '13.0'\n", "__version__ = 3\n", "\0"])
def test_a_torch_that_does_not_say_what_it_is(site: Path, tmp_path: Path, text: str) -> None:
    trees.cu13(site)
    trees.touch(site / "torch" / "version.py", text)
    with pytest.raises(BadInputError, match="does not say which torch this is"):
        find(trees.environment(site), tmp_path)


def test_torchs_version_file_is_read_and_never_run(site: Path, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    text = f"open({str(marker)!r}, 'w')\n__version__ = '2.14.1'\ncuda = '13.0'\n"
    trees.touch(site / "torch" / "version.py", text)
    facts = trees.environment(site).torch()
    assert facts is not None
    assert (str(facts.version), facts.cuda) == ("2.14.1", Minor(13, 0))
    assert not marker.exists()


def test_unknown_words_are_refused(tmp_path: Path) -> None:
    machine = trees.machine(tmp_path)
    with pytest.raises(BadInputError, match="no source of CUDA"):
        find_toolkit(13, "elsewhere", environment=trees.environment(), machine=machine)  # type: ignore[arg-type]  # the refusal is what is tested
    with pytest.raises(BadInputError, match="a version of two numbers"):
        find_toolkit("13.0.3", environment=trees.environment(), machine=machine)
