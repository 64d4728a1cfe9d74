"""From a cell to the environment it is built in: its Python, its exact torch, torch's own CUDA.

One environment serves every package of one (Python, torch, CUDA). It is made in place, since tools
in it hold absolute paths, and believed only when its record was written last.
"""

import logging
import os
import platform as machine
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from wheelfarm.build.interpreter import find_interpreter, inspect_interpreter
from wheelfarm.build.steps import Step, StepResult
from wheelfarm.build.workspace import Workspace, require_space
from wheelfarm.errors import BuildError, CouldNotLookError
from wheelfarm.facts.installed_torch import InstalledTorch, read_installed_torch
from wheelfarm.interpreter import Interpreter
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.platform import PLATFORMS
from wheelfarm.model.python import PythonTag
from wheelfarm.run import ProgramFailedError, run
from wheelfarm.upstream.facts import committed_facts

logger = logging.getLogger(__name__)

#: Bytes that a torch environment with its toolkit takes, measured at 6.1 GB, and some room.
TORCH_ENVIRONMENT_BYTES = 8_000_000_000
TOOLKIT_ENVIRONMENT_BYTES = 2_000_000_000
#: What every setup.py may take for granted where build isolation is off.
BASE_REQUIREMENTS = ("setuptools", "wheel", "ninja", "packaging", "numpy")
#: The parts of CUDA's toolkit that compile and link an extension; torch itself brings the others.
#: nvidia-cuda-nvcc requires its parts without versions, the extras of cuda-toolkit pin every one.
TOOLKIT_PARTS = ("nvcc", "nvvm", "crt", "cccl", "cudart")
#: The parts that torch's own requirements bring, so that naming them needs no other environment.
_TORCH_PARTS = frozenset(
    {"cublas", "cudart", "cufft", "cufile", "cupti", "curand", "cusolver", "cusparse",
     "nvjitlink", "nvrtc", "nvtx"}
)  # fmt: skip
_FIRST_WHEEL_TOOLKIT = 13
#: Where PyTorch publishes one index per CUDA line; WHEELFARM_TORCH_INDEX replaces it.
PYTORCH_INDEX = "https://download.pytorch.org/whl/{cuda}"


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvironmentSpec:
    """What an environment is made from; ``torch`` None makes one with the toolkit alone.

    ``toolkit`` is a release of cuda-toolkit (``13.0.3``); None takes the one that torch requires.
    """

    python: PythonTag
    accelerator: Accelerator
    torch: Version | None = None
    toolkit: str | None = None
    components: tuple[str, ...] = ()
    """Parts of the toolkit besides the compiler's and torch's, such as ``nvml_dev``."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The extras of cuda-toolkit that are installed."""
        brought = _TORCH_PARTS if self.torch is not None else frozenset()
        extra = sorted(set(self.components) - brought - set(TOOLKIT_PARTS))
        return (*TOOLKIT_PARTS, *extra)

    @property
    def name(self) -> str:
        """The environment's folder name."""
        middle = f"torch{self.torch}" if self.torch is not None else f"toolkit{self.toolkit}"
        extra = "".join(f"-{part}" for part in self.parts[len(TOOLKIT_PARTS) :])
        return f"{self.accelerator}-{middle}-{self.python}{extra}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """An environment that is there: its folder, interpreter and torch (None without)."""

    folder: Path
    interpreter: Interpreter
    torch: InstalledTorch | None

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.folder / "bin" / "python"


def make_environment(
    spec: EnvironmentSpec, workspace: Workspace, *, log: Path
) -> tuple[Environment, StepResult]:
    """Return the environment and its step, making it where it is not there yet.

    Raises CouldNotLookError for a Python that is not here or too little disk, BuildError where
    pip cannot find the torch, or the torch it found is built for another CUDA.
    """
    base = find_interpreter(spec.python)
    folder = workspace.environments / spec.name
    step = Step(
        name="environment",
        folder=folder,
        log=log,
        inputs={
            "python": base.full_version,
            "torch": None if spec.torch is None else str(spec.torch),
            "accelerator": str(spec.accelerator),
            "toolkit": spec.toolkit,
            "parts": list(spec.parts),
            "base": list(BASE_REQUIREMENTS),
        },
    )

    def work(target: Path) -> dict[str, str]:
        needed = TOOLKIT_ENVIRONMENT_BYTES if spec.torch is None else TORCH_ENVIRONMENT_BYTES
        require_space(target, needed, f"the environment {spec.name}")
        _create(base, target, log)
        python = target / "bin" / "python"
        pip_install(python, BASE_REQUIREMENTS, log=log)
        if spec.torch is not None:
            _install_torch(python, spec.torch, spec, log)
        _install_toolkit(python, spec, log)
        return {"python": "bin/python"}

    result = step.run(work)
    return open_environment(folder), result


def open_environment(folder: Path) -> Environment:
    """Return what an environment's folder holds."""
    interpreter = inspect_interpreter(folder / "bin" / "python")
    return Environment(
        folder=folder,
        interpreter=interpreter,
        torch=read_installed_torch(interpreter.site_packages),
    )


def pip_install(
    python: Path, requirements: tuple[str, ...], *, log: Path, options: tuple[str, ...] = ()
) -> None:
    """Install requirements into an environment with pip, under the user's own configuration.

    Builds of the requirements themselves are refused: an environment is made of wheels alone.
    """
    run(
        [*pip_command(python), "install", "--only-binary", ":all:", *options, *requirements],
        log=log,
        hint="is the package index in reach, and does it have wheels for this Python?",
    )


