"""The installed torch, read from its files and never imported: version, toolkit, C++ ABI.

Torch from PyPI may carry no local label in its metadata; ``torch/version.py`` has it, and where
that file is not readable the ``nvidia-*`` requirements of the metadata tell the CUDA release.
"""

import re
from pathlib import Path

from packaging.version import InvalidVersion, Version

from wheelfarm.errors import BadInputError
from wheelfarm.interpreter import Interpreter
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.axis import CxxAbi
from wheelfarm.model.platform import PLATFORMS
from wheelfarm.model.versions import Minor
from wheelfarm.resolve.host import Fact, nothing
from wheelfarm.values import value

_TOOLKIT = (
    r"^Requires-Dist:\s*(?:cuda-toolkit(?:\[[^\]]*\])?|nvidia-cuda-runtime(?:-cu\d+)?)"
    r"\s*\(?==\s*(\d+)\.(\d+)"
)
#: One function of libc10 that takes a std::string, as each of libstdc++'s two ABIs spells it.
_NEW_ABI = b"_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_string"
_OLD_ABI = b"_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"


@value
class TorchFiles:
    """The facts of an installed torch; every value None where there is no torch."""

    version: Fact[Version]
    metadata: Fact[str]
    accelerator: Fact[Accelerator]
    cxx_abi: Fact[CxxAbi]


def read_torch(interpreter: Interpreter) -> TorchFiles:
    """Return what the files of the interpreter's torch say."""
    info = interpreter.metadata_folder("torch")
    package = next((path / "torch" for path in interpreter.path if _is_torch(path)), None)
    if info is None and package is None:
        why = f"no torch on the path of {interpreter.executable}"
        return TorchFiles(
            version=nothing(why),
            metadata=nothing(why),
            accelerator=nothing(why),
            cxx_abi=nothing(why),
        )
    metadata = _metadata_version(info)
    stated = _read_version_file(package)
    version = _version(stated, metadata, package)
    accelerator = _accelerator(stated, version, info, package)
    return TorchFiles(
        version=version,
        metadata=metadata,
        accelerator=accelerator,
        cxx_abi=_cxx_abi(package, version.value, accelerator.value, interpreter.platform),
    )


def _is_torch(folder: Path) -> bool:
    return (folder / "torch" / "version.py").is_file()


def _metadata_version(info: Path | None) -> Fact[str]:
    if info is None:
        return nothing("torch has no metadata folder")
    found = re.search(r"^Version:\s*(\S+)", _text(info / "METADATA"), re.MULTILINE)
    if found is None:
        return Fact(info.name.removesuffix(".dist-info").partition("-")[2], str(info))
    return Fact(found[1], str(info / "METADATA"))


def _read_version_file(package: Path | None) -> dict[str, str]:
    if package is None:
        return {}
    from wheelfarm.facts.installed_torch import version_constants

    try:
        return version_constants(package / "version.py")
    except BadInputError:
        return {}


def _version(stated: dict[str, str], metadata: Fact[str], package: Path | None) -> Fact[Version]:
    text, source = metadata.value, metadata.source
    if "__version__" in stated:
        text, source = stated["__version__"], f"{package}/version.py"
    try:
        return Fact(Version(text or ""), source)
    except InvalidVersion:
        return nothing(source, f"{text!r} is no version that can be compared (PEP 440)")


def _accelerator(
    stated: dict[str, str], version: Fact[Version], info: Path | None, package: Path | None
) -> Fact[Accelerator]:
    if "__version__" in stated:
        return _stated_accelerator(stated, f"{package}/version.py")
    local = "" if version.value is None else version.value.local or ""
    if (found := label_accelerator(local)) is not None:
        return Fact(found, "the local label of torch's metadata")
    required = None if info is None else re.search(_TOOLKIT, _text(info / "METADATA"), re.MULTILINE)
    if required is not None:
        minor = Minor(int(required[1]), int(required[2]))
        return Fact(Accelerator.cuda(minor), "the NVIDIA wheels that torch's metadata requires")
    return nothing("torch's metadata", "neither a label nor a requirement tells its toolkit")


def _stated_accelerator(stated: dict[str, str], source: str) -> Fact[Accelerator]:
    if "cuda" in stated and (minor := _minor(stated["cuda"])) is not None:
        return Fact(Accelerator.cuda(minor), source)
    rocm = stated.get("rocm") or stated.get("hip")
    if rocm and (minor := _minor(rocm)) is not None:
        return Fact(Accelerator("rocm", minor.major, minor.minor), source)
    if "xpu" in stated:
        return Fact(Accelerator("xpu"), source)
    return Fact(Accelerator("cpu"), f"{source} names no toolkit")


def label_accelerator(local: str) -> Accelerator | None:
    """Return the accelerator that a torch's local label names: ``cu130``, ``cu128.nv``, ``cpu``."""
    found = re.match(r"(cu\d{2,4}|rocm\d+\.\d+|cpu|xpu)(?![a-z0-9])", local)
    return None if found is None else Accelerator.parse(found[1])


def _minor(text: str) -> Minor | None:
    found = re.match(r"(\d+)\.(\d+)", text)
    return None if found is None else Minor(int(found[1]), int(found[2]))


def _cxx_abi(
    package: Path | None,
    version: Version | None,
    accelerator: Accelerator | None,
    platform: str,
) -> Fact[CxxAbi]:
    if not platform.startswith("linux"):
        return nothing("only libstdc++ has two ABIs")
    library = None if package is None else package / "lib" / "libc10.so"
    if library is not None and (found := _abi_of_library(library)) is not None:
        return Fact(found, f"symbols of {library}")
    if version is None:
        return nothing("torch's version is not known")
    return official_cxx_abi(version, accelerator, platform)


def _abi_of_library(library: Path) -> CxxAbi | None:
    import mmap

    try:
        with (
            library.open("rb") as stream,
            mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as view,
        ):
            if view.find(_NEW_ABI) >= 0:
                return 1
            return 0 if view.find(_OLD_ABI) >= 0 else None
    except (OSError, ValueError):
        return None


def official_cxx_abi(
    version: Version, accelerator: Accelerator | None, platform: str
) -> Fact[CxxAbi]:
    """Return the C++ ABI of PyTorch's own Linux wheel of a release."""
    from wheelfarm.upstream.cxx_abi import cxx_abi

    known = next((each for each in PLATFORMS if each.identifier == platform), None)
    if known is None or accelerator is None:
        return nothing("PyTorch has no wheels for this platform")
    abi = cxx_abi(accelerator, Minor.of(version), known)
    return Fact(abi, "what PyTorch's wheels of this release have")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
