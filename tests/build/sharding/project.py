"""A small real project: six CUDA units and one host unit in one extension, without torch."""

from pathlib import Path

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
                           libraries=["cudart"], library_dirs=[os.environ["CUDA_HOME"] + "/lib64"])],
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
