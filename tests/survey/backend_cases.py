"""Trees of other build systems: backends, meson, bazel, kernel-builder, pccm, templates."""

from tests.survey.tree_case import TreeCase


def backend(name: str, more: str = "") -> str:
    """Return a pyproject.toml that names a backend."""
    requires = name.partition(".")[0].replace("_", "-")
    return f'[build-system]\nrequires = ["{requires}", "torch"]\nbuild-backend = "{name}"\n{more}'


IN_TREE = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""

EXTENSION = '[tool.setuptools]\next-modules = [{name = "k", sources = ["k.c"]}]\n'
WITH_TORCH = EXTENSION.replace("}]", ', libraries = ["torch"]}]')

CASES = (
    TreeCase(
        name="nothing at all",
        verdict="unknown",
        build_system="",
        says="no build files",
        files={"README.md": "Our CUDAExtension needs find_package(Torch).\n", "k.cu": ""},
    ),
    TreeCase(
        name="a pyproject.toml that is no TOML",
        verdict="unknown",
        build_system="",
        says="cannot be read",
        files={"pyproject.toml": "[build-system\n", "setup.py": "from setuptools import setup\n"},
    ),
    TreeCase(
        name="only tool settings in pyproject.toml",
        verdict="unknown",
        build_system="",
        files={"pyproject.toml": "[tool.ruff]\nline-length = 99\n", "train.py": "import torch\n"},
    ),
    TreeCase(
        name="hatchling compiles nothing",
        verdict="free",
        build_system="hatchling",
        shows=("pyproject.toml:3",),
        files={
            "pyproject.toml": backend("hatchling.build"),
            "k/__init__.py": "from torch.utils.cpp_extension import load\n",
        },
    ),
    TreeCase(
        name="flit compiles nothing",
        verdict="free",
        build_system="flit_core",
        files={
            "pyproject.toml": backend("flit_core.buildapi"),
            "CMakeLists.txt": "find_package(Torch)\n",
        },
    ),
    TreeCase(
        name="hatchling with a build hook that makes a torch extension",
        verdict="linked",
        build_system="hatchling",
        shows=("hatch_build.py:6",),
        files={
            "pyproject.toml": backend("hatchling.build", "[tool.hatch.build.hooks.custom]\n"),
            "hatch_build.py": """
            from hatchling.builders.hooks.plugin.interface import BuildHookInterface

            class Hook(BuildHookInterface):
                def initialize(self, version, build_data):
                    from torch.utils.cpp_extension import CUDAExtension
                    module = CUDAExtension("k._C", ["k.cu"])
            """,
        },
    ),
    TreeCase(
        name="hatchling with a hook of another project",
        verdict="unknown",
        build_system="hatchling",
        files={"pyproject.toml": backend("hatchling.build", "[tool.hatch.build.hooks.cuda]\n")},
    ),
    TreeCase(
        name="a backend that is not known",
        verdict="unknown",
        build_system="company_build.api",
        says="not followed",
        files={"pyproject.toml": backend("company_build.api")},
    ),
    TreeCase(
        name="poetry with a build script",
        verdict="linked",
        build_system="poetry",
        files={
            "pyproject.toml": backend(
                "poetry.core.masonry.api", '[tool.poetry.build]\nscript = "build.py"\n'
            ),
            "build.py": """
            from torch.utils.cpp_extension import CppExtension, BuildExtension

            def build(setup_kwargs):
                setup_kwargs["ext_modules"] = [CppExtension("k._C", ["k.cpp"])]
            """,
        },
    ),
    TreeCase(
        name="setuptools' extension modules in pyproject.toml",
        verdict="free",
        files={"pyproject.toml": backend("setuptools.build_meta", EXTENSION)},
    ),
    TreeCase(
        name="the same with torch's libraries",
        verdict="linked",
        shows=("pyproject.toml:5",),
        files={"pyproject.toml": backend("setuptools.build_meta", WITH_TORCH)},
    ),
    TreeCase(
        name="setuptools without a setup.py",
        verdict="free",
        files={
            "pyproject.toml": backend("setuptools.build_meta"),
            "k/__init__.py": "import torch\n",
        },
    ),
    TreeCase(
        name="an in-tree backend around setuptools",
        verdict="linked",
        build_system="in-tree backend",
        shows=("setup.py:3",),
        files={
            "pyproject.toml": IN_TREE.replace(".", "tools"),
            "tools/backend.py": """
            from setuptools import build_meta as _inner
            from setuptools.build_meta import *

            def build_wheel(directory, settings=None, metadata=None):
                return _inner.build_wheel(directory, settings, metadata)
            """,
            "setup.py": """
            from setuptools import setup
            from torch.utils.cpp_extension import CUDAExtension
            setup(name="k", ext_modules=[CUDAExtension("k._C", ["k.cu"])])
            """,
        },
    ),
    TreeCase(
        name="an in-tree backend that copies files for run-time compilation",
        verdict="free",
        build_system="in-tree backend",
        files={
            "pyproject.toml": IN_TREE,
            "backend.py": """
            import os
            import shutil
            import subprocess
            from setuptools import build_meta as orig
            from setuptools.build_meta import *

            def _prepare():
                shutil.copytree("csrc", "k/data/csrc")
                if os.environ.get("BUILD_EXTRA", "0") == "1":
                    subprocess.check_call(["make", "-C", "extra"])

            def build_wheel(directory, settings=None, metadata=None):
                _prepare()
                return orig.build_wheel(directory, settings, metadata)
            """,
            "k/jit/cpp_ext.py": """
            import torch
            flags = [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"]
            ldflags = ["-lcudart", "-lcuda"]
            """,
        },
    ),
    TreeCase(
        name="an in-tree backend that runs a program of its own",
        verdict="unknown",
        build_system="in-tree backend",
        files={
            "pyproject.toml": IN_TREE,
            "backend.py": """
            import subprocess
            from setuptools.build_meta import *
            from setuptools import build_meta as orig

            def build_wheel(directory, settings=None, metadata=None):
                subprocess.check_call(["bazel", "build", "//k"])
                return orig.build_wheel(directory, settings, metadata)
            """,
        },
    ),
    TreeCase(
        name="an in-tree backend that wraps nothing known",
        verdict="unknown",
        build_system="in-tree backend",
        files={
            "pyproject.toml": IN_TREE,
            "backend.py": "def build_wheel(directory, *rest):\n    return 'k.whl'\n",
        },
    ),
    TreeCase(
        name="meson with torch",
        verdict="linked",
        build_system="meson-python",
        shows=("src/meson.build:2",),
        files={
            "pyproject.toml": backend("mesonpy"),
            "meson.build": """
            project('k', 'cpp')
            py = import('python').find_installation()
            torch_dep = dependency('Torch')
            subdir('src')
            """,
            "src/meson.build": """
            # the one extension
            py.extension_module(
              '_C', 'k.cpp',
              dependencies: [torch_dep],
              install: true)
            """,
        },
    ),
    TreeCase(
        name="meson with a found library of torch",
        verdict="linked",
        build_system="meson-python",
        files={
            "pyproject.toml": backend("mesonpy"),
            "meson.build": """
            cpp = meson.get_compiler('cpp')
            libs = [cpp.find_library('torch_cpu', dirs: torch_dir), cpp.find_library('c10')]
            deps = [libs, dependency('threads')]
            py.extension_module('_C', 'k.cpp', dependencies: deps)
            """,
        },
    ),
    TreeCase(
        name="meson without torch",
        verdict="free",
        build_system="meson-python",
        shows=("meson.build:3",),
        files={
            "pyproject.toml": backend("mesonpy"),
            "meson.build": """
            # torch_dep = dependency('Torch')
            cuda = dependency('cuda', version: '>=12', modules: ['cublas'])
            py.extension_module('_C', 'torch_like.cpp', dependencies: cuda, install: true)
            """,
        },
    ),
    TreeCase(
        name="meson behind an option that is off",
        verdict="optional",
        build_system="meson-python",
        condition="with_torch",
        files={
            "pyproject.toml": backend("mesonpy"),
            "meson.build": """
            py.extension_module('_base', 'base.cpp')
            if get_option('with_torch')
              py.extension_module('_C', 'k.cpp', dependencies: dependency('Torch'))
            endif
            """,
            "meson_options.txt": "option('with_torch', type: 'boolean', value: false)\n",
        },
    ),
    TreeCase(
        name="bazel with torch",
        verdict="linked",
        build_system="bazel",
        shows=("k/BUILD.bazel:4",),
        files={
            "MODULE.bazel": "bazel_dep(name = 'rules_cc')\n",
            "k/BUILD.bazel": """
            cc_binary(
                name = "_C.so",
                srcs = ["k.cpp"],
                deps = ["@pytorch//:torch"],
                linkshared = True,
            )
            """,
        },
    ),
    TreeCase(
        name="bazel with torch commented out",
        verdict="unknown",
        build_system="bazel",
        files={
            "WORKSPACE": "",
            "BUILD": 'cc_binary(\n    name = "k.so",\n    # deps = ["@pytorch//:torch"],\n)\n',
        },
    ),
    TreeCase(
        name="kernel-builder with a torch extension",
        verdict="linked",
        build_system="kernel-builder",
        shows=("build.toml:4",),
        files={
            "build.toml": """
            [general]
            name = "relu"

            [torch]
            src = ["torch-ext/binding.cpp"]

            [kernel.relu]
            backend = "cuda"
            depends = ["torch"]
            src = ["relu.cu"]
            """,
        },
    ),
    TreeCase(
        name="kernel-builder with the stable ABI",
        verdict="stable_abi",
        build_system="kernel-builder",
        files={
            "build.toml": """
            [general]
            name = "relu"
            [torch]
            stable-abi = true
            src = ["binding.cpp"]
            [kernel.relu]
            src = ["relu.cu"]
            """,
        },
    ),
    TreeCase(
        name="kernel-builder, universal",
        verdict="free",
        build_system="kernel-builder",
        files={
            "build.toml": '[general]\nname = "k"\nuniversal = true\n[torch]\nuniversal = true\n'
        },
    ),
    TreeCase(
        name="another tool's build.toml",
        verdict="unknown",
        build_system="",
        files={"build.toml": "[package]\nname = 'k'\n"},
    ),
    TreeCase(
        name="maturin without torch",
        verdict="free",
        build_system="maturin",
        files={
            "pyproject.toml": backend("maturin"),
            "Cargo.toml": '[package]\nname = "torch-k"\n[dependencies]\npyo3 = "0.24"\n',
        },
    ),
    TreeCase(
        name="maturin over the torch crate",
        verdict="linked",
        build_system="maturin",
        shows=("Cargo.toml:4",),
        files={
            "pyproject.toml": backend("maturin"),
            "Cargo.toml": '[package]\nname = "k"\n[dependencies]\ntch = "0.18"\n',
        },
    ),
    TreeCase(
        name="pccm as cumm builds",
        verdict="free",
        shows=("setup.py:12",),
        files={
            "setup.py": """
            import os
            import pccm
            from pccm.extension import ExtCallback, PCCMBuild, PCCMExtension
            from setuptools import find_packages, setup

            cmdclass = {"build_ext": PCCMBuild}
            if os.getenv("K_DISABLE_JIT", "1") == "1":
                from k.csrc.arrayref import ArrayPtr
                from k.tensorview_bind import TensorViewBind

                cus = [ArrayPtr(), TensorViewBind()]
                ext_modules = [PCCMExtension(cus, "k/core_cc", "k", std="c++17")]
            else:
                cmdclass, ext_modules = {}, []
            setup(name="k", packages=find_packages(), install_requires=["pccm"],
                  ext_modules=ext_modules, cmdclass=cmdclass)
            """,
            "k/__init__.py": "",
            "k/csrc/__init__.py": "",
            "k/csrc/arrayref.py": "class ArrayPtr:\n    pass\n",
            "k/tensorview_bind.py": "class TensorViewBind:\n    pass\n",
        },
    ),
    TreeCase(
        name="pccm as spconv builds: torch in the Python layer alone",
        verdict="free",
        files={
            "setup.py": """
            from pccm.extension import PCCMBuild, PCCMExtension
            from setuptools import setup
            from spk.core import SHUFFLE_UNITS

            setup(name="spk", ext_modules=[PCCMExtension(SHUFFLE_UNITS, "spk/core_cc", "spk")],
                  cmdclass={"build_ext": PCCMBuild}, install_requires=["cumm"])
            """,
            "spk/__init__.py": "",
            "spk/core.py": "SHUFFLE_UNITS = []\n",
            "spk/pytorch/__init__.py": "import torch\n",
        },
    ),
    TreeCase(
        name="a setup.py template with torch",
        verdict="linked",
        build_system="setup.py template",
        shows=("setup.py.in:4",),
        files={
            "setup.py.in": """
            from setuptools import setup
            from torch.utils.cpp_extension import CUDAExtension

            module = CUDAExtension("@PROJECT_NAME@._C", ["k.cu"], include_dirs=["${INCLUDE}"])
            setup(name="@PROJECT_NAME@", version="@VERSION@", ext_modules=[module])
            """,
        },
    ),
    TreeCase(
        name="a setup.py template without torch",
        verdict="unknown",
        build_system="setup.py template",
        files={"setup.py.in": 'from setuptools import setup\nsetup(name="@NAME@")\n'},
    ),
)
