"""Fill in a host: what files and devices tell, and over it what flags and environment say."""

import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from packaging.version import Version

from wheelfarm import interpreter
from wheelfarm.errors import BadInputError, CouldNotLookError, UsageError
from wheelfarm.interpreter import Interpreter
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.arch import Arch
from wheelfarm.model.axis import CxxAbi
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor, parse_version
from wheelfarm.resolve import devices
from wheelfarm.resolve.backends import BACKENDS, backend_of
from wheelfarm.resolve.drivers import cuda_of_driver
from wheelfarm.resolve.host import Fact, Gpu, Host, Libc, nothing
from wheelfarm.resolve.overrides import OVERRIDES
from wheelfarm.resolve.torch_files import label_accelerator, official_cxx_abi, read_torch

T = TypeVar("T")

_PLATFORM = r"linux_[a-z0-9_]+|windows_(amd64|arm64|x86)|macosx_(arm64|x86_64)"


def detect(stated: Mapping[str, str | None], host_file: Path | None = None) -> Host:
    """Return the host's facts.

    ``stated`` holds the options of ``OVERRIDES`` and ``python`` (an interpreter's path). With
    ``host_file`` nothing of this machine is looked at. Raises BadInputError for an option that
    cannot be read, UsageError for two that exclude each other.
    """
    given = _Given(stated)
    if host_file is not None:
        if stated.get("python"):
            message = "--python is an interpreter of this machine, and --host names another machine"
            raise UsageError(message, hint="leave one of them away")
        from wheelfarm.reading import read_json

        host = Host.read(read_json(host_file), str(host_file))
    else:
        host = _look(given, stated.get("python"))
    for apply in (_state_python, _state_torch, _state_devices):
        host = apply(host, given)
    return _derive_backend(host, given)


class _Given:
    """What was stated, and by which flag or variable."""

    def __init__(self, stated: Mapping[str, str | None]) -> None:
        self._stated = stated

    def text(self, key: str) -> tuple[str, str] | None:
        override = OVERRIDES[key]
        value = self._stated.get(key)
        if value:
            return value, override.option
        value = os.environ.get(override.variable)
        return (value, override.variable) if value else None

    def fact(self, key: str, parse: Callable[[str], T]) -> Fact[T] | None:
        found = self.text(key)
        if found is None:
            return None
        text, source = found
        try:
            return Fact(parse(text), source)
        except BadInputError as error:
            message = f"{source}: {error.what}"
            raise BadInputError(message, hint=error.hint) from error


def _look(given: _Given, python: str | None) -> Host:
    executable, source = (python, "--python") if python else _default_python()
    if given.text("platform") is not None and not python:
        return _elsewhere(given)
    asked = interpreter.ask(executable)
    torch = read_torch(asked)
    found = devices.look(asked.platform)
    said = f"{asked.executable} ({source})"
    libc = _libc(asked)
    return Host(
        interpreter=Fact(str(asked.executable), source),
        python=Fact(asked.tag, said),
        python_version=Fact(asked.version, said),
        platform=Fact(asked.platform, said),
        libc=nothing(said, "no glibc and no musl") if libc is None else Fact(libc, said),
        torch=torch.version,
        torch_metadata=torch.metadata,
        cxx_abi=torch.cxx_abi,
        accelerator=torch.accelerator,
        backend=Fact("rocm", "/sys/class/kfd") if found.amd else nothing(),
        devices=found.state,
        gpus=found.gpus,
        driver=found.driver,
        driver_cuda=found.driver_cuda,
        visible_devices=found.visible,
        installed=asked.installed(),
        installed_source=said,
    )


def _default_python() -> tuple[str, str]:
    """Return the interpreter that is meant when none is named, and the words for why it is."""
    variable = os.environ.get("WHEELFARM_PYTHON")
    if variable:
        return variable, "WHEELFARM_PYTHON"
    environment = os.environ.get("VIRTUAL_ENV")
    if environment and (path := interpreter.python_of(Path(environment))).is_file():
        return str(path), "VIRTUAL_ENV"
    return sys.executable, "the running interpreter"


