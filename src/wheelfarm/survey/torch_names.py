"""The names by which builds link torch, its stable ABI, or its C++ ABI flag; pure."""

import re
from collections.abc import Iterable

#: Libraries of torch, as one writes them behind ``-l`` or in ``libraries``.
LIBRARIES = frozenset({
    "torch", "torch_cpu", "torch_cuda", "torch_python", "torch_hip", "torch_xpu", "torch_library",
    "c10", "c10_cuda", "c10_hip", "c10_xpu", "caffe2", "torch::torch", "torch_cuda_cu",
    "torch_cuda_cpp", "torch_npu",
})  # fmt: skip

_FLAG = re.compile(
    r"(?:^|[\s,;=/])(?:-l(?::?lib)?|lib)(torch(?:_cpu|_cuda|_python|_hip|_xpu|_global_deps)?"
    r"|c10(?:_cuda|_hip|_xpu)?|caffe2)(?:\.so[.\d]*|\.lib|\.dylib|\.a)?(?=$|[\s,;])"
)

#: Macros that bind a build to torch's stable ABI alone.
_STABLE = re.compile(r"(?:\b|[-/]D)(?:TORCH_TARGET_VERSION|TORCH_STABLE_ONLY)\b")


def might_be_library(text: str) -> bool:
    """Return quickly whether a text can name one of torch's libraries at all."""
    return "torch" in text or "c10" in text or "caffe2" in text


def library(name: str) -> bool:
    """Return whether a library's name, path or linker flag is one of torch's."""
    text = name.strip()
    return text in LIBRARIES or bool(_FLAG.search(text))


def torch_library(names: Iterable[str]) -> str:
    """Return the first name that is one of torch's libraries, empty where there is none."""
    return next((name for name in names if library(name)), "")


def stable(texts: Iterable[str]) -> str:
    """Return the first flag that restricts a build to the stable ABI, empty where there is none."""
    return next((text for text in texts if _STABLE.search(text)), "")
