"""Trees built by setup.py: the idioms by which extensions reach setup(), and the decoys."""

from tests.survey.tree_case import TreeCase

PYPROJECT = (
    '[build-system]\nrequires = ["setuptools", "torch"]\nbuild-backend = "setuptools.build_meta"\n'
)

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
        name="py_limited_api is not torch's stable ABI",
        verdict="linked",
        shows=("setup.py:4",),
        files={
            "setup.py": """
            from setuptools import setup
            from torch.utils.cpp_extension import CUDAExtension, BuildExtension

            module = CUDAExtension("k._C", ["k.cu"], py_limited_api=True,
                                   extra_compile_args={"cxx": ["-DPy_LIMITED_API=0x03090000"]})
            setup(name="k", ext_modules=[module], cmdclass={"build_ext": BuildExtension},
                  options={"bdist_wheel": {"py_limited_api": "cp39"}})
            """,
        },
    ),
    TreeCase(
        name="TORCH_TARGET_VERSION is",
        verdict="stable_abi",
        shows=("setup.py:7",),
        files={
            "setup.py": """
            from setuptools import setup
            from torch.utils.cpp_extension import CUDAExtension, BuildExtension

            flags = ["-O3"]
            flags += ["-DTORCH_TARGET_VERSION=0x020a000000000000"]

            module = CUDAExtension("k._C", ["k.cu"], py_limited_api=True,
                                   extra_compile_args={"cxx": flags, "nvcc": flags})
            setup(name="k", ext_modules=[module], cmdclass={"build_ext": BuildExtension})
            """,
        },
    ),
    TreeCase(
        name="stable ABI by a macro",
        verdict="stable_abi",
        shows=("setup.py:4",),
        files={
            "setup.py": """
            from setuptools import setup
            from torch.utils.cpp_extension import CppExtension

            module = CppExtension("k._C", ["k.cpp"], define_macros=[("TORCH_STABLE_ONLY", None)])
            setup(name="k", ext_modules=[module])
            """,
        },
    ),
    TreeCase(
        name="one extension stable, one not",
        verdict="mixed",
        shows=("setup.py:4", "setup.py:5"),
        files={
            "setup.py": """
            from setuptools import setup
            from torch.utils.cpp_extension import CppExtension

            one = CppExtension("k._C", ["k.cpp"], extra_compile_args=["-DTORCH_TARGET_VERSION=1"])
            two = CppExtension("k._D", ["d.cpp"])
            setup(name="k", ext_modules=[one, two])
            """,
        },
    ),
)

