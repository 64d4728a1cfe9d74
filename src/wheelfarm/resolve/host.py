"""What is known of the machine and environment that wheels are chosen for: facts with sources.

Values only; ``detect`` fills them in.
"""

from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar, get_args

from packaging.version import Version

from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.arch import Arch
from wheelfarm.model.axis import CxxAbi
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor, parse_version
from wheelfarm.reading import Reader
from wheelfarm.values import NOTHING, replace, value

T = TypeVar("T")

HOST_SCHEMA = "wheelfarm.host/1"

#: ``present``: devices were seen. ``none``: we looked, there is none. ``broken``: there is a device
#: whose driver does not answer. ``unknown``: we could not look.
DeviceState = Literal["present", "none", "broken", "unknown"]
DEVICE_STATES: tuple[DeviceState, ...] = get_args(DeviceState)


@value(kw_only=False)
class Fact(Generic[T]):
    """One value and where it was read; ``problem`` says why there is no value, or what is odd."""

    value: T | None
    source: str
    problem: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the fact as JSON has it; the value in its usual spelling."""
        document: dict[str, Any] = {"value": _plain(self.value), "source": self.source}
        if self.problem:
            document["problem"] = self.problem
        return document


def nothing(source: str = "", problem: str = "") -> "Fact[Any]":
    """Return the fact that nothing is known."""
    return Fact(None, source, problem)


@value
class Gpu:
    """One GPU: its number on the machine, its name where known, and its compute capability.

    ``capability`` is None where the GPU was seen but nothing told its capability.
    """

    index: int
    name: str = ""
    capability: Arch | None = None
    uuid: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the GPU as JSON has it."""
        return {
            "index": self.index,
            "name": self.name,
            "capability": None if self.capability is None else str(self.capability),
            "uuid": self.uuid,
        }

    def __str__(self) -> str:
        capability = "capability unknown" if self.capability is None else str(self.capability)
        return f"{self.name} ({capability})" if self.name else f"GPU {self.index} ({capability})"


@value
class Libc:
    """A C library: ``glibc`` or ``musl``, and its version."""

    kind: Literal["glibc", "musl"]
    version: Minor

    @classmethod
    def parse(cls, text: str) -> "Libc":
        """Read ``glibc 2.36``, ``musl 1.2`` or a glibc's bare ``2.36``."""
        words = text.split()
        kind: Literal["glibc", "musl"] = "musl" if words[:1] == ["musl"] else "glibc"
        return cls(kind=kind, version=Minor.parse(words[-1] if words else text))

    def __str__(self) -> str:
        return f"{self.kind} {self.version}"


@value
class Host:
    """The machine and environment that a choice is made for.

    ``python`` is the exact Python (``3.11``, ``3.13t``) and ``python_version`` its full version.
    ``platform`` is a cell's platform word (``linux_x86_64``) or a foreign one (``macosx_arm64``).
    ``torch`` is the version that torch's own files state, with its local label;
    ``torch_metadata`` is what the installed metadata says, which may lack the label.
    ``accelerator`` is torch's toolkit (``cu130``); ``backend`` the word ``cuda``, ``rocm``, ...
    ``gpus`` are those in use, after ``CUDA_VISIBLE_DEVICES``; ``installed`` maps normalised
    project names to versions. ``saved`` marks facts that were read from a file: its interpreter is
    one of the machine that wrote it, whatever stands at that path here.
    """

    interpreter: Fact[str]
    python: Fact[PythonTag]
    python_version: Fact[Version]
    platform: Fact[str]
    libc: Fact[Libc]
    torch: Fact[Version]
    torch_metadata: Fact[str]
    cxx_abi: Fact[CxxAbi]
    accelerator: Fact[Accelerator]
    backend: Fact[str]
    devices: Fact[DeviceState]
    gpus: Fact[tuple[Gpu, ...]]
    driver: Fact[str]
    driver_cuda: Fact[Minor]
    visible_devices: Fact[str]
    installed: Mapping[str, str] = NOTHING
    installed_source: str = ""
    saved: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as ``wheelfarm host --json`` prints them."""
        return {
            **{name: getattr(self, name).to_dict() for name in FACTS},
            "installed": {"value": dict(self.installed), "source": self.installed_source},
        }

    @classmethod
    def read(cls, data: object, context: str) -> "Host":
        """Read a saved host document; BadInputError names every fault."""
        reader = Reader(data, context)
        reader.choice("schema", (HOST_SCHEMA,), HOST_SCHEMA)
        if not any(map(reader.has, FACTS)):
            reader.fault("holds no fact of a host; write one with `wheelfarm host --json`")
        facts = {name: _read_fact(reader, name) for name in FACTS}
        installed = reader.table("installed")
        versions: dict[str, str] = {}
        if installed is not None:
            versions = installed.string_map("value")
        reader.finish()
        source = f"host file {context}"
        return cls(**facts, installed=versions, installed_source=source, saved=True)

    def with_facts(self, **facts: Any) -> "Host":
        """Return a copy in which some facts are others."""
        return replace(self, **facts)

    @property
    def interpreter_here(self) -> str | None:
        """The path of the interpreter, where it is one of this machine."""
        return None if self.saved else self.interpreter.value

    @property
    def capabilities(self) -> tuple[Arch, ...]:
        """The compute capabilities of the GPUs in use, each once, sorted."""
        gpus = self.gpus.value or ()
        return tuple(sorted({gpu.capability for gpu in gpus if gpu.capability is not None}))


#: The names of all facts, in the order in which they are printed.
FACTS = (
    "interpreter",
    "python",
    "python_version",
    "platform",
    "libc",
    "torch",
    "torch_metadata",
    "cxx_abi",
    "accelerator",
    "backend",
    "devices",
    "gpus",
    "driver",
    "driver_cuda",
    "visible_devices",
)


def _plain(value: object) -> Any:
    if value is None or isinstance(value, int | str):
        return value
    if isinstance(value, tuple):
        return [gpu.to_dict() if isinstance(gpu, Gpu) else str(gpu) for gpu in value]
    return value.dotted if isinstance(value, PythonTag) else str(value)


def _read_fact(reader: Reader, name: str) -> Fact[Any]:
    table = reader.table(name)
    if table is None:
        return nothing("not in the host file")
    source = table.string("source", "host file")
    problem = table.string("problem", "")
    if table.raw("value") is None:
        return Fact(None, source, problem)
    return Fact(_VALUES.get(name, _text)(table), source, problem)


def _text(table: Reader) -> Any:
    return table.string("value")


def _gpus(table: Reader) -> tuple[Gpu, ...]:
    return tuple(
        Gpu(
            index=gpu.integer("index", 0),
            name=gpu.string("name", ""),
            capability=gpu.parsed("capability", Arch.parse),
            uuid=gpu.string("uuid", ""),
        )
        for gpu in table.tables("value")
    )


def _abi(table: Reader) -> CxxAbi | None:
    number = table.integer("value")
    return 0 if number == 0 else 1 if number == 1 else None


_VALUES: dict[str, Any] = {
    "python": lambda table: table.parsed("value", PythonTag.of_version),
    "python_version": lambda table: table.parsed("value", parse_version),
    "libc": lambda table: table.parsed("value", Libc.parse),
    "torch": lambda table: table.parsed("value", parse_version),
    "cxx_abi": _abi,
    "accelerator": lambda table: table.parsed("value", Accelerator.parse),
    "devices": lambda table: table.choice("value", DEVICE_STATES),
    "gpus": _gpus,
    "driver_cuda": lambda table: table.parsed("value", Minor.parse),
}
