"""A build root with a prepared seat, real nvcc from wheels behind it, and a cache of its own."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from wheelfarm.build.cache import CompilerCache, find_cache
from wheelfarm.build.calls import Call, read_calls
from wheelfarm.build.seat_setup import Seat, SeatPart, SeatSpec, prepare_seat
from wheelfarm.toolkit.find import find_toolkit
from wheelfarm.toolkit.view import make_view

SYSTEM_PATH = "/usr/bin:/bin"

SETUP = '''\
import os, subprocess
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

class BuildCuda(build_ext):
    """As many projects do: nvcc by its absolute path in CUDA_HOME, host units by setuptools."""

    def build_extensions(self):
        original = self.compiler._compile
        nvcc = os.path.join(os.environ["CUDA_HOME"], "bin", "nvcc")

        def compile_one(obj, src, ext, cc_args, extra, pp_opts):
            if ext != ".cu":
                return original(obj, src, ext, cc_args, extra, pp_opts)
            words = [nvcc, *pp_opts, "-c", os.path.abspath(src), "-o", obj, "-Xcompiler", "-fPIC"]
            words += ["-gencode", "arch=compute_80,code=sm_80", "-ccbin", os.environ["CC"]]
            subprocess.run(words, check=True)

        self.compiler._compile = compile_one
        self.compiler.src_extensions.append(".cu")
        super().build_extensions()

setup(
    name="six", version="1.0",
    ext_modules=[Extension("six._C", [SOURCES], include_dirs=["csrc"], language="c++",
                           libraries=["cudart"],
                           library_dirs=[os.environ["CUDA_HOME"] + "/lib64"])],
    packages=["six"], cmdclass={"build_ext": BuildCuda},
)
'''
KERNEL = """\
#include "shared.h"
__global__ void kernel_{name}(float* x) {{ x[threadIdx.x] += SHARED + {number}; }}
extern "C" int launch_{name}(float* x) {{ kernel_{name}<<<1, 32>>>(x); return {number}; }}
"""
BIND = """\
#include <Python.h>
{declarations}
static PyObject* total(PyObject*, PyObject*) {{ return PyLong_FromLong({count}); }}
static PyMethodDef methods[] = {{{{"total", total, METH_NOARGS, nullptr}}, {{nullptr}}}};
static PyModuleDef module = {{PyModuleDef_HEAD_INIT, "_C", nullptr, -1, methods}};
PyMODINIT_FUNC PyInit__C() {{ return PyModule_Create(&module); }}
"""
NAMES = ("one", "two", "three", "four", "five", "six")


def write_project(folder: Path, names: tuple[str, ...] = NAMES) -> Path:
    """Write the project into ``folder`` and return it."""
    csrc = folder / "csrc"
    csrc.mkdir(parents=True)
    (folder / "six").mkdir()
    (folder / "six" / "__init__.py").write_text("from six._C import total\n")
    (csrc / "shared.h").write_text("#define SHARED 1.0f\n")
    for number, name in enumerate(names):
        # Sizes differ, so that a partition has something to balance.
        padding = "// a line of text that does nothing\n" * (40 * number)
        (csrc / f"{name}.cu").write_text(KERNEL.format(name=name, number=number) + padding)
    declarations = "\n".join(f'extern "C" int launch_{name}(float*);' for name in names)
    (csrc / "bind.cpp").write_text(BIND.format(declarations=declarations, count=len(names)))
    sources = ", ".join(repr(f"csrc/{name}") for name in ("bind.cpp", *map("{}.cu".format, names)))
    (folder / "setup.py").write_text(SETUP.replace("SOURCES", sources))
    return folder


@dataclass
class Root:
    """A build root: ``write`` its files, ``seat`` takes a part, ``nvcc`` and ``cxx`` compile."""

    path: Path
    view: Path
    cache: CompilerCache | None
    folders: dict[str, Path] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    seat: Seat | None = None

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def prepare(self, part: SeatPart | None = None) -> Seat:
        self.seat = prepare_seat(
            SeatSpec(
                root=self.path,
                folder=self.path / "seat",
                toolkit=self.view,
                folders=self.folders,
                cache=self.cache,
                part=part or SeatPart(),
                path=SYSTEM_PATH,
            )
        )
        return self.seat

    def run(
        self, *words: str | Path, cwd: Path | None = None, check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        seat = self.seat or self.prepare()
        path = f"{seat.bin}:{seat.cuda_home}/bin:{SYSTEM_PATH}"
        environment = {"HOME": str(self.path), **seat.environment, "PATH": path}
        done = subprocess.run(
            [os.fspath(word) for word in words],
            cwd=cwd or self.path,
            env={**environment, **self.environment},
            check=False,
            text=True,
            capture_output=True,
        )
        assert not check or done.returncode == 0, done.stderr
        return done

    def nvcc(self, *words: str | Path, cwd: Path | None = None) -> Call:
        self.run("nvcc", *words, cwd=cwd)
        return self.calls[-1]

    def cxx(self, *words: str | Path, cwd: Path | None = None) -> Call:
        self.run("g++", *words, cwd=cwd)
        return self.calls[-1]

    @property
    def calls(self) -> tuple[Call, ...]:
        assert self.seat is not None
        return read_calls(self.seat.log)


@pytest.fixture(scope="session")
def toolkit_view(toolkit_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CUDA root of links to the toolkit of NVIDIA's wheels."""
    toolkit = find_toolkit(source="wheels", python=toolkit_python, needs=("device",))
    return make_view(toolkit, tmp_path_factory.mktemp("toolkit") / "cuda")


@pytest.fixture
def ccache(tmp_path: Path) -> CompilerCache:
    """The machine's ccache with an empty folder; a test of it is skipped where there is none."""
    cache = find_cache(tmp_path / "cache")
    if not isinstance(cache, CompilerCache) or cache.kind != "ccache":
        pytest.skip("ccache is not installed")
    return cache


@pytest.fixture
def make_root(tmp_path: Path, toolkit_view: Path, ccache: CompilerCache) -> Callable[[str], Root]:
    """Make build roots that share one cache."""

    def make(name: str) -> Root:
        (tmp_path / name).mkdir(parents=True)
        return Root(path=tmp_path / name, view=toolkit_view, cache=ccache)

    return make


@pytest.fixture
def root(make_root: Callable[[str], Root]) -> Root:
    """One build root."""
    return make_root("root")


@pytest.fixture(scope="session")
def six_units() -> Callable[[Path], Path]:
    """Write a real project, of six CUDA units and a host unit, without torch."""
    return write_project
