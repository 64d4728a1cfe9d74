"""A CUDA extension of four kernels and a host unit, without torch: enough to share out."""

import os
import subprocess

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

CUDA_HOME = os.environ["CUDA_HOME"]
KERNELS = ["one", "two", "three", "four"]


class BuildCuda(build_ext):
    """Compile each .cu with nvcc, hand the objects to the linker."""

    def build_extension(self, ext):
        os.makedirs(self.build_temp, exist_ok=True)
        ext.extra_objects = []
        for name in KERNELS:
            target = os.path.join(self.build_temp, f"{name}.o")
            command = [os.path.join(CUDA_HOME, "bin", "nvcc")]
            for arch in os.environ["TORCH_CUDA_ARCH_LIST"].split(";"):
                number = arch.replace("+PTX", "").replace(".", "")
                command += ["-gencode", f"arch=compute_{number},code=sm_{number}"]
                if arch.endswith("+PTX"):
                    command += ["-gencode", f"arch=compute_{number},code=compute_{number}"]
            command += ["-Xcompiler", "-fPIC", "-c", f"src/{name}.cu", "-o", target]
            subprocess.run(command, check=True)
            ext.extra_objects.append(target)
        super().build_extension(ext)


setup(
    name="tiny-sharded",
    version="1.0",
    packages=["tiny_sharded"],
    ext_modules=[
        Extension(
            "tiny_sharded._C",
            ["src/module.cpp"],
            library_dirs=[os.path.join(CUDA_HOME, "lib64")],
            libraries=["cudart"],
        )
    ],
    cmdclass={"build_ext": BuildCuda},
)
