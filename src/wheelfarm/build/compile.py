"""From a patched source tree to a raw wheel: no network, one CUDA root, every compile recorded."""

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wheelfarm.build.calls import Call, failures, read_calls
from wheelfarm.build.environment import Environment, pip_command
from wheelfarm.build.isolation import OFFLINE_ENVIRONMENT, network_namespace
from wheelfarm.build.seat_setup import Seat
from wheelfarm.errors import BuildError
from wheelfarm.model.arch import ArchList
from wheelfarm.run import Completed, ProgramFailedError, Stop, run

logger = logging.getLogger(__name__)

#: Variables of the caller that a build may see; everything else is the machine's own business and
#: would make two machines' wheels differ.
_PASSED_ON = ("TERM", "TMPDIR", "SSL_CERT_FILE", "SYSTEMROOT", "CCACHE_DIR")
#: The folder that every Python of a build starts with.
_INJECTED = Path(__file__).with_name("injected")
_ERROR = re.compile(r"(?:error|Error|fatal|FAILED|undefined reference|No such file)\b[: ]")
_SHOWN_ERRORS = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class CompileSpec:
    """What a compile is made from.

    ``seat`` stands where the compilers stand and records every call; its CUDA root is a view of the
    environment's own toolkit. ``extra_path`` folders come behind it on PATH.
    """

    tree: Path
    environment: Environment
    seat: Seat
    archs: ArchList
    jobs: int
    nvcc_threads: int = 1
    nvcc_flags: str = ""
    extra_path: tuple[Path, ...] = ()
    python_path: tuple[Path, ...] = ()
    extra_environment: Mapping[str, str] = field(default_factory=dict)
    source_date_epoch: int = 315532800
    pure: bool = False


class CompileFailedError(BuildError):
    """A compile failed: the compiler's own lines, the unit, the log's path."""


def compile_wheel(spec: CompileSpec, folder: Path, *, log: Path, stop: Stop | None = None) -> Path:
    """Build the tree's wheel into ``folder`` and return it; ``stop`` may end it early.

    Raises CompileFailedError with the compiler's own lines where the build fails, BuildError where
    it made no wheel, or several, or compiled nothing though the recipe declares no pure wheel.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        *network_namespace(),
        *pip_command(spec.environment.python),
        "wheel", "--no-build-isolation", "--no-deps", "--no-cache-dir", "--no-index",
        "--no-clean", "--wheel-dir", str(folder), str(spec.tree),
    ]  # fmt: skip
    try:
        run(command, cwd=spec.tree, env=compile_environment(spec), log=log, stop=stop)
    except ProgramFailedError as error:
        raise _explained(error.completed, read_calls(spec.seat.log), log) from error
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        message = f"the build of {spec.tree.name} made {len(wheels)} wheels, expected one"
        raise BuildError(message, cause=f"see {log}")
    if not spec.pure:
        require_compiles(read_calls(spec.seat.log), wheels[0], log)
    return wheels[0]


def require_compiles(calls: tuple[Call, ...], wheel: Path, log: Path) -> None:
    """Raise BuildError where a build compiled nothing: upstream's own binary is none of ours."""
    if any(call.is_unit for call in calls):
        return
    message = f"the build of {wheel.name} compiled nothing"
    raise BuildError(
        message,
        cause="it packed sources alone, found a binary somewhere, or ran a compiler by another way",
        hint=f"set what forces its build in the recipe's env, or state `pure: true`; log: {log}",
    )


def compile_environment(spec: CompileSpec) -> dict[str, str]:
    """Return the whole environment of a build; nothing of the caller's gets in by accident."""
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    cuda_home = spec.seat.cuda_home
    environment_bin = spec.environment.folder / "bin"
    path = [spec.seat.bin, *spec.extra_path, *_cuda_bin(spec), environment_bin, *system_path()]
    return {
        **passed,
        "PATH": os.pathsep.join(map(str, path)),
        "HOME": str(spec.tree.parent / "home"),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        "PYTHONPATH": os.pathsep.join(map(str, (_INJECTED, *spec.python_path))),
        "SOURCE_DATE_EPOCH": str(spec.source_date_epoch),
        **({} if cuda_home is None else {"CUDAToolkit_ROOT": str(cuda_home)}),
        "TORCH_CUDA_ARCH_LIST": str(spec.archs),
        "CUDAARCHS": cmake_archs(spec.archs),
        "FORCE_CUDA": "1",
        "MAX_JOBS": str(spec.jobs),
        "CMAKE_BUILD_PARALLEL_LEVEL": str(spec.jobs),
        "NVCC_THREADS": str(spec.nvcc_threads),
        **({"NVCC_APPEND_FLAGS": spec.nvcc_flags} if spec.nvcc_flags else {}),
        **OFFLINE_ENVIRONMENT,
        **spec.seat.environment,
        **spec.extra_environment,
    }


def cmake_archs(archs: ArchList) -> str:
    """Return an arch list in CMake's form: ``80-real;90-real;90-virtual``."""
    words: list[str] = []
    for entry in archs.entries:
        words.append(f"{entry.arch.target}-real")
        if entry.ptx:
            words.append(f"{entry.arch.target}-virtual")
    return ";".join(words)


def _cuda_bin(spec: CompileSpec) -> tuple[Path, ...]:
    return () if spec.seat.cuda_home is None else (spec.seat.cuda_home / "bin",)


def system_path() -> list[str]:
    """Return the machine's folders of programs, those with an nvcc left out."""
    # A toolkit on the machine must not be what makes a build work.
    return [
        folder
        for folder in ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")
        if not (Path(folder) / "nvcc").exists()
    ]


def _explained(completed: Completed, calls: tuple[Call, ...], log: Path) -> CompileFailedError:
    lines = completed.stdout.splitlines()
    errors = [line.strip() for line in lines if _ERROR.search(line)]
    shown = "\n".join(f"    {line[:300]}" for line in errors[:_SHOWN_ERRORS])
    failed = failures(calls)
    unit = failed[0].unit if failed else ""
    what = f"the compile failed{f' in {unit}' if unit else ''}\n{shown}".rstrip()
    return CompileFailedError(f"{what}\n  log: {log}", hint=_advice(completed.stdout))


def _advice(text: str) -> str:
    if "Network is unreachable" in text or "Temporary failure in name resolution" in text:
        return (
            "the build tried to use the network, which it does not have; where it looks for "
            "upstream's prebuilt wheel, set its FORCE_BUILD variable in the recipe's env"
        )
    if "No module named" in text:
        return "a build requirement is missing: name it in the recipe's extra_deps"
    if "Killed" in text or "signal 9" in text:
        return "a compiler was killed, most likely for memory: lower max_jobs in the recipe"
    if "g++: command not found" in text or "No such file or directory: 'g++'" in text:
        return "install a C++ compiler (Debian, Ubuntu: apt-get install g++)"
    return ""
