"""Build one torch-free project for two Pythons of one CUDA; print the second's time over the first.

    python benchmarks/second_python.py TOOLKIT_PYTHON OTHER_PYTHON WORK [--kernels 12]

TOOLKIT_PYTHON has the toolkit's wheels, OTHER_PYTHON is an interpreter of another version with its
headers (a virtual environment is made of it), WORK an empty folder. The project's kernels do not
include Python.h, its one host unit does. Compilers' time alone is compared, as the time that a
build tool takes to start is the same for both.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from packaging.version import Version

from wheelfarm.build.calls import summarise
from wheelfarm.build.environment import Environment, open_environment
from wheelfarm.build.part import Prepared, compile_part, job_cache
from wheelfarm.build.request import BuildRequest
from wheelfarm.build.source import FolderSource
from wheelfarm.model.arch import ArchList
from wheelfarm.model.cell import Cell, CellId
from wheelfarm.toolkit.find import find_toolkit
from wheelfarm.toolkit.view import make_view

SETUP = """\
import os, subprocess
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

class BuildCuda(build_ext):
    def build_extensions(self):
        original = self.compiler._compile
        def compile_one(obj, src, ext, cc_args, extra, pp_opts):
            if ext != ".cu":
                return original(obj, src, ext, cc_args, extra, pp_opts)
            subprocess.run([os.environ["PYTORCH_NVCC"], *pp_opts, "-c", os.path.abspath(src),
                "-o", obj, "-Xcompiler", "-fPIC", "-gencode", "arch=compute_80,code=sm_80"],
                check=True)
        self.compiler._compile = compile_one
        self.compiler.src_extensions.append(".cu")
        super().build_extensions()

setup(name="kernels", version="1.0", cmdclass={"build_ext": BuildCuda}, ext_modules=[
    Extension("kernels", ["bind.c", *SOURCES], libraries=["cudart"],
              library_dirs=[os.environ["CUDA_HOME"] + "/lib64"])])
"""
KERNEL = """\
#include <cub/device/device_reduce.cuh>
void reduce_{0}(float* in, float* out, void* space, size_t bytes, int count) {{
  cub::DeviceReduce::Sum(space, bytes, in, out, count + {0});
}}
"""
BIND = """\
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "kernels", NULL, -1, NULL};
PyMODINIT_FUNC PyInit_kernels(void) { return PyModule_Create(&module); }
"""


def main() -> None:
    """Build for both Pythons and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("toolkit_python", type=Path)
    parser.add_argument("other_python", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--kernels", type=int, default=12)
    arguments = parser.parse_args()
    work: Path = arguments.work.absolute()
    tree = write_project(work / "source", arguments.kernels)
    packages = work / "packages"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packages)]
    subprocess.run([*pip, "setuptools", "wheel"], check=True)
    subprocess.run([arguments.other_python, "-m", "venv", work / "other"], check=True)
    seconds = []
    for folder in (arguments.toolkit_python.absolute().parents[1], work / "other"):
        environment = open_environment(folder)
        prepared = prepare(work, tree, packages, environment, arguments.toolkit_python)
        root = work / f"build-{environment.interpreter.tag}"
        part = compile_part(
            prepared,
            root,
            log=work / f"{root.name}.log",
            cache=job_cache(prepared, root / "cache"),
        )
        summary = summarise(part.calls)
        print(f"{environment.interpreter.tag}: {summary.seconds:7.2f} s  {summary.cache}")
        seconds.append(summary.seconds)
    print(f"the second Python over the first: {seconds[1] / seconds[0]:.3f}")


def write_project(folder: Path, kernels: int) -> Path:
    """Write a project of kernels that use CUB, and return its folder."""
    folder.mkdir(parents=True)
    names = [f"kernel{number}.cu" for number in range(kernels)]
    for number, name in enumerate(names):
        (folder / name).write_text(KERNEL.format(number))
    (folder / "bind.c").write_text(BIND)
    (folder / "setup.py").write_text(SETUP.replace("SOURCES", repr(names)))
    return folder


def prepare(
    work: Path, tree: Path, packages: Path, environment: Environment, toolkit_python: Path
) -> Prepared:
    """Return what the build for one Python starts from; both share what is kept."""
    toolkit = find_toolkit(source="wheels", python=toolkit_python, needs=("device",))
    python = environment.interpreter.tag
    cell = CellId.parse(f"kernels-1.0-cu130-torch2.14-{python}-linux_x86_64")
    return Prepared(
        request=BuildRequest(
            cell=Cell(cell, Version("2.14.1")),
            source=FolderSource(folder=tree),
            archs=ArchList.parse("8.0"),
            torch_axis="free",
        ),
        tree=tree,
        packages=packages,
        environment=environment,
        toolkit=toolkit,
        view=make_view(toolkit, work / "cuda"),
        driver_stub=work,
        kept=work / "kept",
    )


if __name__ == "__main__":
    main()
