"""Which foreign names are extension classes, setup functions and build commands, and whose."""

from wheelfarm.survey.values import External, Klass

SETUP_FUNCTIONS = frozenset({
    "setuptools.setup", "distutils.core.setup", "setuptools._distutils.core.setup", "skbuild.setup",
    "numpy.distutils.core.setup",
})  # fmt: skip

#: torch's extension functions: what they return links torch's libraries.
TORCH_EXTENSIONS = frozenset({
    "torch.utils.cpp_extension.CUDAExtension", "torch.utils.cpp_extension.CppExtension",
    "torch.utils.cpp_extension.SyclExtension",
    "intel_extension_for_pytorch.xpu.cpp_extension.DPCPPExtension",
    "torch_npu.utils.cpp_extension.NpuExtension",
    "torch_musa.utils.musa_extension.MUSAExtension",
})  # fmt: skip

#: Extension classes that know nothing of torch.
PLAIN_EXTENSIONS = frozenset({
    "setuptools.Extension", "setuptools.extension.Extension", "distutils.extension.Extension",
    "distutils.core.Extension", "setuptools._distutils.extension.Extension",
    "Cython.Distutils.Extension", "Cython.Distutils.extension.Extension",
    "pybind11.setup_helpers.Pybind11Extension", "numpy.distutils.core.Extension",
    "numpy.distutils.extension.Extension", "setuptools.extension.Library", "setuptools.Library",
    "setuptools_rust.RustExtension", "setuptools_rust.RustBin", "setuptools_rust.Binding",
    "pccm.extension.PCCMExtension", "pccm.extension.CMakeExtension", "nanobind.Extension",
    "cmake_build_extension.CMakeExtension", "cmeel.Extension",
})  # fmt: skip

TORCH_BUILD = frozenset({
    "torch.utils.cpp_extension.BuildExtension",
})  # fmt: skip


def is_extension(name: str) -> bool:
    """Return whether a foreign name makes extension objects (its ``__init__`` counts)."""
    plain = name.removesuffix(".__init__")
    return plain in TORCH_EXTENSIONS or plain in PLAIN_EXTENSIONS


def factory_of(klass: Klass) -> str:
    """Return the foreign extension class behind a class of the tree, empty where there is none."""
    for ancestor in klass.lineage():
        if isinstance(ancestor, External) and is_extension(ancestor.name):
            return ancestor.name
    return ""
