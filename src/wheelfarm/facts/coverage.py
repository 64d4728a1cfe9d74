"""Which GPUs a wheel's device code runs on: module by module, by NVIDIA's rules of compatibility.

A wheel runs on a GPU when every one of its CUDA modules has code for it: machine code of the same
major, or PTX that the driver can translate. A union over the modules would promise too much.
"""

from collections.abc import Iterable
from typing import Literal

from wheelfarm.facts.model import BinaryFacts
from wheelfarm.model.arch import Arch

_PARTS = (
    *((6, 0), (6, 1), (7, 0), (7, 5), (8, 0), (8, 6), (8, 7), (8, 9)),
    *((9, 0), (10, 0), (10, 3), (11, 0), (12, 0), (12, 1)),
)
#: GPUs in use, by compute capability (CUDA's list of GPUs); Tegra parts are among them.
KNOWN_GPUS = tuple(Arch(major, minor) for major, minor in _PARTS)

How = Literal["machine code", "PTX"]


def runs_on(module: BinaryFacts, gpu: Arch) -> How | None:
    """Return by what a module runs on a GPU, None where it does not."""
    if any(code.kind == "sass" and code.arch.sass_runs_on(gpu) for code in module.device_code):
        return "machine code"
    if any(code.kind == "ptx" and code.arch.ptx_runs_on(gpu) for code in module.device_code):
        return "PTX"
    return None


def wheel_runs_on(modules: Iterable[BinaryFacts], gpu: Arch) -> How | None:
    """Return by what all CUDA modules run on a GPU; the weakest decides, None where one does not.

    Modules without device code, and loose device files (of which a program picks the right one),
    have no say.
    """
    answers = [
        runs_on(module, gpu) for module in modules if module.device_code and module.kind != "device"
    ]
    if not answers or None in answers:
        return None
    return "PTX" if "PTX" in answers else "machine code"