def _libc(asked: Interpreter) -> Libc | None:
    kind, _, version = asked.libc.partition(" ")
    if kind == "glibc" and version:
        return Libc(kind="glibc", version=Minor.of(Version(version)))
    return _musl(asked.executable)


def _musl(executable: Path) -> Libc | None:
    """Ask the loader that the interpreter names in its ELF header, as musl has no other way."""
    from wheelfarm.run import run

    try:
        with executable.open("rb") as stream:
            head = stream.read(4096)
    except OSError:
        return None
    loader = re.search(rb"/[\x21-\x7e]*ld-musl-[\x21-\x7e]+", head)
    if loader is None:
        return None
    try:
        completed = run([loader[0].decode()], check=False, timeout=10)
    except CouldNotLookError:
        return None
    version = re.search(r"Version (\d+)\.(\d+)", completed.stderr)
    if version is None:
        return None
    return Libc(kind="musl", version=Minor(int(version[1]), int(version[2])))


def _elsewhere(given: _Given) -> Host:
    """Return a host of which nothing is known: another machine, told by flags alone."""
    platform = given.text("platform")
    why = "another machine" if platform is None else f"another machine ({platform[1]})"
    unknown: Fact[Any] = nothing(why)
    return Host(
        interpreter=unknown,
        python=unknown,
        python_version=unknown,
        platform=unknown,
        libc=unknown,
        torch=unknown,
        torch_metadata=unknown,
        cxx_abi=unknown,
        accelerator=unknown,
        backend=unknown,
        devices=Fact("unknown", why),
        gpus=unknown,
        driver=unknown,
        driver_cuda=unknown,
        visible_devices=unknown,
        installed_source=why,
    )


def _state_python(host: Host, given: _Given) -> Host:
    facts: dict[str, Any] = {}
    python = given.fact("python_version", _python)
    if python is not None and python.value is not None:
        version = Version(python.value.dotted.rstrip("t"))
        facts |= {"python": python, "python_version": Fact(version, python.source)}
    if (platform := given.fact("platform", _platform)) is not None:
        facts["platform"] = platform
    if (libc := given.fact("libc", Libc.parse)) is not None:
        facts["libc"] = libc
    return host.with_facts(**facts)


def _platform(text: str) -> str:
    """Read a platform's word; BadInputError for the tag of a wheel, pixi's name and the like."""
    if re.fullmatch(_PLATFORM, text) is None:
        message = f"{text!r} is no platform"
        hint = "give linux_x86_64, linux_aarch64, windows_amd64, windows_arm64 or macosx_arm64"
        raise BadInputError(message, hint=hint)
    return text


def _python(text: str) -> PythonTag:
    number = text.rstrip("t")
    parts = number.split(".")
    return PythonTag.of_version(".".join(parts[:2]) + ("t" if text.endswith("t") else ""))


def _state_torch(host: Host, given: _Given) -> Host:
    facts: dict[str, Any] = {}
    stated = given.text("torch")
    if stated is not None and stated[0] == "none":
        why = f"{stated[1]} says so"
        gone: Fact[Any] = nothing(why)
        names = ("torch", "torch_metadata", "cxx_abi", "accelerator")
        return host.with_facts(**dict.fromkeys(names, gone))
    torch = given.fact("torch", lambda text: parse_version(text, "torch version"))
    accelerator = given.fact("accelerator", Accelerator.parse)
    if torch is not None and torch.value is not None:
        facts |= _stated_torch(torch.value, torch.source, host, accelerator)
    elif accelerator is not None:
        _check_label(host.torch.value, accelerator)
        facts["accelerator"] = accelerator
    if (abi := given.fact("cxx_abi", _cxx_abi)) is not None:
        facts["cxx_abi"] = abi
    return host.with_facts(**facts)


