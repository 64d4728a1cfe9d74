"""Build and load a tiny extension with what is here, and report each step with its evidence."""

import json
import logging
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wheelfarm.errors import WheelfarmError
from wheelfarm.run import run
from wheelfarm.toolkit.driver import host_compiler
from wheelfarm.toolkit.environment import Environment
from wheelfarm.toolkit.flags import BuildFlags, flags_of
from wheelfarm.toolkit.jit_build import cached_view
from wheelfarm.toolkit.layout import Machine
from wheelfarm.toolkit.model import Toolkit

logger = logging.getLogger(__name__)

Status = Literal["pass", "fail", "skip"]

_HOST_SOURCE = """\
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
extern "C" int runtime_version() {
    int version = 0;
    return cudaRuntimeGetVersion(&version) == cudaSuccess ? version : -1;
}
extern "C" int driver_answer() { return static_cast<int>(cuInit(0)); }
"""
_DEVICE_SOURCE = """\
__global__ void kernel(int *out) { *out = 1; }
"""
_LOAD = """\
import ctypes, json, sys
if sys.argv[2] == "torch":
    import torch
library = ctypes.CDLL(sys.argv[1])
print(json.dumps({"runtime": library.runtime_version(), "driver": library.driver_answer()}))
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One step of the check: what was tried, how it went, and what shows it."""

    name: str
    status: Status
    evidence: str


def check_toolkit(
    toolkit: Toolkit, *, environment: Environment, machine: Machine
) -> tuple[Step, ...]:
    """Return the steps: compile, link, load alone, load after torch, compile for a device."""
    steps: list[Step] = []

    def attempt(name: str, action: Callable[[], str]) -> bool:
        try:
            steps.append(Step(name=name, status="pass", evidence=action()))
        except WheelfarmError as error:
            steps.append(Step(name=name, status="fail", evidence=str(error)))
        return steps[-1].status == "pass"

    with tempfile.TemporaryDirectory(prefix="wheelfarm-check.") as work:
        folder = Path(work)
        if attempt("build", lambda: _build(toolkit, folder, machine)):
            attempt("load", lambda: _load(folder, environment, "alone"))
            if environment.torch() is None:
                steps.append(Step(name="load after torch", status="skip", evidence="no torch"))
            else:
                attempt("load after torch", lambda: _load(folder, environment, "torch"))
        if toolkit.nvcc is None:
            steps.append(
                Step(name="device code", status="skip", evidence="there is no nvcc; host code only")
            )
        else:
            attempt("device code", lambda: _device(toolkit, folder, machine))
    return tuple(steps)


def _build(toolkit: Toolkit, folder: Path, machine: Machine) -> str:
    flags: BuildFlags = flags_of(toolkit, ("cudart",), driver=True, machine=machine)
    source = folder / "check.cpp"
    source.write_text(_HOST_SOURCE, encoding="utf-8")
    compiler = host_compiler(machine)
    includes = [f"-I{path}" for path in flags.include_dirs]
    options = ["-shared", "-fPIC", "-o", str(folder / "check.so"), str(source)]
    command: list[str] = [str(compiler), *options, *includes, *flags.link_args]
    completed = run(command, timeout=300)
    driver = "a stand-in driver" if flags.driver and flags.driver.stand_in else "the driver"
    return f"{compiler} in {completed.seconds:.1f} s, linked to {driver}"


def _load(folder: Path, environment: Environment, how: str) -> str:
    command = [str(environment.python), "-c", _LOAD, str(folder / "check.so"), how]
    answer = json.loads(run(command, timeout=300).stdout.splitlines()[-1])
    return f"runtime {answer['runtime']}, cuInit answers {answer['driver']}"


def _device(toolkit: Toolkit, folder: Path, machine: Machine) -> str:
    home = toolkit.path if toolkit.source == "system" else cached_view(toolkit, machine)
    source = folder / "check.cu"
    source.write_text(_DEVICE_SOURCE, encoding="utf-8")
    nvcc = home / "bin" / "nvcc"
    options = ("-ccbin", str(host_compiler(machine)), "-c", "-o", str(folder / "check.o"))
    completed = run([str(nvcc), *options, str(source)], timeout=300)
    return f"{nvcc} in {completed.seconds:.1f} s"
