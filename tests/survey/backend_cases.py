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
        name="a build command named in pyproject.toml",
        verdict="unknown",
        says="not followed",
        files={
            "pyproject.toml": backend(
                "setuptools.build_meta", '[tool.setuptools.cmdclass]\nbuild_ext = "b.Build"\n'
            )
        },
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
)
