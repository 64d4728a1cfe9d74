"""A CUDA extension that links torch's core library, without torch's headers: it compiles fast."""

import os
import subprocess
from importlib.util import find_spec

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

CUDA_HOME = os.environ["CUDA_HOME"]
TORCH = os.path.join(os.path.dirname(find_spec("torch").origin), "lib")


class BuildCuda(build_ext):
    """Compile the .cu with nvcc, hand the object to the linker."""

    def build_extension(self, ext):
        os.makedirs(self.build_temp, exist_ok=True)
        target = os.path.join(self.build_temp, "kernel.o")
        command = [os.path.join(CUDA_HOME, "bin", "nvcc")]
        for arch in os.environ["TORCH_CUDA_ARCH_LIST"].split(";"):
            number = arch.replace("+PTX", "").replace(".", "")
            command += ["-gencode", f"arch=compute_{number},code=sm_{number}"]
            if arch.endswith("+PTX"):
                command += ["-gencode", f"arch=compute_{number},code=compute_{number}"]
        command += ["-Xcompiler", "-fPIC", "-c", "src/kernel.cu", "-o", target]
        subprocess.run(command, check=True)
        ext.extra_objects = [target]
        super().build_extension(ext)


setup(
    name="tiny-linked",
    version="1.0",
    packages=["tiny_linked"],
    ext_modules=[
        Extension(
            "tiny_linked._C",
            ["src/module.cpp"],
            library_dirs=[os.path.join(CUDA_HOME, "lib64"), TORCH],
            libraries=["cudart", "c10"],
            extra_link_args=["-Wl,--no-as-needed"],
        )
    ],
    cmdclass={"build_ext": BuildCuda},
)