def install_or_fail(python: Path, words: tuple[str, ...], what: str, *, log: Path) -> None:
    """Run ``pip install`` for another environment; BuildError says of ``what`` that pip cannot."""
    try:
        run([*pip_command(python), "install", *words], log=log)
    except ProgramFailedError as error:
        message = f"pip cannot install {what}"
        cause = pip_cause(error.completed.stdout)
        raise BuildError(message, cause=cause, hint=_pip_hint(cause, "", log)) from error


def pip_command(python: Path) -> list[str]:
    """Return the command that runs wheelfarm's own pip for another environment."""
    if find_spec("pip") is None:
        message = "pip is not installed beside wheelfarm"
        raise CouldNotLookError(message, hint="install it with `pip install wheelfarm[farm]`")
    return [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "--no-input",
        "--disable-pip-version-check",
    ]


def pip_cause(text: str) -> str:
    """Return the lines in which pip says why it failed, without its pointers to documentation."""
    lines = [line.strip() for line in text.splitlines()]
    told = [line for line in lines if line.startswith(("ERROR:", "The user requested"))]
    return " ".join(line for line in told if "for help visit" not in line)[:500]


def _pip_hint(cause: str, usual: str, log: Path) -> str:
    """Return the next step after a failure of pip: its settings, where they are the cause."""
    constrained = "a constraint of pip's own settings forbids it (`pip config list`)"
    first = constrained if "(constraint)" in cause else usual
    return f"{first}; log: {log}" if first else f"log: {log}"


def _create(base: Interpreter, folder: Path, log: Path) -> None:
    # The standard venv without pip needs no ensurepip, which Debian keeps in a package of its own.
    run([base.executable, "-m", "venv", "--without-pip", folder], log=log)


def _install_torch(python: Path, torch: Version, spec: EnvironmentSpec, log: Path) -> None:
    """Install the spec's torch: PyPI's where that is of the cell's CUDA, else PyTorch's own.

    torch's minor does not pin its CUDA, and PyPI has one line of each release.
    """
    platform = next((item for item in PLATFORMS if item.machine == machine.machine()), None)
    known = None if platform is None else committed_facts().pypi_accelerator(torch, platform)
    if known == spec.accelerator:
        words: tuple[str, ...] = (f"torch=={torch.public}",)
    else:
        index = os.environ.get("WHEELFARM_TORCH_INDEX", PYTORCH_INDEX).format(cuda=spec.accelerator)
        words = (f"torch=={torch.public}+{spec.accelerator}", "--extra-index-url", index)
    logger.info("installing %s for %s", words[0], spec.name)
    try:
        pip_install(python, words, log=log)
    except ProgramFailedError as error:
        message = f"pip cannot install {words[0]} for {spec.python}"
        cause = pip_cause(error.completed.stdout)
        usual = "PyTorch may not have published this cell (`wheelfarm grid`)"
        raise BuildError(message, cause=cause, hint=_pip_hint(cause, usual, log)) from error
    check_torch(open_environment(python.parents[1]), spec)


def check_torch(environment: Environment, spec: EnvironmentSpec) -> InstalledTorch:
    """Return the environment's torch; BuildError where it is not the one of the spec.

    torch's minor does not pin its CUDA: what counts is the CUDA that torch's own file names.
    """
    torch = environment.torch
    if torch is None:
        message = f"{environment.folder} has no torch"
        raise BuildError(message)
    cuda = spec.accelerator.version
    if spec.torch is not None and torch.version.public != spec.torch.public:
        message = f"{environment.folder} has torch {torch.version}, expected {spec.torch.public}"
        raise BuildError(message, hint="remove the folder and run again")
    if cuda is not None and torch.cuda != cuda:
        message = (
            f"the torch {torch.version} that pip found is built for "
            f"{'no CUDA' if torch.cuda is None else f'CUDA {torch.cuda}'}, the cell wants {cuda}"
        )
        raise BuildError(
            message,
            hint="set WHEELFARM_TORCH_INDEX to an index that has torch for this CUDA line",
        )
    return torch


def _install_toolkit(python: Path, spec: EnvironmentSpec, log: Path) -> None:
    if not has_wheel_toolkit(spec.accelerator):
        return
    release = spec.toolkit
    if release is None:
        torch = open_environment(python.parents[1]).torch
        release = None if torch is None else toolkit_release(torch)
    if release is None:
        message = f"the torch of {spec.name} does not say which cuda-toolkit it requires"
        raise BuildError(message, hint="name the release in the farm policy")
    pip_install(python, (f"cuda-toolkit[{','.join(spec.parts)}]=={release}",), log=log)


def has_wheel_toolkit(accelerator: Accelerator) -> bool:
    """Return whether NVIDIA's wheels have a whole toolkit for it.

    The CUDA 12 wheels have no nvcc; such cells take a system's or a container's toolkit.
    """
    return accelerator.kind == "cuda" and (accelerator.major or 0) >= _FIRST_WHEEL_TOOLKIT


def toolkit_release(torch: InstalledTorch) -> str | None:
    """Return the cuda-toolkit release that an installed torch pins (``13.0.3``), None for none."""
    for text in torch.requires_dist:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if requirement.name != "cuda-toolkit":
            continue
        for specifier in requirement.specifier:
            if specifier.operator == "==":
                return specifier.version
    return None
