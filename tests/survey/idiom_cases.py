"""Trees of setup.py: the idioms by which torch extensions reach setup()."""

from tests.survey.tree_case import TreeCase

IDIOMS = (
    TreeCase(
        name="called directly",
        verdict="linked",
        shows=("setup.py:6",),
        files={
            "setup.py": """
            from setuptools import setup
            from torch.utils.cpp_extension import BuildExtension, CUDAExtension

            setup(
                name="kernels",
                ext_modules=[CUDAExtension("kernels._C", ["csrc/ops.cu"])],
                cmdclass={"build_ext": BuildExtension},
            )
            """,
            "csrc/ops.cu": "",
        },
    ),
    TreeCase(
        name="by attribute of the module",
        verdict="linked",
        shows=("setup.py:4",),
        files={
            "setup.py": """
            import setuptools
            import torch.utils.cpp_extension

            ext = torch.utils.cpp_extension.CppExtension("kernels._C", ["csrc/ops.cpp"])
            setuptools.setup(name="kernels", ext_modules=[ext])
            """,
        },
    ),
    TreeCase(
        name="by attribute of an aliased module",
        verdict="linked",
        shows=("setup.py:4",),
        files={
            "setup.py": """
            from setuptools import setup
            import torch.utils.cpp_extension as build

            modules = [build.CUDAExtension(name="kernels._C", sources=["ops.cu"])]
            setup(name="kernels", ext_modules=modules)
            """,
        },
    ),
    TreeCase(
        name="module imported from its package under a new name",
        verdict="linked",
        shows=("setup.py:6",),
        files={
            "setup.py": """
            from setuptools import setup
            from torch.utils import cpp_extension as te

            def modules():
                found = []
                found.append(te.CUDAExtension("kernels._C", ["ops.cu"]))
                return found

            setup(name="kernels", ext_modules=modules(), cmdclass={"build_ext": te.BuildExtension})
            """,
        },
    ),
    TreeCase(
        name="through a conditional alias",
        verdict="linked",
        shows=("setup.py:7",),
        files={
            "setup.py": """
            import torch
            from setuptools import setup
            from torch.utils.cpp_extension import CUDA_HOME, CppExtension, CUDAExtension

            with_cuda = torch.cuda.is_available() and CUDA_HOME is not None
            ext = CUDAExtension if with_cuda else CppExtension
            module = ext("kernels._C", ["ops.cpp"] + (["ops.cu"] if with_cuda else []))
            setup(name="kernels", ext_modules=[module])
            """,
        },
    ),
    TreeCase(
        name="through an alias assigned in both branches",
        verdict="linked",
        shows=("setup.py:10",),
        files={
            "setup.py": """
            import os
            from setuptools import setup
            from torch.utils.cpp_extension import CppExtension, CUDAExtension

            if os.environ.get("NO_CUDA"):
                Extension = CppExtension
            else:
                Extension = CUDAExtension

            setup(name="kernels", ext_modules=[Extension("kernels._C", ["ops.cpp"])])
            """,
        },
    ),
    TreeCase(
        name="through a wrapper function",
        verdict="linked",
        shows=("setup.py:5",),
        files={
            "setup.py": """
            from setuptools import setup
            from torch.utils.cpp_extension import CUDAExtension

            def make(module, sources, **options):
                return CUDAExtension(name=f"pkg.{module}", sources=sources, **options)

            setup(
                name="kernels",
                ext_modules=[make(name, [f"{name}.cu"]) for name in ("one", "two")],
            )
            """,
        },
    ),
    TreeCase(
        name="through a factory class",
        verdict="linked",
        shows=("setup.py:8",),
        files={
            "setup.py": """
            from setuptools import setup
            from torch.utils.cpp_extension import CUDAExtension

            class Op:
                name = "base"

                def extension(self):
                    return CUDAExtension(self.name, [self.name + ".cu"])

            class Gather(Op):
                name = "gather"

            OPS = {cls.name: cls() for cls in (Gather,)}
            setup(name="kernels", ext_modules=[op.extension() for op in OPS.values()])
            """,
        },
    ),
    TreeCase(
        name="in an imported helper module",
        verdict="linked",
        shows=("build_support/ops.py:4",),
        files={
            "setup.py": """
            import sys, os
            sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
            from setuptools import setup
            from build_support.ops import get_extensions

            setup(name="kernels", ext_modules=get_extensions())
            """,
            "build_support/__init__.py": "",
            "build_support/ops.py": """
            def get_extensions():
                from torch.utils.cpp_extension import CUDAExtension

                return [CUDAExtension("kernels._C", ["ops.cu"])]
            """,
        },
    ),
    TreeCase(
        name="in a helper loaded by file location",
        verdict="linked",
        shows=("pkg/_build.py:3",),
        files={
            "setup.py": """
            import importlib.util
            from pathlib import Path
            from setuptools import setup

            HERE = Path(__file__).parent

            def load(name, path):
                spec = importlib.util.spec_from_file_location(name, path)
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                return module

            helper = load("_build", HERE / "pkg" / "_build.py")
            setup(name="kernels", ext_modules=helper.EXTENSIONS)
            """,
            "pkg/_build.py": """
            from torch.utils.cpp_extension import CppExtension

            EXTENSIONS = [CppExtension("pkg._C", ["ops.cpp"])]
            """,
        },
    ),
    TreeCase(
        name="helper run with exec",
        verdict="linked",
        says="CUDAExtension",
        files={
            "setup.py": """
            from setuptools import setup

            names = {}
            with open("extensions.py") as stream:
                exec(stream.read(), names)
            setup(name="kernels", ext_modules=names["ext_modules"])
            """,
            "extensions.py": """
            from torch.utils.cpp_extension import CUDAExtension
            ext_modules = [CUDAExtension("kernels._C", ["ops.cu"])]
            """,
        },
    ),
    TreeCase(
        name="discovered by name",
        verdict="linked",
        shows=("ops/softmax.py:5",),
        files={
            "setup.py": """
            import importlib
            import os
            import pkgutil
            from setuptools import setup

            modules = []
            folder = os.path.join(os.path.dirname(__file__), "ops")
            for _, name, _ in pkgutil.iter_modules([folder]):
                module = importlib.import_module(f"ops.{name}")
                for member in dir(module):
                    if member.endswith("Builder"):
                        modules.append(getattr(module, member)().build())
            setup(name="kernels", ext_modules=modules)
            """,
            "ops/__init__.py": "",
            "ops/softmax.py": """
            from torch.utils.cpp_extension import CUDAExtension as Ext

            class SoftmaxBuilder:
                def build(self):
                    return Ext("softmax", ["softmax.cu"])
            """,
        },
    ),
    TreeCase(
        name="plain Extension with torch libraries",
        verdict="linked",
        shows=("setup.py:5",),
        files={
            "setup.py": """
            import os, torch
            from setuptools import Extension, setup

            lib = os.path.join(os.path.dirname(torch.__file__), "lib")
            module = Extension(
                "kernels._C", ["ops.cpp"], library_dirs=[lib], libraries=["c10", "torch", "cudart"]
            )
            setup(name="kernels", ext_modules=[module])
            """,
        },
    ),
    TreeCase(
        name="plain Extension with torch on its link line",
        verdict="linked",
        shows=("setup.py:2",),
        files={
            "setup.py": """
            from setuptools import Extension, setup
            setup(name="k", ext_modules=[Extension("k._C", ["k.cpp"],
                  extra_link_args=["-Wl,--no-as-needed", "-ltorch_cpu", "-lm"])])
            """,
        },
    ),
    TreeCase(
        name="torch libraries added by the build command",
        verdict="linked",
        shows=("setup.py:9",),
        files={
            "setup.py": """
            from setuptools import Extension, setup
            from setuptools.command.build_ext import build_ext

            class Build(build_ext):
                def build_extension(self, ext):
                    ext.libraries.append("torch_python")
                    super().build_extension(ext)

            module = Extension("k._C", ["k.cpp"])
            setup(name="k", ext_modules=[module], cmdclass={"build_ext": Build})
            """,
        },
    ),
    TreeCase(
        name="setup() fed from a table with two stars",
        verdict="linked",
        shows=("setup.py:5",),
        files={
            "setup.py": """
            from setuptools import setup
            from torch.utils.cpp_extension import CUDAExtension

            options = dict(name="k", version="1")
            options["ext_modules"] = [CUDAExtension("k._C", ["k.cu"])]
            if __name__ == "__main__":
                setup(**options)
            """,
        },
    ),
    TreeCase(
        name="through functools.partial and getattr",
        verdict="linked",
        shows=("setup.py:7",),
        files={
            "setup.py": """
            import functools
            import importlib
            from setuptools import setup

            build = importlib.import_module("torch.utils.cpp_extension")
            make = functools.partial(getattr(build, "CUDAExtension"), extra_compile_args=["-O3"])
            setup(name="k", ext_modules=[make("k._C", sources=["k.cu"])])
            """,
        },
    ),
    TreeCase(
        name="a helper in the folder above the package's",
        verdict="linked",
        subdir="python",
        shows=("tools/ops.py:3",),
        files={
            "python/setup.py": """
            import os, sys
            sys.path.append(os.path.join(os.path.dirname(__file__), "..", "tools"))
            from setuptools import setup
            import ops
            setup(name="k", ext_modules=ops.modules)
            """,
            "tools/ops.py": """
            from torch.utils.cpp_extension import SyclExtension, CUDAExtension

            modules = [CUDAExtension("k._C", ["k.cu"])]
            """,
        },
    ),
)
