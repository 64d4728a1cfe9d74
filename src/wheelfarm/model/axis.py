"""How a package depends on torch: what its binary links, and so how many wheels it needs."""

from typing import Literal, get_args

#: ``linked``: one wheel per torch minor. ``stable_abi``: links only torch's stable ABI, one wheel
#: per CUDA from a torch minor upward. ``abi_flag``: links no torch but bakes in its C++ ABI flag,
#: one wheel per CUDA and ABI. ``free``: no dependence at all.
TorchAxis = Literal["linked", "stable_abi", "abi_flag", "free"]
TORCH_AXES: tuple[TorchAxis, ...] = get_args(TorchAxis)

CxxAbi = Literal[0, 1]
