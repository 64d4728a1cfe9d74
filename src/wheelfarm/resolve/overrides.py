"""The facts of a host that a flag or an environment variable may state; light, for ``--help``."""

from collections.abc import Mapping

from wheelfarm.values import value


@value
class Override:
    """One fact that a flag or an environment variable states instead of the machine."""

    option: str
    variable: str
    help: str


_HELP = {
    "python_version": "Python of the target: 3.11, 3.13t",
    "platform": "platform of the target: linux_x86_64, linux_aarch64, windows_amd64",
    "libc": "C library: 2.28, or 'musl 1.2'",
    "torch": "torch of the target with its label: 2.14.1+cu130; 'none' for no torch",
    "accelerator": "what torch was built for, where its version does not say: cu124, rocm7.0, cpu",
    "cxx_abi": "torch's C++ ABI: 0 or 1",
    "backend": "accelerator: cuda, rocm, xpu, mps, cpu",
    "gpu": "compute capabilities of the target's GPUs: 8.6, or 8.6,12.0; 'none' for no GPU",
    "driver": "NVIDIA driver of the target: 570, or 570.133.07",
    "driver_cuda": "newest CUDA that the target's driver knows: 12.8",
}

#: Every fact that can be stated; the key is the name of the option's value.
OVERRIDES: Mapping[str, Override] = {
    key: Override(
        option=f"--{key.replace('_', '-')}", variable=f"WHEELFARM_{key.upper()}", help=text
    )
    for key, text in _HELP.items()
}