DECOYS = (
    TreeCase(
        name="a class named BuildExtension that is setuptools' own",
        verdict="free",
        shows=("setup.py:5",),
        files={
            "setup.py": """
            from setuptools import Extension, setup
            from setuptools.command.build_ext import build_ext as BuildExtension

            CUDAExtension = Extension
            setup(name="k", ext_modules=[CUDAExtension("k._C", ["k.c"], libraries=["cudart"])],
                  cmdclass={"build_ext": BuildExtension})
            """,
        },
    ),
    TreeCase(
        name="a fork of cpp_extension that links only cudart and cuda and bakes in the ABI flag",
        verdict="abi_flag",
        shows=("forked/cpp_extension.py:5",),
        files={
            "setup.py": """
            from setuptools import setup
            from forked.cpp_extension import CUDAExtension, BuildExtension

            setup(name="k", ext_modules=[CUDAExtension("k._C", ["k.cu"])],
                  cmdclass={"build_ext": BuildExtension})
            """,
            "forked/__init__.py": "",
            "forked/cpp_extension.py": """
            import torch
            from setuptools import Extension
            from setuptools.command.build_ext import build_ext as BuildExtension
            def CUDAExtension(name, sources):
                return Extension(
                    name, sources, language="c++", libraries=["cudart", "cuda"],
                    extra_compile_args=[f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"],
                )
            """,
        },
    ),
    TreeCase(
        name="reading the ABI flag while linking all the same",
        verdict="linked",
        shows=("setup.py:6",),
        files={
            "setup.py": """
            import torch
            from setuptools import setup
            from torch.utils.cpp_extension import CUDAExtension

            abi = "-D_GLIBCXX_USE_CXX11_ABI=" + str(int(torch.compiled_with_cxx11_abi()))
            module = CUDAExtension("k._C", ["k.cu"], extra_compile_args=[abi])
            setup(name="k", ext_modules=[module])
            """,
        },
    ),
    TreeCase(
        name="the ABI flag read for a wheel's name alone",
        verdict="free",
        files={
            "setup.py": """
            import torch
            from setuptools import setup, Extension

            suffix = f"cxx11abi{str(torch._C._GLIBCXX_USE_CXX11_ABI).upper()}"
            setup(name="k", version=f"1+{suffix}", ext_modules=[Extension("k._C", ["k.c"])])
            """,
        },
    ),
    TreeCase(
        name="plain extensions that torch's BuildExtension compiles",
        verdict="abi_flag",
        shows=("setup.py:4",),
        files={
            "setup.py": """
            from setuptools import Extension, setup
            from torch.utils.cpp_extension import BuildExtension

            module = Extension("k._C", ["k.cpp"], libraries=["cuda"])
            setup(name="k", ext_modules=[module], cmdclass={"build_ext": BuildExtension})
            """,
        },
    ),
    TreeCase(
        name="run-time load()",
        verdict="free",
        shows=("setup.py:2",),
        files={
            "setup.py": """
            from setuptools import setup, find_packages
            setup(name="k", packages=find_packages(), package_data={"k": ["csrc/*"]})
            """,
            "k/__init__.py": """
            from torch.utils.cpp_extension import load
            _C = load("k", ["csrc/k.cu"], extra_cuda_cflags=["-O3"])
            """,
            "k/csrc/k.cu": "",
        },
    ),
    TreeCase(
        name="run-time load() in the setup script's own module",
        verdict="free",
        says="load()",
        files={
            "setup.py": """
            from setuptools import setup
            from torch.utils.cpp_extension import load_inline

            def check():
                load_inline("probe", cpp_sources="int f() { return 1; }")

            check()
            setup(name="k", py_modules=["k"])
            """,
        },
    ),
    TreeCase(
        name="torch only in requirements, extras, names and tests",
        verdict="free",
        shows=("setup.py:3",),
        files={
            "pyproject.toml": PYPROJECT,
            "setup.py": """
            from setuptools import Extension, setup
            torch_extension = "k._C"
            module = Extension(torch_extension, ["torch_ops.cpp"], libraries=["cublas"])
            setup(name="torch-k", install_requires=["torch>=2.4"], setup_requires=["torch"],
                  extras_require={"torch": ["torch"]}, ext_modules=[module])
            """,
            "tests/test_op.py": "from torch.utils.cpp_extension import CUDAExtension\n",
            "torch_k/__init__.py": "import torch\n",
        },
    ),
    TreeCase(
        name="CUDAExtension imported and not used",
        verdict="free",
        files={
            "setup.py": """
            from setuptools import setup, Extension
            from torch.utils.cpp_extension import CUDAExtension  # kept for old users

            # ext_modules = [CUDAExtension("k._C", ["k.cu"])]
            setup(name="k", ext_modules=[Extension("k._C", ["k.c"])])
            """,
        },
    ),
    TreeCase(
        name="a CMakeLists.txt that pip never uses",
        verdict="free",
        files={
            "setup.py": """
            from setuptools import setup
            setup(name="k", packages=["k"])
            """,
            "CMakeLists.txt": """
            find_package(Torch REQUIRED)
            add_library(k SHARED k.cpp)
            target_link_libraries(k ${TORCH_LIBRARIES})
            """,
        },
    ),
    TreeCase(
        name="the root is another package than the folder: the folder",
        verdict="free",
        subdir="python/light",
        shows=("python/light/setup.py:2",),
        files={
            "setup.py": """
            from setuptools import setup
            from torch.utils.cpp_extension import CUDAExtension
            setup(name="root", ext_modules=[CUDAExtension("root._C", ["r.cu"])])
            """,
            "python/light/setup.py": """
            from setuptools import setup
            setup(name="light", packages=["light"])
            """,
        },
    ),
    TreeCase(
        name="the root is another package than the folder: the root",
        verdict="linked",
        files={
            "setup.py": """
            from setuptools import setup
            from torch.utils.cpp_extension import CUDAExtension
            setup(name="root", ext_modules=[CUDAExtension("root._C", ["r.cu"])])
            """,
            "python/light/setup.py": """
            from setuptools import setup
            setup(name="light", packages=["light"])
            """,
        },
    ),
    TreeCase(
        name="a folder without build files below a root that has them",
        verdict="unknown",
        subdir="research",
        build_system="",
        files={"setup.py": "from setuptools import setup\nsetup()\n", "research/op.cu": ""},
    ),
    TreeCase(
        name="a local module called torch_utils is no torch",
        verdict="free",
        files={
            "setup.py": """
            from setuptools import setup
            from torch_utils import CUDAExtension
            setup(name="k", ext_modules=[CUDAExtension("k._C", ["k.c"])])
            """,
            "torch_utils.py": """
            from setuptools import Extension as CUDAExtension
            """,
        },
    ),
)

