"""A toolkit in, a folder of symbolic links that foreign build systems take as CUDA_HOME out.

NVIDIA's wheels have no ``lib64``, no unversioned library names and no stubs; the view has. nvcc
takes the folder that its link lies in as its top, so the view is nvcc's whole world. Nothing is
ever written into site-packages.
"""

import json
import re
from pathlib import Path

from wheelfarm import files
from wheelfarm.errors import BadInputError
from wheelfarm.toolkit.layout import Machine
from wheelfarm.toolkit.model import Toolkit

#: Raised when the layout of a view changes, so that an old one is made anew.
_FORMAT = 2
_RECORD = ".wheelfarm-view.json"
_VERSIONED = re.compile(r"(lib.+\.so)((?:\.\d+)+)", re.ASCII)


def make_view(toolkit: Toolkit, folder: Path, *, stub: Path | None = None) -> Path:
    """Make ``folder`` a CUDA_HOME of links into ``toolkit`` and return it.

    It has bin, include (CCCL below it), nvvm, lib64 with unversioned names, lib, ``lib64/stubs``
    and, on Linux, the same below ``targets``. ``stub`` is the file that stands for the driver there
    (``make_driver_stub``). A view that is already right is left as it is, so that a running
    compiler keeps its files. Raises BadInputError where something stands that is no view: that is
    never replaced.
    """
    record = json.dumps(_record(toolkit, stub), indent=2, sort_keys=True)
    known = folder / _RECORD
    if known.is_file() and known.read_text(encoding="utf-8") == record:
        return folder
    _refuse_foreign(folder)
    with files.locked(folder.parent / f".{folder.name}.lock"):
        if known.is_file() and known.read_text(encoding="utf-8") == record:
            return folder
        with files.replacing_folder(folder) as temporary:
            _fill(toolkit, temporary, stub)
            (temporary / _RECORD).write_text(record, encoding="utf-8")
    return folder


def _refuse_foreign(folder: Path) -> None:
    """Raise BadInputError for what we did not make, unless it is an empty folder."""
    if not folder.exists() and not folder.is_symlink():
        return
    if folder.is_dir() and ((folder / _RECORD).is_file() or not any(folder.iterdir())):
        return
    what = "a folder with other things in it" if folder.is_dir() else "no folder"
    message = f"{folder} is {what}, and would be lost"
    raise BadInputError(message, hint="name a new folder, such as one inside it")


def _record(toolkit: Toolkit, stub: Path | None) -> dict[str, object]:
    root = toolkit.root
    return {
        "format": _FORMAT,
        "root": str(root.path.resolve()),
        "folders": [str(folder.resolve()) for folder in root.folders],
        "version": str(toolkit.version),
        "distributions": {
            name: str(version)
            for name, version in root.distributions.items()
            if name.startswith(("nvidia-", "cuda-toolkit"))
        },
        "stub": None if stub is None else str(stub.resolve()),
    }


def _fill(toolkit: Toolkit, view: Path, stub: Path | None) -> None:
    root = toolkit.root
    (view / "bin").mkdir()
    for folder in root.bin_dirs:
        _link_entries(folder, view / "bin")
    (view / "include").mkdir()
    for folder in root.include_dirs:
        # CCCL's folder lies below include and is linked with it.
        if folder.parent not in root.include_dirs:
            _link_entries(folder, view / "include")
    for top in root.folders:
        if (top / "nvvm").is_dir() and not (view / "nvvm").exists():
            (view / "nvvm").symlink_to((top / "nvvm").resolve())
    library = view / "lib64"
    library.mkdir()
    for folder in root.library_dirs:
        _link_entries(folder, library)
    _link_unversioned(library)
    _link_stub(library, stub)
    (view / "lib").symlink_to("lib64")
    if root.system == "linux":
        # Where an installed toolkit has them in truth, and where Meson looks.
        target = view / "targets" / Machine.here().targets[0]
        target.mkdir(parents=True)
        for name, place in (("include", "include"), ("lib", "lib64")):
            (target / name).symlink_to(f"../../{place}")
    version = {"cuda": {"name": "CUDA SDK", "version": f"{toolkit.version}.0"}}
    (view / "version.json").write_text(json.dumps(version, indent=2), encoding="utf-8")


def _link_entries(source: Path, target: Path) -> None:
    """Link what lies in ``source`` into ``target``; folders of one name become one, first wins."""
    for entry in sorted(source.iterdir()):
        place = target / entry.name
        if entry.name in {"__init__.py", "__pycache__"}:
            continue
        if not place.is_symlink() and not place.exists():
            place.symlink_to(entry.resolve())
        elif entry.is_dir() and place.is_dir():
            if place.is_symlink():
                # Two wheels have a folder of this name: replace the link by a folder of links.
                first = place.resolve()
                place.unlink()
                place.mkdir()
                _link_entries(first, place)
            _link_entries(entry, place)


def _link_unversioned(library: Path) -> None:
    """Add ``libcudart.so`` beside ``libcudart.so.13``, which is all that the wheels have."""
    best: dict[str, str] = {}
    for name in sorted(path.name for path in library.iterdir()):
        match = _VERSIONED.fullmatch(name)
        if match is not None:
            known = best.get(match[1])
            if known is None or (name.count("."), name) < (known.count("."), known):
                best[match[1]] = name
    for plain, versioned in best.items():
        if not (library / plain).exists():
            (library / plain).symlink_to(versioned)


def _link_stub(library: Path, stub: Path | None) -> None:
    stubs = library / "stubs"
    if stubs.is_symlink() or (stub is None and stubs.exists()):
        return
    stubs.mkdir(exist_ok=True)
    if stub is not None:
        for name in ("libcuda.so", "libcuda.so.1"):
            (stubs / name).unlink(missing_ok=True)
            (stubs / name).symlink_to(stub.resolve())
