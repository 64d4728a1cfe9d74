"""What tests share: real environments with NVIDIA's toolkit and torch, made once and kept."""

import os
import signal
import sys
import sysconfig
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from packaging.version import Version

from wheelfarm.build.environment import Environment, EnvironmentSpec, make_environment
from wheelfarm.build.workspace import Workspace
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.python import PythonTag

#: The torch that tests and the demo build against; its CUDA is PyPI's own.
TORCH = "2.14.1"
TOOLKIT = "13.0.3"
CUDA = Accelerator.parse("cu130")
REPOSITORY = Path(__file__).parents[1]
SHARED = REPOSITORY.parent / "shared"


# How long an example takes says something of the machine that runs the tests, not of the code.
# The same examples in each run, so that a change is judged by itself; WHEELFARM_TEST_RANDOM=1 looks
# for new ones.
settings.register_profile(
    "wheelfarm",
    deadline=None,
    derandomize="WHEELFARM_TEST_RANDOM" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("wheelfarm")


# uv, pip and their like are installed beside the interpreter, whose folder need not be on PATH.
os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
# A shell's background jobs ignore Ctrl-C, and so would every program that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
_STARTED = time.monotonic()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin no further test of the full tier once WHEELFARM_TEST_MINUTES are over, and say so."""
    minutes = os.environ.get("WHEELFARM_TEST_MINUTES")
    over = minutes is not None and time.monotonic() - _STARTED > 60 * float(minutes)
    if over and item.get_closest_marker("full") is not None:
        pytest.skip(f"not begun: the {minutes} minutes of this run are over")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the full tier out unless it is asked for by a marker expression of any kind."""
    if config.option.markexpr or "WHEELFARM_TEST_FULL" in os.environ:
        return
    skip = pytest.mark.skip(reason="full tier (make test-full)")
    for item in items:
        if item.get_closest_marker("full") is not None:
            item.add_marker(skip)


def this_python() -> PythonTag:
    """Return the running interpreter as a cell's Python."""
    return PythonTag.of_version(f"{sys.version_info.major}.{sys.version_info.minor}")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The project's own folder."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared_reference() -> Path:
    """The folder of reference data beside the checkout; tests of it are skipped where it is not."""
    folder = SHARED / "reference"
    if not folder.is_dir():
        pytest.skip("the reference data is not beside this checkout")
    return folder


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all test processes of this session share; steps in it hold their own locks."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def torch_environment(shared_folder: Path) -> Environment:
    """An environment with torch and the CUDA toolkit's wheels; shared with the demo, read only."""
    spec = EnvironmentSpec(python=this_python(), accelerator=CUDA, torch=Version(TORCH))
    log = shared_folder / "torch.log"
    return make_environment(spec, Workspace.of(shared_folder), log=log)[0]


@pytest.fixture(scope="session")
def torch_python(request: pytest.FixtureRequest) -> Path:
    """The Python of an environment with torch and the CUDA toolkit's wheels; read only."""
    given = os.environ.get("WHEELFARM_TEST_TORCH_PYTHON")
    if given:
        return Path(given)
    environment: Environment = request.getfixturevalue("torch_environment")
    return environment.python


@pytest.fixture(scope="session")
def toolkit_python(shared_folder: Path) -> Path:
    """A Python with the CUDA toolkit's wheels and no torch; read only."""
    given = os.environ.get("WHEELFARM_TEST_TORCH_PYTHON")
    if given:
        return Path(given)
    spec = EnvironmentSpec(python=this_python(), accelerator=CUDA, toolkit=TOOLKIT)
    log = shared_folder / "toolkit.log"
    return make_environment(spec, Workspace.of(shared_folder), log=log)[0].python