UNKNOWNS = (
    TreeCase(
        name="a script that is no Python",
        verdict="unknown",
        says="no Python",
        files={"setup.py": "print 'old'\nsetup(\n"},
    ),
    TreeCase(
        name="extensions from a module that is not in the tree",
        verdict="unknown",
        says="cannot be told",
        files={
            "setup.py": """
            from setuptools import setup
            from company_build import make_extensions
            setup(name="k", ext_modules=make_extensions("csrc"))
            """,
        },
    ),
    TreeCase(
        name="no call of setup()",
        verdict="unknown",
        says="no call",
        files={"setup.py": "import torch\n"},
    ),
    TreeCase(
        name="a build command that runs make",
        verdict="unknown",
        says="make",
        files={
            "setup.py": """
            import subprocess
            from setuptools import setup
            from setuptools.command.build_py import build_py

            class Build(build_py):
                def run(self):
                    subprocess.check_call(["make", "-C", "csrc"])
                    super().run()

            setup(name="k", cmdclass={"build_py": Build})
            """,
        },
    ),
    TreeCase(
        name="sources in a git submodule that is absent",
        verdict="unknown",
        files={
            "setup.py": """
            import glob
            from setuptools import setup
            from torch.utils.cpp_extension import CUDAExtension

            modules = []
            for source in glob.glob("third_party/kernels/src/*.cu"):
                modules.append(CUDAExtension(f"k.{source}", [source]))
            setup(name="k", ext_modules=modules)
            """,
            ".gitmodules": '[submodule "kernels"]\n\tpath = third_party/kernels\n\turl = https://example.org/k\n',
        },
    ),
    TreeCase(
        name="an extension whose glob finds no source",
        verdict="unknown",
        says="no source",
        files={
            "setup.py": """
            import glob
            from setuptools import setup
            from torch.utils.cpp_extension import CUDAExtension
            setup(name="k", ext_modules=[CUDAExtension("k._C", glob.glob("csrc/*.cu"))])
            """,
        },
    ),
)

