"""What bundled wheels need besides: torch and projects of PyPI, downloaded by pip, pinned by hash.

pip resolves and downloads for each host (``pip download``; only wheels, nothing is built); what it
brought is put beside the bundle's wheels and named by version and hash, in a file of its own and in
the bundle's pylock. For another machine than this pip is told its Python and platform, but judges
requirements' markers by the Python that it runs on, which is pip's own limit.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wheelfarm import files, interpreter
from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.resolve.host import Host
from wheelfarm.resolve.install import installer_environment
from wheelfarm.resolve.lock import Profile
from wheelfarm.resolve.locked import DEPENDENCY
from wheelfarm.resolve.writers.pylock import marker_of
from wheelfarm.values import value

#: The oldest glibc that wheels are tagged for (PEP 513), and the first of PEP 600's tags in use.
_OLDEST_GLIBC_MINOR = 5
_LEGACY = ("manylinux2014", "manylinux2010", "manylinux1")


@value
class Dependency:
    """One wheel that a profile's wheels need besides, as it lies in the bundle."""

    name: WheelName
    sha256: str
    profile: str

    @property
    def pin(self) -> str:
        """The line of a requirements file that installs it."""
        return f"{self.name.package}=={self.name.version} --hash=sha256:{self.sha256}"


def locked_dependencies(dependencies: Sequence[Dependency]) -> list[dict[str, Any]]:
    """Return the entries of a pylock (PEP 751) for wheels below ``wheels``, one per wheel.

    A wheel of named profiles is marked with their extras, and each entry says that it is none of
    the wheels that were asked for.
    """
    found: dict[str, tuple[Dependency, list[str]]] = {}
    for each in dependencies:
        found.setdefault(str(each.name), (each, []))[1].append(each.profile)
    entries = []
    for _, (each, taken) in sorted(found.items()):
        entry: dict[str, Any] = {"name": each.name.package, "version": str(each.name.version)}
        if any(taken):
            entry["marker"] = marker_of(taken)
        hashes = {"sha256": each.sha256}
        name = str(each.name)
        entry["wheels"] = [{"name": name, "path": f"wheels/{name}", "hashes": hashes}]
        entry["tool"] = {"wheelfarm": {DEPENDENCY: True}}
        entries.append(entry)
    return entries


def add_dependencies(profile: Profile, folder: Path) -> tuple[Dependency, ...]:
    """Download what a profile's wheels need besides into ``folder/wheels``; return it.

    Its pins are written to ``dependencies.txt``, or ``dependencies-<profile>.txt``, where anything
    is needed. Raises CouldNotLookError where there is no pip,
    ProgramFailedError with pip's own words where it finds no wheel.
    """
    pin = profile.resolution.torch
    torch = () if pin is None else pin.requirements()
    needs = {need.unconditional for choice in profile.resolution.choices for need in choice.outside}
    if not torch and not needs:
        return ()
    with tempfile.TemporaryDirectory(prefix="wheelfarm-bundle-") as made:
        brought = Path(made)
        pip = _pip(profile.resolution.host)
        if torch:
            index = () if pin is None or not pin.index else ("--index-url", pin.index)
            _download(pip, torch, brought, index)
        if needs:
            _download(pip, sorted(needs), brought)
        paths = sorted(brought.glob("*.whl"))
        found = tuple(_keep(path, folder / "wheels", profile.name) for path in paths)
    name = dependencies_file(profile.name)
    head = [
        f"# What the wheels need besides: pip install --no-deps --require-hashes -r {name}",
        "--no-index",
        "--find-links ./wheels",
    ]
    files.write_text(folder / name, "\n".join([*head, *(each.pin for each in found)]) + "\n")
    return found


def dependencies_file(profile: str) -> str:
    """Return the name of the file that pins a profile's dependencies."""
    return f"dependencies-{profile}.txt" if profile else "dependencies.txt"


