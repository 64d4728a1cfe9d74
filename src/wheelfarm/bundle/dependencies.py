"""What bundled wheels need besides: torch and projects of PyPI, downloaded by pip, pinned by hash.

pip resolves and downloads for each host (``pip download``; only wheels, nothing is built); what it
brought is put beside the bundle's wheels and named in a file by version and hash. For another
machine than this pip is told its Python and platform, but judges requirements' markers by the
Python that it runs on, which is pip's own limit.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from wheelfarm import files, interpreter
from wheelfarm.errors import BadInputError, CouldNotLookError
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.resolve.host import Host
from wheelfarm.resolve.install import installer_environment
from wheelfarm.resolve.lock import Profile

#: The oldest glibc that wheels are tagged for (PEP 513), and the first of PEP 600's tags in use.
_OLDEST_GLIBC_MINOR = 5
_LEGACY = ("manylinux2014", "manylinux2010", "manylinux1")


def add_dependencies(profile: Profile, folder: Path) -> str | None:
    """Download what a profile's wheels need besides into ``folder/wheels``; return the file of it.

    None where nothing is needed. Raises CouldNotLookError where there is no pip,
    ProgramFailedError with pip's own words where it finds no wheel.
    """
    pin = profile.resolution.torch
    torch = () if pin is None else pin.requirements()
    needs = {need.unconditional for choice in profile.resolution.choices for need in choice.outside}
    if not torch and not needs:
        return None
    suffix = f"-{profile.name}" if profile.name else ""
    name = f"dependencies{suffix}.txt"
    with tempfile.TemporaryDirectory(prefix="wheelfarm-bundle-") as made:
        brought = Path(made)
        pip = _pip(profile.resolution.host)
        if torch:
            index = () if pin is None or not pin.index else ("--index-url", pin.index)
            _download(pip, torch, brought, index)
        if needs:
            _download(pip, sorted(needs), brought)
        lines = [_keep(path, folder / "wheels") for path in sorted(brought.glob("*.whl"))]
    head = [
        f"# What the wheels need besides: pip install --no-deps --require-hashes -r {name}",
        "--no-index",
        "--find-links ./wheels",
    ]
    files.write_text(folder / name, "\n".join([*head, *lines]) + "\n")
    return name


def _keep(path: Path, wheels: Path) -> str:
    """Put a downloaded wheel beside the others; return its pin."""
    name = WheelName.parse(path.name)
    target = wheels / path.name
    sha256 = files.sha256(path)
    if not target.is_file() or files.sha256(target) != sha256:
        files.copy(path, target)
    return f"{name.package}=={name.version} --hash=sha256:{sha256}"


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
    local = host.interpreter.value
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
    return len(set(told)) > 1 or (host.interpreter.value or "") not in host.python.source


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
