"""GPUs and driver from the kernel's files: /proc, /sys and the device tree (Jetson families).

Read under a root folder, so that another machine's files can be looked at. These files tell that
there is a GPU and which driver runs it; only the device tree tells a compute capability.
"""

import re
from pathlib import Path

from wheelfarm.model.arch import Arch
from wheelfarm.resolve.host import Gpu
from wheelfarm.values import value

_NVIDIA = "0x10de"
_DISPLAY_CLASSES = ("0x0300", "0x0302")
_NODES = ("nvidiactl", "dxg")
_KERNEL_MODULE = r"Kernel Module(?: for \S+)?\s+(\d{3}[0-9.]*)"
#: Device tree families of NVIDIA's system-on-chips, their capability and name.
_TEGRA = {
    b"nvidia,tegra210": (Arch(5, 3), "Tegra X1 (Jetson Nano, TX1)"),
    b"nvidia,tegra186": (Arch(6, 2), "Tegra X2 (Jetson TX2)"),
    b"nvidia,tegra194": (Arch(7, 2), "Xavier (Jetson AGX Xavier, Xavier NX)"),
    b"nvidia,tegra234": (Arch(8, 7), "Orin (Jetson AGX Orin, Orin NX, Orin Nano)"),
    b"nvidia,tegra264": (Arch(11, 0), "Thor (Jetson AGX Thor)"),
}


@value
class KernelFiles:
    """What the kernel's files tell: GPUs, the loaded driver, and whether they could be read.

    ``nodes`` is whether there is a device file through which a driver would be spoken to, that of
    Windows' subsystem included, where the GPU is on no bus.
    """

    readable: bool
    gpus: tuple[Gpu, ...]
    driver: str
    driver_source: str
    amd: bool
    nodes: bool

    @property
    def rules_out_nvidia(self) -> bool:
        """Whether no driver of NVIDIA's can have anything to tell here."""
        return self.readable and not (self.gpus or self.driver or self.nodes)


def look(root: Path) -> KernelFiles:
    """Return what /proc and /sys under ``root`` tell."""
    tegra = _device_tree(root)
    pci = root / "sys/bus/pci/devices"
    gpus = _proc_gpus(root) or _pci_gpus(pci)
    driver, source = _driver(root)
    return KernelFiles(
        readable=pci.is_dir() or tegra is not None or (root / "proc/driver/nvidia").is_dir(),
        gpus=gpus if tegra is None else (tegra,),
        driver=driver,
        driver_source=source,
        nodes=any((root / "dev" / name).exists() for name in _NODES),
        amd=(root / "sys/class/kfd/kfd/topology/nodes").is_dir() and _has_amd_gpu(root),
    )


def _driver(root: Path) -> tuple[str, str]:
    path = root / "proc/driver/nvidia/version"
    if text := _text(path):
        found = re.search(_KERNEL_MODULE, text)
        if found is not None:
            return found[1], str(path)
    path = root / "sys/module/nvidia/version"
    text = _text(path).strip()
    known = text and re.fullmatch(r"\d{3}[0-9.]*", text)
    return (text, str(path)) if known else ("", "")


def _proc_gpus(root: Path) -> tuple[Gpu, ...]:
    folder = root / "proc/driver/nvidia/gpus"
    if not folder.is_dir():
        return ()
    gpus = []
    for index, entry in enumerate(sorted(folder.iterdir())):
        text = _text(entry / "information")
        name = re.search(r"^Model:\s*(.+?)\s*$", text, re.MULTILINE)
        uuid = re.search(r"^GPU UUID:\s*(GPU-[0-9a-f-]+)\s*$", text, re.MULTILINE)
        gpus.append(
            Gpu(
                index=index,
                name="" if name is None else name[1],
                uuid="" if uuid is None else uuid[1],
            )
        )
    return tuple(gpus)


def _pci_gpus(pci: Path) -> tuple[Gpu, ...]:
    if not pci.is_dir():
        return ()
    slots = [
        entry
        for entry in sorted(pci.iterdir())
        if _text(entry / "vendor").strip() == _NVIDIA
        and _text(entry / "class").strip().startswith(_DISPLAY_CLASSES)
    ]
    return tuple(
        Gpu(index=index, name=f"NVIDIA device {_text(entry / 'device').strip()}")
        for index, entry in enumerate(slots)
    )


def _device_tree(root: Path) -> Gpu | None:
    for path in ("proc/device-tree/compatible", "sys/firmware/devicetree/base/compatible"):
        try:
            words = (root / path).read_bytes().split(b"\0")
        except OSError:
            continue
        for word, (capability, name) in _TEGRA.items():
            if word in words:
                return Gpu(index=0, name=name, capability=capability)
    return None


def _has_amd_gpu(root: Path) -> bool:
    nodes = root / "sys/class/kfd/kfd/topology/nodes"
    pattern = re.compile(r"^simd_count\s+[1-9]", re.MULTILINE)
    return any(pattern.search(_text(node / "properties")) for node in sorted(nodes.iterdir()))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