def _keep(path: Path, wheels: Path, profile: str) -> Dependency:
    """Put a downloaded wheel beside the others."""
    name = WheelName.parse(path.name)
    target = wheels / path.name
    sha256 = files.sha256(path)
    if not target.is_file() or files.sha256(target) != sha256:
        files.copy(path, target)
    return Dependency(name=name, sha256=sha256, profile=profile)


def _download(
    pip: Sequence[str], requirements: Sequence[str], brought: Path, index: Sequence[str] = ()
) -> None:
    """Download requirements with all that they require; what was brought before stays as it is."""
    from wheelfarm.run import run

    kept = [WheelName.parse(path.name) for path in sorted(brought.glob("*.whl"))]
    constraints = brought / "constraints.txt"
    constraints.write_text(
        "".join(f"{name.package}=={name.version}\n" for name in kept), encoding="utf-8"
    )
    found = ["--find-links", str(brought)] if kept else []
    run(
        [
            *(*pip, "--dest", str(brought), "--constraint", str(constraints)),
            # What an index says that a wheel needs is never an option of pip's.
            *(*found, *index, "--", *requirements),
        ],
        env=installer_environment(),
        hint="a dependency has no wheel for that host, or pip's index cannot be reached",
    )


def _pip(host: Host) -> tuple[str, ...]:
    """Return the words that download for a host with a pip that is here."""
    quiet = ("--disable-pip-version-check", "--no-input")
    own = interpreter.here().metadata_folder("pip") is not None
    local = host.interpreter_here
    if not own:
        if local is None or interpreter.ask(local).metadata_folder("pip") is None:
            message = "there is no pip to download dependencies with"
            raise CouldNotLookError(message, hint=f"{sys.executable} -m ensurepip, or install pip")
        return (local, "-m", "pip", "download", *quiet, "--only-binary", ":all:", *_target(host))
    python = ("--python", local) if local is not None and not _stated(host) else ()
    words = (sys.executable, "-m", "pip", *python, "download", *quiet, "--only-binary", ":all:")
    return words if python else (*words, *_target(host))


def _stated(host: Host) -> bool:
    """Return whether Python or platform are other than what the interpreter at hand says."""
    told = (host.python.source, host.platform.source, host.libc.source)
    return len(set(told)) > 1 or (host.interpreter_here or "") not in host.python.source


def _target(host: Host) -> tuple[str, ...]:
    """Return pip's options for a host that is not at hand.

    Raises BadInputError where too little is known of it.
    """
    python, platform = host.python.value, host.platform.value
    if python is None or python.version is None or platform is None:
        message = "dependencies are of one Python and platform, and the host does not say which"
        raise BadInputError(message, hint="state --python-version and --platform")
    version = f"{python.version.major}{python.version.minor}"
    abis = (f"cp{version}t",) if python.free_threaded else (f"cp{version}", "abi3")
    return (
        *("--python-version", str(python.version), "--implementation", "cp"),
        *(word for abi in (*abis, "none") for word in ("--abi", abi)),
        *(word for tag in _platforms(host, platform) for word in ("--platform", tag)),
    )


def _platforms(host: Host, platform: str) -> tuple[str, ...]:
    """Return the platform tags whose wheels run on a host, the newest first."""
    system, _, machine = platform.partition("_")
    if system == "windows":
        return ("win_amd64",)
    libc = host.libc.value
    if system != "linux" or libc is None:
        message = f"dependencies for {platform} without a known C library cannot be downloaded"
        raise BadInputError(message, hint="state --libc 2.28")
    minors = range(libc.version.minor, (_OLDEST_GLIBC_MINOR if libc.kind == "glibc" else 0) - 1, -1)
    kind = "manylinux" if libc.kind == "glibc" else "musllinux"
    tags = tuple(f"{kind}_{libc.version.major}_{minor}_{machine}" for minor in minors)
    legacy = tuple(f"{name}_{machine}" for name in _LEGACY) if kind == "manylinux" else ()
    return (*tags, *legacy, f"linux_{machine}")
