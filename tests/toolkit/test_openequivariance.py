"""A package that builds at run time: OpenEquivariance's host sources, from the wheels alone."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import elftools
import pytest
from packaging.version import Version

from tests.toolkit import trees
from tests.toolkit.hidden import without_toolkit
from wheelfarm import files
from wheelfarm.http import Client
from wheelfarm.recipes.pypi import find_sdist, index_url

pytestmark = [
    pytest.mark.compile,
    pytest.mark.torch,
    pytest.mark.network,
    pytest.mark.full,
]

REPOSITORY = Path(__file__).parents[2]
PATCH = REPOSITORY / "examples" / "openequivariance" / "cuda-from-wheels.patch"


@pytest.fixture(scope="session")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist's tree, as it was published."""
    folder = tmp_path_factory.mktemp("openequivariance")
    sdist = find_sdist(
        "openequivariance", Version("0.7.0"), client=Client(), index=index_url(os.environ)
    )
    Client().download(sdist.url, folder / sdist.file_name, sha256=sdist.sha256)
    files.unpack(folder / sdist.file_name, folder)
    return folder / "openequivariance-0.7.0"


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the package needs beside torch, and what wheelfarm does."""
    target = tmp_path_factory.mktemp("packages")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-input"]
    command += ["--disable-pip-version-check", "--target", str(target), "pybind11==3.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    (target / "elftools").symlink_to(Path(elftools.__file__).parent)
    return target


@pytest.fixture(scope="session")
def patched(upstream: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = tmp_path_factory.mktemp("patched") / "tree"
    subprocess.run(["cp", "-r", upstream, tree], check=True)
    subprocess.run(["git", "apply", "--verbose", PATCH], check=True, cwd=tree, env=os.environ)
    return tree


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder whose bin holds an nvcc that fails loudly; it must never be called."""
    trees.executable(
        tmp_path / "bin" / "nvcc",
        f"#!/bin/sh\necho called >> {tmp_path}/nvcc-called\nexit 97\n",
    )
    yield tmp_path
    assert not (tmp_path / "nvcc-called").exists()


