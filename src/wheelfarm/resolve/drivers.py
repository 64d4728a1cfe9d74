"""Which CUDA a driver runs: NVIDIA's release notes as a table, and the two compatibility rules.

Source: CUDA Toolkit Release Notes, "CUDA Toolkit and Corresponding Driver Versions"; CUDA
Compatibility guide, "Minor Version Compatibility" (machine code of a major runs on every driver of
that major from the first one on; PTX needs a driver at least as new as its toolkit).
"""

import re

from wheelfarm.model.versions import Minor
from wheelfarm.resolve.host import Fact, nothing

#: (first Linux driver, first Windows driver, CUDA), newest first.
_FIRST_DRIVERS: tuple[tuple[tuple[int, int], tuple[int, int], Minor], ...] = (
    ((615, 0), (615, 0), Minor(13, 4)),
    ((610, 43), (610, 0), Minor(13, 3)),
    ((595, 45), (595, 0), Minor(13, 2)),
    ((590, 44), (591, 0), Minor(13, 1)),
    ((580, 65), (580, 65), Minor(13, 0)),
    ((575, 51), (576, 2), Minor(12, 9)),
    ((570, 26), (570, 65), Minor(12, 8)),
    ((565, 57), (566, 3), Minor(12, 7)),
    ((560, 28), (560, 76), Minor(12, 6)),
    ((555, 42), (555, 85), Minor(12, 5)),
    ((550, 54), (551, 61), Minor(12, 4)),
    ((545, 23), (545, 84), Minor(12, 3)),
    ((535, 54), (536, 25), Minor(12, 2)),
    ((530, 30), (531, 14), Minor(12, 1)),
    ((525, 60), (527, 41), Minor(12, 0)),
    ((520, 61), (520, 6), Minor(11, 8)),
    ((515, 43), (516, 1), Minor(11, 7)),
    ((510, 39), (511, 23), Minor(11, 6)),
    ((495, 29), (496, 4), Minor(11, 5)),
    ((470, 42), (471, 11), Minor(11, 4)),
    ((465, 19), (465, 89), Minor(11, 3)),
    ((460, 27), (460, 82), Minor(11, 2)),
    ((455, 23), (456, 38), Minor(11, 1)),
    ((450, 36), (451, 22), Minor(11, 0)),
    ((440, 33), (441, 22), Minor(10, 2)),
    ((418, 39), (418, 96), Minor(10, 1)),
    ((410, 48), (411, 31), Minor(10, 0)),
    ((396, 26), (397, 44), Minor(9, 2)),
)
_DRIVER = r"(\d{3})(?:\.(\d+))?(?:\.\d+)*"


def is_driver_version(text: str) -> bool:
    """Return whether a text is a driver's version, such as ``570.133.07``; error text is not."""
    return re.fullmatch(_DRIVER, text, re.ASCII) is not None


def cuda_of_driver(driver: str, platform: str) -> Fact[Minor]:
    """Return the newest CUDA that a driver knows, by NVIDIA's table.

    For a branch alone (``570``) the branch's first release counts; for one newer than the table
    its last row does, which is a lower bound.
    """
    match = re.fullmatch(_DRIVER, driver, re.ASCII)
    if match is None:
        return nothing("driver table", f"{driver!r} is no driver version")
    release = (int(match[1]), 10**6 if match[2] is None else int(match[2]))
    windows = platform.startswith("windows")
    for linux_first, windows_first, cuda in _FIRST_DRIVERS:
        if release >= (windows_first if windows else linux_first):
            return Fact(cuda, f"driver {driver} by NVIDIA's table of first drivers")
    return nothing("driver table", f"driver {driver} is older than CUDA 9.2's")


def runs_machine_code(driver_cuda: Minor, toolkit: Minor) -> bool:
    """Return whether a driver runs SASS of a toolkit: any minor of a major not above its own."""
    return driver_cuda.major >= toolkit.major


def translates_ptx(driver_cuda: Minor, toolkit: Minor) -> bool:
    """Return whether a driver translates PTX of a toolkit: only of one not newer than itself."""
    return driver_cuda >= toolkit
