"""A CUDA extension without torch: one kernel, one function, one wheel for every Python from 3.9."""

import os
import subprocess

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

CUDA_HOME = os.environ["CUDA_HOME"]


class BuildCuda(build_ext):
    """Compile the .cu with nvcc, hand the object to the linker."""

    def build_extension(self, ext):
        objects = []
        os.makedirs(self.build_temp, exist_ok=True)
        for source in [source for source in ext.sources if source.endswith(".cu")]:
            target = os.path.join(self.build_temp, os.path.basename(source) + ".o")
            command = [os.environ.get("CUDACXX", os.path.join(CUDA_HOME, "bin", "nvcc"))]
            for arch in os.environ["TORCH_CUDA_ARCH_LIST"].split(";"):
                number = arch.replace("+PTX", "").replace(".", "")
                command += ["-gencode", f"arch=compute_{number},code=sm_{number}"]
                if arch.endswith("+PTX"):
                    command += ["-gencode", f"arch=compute_{number},code=compute_{number}"]
            command += ["-Xcompiler", "-fPIC", "-c", source, "-o", target]
            subprocess.run(command, check=True)
            objects.append(target)
        ext.sources = [source for source in ext.sources if not source.endswith(".cu")]
        ext.extra_objects = objects
        super().build_extension(ext)


setup(
    name="tiny-cuda",
    version="1.0",
    packages=["tiny_cuda"],
    ext_modules=[
        Extension(
            "tiny_cuda._C",
            ["src/module.c", "src/kernel.cu"],
            define_macros=[("Py_LIMITED_API", "0x03090000")],
            py_limited_api=True,
            language="c++",  # nvcc writes C++ objects: the linker must be g++
            library_dirs=[os.path.join(CUDA_HOME, "lib64")],
            libraries=["cudart"],
        )
    ],
    cmdclass={"build_ext": BuildCuda},
    options={"bdist_wheel": {"py_limited_api": "cp39"}},
)