def variables(place: Path, python: Path, *path: Path, **more: str) -> dict[str, str]:
    return {
        "HOME": str(place),
        "PATH": f"{python.parent}:/usr/bin:/bin",
        "PYTHONPATH": ":".join(map(str, path)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "WHEELFARM_CACHE": str(place / "cache"),
        "TORCH_EXTENSIONS_DIR": str(place / "extensions"),
        "TORCH_NO_COMPILER_WRAPPER": "1",
        **more,
    }


def linked(library: Path) -> dict[str, str]:
    text = subprocess.run(
        ["ldd", library], check=True, capture_output=True, text=True, env={}
    ).stdout
    pairs = (line.strip().split(" => ") for line in text.splitlines() if " => " in line)
    return {name: target.split(" (")[0] for name, target in pairs}


def check_links(library: Path) -> None:
    """Every CUDA library comes from the wheels; the driver's from a driver or the stand-in."""
    found = linked(library)
    for name in ("libcudart.so.13", "libnvrtc.so.13", "libcublas.so.13", "libcublasLt.so.13"):
        assert "nvidia/cu13/lib" in found[name], found
    assert found["libcuda.so.1"] != "not found"
    assert not any("cuda-1" in target for target in found.values()), found


BUILD = """\
import sys, sysconfig
import pybind11, torch
from pathlib import Path
from wheelfarm.toolkit import load
tree = Path(sys.argv[1]) / "openequivariance" / "extension"
libraries = sysconfig.get_config_var("LIBDIR")
path = load(
    "libtorch_tp_jit",
    [tree / "libtorch_tp_jit.cpp", tree / "json11" / "json11.cpp"],
    extra_cflags=["-O0", "-DCUDA_BACKEND"],
    extra_include_paths=[str(tree / "backend"), pybind11.get_include()],
    extra_ldflags=["-Wl,--no-as-needed", f"-L{libraries}"],
    libraries=("cudart", "nvrtc", "cublas"),
    driver=True,
    is_python_module=False,
)
print([name for name in dir(torch.ops.libtorch_tp_jit) if "jit_tp" in name] or "loaded")
print(path)
"""


def test_host_sources_build_with_these_flags_alone(
    torch_python: Path, upstream: Path, packages: Path, place: Path
) -> None:
    """No CUDA_HOME, an nvcc on PATH that must not be called, torch.ops.load_library at the end."""
    environ = variables(
        place,
        torch_python,
        packages,
        REPOSITORY / "src",
        WHEELFARM_CUDA_FROM_WHEELS="1",
        PATH=f"{place / 'bin'}:/usr/bin:/bin",
    )
    command = [str(torch_python), "-c", BUILD, str(upstream)]
    completed = subprocess.run(command, check=False, capture_output=True, text=True, env=environ)
    assert completed.returncode == 0, completed.stderr
    check_links(Path(completed.stdout.splitlines()[-1]))


IMPORT = """\
import warnings
warnings.simplefilter("ignore")
import openequivariance._torch.extlib as extlib
print(extlib.BUILT_EXTENSION)
print(extlib.torch_ext_so_path() if extlib.BUILT_EXTENSION else extlib.BUILT_EXTENSION_ERROR)
"""


def use(python: Path, place: Path, *path: Path, mode: str | None, **more: str) -> tuple[bool, str]:
    chosen = {} if mode is None else {"OEQ_CUDA_FROM_WHEELS": mode}
    environ = variables(place, python, *path, OEQ_JIT_EXTENSION="1", **chosen, **more)
    command = [*without_toolkit(), str(python), "-c", IMPORT]
    completed = subprocess.run(command, check=False, capture_output=True, text=True, env=environ)
    assert completed.returncode == 0, completed.stderr
    built, answer = completed.stdout.split("\n", maxsplit=1)
    return built == "True", answer.strip()


def test_the_patch_is_small() -> None:
    assert len(PATCH.read_text(encoding="utf-8").splitlines()) <= 40


def test_the_patched_package_builds_itself(
    torch_python: Path, patched: Path, packages: Path, place: Path
) -> None:
    built, library = use(torch_python, place, patched, packages, REPOSITORY / "src", mode=None)
    assert built, library
    check_links(Path(library))


def test_never_fails_as_today(
    torch_python: Path, patched: Path, packages: Path, place: Path
) -> None:
    built, error = use(torch_python, place, patched, packages, REPOSITORY / "src", mode="0")
    assert not built
    assert "CUDA_HOME environment variable is not set" in error


def test_without_wheelfarm_it_is_as_today(
    torch_python: Path, patched: Path, packages: Path, place: Path
) -> None:
    built, error = use(torch_python, place, patched, packages, mode="auto")
    assert not built
    assert "CUDA_HOME environment variable is not set" in error


def test_always_without_the_wheels_is_a_clear_error(
    torch_python: Path, patched: Path, packages: Path, place: Path
) -> None:
    """An environment whose CUDA wheels lack headers: torch and the rest, by links, and no more."""
    script = "import torch, pathlib; print(pathlib.Path(torch.__file__).parents[1])"
    site = Path(
        subprocess.run(
            [torch_python, "-c", script], check=True, capture_output=True, text=True
        ).stdout.strip()
    )
    partial = place / "site-packages"
    top = partial / "nvidia" / "cu13"
    top.mkdir(parents=True)
    for entry in site.iterdir():
        if entry.name not in {"nvidia", "wheelfarm"} and not entry.name.startswith("nvidia_cuda_c"):
            (partial / entry.name).symlink_to(entry)
    for entry in (site / "nvidia").iterdir():
        if entry.name != "cu13":
            (partial / "nvidia" / entry.name).symlink_to(entry)
    for entry in (site / "nvidia" / "cu13").iterdir():
        if entry.name != "include":
            (top / entry.name).symlink_to(entry)
    environ = variables(
        place,
        torch_python,
        patched,
        packages,
        partial,
        REPOSITORY / "src",
        OEQ_JIT_EXTENSION="1",
        OEQ_CUDA_FROM_WHEELS="1",
    )
    # -S leaves out the environment's own site-packages, which hold the wheels whole.
    command = [*without_toolkit(), str(torch_python), "-S", "-c", IMPORT]
    completed = subprocess.run(command, check=False, capture_output=True, text=True, env=environ)
    assert completed.returncode == 0, completed.stderr
    built, error = completed.stdout.split("\n", maxsplit=1)
    assert built == "False"
    assert "no CUDA toolkit offers CUDA 13.0 for host, link, cudart, nvrtc, cublas" in error
    assert "nvidia-cuda-crt==13.0.88" in error
    assert "nvidia-cuda-cccl==13.0.85" in error