CONDITIONS = (
    TreeCase(
        name="a setting that skips the build",
        verdict="linked",
        files={
            "setup.py": """
            import os
            from setuptools import setup

            modules = []
            if os.getenv("K_SKIP_CUDA_BUILD", "FALSE") != "TRUE":
                from torch.utils.cpp_extension import CUDAExtension
                modules.append(CUDAExtension("k._C", ["k.cu"]))
            setup(name="k", ext_modules=modules)
            """,
        },
        shows=("setup.py:7",),
    ),
    TreeCase(
        name="a setting that asks for the build",
        verdict="optional",
        condition="K_BUILD_OPS",
        shows=("setup.py:6",),
        files={
            "setup.py": """
            import os
            from setuptools import setup
            modules = []
            if int(os.environ.get("K_BUILD_OPS", "0")):
                from torch.utils.cpp_extension import CUDAExtension
                modules.append(CUDAExtension("k._C", ["k.cu"]))
            setup(name="k", ext_modules=modules)
            """,
        },
    ),
    TreeCase(
        name="a switch on the command line",
        verdict="optional",
        condition="--cuda_ext",
        files={
            "setup.py": """
            import sys
            from setuptools import setup
            from torch.utils.cpp_extension import CUDAExtension
            modules = []
            if "--cuda_ext" in sys.argv:
                sys.argv.remove("--cuda_ext")
                modules.append(CUDAExtension("k._C", ["k.cu"]))
            setup(name="k", ext_modules=modules)
            """,
        },
    ),
    TreeCase(
        name="a GPU gate that FORCE_CUDA opens",
        verdict="linked",
        files={
            "setup.py": """
            import os, torch
            from setuptools import setup
            from torch.utils.cpp_extension import CUDAExtension
            modules = []
            if torch.cuda.is_available() or os.getenv("FORCE_CUDA", "0") == "1":
                modules.append(CUDAExtension("k._C", ["k.cu"]))
            setup(name="k", ext_modules=modules)
            """,
        },
    ),
    TreeCase(
        name="a GPU gate that nothing opens",
        verdict="optional",
        condition="is_available",
        files={
            "setup.py": """
            import torch
            from setuptools import setup
            from torch.utils.cpp_extension import CUDAExtension
            modules = []
            if torch.cuda.is_available():
                modules.append(CUDAExtension("k._C", ["k.cu"]))
            setup(name="k", ext_modules=modules)
            """,
        },
    ),
    TreeCase(
        name="a GPU gate with a CPU extension behind it",
        verdict="linked",
        files={
            "setup.py": """
            import torch
            from setuptools import setup
            from torch.utils.cpp_extension import CppExtension, CUDAExtension
            if torch.cuda.is_available():
                module = CUDAExtension("k._C", ["k.cu"])
            else:
                module = CppExtension("k._C", ["k.cpp"])
            setup(name="k", ext_modules=[module])
            """,
        },
    ),
    TreeCase(
        name="no build at all without a GPU",
        verdict="linked",
        files={
            "setup.py": """
            import torch
            from setuptools import setup
            from torch.utils.cpp_extension import CUDAExtension
            if not torch.cuda.is_available():
                raise RuntimeError("a GPU is needed")
            setup(name="k", ext_modules=[CUDAExtension("k._C", ["k.cu"])])
            """,
        },
    ),
    TreeCase(
        name="the toolkit is there on a farm",
        verdict="linked",
        files={
            "setup.py": """
            from setuptools import setup
            from torch.utils.cpp_extension import CUDA_HOME, CUDAExtension
            modules = [] if CUDA_HOME is None else [CUDAExtension("k._C", ["k.cu"])]
            setup(name="k", ext_modules=modules)
            """,
        },
    ),
    TreeCase(
        name="torch is there on a farm",
        verdict="linked",
        files={
            "setup.py": """
            from setuptools import setup
            try:
                from torch.utils.cpp_extension import CUDAExtension
                modules = [CUDAExtension("k._C", ["k.cu"])]
            except ImportError:
                modules = []
            setup(name="k", ext_modules=modules)
            """,
        },
    ),
    TreeCase(
        name="an early return",
        verdict="optional",
        condition="WITH_OPS",
        files={
            "setup.py": """
            import os
            from setuptools import setup

            def modules():
                if os.getenv("WITH_OPS", "0") == "0":
                    return []
                from torch.utils.cpp_extension import CUDAExtension
                return [CUDAExtension("k._C", ["k.cu"])]

            setup(name="k", ext_modules=modules())
            """,
        },
    ),
    TreeCase(
        name="a glob that ends up with no source",
        verdict="free",
        files={
            "setup.py": """
            from pathlib import Path
            from setuptools import setup
            from torch.utils.cpp_extension import CUDAExtension
            sources = sorted(str(path) for path in Path(__file__).parent.glob("csrc/**/*.cu"))
            modules = []
            if sources:
                modules.append(CUDAExtension("k._C", sources))
            setup(name="k", ext_modules=modules)
            """,
        },
    ),
    TreeCase(
        name="the same glob with a source",
        verdict="linked",
        files={
            "setup.py": """
            from pathlib import Path
            from setuptools import setup
            from torch.utils.cpp_extension import CUDAExtension
            sources = sorted(str(path) for path in Path(__file__).parent.glob("csrc/**/*.cu"))
            modules = []
            if sources:
                modules.append(CUDAExtension("k._C", sources))
            setup(name="k", ext_modules=modules)
            """,
            "csrc/deep/k.cu": "",
        },
    ),
    TreeCase(
        name="a platform arm",
        verdict="optional",
        condition="win32",
        files={
            "setup.py": """
            import sys
            from setuptools import setup
            modules = []
            if sys.platform == "win32":
                from torch.utils.cpp_extension import CUDAExtension
                modules.append(CUDAExtension("k._C", ["k.cu"]))
            setup(name="k", ext_modules=modules)
            """,
        },
    ),
    TreeCase(
        name="the Linux arm of two",
        verdict="linked",
        files={
            "setup.py": """
            import platform
            from setuptools import setup, Extension
            if platform.system() == "Linux":
                from torch.utils.cpp_extension import CUDAExtension
                module = CUDAExtension("k._C", ["k.cu"])
            else:
                module = Extension("k._C", ["k.c"])
            setup(name="k", ext_modules=[module])
            """,
        },
    ),
    TreeCase(
        name="a ROCm arm beside the CUDA one",
        verdict="linked",
        shows=("setup.py:7",),
        files={
            "setup.py": """
            import torch
            from setuptools import setup
            from torch.utils.cpp_extension import CUDAExtension
            if torch.version.hip:
                raise SystemExit("no ROCm")
            elif torch.version.cuda:
                modules = [CUDAExtension("k._C", ["k.cu"])]
            else:
                modules = []
            setup(name="k", ext_modules=modules)
            """,
        },
    ),
)
