"""Trees of setup.py that only look like torch, and those that cannot be told."""

from tests.survey.tree_case import TreeCase

PYPROJECT = (
    '[build-system]\nrequires = ["setuptools", "torch"]\nbuild-backend = "setuptools.build_meta"\n'
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
        name="cffi modules",
        verdict="unknown",
        says="cffi",
        files={
            "setup.py": """
            from setuptools import setup
            setup(name="k", cffi_modules=["build.py:ffi"])
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
