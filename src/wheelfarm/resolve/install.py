"""Install an answer with pip or uv, in two steps that cannot replace torch.

First what the wheels require besides, from the installer's own index, under constraints that pin
every project that is installed now to its very version; so an installer that would have to replace
torch (or move anything else) fails before it changes anything, and names the conflict. Then the
wheels themselves, without their requirements, by address and hash.

A wheel that only we can have (its host wants a login that stands in an address, in our variables or
settings, or certificates that ours name) is fetched by us first, into a folder that does not stay,
and installed from there by version and hash. So no secret is handed to another program.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from packaging.version import Version

from wheelfarm import interpreter
from wheelfarm.errors import BadInputError, BuildError, CouldNotLookError
from wheelfarm.http import Client
from wheelfarm.resolve.candidate import Candidate
from wheelfarm.resolve.host import Host
from wheelfarm.resolve.needs import Need
from wheelfarm.resolve.resolution import Resolution
from wheelfarm.resolve.torch_files import read_torch
from wheelfarm.resolve.torch_pin import FAMILY
from wheelfarm.resolve.writers.requirements import requirement as requirement_of
from wheelfarm.values import value

_PIP = ("-m", "pip")
#: Told a wheel's name, how many of its bytes have come, and how many are expected.
Progress = Callable[[str, int, int | None], None]
_QUIET = ("--disable-pip-version-check", "--no-input")


@value
class PlannedWheel:
    """One wheel, and whether we fetch it, since the installer could not."""

    candidate: Candidate
    ours: bool

    @property
    def verb(self) -> str:
        """What is done with it, in words."""
        return "download and install" if self.ours else "install"

    @property
    def line(self) -> str:
        """The line of a requirements file that installs it; by version where it is ours."""
        if not self.ours:
            return requirement_of(self.candidate)
        pin = f"{self.candidate.package}=={self.candidate.name.version}"
        return f"{pin} --hash=sha256:{self.candidate.entry.sha256}"


@value
class InstallPlan:
    """What is installed: a chosen torch, others' projects, then wheels; all constrained.

    ``tool`` is the installer's word and then the command. ``torch`` are a chosen torch with its
    family, or what of its family an installed one lacks (``replaces_torch`` is false then), and
    ``torch_index`` the index that has them, empty for the installer's own.
    """

    tool: tuple[str, ...]
    python: str
    torch: tuple[str, ...]
    torch_index: str
    replaces_torch: bool
    others: tuple[str, ...]
    wheels: tuple["PlannedWheel", ...]
    constraints: tuple[str, ...]
    only_binary: tuple[str, ...]

    def lines(self) -> list[str]:
        """Return the plan in words; a dry run and the real one print the same."""
        head = f"into {self.python} with {self.tool[0]}:"
        kept = [f"  keep {text}" for text in self.constraints if text.startswith("torch==")]
        where = f" from {self.torch_index}" if self.torch_index else ""
        chosen = [f"  install {' '.join(self.torch)}{where}"] if self.torch else []
        return [
            head,
            *kept,
            *chosen,
            *(f"  require {text}" for text in self.others),
            *(f"  {each.verb} {requirement_of(each.candidate)}" for each in self.wheels),
        ]


def plan(resolution: Resolution, client: Client, *, tool: str | None) -> InstallPlan:
    """Return what an installation does; nothing is changed yet.

    ``client`` is the one that the answer came by: it says which files open to it alone. Of what
    the index serves no source is ever built. Raises BadInputError where the host is another
    machine.
    """
    host = resolution.host
    python = host.interpreter_here
    if python is None:
        message = "an answer for another machine cannot be installed here"
        raise BadInputError(message, hint="write a lock instead: --format requirements")
    _refuse_other_facts(host, python)
    pin = resolution.torch
    replaces = pin is not None and not pin.installed
    torch: tuple[str, ...] = ()
    if pin is not None:
        torch = pin.requirements() if replaces else pin.missing(host.installed)
    own = {text.partition("==")[0] for text in torch}
    chosen = {choice.candidate.package for choice in resolution.choices}
    others: set[str] = set()
    for choice in resolution.choices:
        for requirement in choice.outside:
            if requirement.name not in own and not _satisfied(requirement, host):
                others.add(requirement.unconditional)
    return InstallPlan(
        tool=_installer(python, tool),
        python=python,
        others=tuple(sorted(others)),
        wheels=tuple(
            PlannedWheel(
                candidate=choice.candidate, ours=client.opens_alone(choice.candidate.entry.url)
            )
            for choice in resolution.choices
        ),
        torch=torch,
        torch_index=pin.index if pin is not None and torch else "",
        replaces_torch=replaces,
        constraints=tuple(
            f"{name}=={version}"
            for name, version in sorted(host.installed.items())
            if name not in chosen and not (replaces and _comes_with_torch(name))
        ),
        only_binary=tuple(sorted({*resolution.served, *chosen})),
    )


def _refuse_other_facts(host: Host, python: str) -> None:
    """Raise BadInputError where the answer is for another environment than the one at hand."""
    asked = interpreter.ask(python)
    torch = read_torch(asked).version.value
    facts = (
        ("Python", host.python, asked.tag),
        ("platform", host.platform, asked.platform),
        ("torch", host.torch, torch),
    )
    for name, fact, here in facts:
        if fact.value != here:
            stated = "none" if fact.value is None else str(fact.value)
            message = f"{name} is {stated} ({fact.source}), and {python} has {here or 'none'}"
            hint = "leave it away to install here (--choose-torch may replace torch)"
            raise BadInputError(message, hint=hint)


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


def install(planned: InstallPlan, client: Client, progress: Progress | None = None) -> None:
    """Do what was planned; in the end it is looked at what is installed now.

    ``progress`` is told of what ``client`` downloads. Raises ProgramFailedError with the
    installer's own words, BuildError where torch changed or a wheel is not there afterwards, and
    what ``Client.download`` raises.
    """
    before = _torch(planned.python)
    with tempfile.TemporaryDirectory(prefix="wheelfarm-install-") as name:
        folder = Path(name)
        _fetch(planned, folder, client, progress)
        if planned.torch:
            _install_torch(planned, folder)
        if planned.others:
            _install_others(planned, folder)
        _install_wheels(planned, folder)
    after = _torch(planned.python)
    if before != after and not planned.replaces_torch:
        message = f"torch was {before} and is {after} after the installation"
        raise BuildError(message, hint="put it back, and report this")
    _prove(planned)


def _fetch(planned: InstallPlan, folder: Path, client: Client, progress: Progress | None) -> None:
    """Download what is ours to fetch, before anything is changed."""
    for wheel in planned.wheels:
        if wheel.ours:
            entry = wheel.candidate.entry
            name = str(entry.name)
            report = None if progress is None else partial(progress, name)
            client.download(entry.url, folder / name, sha256=entry.sha256, progress=report)


def _prove(planned: InstallPlan) -> None:
    """Raise BuildError where a wheel is not installed, whatever the installer said."""
    found = interpreter.ask(planned.python).installed()
    for wheel in planned.wheels:
        name = wheel.candidate.name
        version = found.get(wheel.candidate.package)
        if version is None or Version(version) != name.version:
            message = f"{planned.tool[0]} ended well, but {name} is not what {planned.python} has"
            raise BuildError(
                message,
                cause=f"it has {version}" if version else "it has no such package",
                hint=f"the settings of {planned.tool[0]} may send it elsewhere",
            )


def _install_torch(planned: InstallPlan, folder: Path) -> None:
    from wheelfarm.run import run

    index = ["--index-url", planned.torch_index] if planned.torch_index else []
    names = [text.partition("==")[0] for text in planned.torch]
    binary = [word for name in names for word in ("--only-binary", name)]
    run(
        [*planned.tool[1:], *_constrained(planned, folder), *binary, *index, *planned.torch],
        env=installer_environment(),
    )


def _constrained(planned: InstallPlan, folder: Path) -> tuple[str, ...]:
    """Return the option by which nothing that is installed moves; none where nothing is."""
    if not planned.constraints:
        return ()
    constraints = folder / "constraints.txt"
    constraints.write_text("".join(f"{line}\n" for line in planned.constraints), encoding="utf-8")
    return "--constraint", str(constraints)


def _install_others(planned: InstallPlan, folder: Path) -> None:
    from wheelfarm.run import run

    others = folder / "others.txt"
    others.write_text("".join(f"{line}\n" for line in planned.others), encoding="utf-8")
    binary = [word for name in planned.only_binary for word in ("--only-binary", name)]
    run(
        [*planned.tool[1:], *_constrained(planned, folder), *binary, "--requirement", others],
        env=installer_environment(),
        hint="nothing was installed; the wheels need what conflicts above",
    )


def _install_wheels(planned: InstallPlan, folder: Path) -> None:
    from wheelfarm.run import run

    wheels = folder / "wheels.txt"
    wheels.write_text("".join(f"{each.line}\n" for each in planned.wheels), encoding="utf-8")
    ours = any(each.ours for each in planned.wheels)
    # Addresses are asked for all the same; only names are looked up nowhere but in that folder.
    found = ["--no-index", "--find-links", str(folder)] if ours else []
    run(
        [*planned.tool[1:], "--no-deps", "--require-hashes", *found, "--requirement", wheels],
        env=installer_environment(),
    )


def installer_environment() -> dict[str, str]:
    """Return the environment without settings that would turn an install into something else.

    Nor does an installer, or what it builds, see the logins that are for us.
    """
    hostile = {
        *("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_UPGRADE", "PIP_REQUIRE_VIRTUALENV"),
        *("PIP_DRY_RUN", "PIP_NO_DEPS", "PIP_PYTHON", "UV_NO_DEPS"),
    }
    ours = ("WHEELFARM_TOKEN_", "WHEELFARM_LOGIN_")
    return {
        name: value
        for name, value in os.environ.items()
        if name not in hostile and not name.startswith(ours)
    }


def _torch(python: str) -> str | None:
    return interpreter.ask(python).installed().get("torch")
