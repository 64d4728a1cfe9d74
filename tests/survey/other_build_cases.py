"""Trees of meson, bazel, kernel-builder, maturin, pccm and setup.py templates."""

from tests.survey.backend_cases import backend
from tests.survey.tree_case import TreeCase

OTHER_BUILDS = (
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
