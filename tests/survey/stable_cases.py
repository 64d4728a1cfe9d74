"""Trees that keep to torch's stable ABI, and those that only seem to."""

from tests.survey.cmake_cases import SCIKIT
from tests.survey.tree_case import TreeCase

_STABLE_LIST = """
find_library(TORCH_CPU_LIB NAMES torch_cpu)
nanobind_add_module(_C src/bind.cpp)
target_link_libraries(_C PRIVATE ${TORCH_CPU_LIB})
install(TARGETS _C DESTINATION k)
"""

HEADER_CASES = (
    TreeCase(
        name="sources that include torch's stable headers alone",
        verdict="stable_abi",
        build_system="scikit-build-core",
        shows=("CMakeLists.txt:3",),
        says="stable headers",
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": _STABLE_LIST,
            "src/bind.cpp": """
            #include <vector>
            #include <torch/csrc/stable/library.h>
            // #include <torch/extension.h>
            #include "ops.hpp"
            """,
            "src/ops.hpp": "#include <torch/headeronly/core/ScalarType.h>\n",
        },
    ),
    TreeCase(
        name="a local header that includes the rest of torch",
        verdict="linked",
        build_system="scikit-build-core",
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": _STABLE_LIST,
            "src/bind.cpp": """
            #include <torch/csrc/stable/library.h>
            #include "ops.hpp"
            """,
            "include/k/ops.hpp": "# include <ATen/ATen.h>\n",
            "src/ops.hpp": '#include "k/ops.hpp"\n',
        },
    ),
    TreeCase(
        name="stable headers whose other source is not here",
        verdict="linked",
        build_system="scikit-build-core",
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": _STABLE_LIST.replace("bind.cpp", "bind.cpp src/made.cpp"),
            "src/bind.cpp": "#include <torch/csrc/stable/library.h>\n",
        },
    ),
)


FLAG_CASES = (
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
    TreeCase(
        name="the stable ABI by a definition",
        verdict="stable_abi",
        build_system="scikit-build-core",
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": """
            find_package(Torch REQUIRED)
            add_library(_C MODULE k.cu)
            target_compile_definitions(_C PRIVATE TORCH_TARGET_VERSION=0x020a000000000000)
            target_link_libraries(_C PRIVATE torch)
            install(TARGETS _C DESTINATION k)
            """,
        },
    ),
    TreeCase(
        name="Python's stable ABI is not torch's",
        verdict="linked",
        build_system="scikit-build-core",
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": """
            find_package(Torch REQUIRED)
            Python_add_library(_C MODULE USE_SABI 3.9 k.cu)
            target_compile_definitions(_C PRIVATE Py_LIMITED_API=0x03090000)
            target_link_libraries(_C PRIVATE torch)
            install(TARGETS _C DESTINATION k)
            """,
        },
    ),
    TreeCase(
        name="one target stable, one not",
        verdict="mixed",
        build_system="scikit-build-core",
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": """
            add_library(_C MODULE k.cu)
            target_compile_definitions(_C PRIVATE TORCH_TARGET_VERSION=1)
            add_library(_D MODULE d.cu)
            target_link_libraries(_C PRIVATE torch)
            target_link_libraries(_D PRIVATE torch)
            install(TARGETS _C _D DESTINATION k)
            """,
        },
    ),
)
