"""Trees whose CMake project is started by setup.py, or stands alone."""

from tests.survey.cmake_cases import SCIKIT
from tests.survey.tree_case import TreeCase

_COMMAND = """
import os
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext


class CMakeExtension(Extension):
    def __init__(self, name, sourcedir=""):
        super().__init__(name, sources=[])
        self.sourcedir = os.fspath(Path(sourcedir).resolve())


class CMakeBuild(build_ext):
    def build_extension(self, ext):
        args = [f"-DPYTHON_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=Release", *EXTRA]
        if "CMAKE_ARGS" in os.environ:
            args += os.environ["CMAKE_ARGS"].split()
        temp = Path(self.build_temp) / ext.name
        subprocess.run(["cmake", ext.sourcedir, *args], cwd=temp, check=True)
        subprocess.run(["cmake", "--build", "."], cwd=temp, check=True)


setup(name="k", ext_modules=[CMakeExtension("k", SOURCE)], cmdclass={"build_ext": CMakeBuild})
"""


def _command(source: str = "", extra: str = "[]") -> str:
    return f"SOURCE = {source!r}\nEXTRA = {extra}\n{_COMMAND}"


SETUP_CASES = (
    TreeCase(
        name="CMake started by setup.py, with torch",
        verdict="linked",
        shows=("CMakeLists.txt:3",),
        files={
            "setup.py": _command(),
            "CMakeLists.txt": """
            find_package(Torch REQUIRED)
            add_library(k MODULE k.cpp)
            target_link_libraries(k PRIVATE ${TORCH_LIBRARIES})
            """,
        },
    ),
    TreeCase(
        name="CMake started by setup.py, without torch",
        verdict="free",
        shows=("cpp/CMakeLists.txt:1",),
        files={
            "setup.py": _command("cpp"),
            "cpp/CMakeLists.txt": """
            add_library(k MODULE k.cpp)
            target_link_libraries(k PRIVATE CUDA::cudart)
            """,
            "CMakeLists.txt": "find_package(Torch)\n",
        },
    ),
    TreeCase(
        name="setup.py defines what CMake links",
        verdict="linked",
        files={
            "setup.py": _command(extra='["-DK_LIBS=torch;c10"]'),
            "CMakeLists.txt": """
            add_library(k MODULE k.cpp)
            target_link_libraries(k PRIVATE ${K_LIBS})
            """,
        },
    ),
    TreeCase(
        name="setup.py switches the option on",
        verdict="linked",
        files={
            "setup.py": _command(extra='["-DWITH_TORCH=ON"]'),
            "CMakeLists.txt": """
            option(WITH_TORCH "" OFF)
            add_library(k MODULE k.cpp)
            if(WITH_TORCH)
              target_link_libraries(k PRIVATE torch)
            endif()
            """,
        },
    ),
    TreeCase(
        name="CMake in the absent folder of a submodule",
        verdict="unknown",
        files={
            "setup.py": _command("engine"),
            ".gitmodules": '[submodule "engine"]\n\tpath = engine\n\turl = https://example.org/e\n',
        },
    ),
    TreeCase(
        name="scikit-build's setup()",
        verdict="linked",
        files={
            "setup.py": """
            from skbuild import setup
            setup(name="k", packages=["k"], cmake_source_dir="cpp", cmake_args=["-DWITH=ON"])
            """,
            "cpp/CMakeLists.txt": """
            add_library(k MODULE k.cpp)
            if(WITH)
              target_link_libraries(k torch)
            endif()
            """,
        },
    ),
)

PLAIN_CASES = (
    TreeCase(
        name="scikit-build-core that runs no CMake",
        verdict="free",
        build_system="scikit-build-core",
        files={"pyproject.toml": SCIKIT + "[tool.scikit-build]\nwheel.cmake = false\n"},
    ),
    TreeCase(
        name="CMake alone, with torch",
        verdict="linked",
        build_system="cmake",
        files={
            "CMakeLists.txt": """
            find_package(Torch)
            add_library(k SHARED k.cpp)
            target_link_libraries(k ${TORCH_LIBRARIES})
            """,
        },
    ),
    TreeCase(
        name="CMake that builds nothing",
        verdict="unknown",
        build_system="cmake",
        files={"CMakeLists.txt": "project(k)\n"},
    ),
)
