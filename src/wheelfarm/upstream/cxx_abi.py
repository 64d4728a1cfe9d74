"""The C++ ABI of PyTorch's own wheels: a short rule, which the resolver asks at each start."""

from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.axis import CxxAbi
from wheelfarm.model.platform import Platform
from wheelfarm.model.versions import Minor

#: The torch whose Linux wheels are of both C++ ABIs.
_BOTH_ABIS = Minor(2, 6)
#: The first CUDA line whose Linux wheels of torch 2.6 use libstdc++'s new ABI.
_NEW_ABI_CUDA_OF_2_6 = Minor(12, 6)


def cxx_abi(accelerator: Accelerator, torch: Minor, platform: Platform) -> CxxAbi | None:
    """Return which libstdc++ ABI the official wheels of a torch use; None on Windows.

    Linux wheels before 2.6 use the old ABI (0) and from 2.7 on the new (1); 2.6 uses the new one on
    cu126 and on aarch64 (PyTorch 2.6 release notes).
    """
    if platform.system != "linux":
        return None
    if torch != _BOTH_ABIS:
        return 1 if torch > _BOTH_ABIS else 0
    version = accelerator.version
    newer = version is not None and version >= _NEW_ABI_CUDA_OF_2_6
    return 1 if newer or platform.machine == "aarch64" else 0
