"""How a lock names torch and its family: exactly the installed one, or the chosen one's source.

Torch's minor does not pin its CUDA, so nothing that is written ever takes torch from PyPI for
another CUDA line than PyPI's: torch is pinned to what is installed, or comes from PyTorch's index.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from wheelfarm.errors import BadInputError, NegativeVerdictError
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.platform import Platform
from wheelfarm.reading import Reader, parse_json
from wheelfarm.resolve.host import Host
from wheelfarm.values import NOTHING, value

if TYPE_CHECKING:
    from wheelfarm.upstream.model import UpstreamFacts

FAMILY = ("torchvision", "torchaudio")
#: PyTorch's own index, one folder per accelerator; a mirror is named by the variable.
_TORCH_INDEX = "https://download.pytorch.org/whl"
_TORCH_INDEX_VARIABLE = "WHEELFARM_TORCH_INDEX"


@value
class TorchPin:
    """Torch as a lock names it.

    ``version`` is the text behind ``==``; ``index`` the address that has it, empty where PyPI has
    this very one (its metadata has no label); ``installed`` says that it must not be touched.
    ``family`` pairs torchvision and torchaudio with their versions.
    """

    version: str
    torch: Version
    accelerator: Accelerator | None
    index: str = ""
    installed: bool = False
    family: tuple[tuple[str, str], ...] = ()

    @property
    def requirement(self) -> str:
        """The pin as a requirement: ``torch==2.14.1+cu130``."""
        return f"torch=={self.version}"

    def requirements(self) -> tuple[str, ...]:
        """Return the pins of torch and its family."""
        return (self.requirement, *(f"{name}=={version}" for name, version in self.family))

    def missing(self, installed: Mapping[str, str]) -> tuple[str, ...]:
        """Return the pins of the family that an installed torch lacks; none of a chosen one."""
        if not self.installed:
            return ()
        return tuple(f"{name}=={version}" for name, version in self.family if name not in installed)


def installed_pin(host: Host, family: Mapping[str, SpecifierSet] = NOTHING) -> TorchPin | None:
    """Return the pin that keeps the installed torch exactly as it is; None without torch.

    The text is what torch's metadata says, since installers compare with that: pinned to
    ``2.14.1+cu130``, PyPI's torch of that very build would be replaced.
    """
    torch = host.torch.value
    if torch is None:
        return None
    text = host.torch_metadata.value or str(torch)
    return TorchPin(
        version=text,
        torch=torch,
        accelerator=host.accelerator.value,
        installed=host.interpreter.value is not None,
        index=torch_index(torch, host.accelerator.value) if "+" in text else "",
        family=_family(torch, family, host.installed),
    )


def chosen_pin(
    torch: Version,
    accelerator: Accelerator,
    host: Host,
    facts: "UpstreamFacts",
    family: Mapping[str, SpecifierSet] = NOTHING,
) -> TorchPin:
    """Return the pin of a torch that is to be installed, from PyPI only if PyPI's is this one."""
    platform = _platform(host)
    at_pypi = platform is not None and facts.pypi_accelerator(torch, platform) == accelerator
    label = "" if at_pypi else f"+{accelerator}"
    return TorchPin(
        version=f"{torch.public}{label}",
        torch=torch,
        accelerator=accelerator,
        index="" if at_pypi else torch_index(torch, accelerator),
        family=_family(torch, family, NOTHING),
    )


def torch_index(torch: Version, accelerator: Accelerator | None) -> str:
    """Return PyTorch's index for an accelerator (``.../whl/cu130``)."""
    base = os.environ.get(_TORCH_INDEX_VARIABLE) or _TORCH_INDEX
    word = torch.local if accelerator is None else str(accelerator)
    return f"{base.rstrip('/')}/{word or 'cpu'}"


def _platform(host: Host) -> Platform | None:
    try:
        return Platform.parse(host.platform.value or "")
    except BadInputError:
        return None


def _family(
    torch: Version, asked: Mapping[str, SpecifierSet], installed: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Return the family versions for those asked for; what is installed stays as it is.

    A version that the user names counts where none is known to belong to this torch.
    """
    found = []
    for name, specifier in sorted(asked.items()):
        exact = (each.version for each in specifier if each.operator == "==")
        named = next((version for version in exact if not version.endswith(".*")), "")
        version = installed.get(name) or family_version(name, torch, named)
        if version is None:
            message = f"{name} has no release for torch {torch.public}"
            raise NegativeVerdictError(message, hint="take another torch, or do without it")
        if not specifier.contains(version, prereleases=True):
            what = "is installed" if name in installed else f"belongs to torch {torch.public}"
            message = f"{name}{specifier} is asked for, and {name} {version} {what}"
            raise NegativeVerdictError(message, hint="ask for another version, or another torch")
        found.append((name, version))
    return tuple(found)


def family_version(name: str, torch: Version, named: str = "") -> str | None:
    """Return the version of torchvision or torchaudio that belongs to a torch release.

    None where that release has none. Of a torch that the table does not have, it is the one that is
    ``named``; NegativeVerdictError where none is.
    """
    from importlib.resources import files

    text = files("wheelfarm.resolve").joinpath("data/family_pins.json").read_text("utf-8")
    reader = Reader(parse_json(text, "family_pins.json"), "family_pins.json")
    reader.string("schema")
    pins = reader.table("pins")
    rows = None if pins is None else pins.raw(name)
    key = torch.base_version
    if not isinstance(rows, dict) or key not in rows:
        if named:
            return named
        message = f"it is not known which {name} belongs to torch {key}"
        raise NegativeVerdictError(message, hint=f"name it: {name}==VERSION")
    version = rows[key]
    return version if isinstance(version, str) else None
