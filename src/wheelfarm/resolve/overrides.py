"""The facts of a host that a flag or an environment variable may state; light, for ``--help``."""

from collections.abc import Mapping

from wheelfarm.values import value


@value
class Override:
    """One fact that a flag or an environment variable states instead of the machine."""

    option: str
    variable: str
    help: str


#: Every fact that can be stated; the key is the name of the option's value.
OVERRIDES: Mapping[str, Override] = {
    "python_version": Override(
        option="--python-version",
        variable="WHEELFARM_PYTHON_VERSION",
        help="Python of the target: 3.11, 3.13t",
    ),
    "platform": Override(
        option="--platform",
        variable="WHEELFARM_PLATFORM",
        help="platform of the target: linux_x86_64, linux_aarch64, windows_amd64",
    ),
    "libc": Override(
        option="--libc", variable="WHEELFARM_LIBC", help="C library: 2.28, or 'musl 1.2'"
    ),
    "torch": Override(
        option="--torch",
        variable="WHEELFARM_TORCH",
        help="torch of the target with its label: 2.14.1+cu130; 'none' for no torch",
    ),
    "accelerator": Override(
        option="--accelerator",
        variable="WHEELFARM_ACCELERATOR",
        help="what torch was built for, where its version does not say: cu124, rocm7.0, cpu",
    ),
    "cxx_abi": Override(
        option="--cxx-abi", variable="WHEELFARM_CXX_ABI", help="torch's C++ ABI: 0 or 1"
    ),
    "backend": Override(
        option="--backend",
        variable="WHEELFARM_BACKEND",
        help="accelerator: cuda, rocm, xpu, mps, cpu",
    ),
    "gpu": Override(
        option="--gpu",
        variable="WHEELFARM_GPU",
        help="compute capabilities of the target's GPUs: 8.6, or 8.6,12.0; 'none' for no GPU",
    ),
    "driver": Override(
        option="--driver",
        variable="WHEELFARM_DRIVER",
        help="NVIDIA driver of the target: 570, or 570.133.07",
    ),
    "driver_cuda": Override(
        option="--driver-cuda",
        variable="WHEELFARM_DRIVER_CUDA",
        help="newest CUDA that the target's driver knows: 12.8",
    ),
}
