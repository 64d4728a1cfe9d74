"""Trees of setup.py whose torch extension hangs on a condition."""

from tests.survey.tree_case import TreeCase

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
        name="an extension in the handler alone",
        verdict="optional",
        condition="try block fails",
        shows=("setup.py:7",),
        files={
            "setup.py": """
            from setuptools import setup
            from torch.utils.cpp_extension import CUDAExtension
            try:
                import prebuilt_k
                modules = []
            except ImportError:
                modules = [CUDAExtension("k._C", ["k.cu"])]
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
