"""A store of very many wheels, written without publishing each: for the index's size alone."""

import hashlib
from itertools import cycle, islice

from wheelfarm.index.model import Module, WheelEntry
from wheelfarm.index.shipped import ShippedTorch
from wheelfarm.model.arch import Arch
from wheelfarm.model.versions import Minor
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.store.directory import DirectoryStore
from wheelfarm.store.model import Record

_PLATFORMS = {
    "linux_x86_64": "manylinux_2_28_x86_64",
    "linux_aarch64": "manylinux_2_28_aarch64",
    "windows_amd64": "win_amd64",
}
_ARCHS = tuple(Arch.of_number(number) for number in (75, 80, 86, 90, 100, 120))


def fill_store(store: DirectoryStore, shipped: ShippedTorch, count: int, packages: int = 44) -> int:
    """Catalogue ``count`` wheels of ``packages`` packages, a quarter of them torch-free.

    The files themselves are folders alone, as an index looks at no more of them. Returns how many.
    """
    cells = [
        (str(accelerator), torch, platform, python)
        for (accelerator, torch, platform), pythons in sorted(shipped.table.items())
        for python in sorted(pythons)
    ]
    made = 0
    for number in range(packages):
        package = f"package-{number:02}"
        share = count // packages + (number < count % packages)
        records = {}
        for turn, cell in enumerate(islice(cycle(cells), share)):
            record = _record(package, turn // len(cells), cell, free=number % 4 == 3)
            records[record.filename] = record
            folder = store.root / "files" / package / record.sha256
            folder.mkdir(parents=True)
        store.replace(package, records, "")
        made += len(records)
    return made


def _record(package: str, release: int, cell: tuple[object, ...], *, free: bool) -> Record:
    accelerator, torch, platform, python = cell
    tag = f"cp{str(python).removeprefix('cp')}"
    name = (
        f"{package.replace('-', '_')}-1.{release}.0+{accelerator}torch{torch}"
        f"-{tag.removesuffix('t')}-{tag}-{_PLATFORMS[str(platform)]}.whl"
    )
    digest = hashlib.sha256(name.encode()).hexdigest()
    entry = WheelEntry(
        name=WheelName.parse(name),
        url=f"files/{package}/{digest}/{name}",
        sha256=digest,
        size=12_345_678,
        metadata_sha256=digest,
        requires_python=">=3.10",
        requires_dist=("numpy", "torch==2.14.*"),
        torch_axis="free" if free else "linked",
        cxx_abi=1,
        glibc=Minor(2, 28),
        toolkit=Minor(13, 0),
        needs_driver=True,
        libraries=("libcudart.so.13",),
        modules=tuple(
            Module(path=f"{package}/{stem}.so", sass=_ARCHS, ptx=_ARCHS[-1:])
            for stem in ("_C", "_D")
        ),
    )
    return Record(entry=entry, report=digest, uploaded="2026-01-01T00:00:00Z")
