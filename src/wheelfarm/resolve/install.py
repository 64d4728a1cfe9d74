"""Install an answer with pip or uv, in two steps that cannot replace torch.

First what the wheels require besides, from the installer's own index, under constraints that pin
every project that is installed now to its very version; so an installer that would have to replace
torch (or move anything else) fails before it changes anything, and names the conflict. Then the
wheels themselves, without their requirements, by address and hash.
"""

import os
import sys
import tempfile
from pathlib import Path

from wheelfarm import interpreter
from wheelfarm.errors import BadInputError, BuildError, CouldNotLookError
from wheelfarm.resolve.host import Host
from wheelfarm.resolve.needs import Need
from wheelfarm.resolve.resolution import Resolution
from wheelfarm.resolve.torch_pin import FAMILY
from wheelfarm.resolve.writers.requirements import requirement as requirement_of
from wheelfarm.values import value

_PIP = ("-m", "pip")
_QUIET = ("--disable-pip-version-check", "--no-input")


@value
class InstallPlan:
    """What is installed: a chosen torch, others' projects, then wheels; all constrained.

    ``tool`` is the installer's word and then the command; ``torch`` is empty where it stays.
    """

    tool: tuple[str, ...]
    python: str
    torch: tuple[str, ...]
    others: tuple[str, ...]
    wheels: tuple[str, ...]
    constraints: tuple[str, ...]
    only_binary: tuple[str, ...]

    def lines(self) -> list[str]:
        """Return the plan in words; a dry run and the real one print the same."""
        head = f"into {self.python} with {self.tool[0]}:"
        kept = [f"  keep {text}" for text in self.constraints if text.startswith("torch==")]
        chosen = [f"  install {' '.join(self.torch)}"] if self.torch else []
        return [
            head,
            *kept,
            *chosen,
            *(f"  require {text}" for text in self.others),
            *(f"  install {text}" for text in self.wheels),
        ]


def plan(resolution: Resolution, *, tool: str | None) -> InstallPlan:
    """Return what an installation does; nothing is changed yet.

    Of what the index serves no source is ever built. Raises BadInputError where the host is
    another machine.
    """
    host = resolution.host
    if host.interpreter.value is None:
        message = "an answer for another machine cannot be installed here"
        raise BadInputError(message, hint="write a lock instead: --format requirements")
    pin = resolution.torch
    torch: tuple[str, ...] = ()
    if pin is not None and not pin.installed:
        torch = (*pin.requirements(), *(("--index-url", pin.index) if pin.index else ()))
    chosen = {choice.candidate.package for choice in resolution.choices}
    others: set[str] = set()
    for choice in resolution.choices:
        for requirement in choice.outside:
            if not _satisfied(requirement, host):
                others.add(requirement.unconditional)
    return InstallPlan(
        tool=_installer(host.interpreter.value, tool),
        python=host.interpreter.value,
        others=tuple(sorted(others)),
        wheels=tuple(requirement_of(choice.candidate) for choice in resolution.choices),
        torch=torch,
        constraints=tuple(
            f"{name}=={version}"
            for name, version in sorted(host.installed.items())
            if name not in chosen and not (torch and _comes_with_torch(name))
        ),
        only_binary=tuple(sorted({*resolution.served, *chosen})),
    )


def _comes_with_torch(name: str) -> bool:
    """Return whether a project is torch, of its family or among what it brings."""
    if name in {"torch", "triton", "cuda-toolkit", "cuda-bindings", *FAMILY}:
        return True
    return name.startswith("nvidia-")


def _satisfied(requirement: Need, host: Host) -> bool:
    version = host.installed.get(requirement.name)
    if version is None or requirement.url or requirement.extras:
        return False
    return requirement.specifier.contains(version, prereleases=True)


def _installer(python: str, tool: str | None) -> tuple[str, ...]:
    """Return the words that start an installer for the target: its own pip, else uv, else pip."""
    has_pip = interpreter.ask(python).metadata_folder("pip") is not None
    if tool != "uv" and has_pip:
        return ("pip", python, *_PIP, "install", *_QUIET)
    uv = _uv()
    if tool != "pip" and uv is not None:
        return ("uv", uv, "pip", "install", "--python", python)
    if tool != "uv" and interpreter.here().metadata_folder("pip") is not None:
        return ("pip", sys.executable, *_PIP, "--python", python, "install", *_QUIET)
    message = f"there is no {tool or 'pip and no uv'} to install with"
    raise CouldNotLookError(message, hint=f"install pip into {python}, or uv")


def _uv() -> str | None:
    from shutil import which

    return which("uv") or which("uv", path=str(Path(sys.executable).parent))


def install(planned: InstallPlan) -> None:
    """Do what was planned; whether torch is still what it was is looked at in the end.

    Raises ProgramFailedError with the installer's own words, BuildError where torch changed.
    """
    before = _torch(planned.python)
    with tempfile.TemporaryDirectory(prefix="wheelfarm-install-") as name:
        folder = Path(name)
        if planned.torch:
            _install_torch(planned)
        if planned.others:
            _install_others(planned, folder)
        _install_wheels(planned, folder)
    after = _torch(planned.python)
    if before != after and not planned.torch:
        message = f"torch was {before} and is {after} after the installation"
        raise BuildError(message, hint="put it back, and report this")


def _install_torch(planned: InstallPlan) -> None:
    from wheelfarm.run import run

    run([*planned.tool[1:], "--only-binary", "torch", *planned.torch], env=installer_environment())


def _install_others(planned: InstallPlan, folder: Path) -> None:
    from wheelfarm.run import run

    constraints = folder / "constraints.txt"
    constraints.write_text("".join(f"{line}\n" for line in planned.constraints), encoding="utf-8")
    others = folder / "others.txt"
    others.write_text("".join(f"{line}\n" for line in planned.others), encoding="utf-8")
    binary = [word for name in planned.only_binary for word in ("--only-binary", name)]
    run(
        [*planned.tool[1:], "--constraint", constraints, *binary, "--requirement", others],
        env=installer_environment(),
        hint="nothing was installed; the wheels need what conflicts above",
    )


def _install_wheels(planned: InstallPlan, folder: Path) -> None:
    from wheelfarm.run import run

    wheels = folder / "wheels.txt"
    wheels.write_text("".join(f"{line}\n" for line in planned.wheels), encoding="utf-8")
    run(
        [*planned.tool[1:], "--no-deps", "--require-hashes", "--requirement", wheels],
        env=installer_environment(),
    )


def installer_environment() -> dict[str, str]:
    """Return the environment without settings that would turn an install into something else."""
    hostile = {"PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_UPGRADE", "PIP_REQUIRE_VIRTUALENV"}
    return {name: value for name, value in os.environ.items() if name not in hostile}


def _torch(python: str) -> str | None:
    return interpreter.ask(python).installed().get("torch")
