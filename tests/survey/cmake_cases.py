"""Trees that CMake builds, by itself, from setup.py or from scikit-build-core."""

from tests.survey.tree_case import TreeCase

SCIKIT = """
[build-system]
requires = ["scikit-build-core", "torch"]
build-backend = "scikit_build_core.build"

[project]
name = "k"
version = "1"
"""

SUBMODULE = """
[submodule "engine"]
	path = third_party/engine
	url = https://example.org/engine
"""

SCIKIT_CASES = (
    TreeCase(
        name="find_package(Torch) in the same file",
        verdict="linked",
        build_system="scikit-build-core",
        shows=("CMakeLists.txt:5",),
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": """
            cmake_minimum_required(VERSION 3.26)
            project(k LANGUAGES CXX CUDA)
            find_package(Torch REQUIRED)
            add_library(_C MODULE k.cu)
            target_link_libraries(_C PRIVATE "${TORCH_LIBRARIES}")
            install(TARGETS _C DESTINATION k)
            """,
        },
    ),
    TreeCase(
        name="find_package(Torch) in an included file, the link in a subdirectory",
        verdict="linked",
        build_system="scikit-build-core",
        shows=("src/CMakeLists.txt:2",),
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": """
            project(k)
            list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_SOURCE_DIR}/cmake")
            include(dependencies)
            add_subdirectory(src)
            """,
            "cmake/dependencies.cmake": "find_package(Torch CONFIG REQUIRED)\n",
            "src/CMakeLists.txt": """
            pybind11_add_module(_C k.cpp)
            target_link_libraries(_C PRIVATE ${TORCH_LIBRARIES})
            install(TARGETS _C LIBRARY DESTINATION k)
            """,
        },
    ),
    TreeCase(
        name="torch by bare name without find_package",
        verdict="linked",
        build_system="scikit-build-core",
        shows=("CMakeLists.txt:4",),
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": """
            project(k)
            link_directories(${TORCH_LIB_DIR})
            add_library(_C SHARED k.cpp)
            target_link_libraries(_C torch torch_cpu c10)
            install(TARGETS _C DESTINATION k)
            """,
        },
    ),
    TreeCase(
        name="torch by a found library's variable",
        verdict="linked",
        build_system="scikit-build-core",
        shows=("CMakeLists.txt:4",),
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": """
            project(k)
            find_library(TORCH_PYTHON_LIBRARY NAMES torch_python PATHS ${TORCH_DIR}/lib)
            add_library(_C SHARED k.cpp)
            target_link_libraries(_C ${TORCH_PYTHON_LIBRARY})
            install(TARGETS _C DESTINATION k)
            """,
        },
    ),
    TreeCase(
        name="torch by a path of a library",
        verdict="linked",
        build_system="scikit-build-core",
        shows=("CMakeLists.txt:4",),
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": """
            execute_process(COMMAND python -c "import torch; print(torch.__path__[0])"
                            OUTPUT_VARIABLE TORCH_ROOT)
            add_library(_C SHARED k.cpp)
            target_link_libraries(_C ${TORCH_ROOT}/lib/libtorch.so ${TORCH_ROOT}/lib/libc10.so)
            install(TARGETS _C DESTINATION k)
            """,
        },
    ),
    TreeCase(
        name="a link inside a function applied to every target",
        verdict="linked",
        build_system="scikit-build-core",
        shows=("cmake/extension.cmake:4",),
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": """
            include(${CMAKE_CURRENT_LIST_DIR}/cmake/extension.cmake)
            foreach(name IN ITEMS one two)
              define_extension(${name} SOURCES ${name}.cu LIBRARIES CUDA::cublas)
            endforeach()
            """,
            "cmake/extension.cmake": """
            function(define_extension name)
              cmake_parse_arguments(ARG "" "DESTINATION" "SOURCES;LIBRARIES" ${ARGN})
              Python_add_library(${name} MODULE ${ARG_SOURCES})
              target_link_libraries(${name} PRIVATE torch ${ARG_LIBRARIES})
              install(TARGETS ${name} DESTINATION k)
            endfunction()
            """,
        },
    ),
    TreeCase(
        name="through a library of the project",
        verdict="linked",
        build_system="scikit-build-core",
        shows=("CMakeLists.txt:2",),
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": """
            add_library(core STATIC core.cpp)
            target_link_libraries(core PUBLIC $<$<BOOL:ON>:torch_cpu>)
            nanobind_add_module(_C bind.cpp)
            target_link_libraries(_C PRIVATE core)
            install(TARGETS _C DESTINATION k)
            """,
        },
    ),
    TreeCase(
        name="commented-out lines",
        verdict="free",
        build_system="scikit-build-core",
        shows=("CMakeLists.txt:5",),
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": """
            # find_package(Torch REQUIRED)
            #[[ find_package(Torch)
            target_link_libraries(_C ${TORCH_LIBRARIES}) ]]
            message(STATUS "find_package(Torch) is not used")
            add_library(_C SHARED k.cpp) # torch
            # target_link_libraries(_C torch)
            target_link_libraries(_C CUDA::cudart)
            install(TARGETS _C DESTINATION k)
            """,
        },
    ),
    TreeCase(
        name="a variable that nothing defines",
        verdict="free",
        build_system="scikit-build-core",
        says="nothing defines TORCH_LIBRARIES",
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": """
            add_library(_C SHARED k.cpp)
            target_link_libraries(_C CUDA::cudart ${TORCH_LIBRARIES})
            install(TARGETS _C DESTINATION k)
            """,
        },
    ),
    TreeCase(
        name="the same variable, defined by pyproject.toml",
        verdict="linked",
        build_system="scikit-build-core",
        files={
            "pyproject.toml": SCIKIT
            + '[tool.scikit-build.cmake.define]\nTORCH_LIBRARIES = "torch;c10"\n',
            "CMakeLists.txt": """
            add_library(_C SHARED k.cpp)
            target_link_libraries(_C CUDA::cudart ${TORCH_LIBRARIES})
            install(TARGETS _C DESTINATION k)
            """,
        },
    ),
    TreeCase(
        name="plain CMake over a CUDA library",
        verdict="free",
        build_system="scikit-build-core",
        shows=("native/CMakeLists.txt:2",),
        files={
            "pyproject.toml": SCIKIT + '[tool.scikit-build]\ncmake.source-dir = "native"\n',
            "native/CMakeLists.txt": """
            find_package(CUDAToolkit REQUIRED)
            add_library(k SHARED k.cu)
            target_link_libraries(k PRIVATE CUDA::cublas CUDA::cuda_driver)
            install(TARGETS k DESTINATION k/lib)
            """,
            "CMakeLists.txt": """
            find_package(Torch)
            add_library(o SHARED o.c)
            target_link_libraries(o torch)
            """,
        },
    ),
    TreeCase(
        name="torch in a test that is not installed",
        verdict="free",
        build_system="scikit-build-core",
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": """
            add_library(k SHARED k.cu)
            install(TARGETS k DESTINATION k)
            add_executable(k_test test.cpp)
            target_link_libraries(k_test k torch)
            """,
        },
    ),
    TreeCase(
        name="an option that is off",
        verdict="optional",
        build_system="scikit-build-core",
        condition="WITH_TORCH",
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": """
            option(WITH_TORCH "build the torch operators" OFF)
            add_library(k SHARED k.cu)
            install(TARGETS k DESTINATION k)
            if(WITH_TORCH)
              find_package(Torch REQUIRED)
              target_link_libraries(k ${TORCH_LIBRARIES})
            endif()
            """,
        },
    ),
    TreeCase(
        name="the option on",
        verdict="linked",
        build_system="scikit-build-core",
        files={
            "pyproject.toml": SCIKIT + "[tool.scikit-build.cmake.define]\nWITH_TORCH = true\n",
            "CMakeLists.txt": """
            option(WITH_TORCH "build the torch operators" OFF)
            add_library(k SHARED k.cu)
            install(TARGETS k DESTINATION k)
            if(WITH_TORCH)
              find_package(Torch REQUIRED)
              target_link_libraries(k ${TORCH_LIBRARIES})
            endif()
            """,
        },
    ),
    TreeCase(
        name="a Windows arm",
        verdict="optional",
        build_system="scikit-build-core",
        condition="WIN32",
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": """
            add_library(k SHARED k.cu)
            if(WIN32)
              target_link_libraries(k torch_cpu)
            else()
              target_link_libraries(k CUDA::cudart)
            endif()
            install(TARGETS k DESTINATION k)
            """,
        },
    ),
    TreeCase(
        name="torch's ABI flag without torch",
        verdict="abi_flag",
        build_system="scikit-build-core",
        shows=("CMakeLists.txt:5",),
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": """
            execute_process(
              COMMAND python -c "import torch; print(int(torch._C._GLIBCXX_USE_CXX11_ABI))"
              OUTPUT_VARIABLE ABI)
            add_compile_definitions(_GLIBCXX_USE_CXX11_ABI=${ABI})
            add_library(k SHARED k.cpp)
            target_link_libraries(k CUDA::cudart)
            install(TARGETS k DESTINATION k)
            """,
        },
    ),
    TreeCase(
        name="find_package(Torch) and nothing that links it",
        verdict="unknown",
        build_system="scikit-build-core",
        says="finds Torch",
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": """
            find_package(Torch REQUIRED)
            add_library(k SHARED k.cpp)
            install(TARGETS k DESTINATION k)
            """,
        },
    ),
    TreeCase(
        name="code in a git submodule that is absent",
        verdict="unknown",
        build_system="scikit-build-core",
        says="third_party/engine",
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": """
            add_subdirectory(third_party/engine)
            add_library(k SHARED k.cpp)
            target_link_libraries(k engine)
            install(TARGETS k DESTINATION k)
            """,
            ".gitmodules": SUBMODULE,
        },
    ),
    TreeCase(
        name="an absent submodule that is known to know no torch",
        verdict="free",
        build_system="scikit-build-core",
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": """
            add_subdirectory(third_party/pybind11)
            pybind11_add_module(k k.cpp)
            install(TARGETS k DESTINATION k)
            """,
        },
    ),
    TreeCase(
        name="a recursion that never ends",
        verdict="linked",
        build_system="scikit-build-core",
        files={
            "pyproject.toml": SCIKIT,
            "CMakeLists.txt": """
            add_library(k SHARED k.cpp)
            target_link_libraries(k torch)
            install(TARGETS k DESTINATION k)
            function(again)
              again()
            endfunction()
            again()
            """,
        },
    ),
)