def _check_label(torch: Version | None, stated: Fact[Accelerator]) -> None:
    """Raise BadInputError where a torch's own label names another accelerator than is stated."""
    labelled = None if torch is None else label_accelerator(torch.local or "")
    if labelled is not None and stated.value is not None and labelled != stated.value:
        message = f"{stated.source} says {stated.value}, and torch {torch} is for {labelled}"
        raise BadInputError(message, hint="state one of them, or both alike")


def _stated_torch(
    torch: Version, source: str, host: Host, stated: Fact[Accelerator] | None
) -> dict[str, Any]:
    if stated is not None:
        _check_label(torch, stated)
    accelerator = label_accelerator(torch.local or "") if stated is None else stated.value
    if accelerator is None:
        message = f"{source}: {torch} does not say for which CUDA it is"
        hint = "write the label too: 2.14.1+cu130, or +cpu; or give --accelerator"
        raise BadInputError(message, hint=hint)
    platform = host.platform.value or ""
    return {
        "torch": Fact(torch, source),
        "torch_metadata": Fact(str(torch), source),
        "accelerator": Fact(accelerator, source),
        "cxx_abi": official_cxx_abi(torch, accelerator, platform)
        if platform.startswith("linux")
        else nothing(source),
    }


def _cxx_abi(text: str) -> CxxAbi:
    if text not in {"0", "1"}:
        message = f"{text!r} is no C++ ABI; expected 0 or 1"
        raise BadInputError(message)
    return 1 if text == "1" else 0


def _state_devices(host: Host, given: _Given) -> Host:
    facts: dict[str, Any] = {}
    gpus = given.fact("gpu", _gpus)
    if gpus is not None:
        facts["gpus"] = gpus
        facts["devices"] = Fact("present" if gpus.value else "none", gpus.source)
    driver = given.fact("driver", str)
    if driver is not None and driver.value is not None:
        cuda = cuda_of_driver(driver.value, host.platform.value or "linux")
        if cuda.value is None:
            message = f"{driver.source}: {cuda.problem}"
            raise BadInputError(message, hint="give it as 570 or 570.133.07")
        facts |= {"driver": driver, "driver_cuda": cuda}
    if (cuda_stated := given.fact("driver_cuda", Minor.parse)) is not None:
        facts["driver_cuda"] = cuda_stated
    return host.with_facts(**facts)


def _gpus(text: str) -> tuple[Gpu, ...]:
    if text == "none":
        return ()
    words = [word for word in text.replace(";", ",").split(",") if word.strip()]
    return tuple(Gpu(index=index, capability=Arch.parse(word)) for index, word in enumerate(words))


def _derive_backend(host: Host, given: _Given) -> Host:
    if (stated := given.fact("backend", _backend)) is not None:
        return host.with_facts(backend=stated)
    platform = host.platform.value or ""
    if host.accelerator.value is not None:
        word = backend_of(host.accelerator.value, platform)
        return host.with_facts(backend=Fact(word, f"torch: {host.accelerator.source}"))
    if host.devices.value in {"present", "broken"} and host.gpus.value:
        return host.with_facts(backend=Fact("cuda", host.gpus.source))
    if host.backend.value is not None:
        return host
    return host.with_facts(
        backend=_backend_of_nothing(platform, looked=host.devices.value == "none")
    )


def _backend_of_nothing(platform: str, *, looked: bool) -> Fact[str]:
    if platform.startswith("macosx_arm64"):
        return Fact("mps", "the platform")
    if looked:
        return Fact("cpu", "no torch and no GPU")
    return nothing("no torch, and no way to look for a GPU")


def _backend(text: str) -> str:
    if text not in BACKENDS:
        message = f"{text!r} is no backend; known are {', '.join(BACKENDS)}"
        raise BadInputError(message)
    return text
