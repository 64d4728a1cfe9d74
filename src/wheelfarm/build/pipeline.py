"""From a cell and what is to be built to a repaired, retagged wheel: the steps in their order.

source -> patches -> environment -> requirements -> compile -> repair -> retag. Each is keyed by
its inputs and the key of the step before; a second run does only what changed or was cut short.
"""

import logging
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from wheelfarm import files
from wheelfarm.build.cache import NoCache, find_cache
from wheelfarm.build.compile import (
    CompileSpec,
    compile_environment,
    compile_wheel,
    system_path,
)
from wheelfarm.build.dependencies import install_dependencies, installable
from wheelfarm.build.environment import (
    Environment,
    EnvironmentSpec,
    check_torch,
    has_wheel_toolkit,
    make_environment,
)
from wheelfarm.build.patches import apply_patches, run_patch_script
from wheelfarm.build.prebuild import run_prebuild_script
from wheelfarm.build.repair import repair_wheel
from wheelfarm.build.request import BuildRequest, BuiltWheel, source_inputs
from wheelfarm.build.requirements import build_requirements, install_requirements
from wheelfarm.build.resources import choose_jobs, read_machine
from wheelfarm.build.retag import (
    curated_requirements,
    needed_outside,
    retag_wheel,
    upstream_requirements,
)
from wheelfarm.build.seat_setup import Seat, SeatSpec, prepare_seat
from wheelfarm.build.source import fetch_source
from wheelfarm.build.steps import Inputs, Step, StepResult
from wheelfarm.build.workspace import Workspace
from wheelfarm.errors import BadInputError
from wheelfarm.files import sha256
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.run import find_program
from wheelfarm.toolkit.find import find_toolkit
from wheelfarm.toolkit.model import Toolkit
from wheelfarm.toolkit.stub import make_driver_stub
from wheelfarm.toolkit.view import make_view

logger = logging.getLogger(__name__)

#: Told when a step begins (None) and when it is done (its result).
StepListener = Callable[[str, StepResult | None], None]


def build_cell(
    request: BuildRequest, workspace: Workspace, *, listen: StepListener | None = None
) -> BuiltWheel:
    """Run the steps that are not done yet and return the cell's wheel.

    Raises BadInputError for sources and patches that are not what was declared, BuildError where
    a step fails, CouldNotLookError for what the machine lacks.
    """
    return _Pipeline(request, workspace, listen or (lambda _name, _result: None)).run()


class _Pipeline:
    """The steps of one cell; each method is one step and returns its result."""

    def __init__(self, request: BuildRequest, workspace: Workspace, listen: StepListener) -> None:
        self.request = request
        self.workspace = workspace
        self.listen = listen
        self.folder = workspace.cell(request.cell.identifier)
        self.logs = self.folder / "logs"
        self.results: dict[str, StepResult] = {}

    def run(self) -> BuiltWheel:
        compiler = find_program("g++", hint="install one (Debian, Ubuntu: apt-get install g++)")
        source = self._source()
        patched = self._patches(source)
        environment = self._environment()
        tree = patched.path("tree") / self.request.build_subdir
        if not tree.is_dir():
            message = f"the source has no folder {self.request.build_subdir!r}"
            raise BadInputError(message, hint="correct build_subdir in the recipe")
        requirements = self._requirements(tree, environment)
        toolkit, view, stub = self._toolkit(environment, compiler)
        compiled = self._compile(patched, requirements, environment, view)
        repaired = self._repair(compiled, environment, toolkit)
        tagged = self._retag(repaired)
        return BuiltWheel(
            cell=self.request.cell,
            wheel=tagged.path("wheel"),
            grafted=_lines(repaired, "grafted"),
            requires_dist=_lines(tagged, "requires"),
            environment=environment,
            toolkit=toolkit,
            driver_stub=stub,
            packages=self._dependencies(tagged, environment),
            steps=self.results,
        )

    def _step(
        self,
        name: str,
        inputs: Inputs,
        work: Callable[[Path, Path], Mapping[str, str]],
        *,
        keep: tuple[str, ...] = (),
    ) -> StepResult:
        log = self.logs / f"{name}.log"
        step = Step(name=name, folder=self.folder / name, log=log, inputs=inputs)
        self.listen(name, None)
        result = step.run(lambda folder: work(folder, log), keep=keep)
        self.listen(name, result)
        self.results[name] = result
        return result

    def _source(self) -> StepResult:
        source = self.request.source

        def work(folder: Path, log: Path) -> Mapping[str, str]:
            tree = fetch_source(
                source, folder / "source", downloads=self.workspace.downloads, log=log
            )
            return {"tree": str(tree.relative_to(folder))}

        return self._step("source", source_inputs(source), work)

    def _patches(self, source: StepResult) -> StepResult:
        request = self.request
        script = request.patch_script

        def work(folder: Path, log: Path) -> Mapping[str, str]:
            tree = folder / "tree"
            shutil.copytree(source.path("tree"), tree, symlinks=True)
            apply_patches(tree, request.patches, log=log)
            if script is not None:
                run_patch_script(tree, script, log=log)
            return {"tree": "tree"}

        inputs = {
            "source": dict(source_inputs(request.source)),
            "patches": [sha256(path) for path in request.patches],
            "script": None if script is None else sha256(script),
        }
        return self._step("patches", inputs, work)

    def _environment(self) -> Environment:
        cell = self.request.cell
        spec = EnvironmentSpec(
            python=self.request.build_python,
            accelerator=cell.identifier.accelerator,
            torch=cell.torch_release,
            components=self.request.cuda_components,
        )
        log = self.logs / "environment.log"
        self.listen("environment", None)
        environment, result = make_environment(spec, self.workspace, log=log)
        check_torch(environment, spec)
        self.listen("environment", result)
        self.results["environment"] = result
        return environment

    def _requirements(self, tree: Path, environment: Environment) -> StepResult:
        wanted = build_requirements(tree, self.request.extra_deps)

        def work(folder: Path, log: Path) -> Mapping[str, str]:
            install_requirements(environment, wanted, folder / "packages", log=log)
            return {"packages": "packages"}

        inputs: Inputs = {
            "requirements": list(wanted),
            "environment": self.results["environment"].key,
        }
        return self._step("requirements", inputs, work)

    def _toolkit(self, environment: Environment, compiler: Path) -> tuple[Toolkit, Path, Path]:
        accelerator = self.request.cell.identifier.accelerator
        toolkit = find_toolkit(
            accelerator.version,
            "wheels" if has_wheel_toolkit(accelerator) else "system",
            python=environment.python,
            needs=("host", "device", "device-link", "link"),
        )
        headers = next(folder for folder in toolkit.include_dirs if (folder / "cuda.h").is_file())
        stub = make_driver_stub(headers, self.folder / "driver", compiler=compiler)
        return toolkit, make_view(toolkit, self.folder / "cuda", stub=stub), stub.parent

    def _compile(
        self, patched: StepResult, requirements: StepResult, environment: Environment, view: Path
    ) -> StepResult:
        request = self.request
        jobs = choose_jobs(read_machine(), most=request.max_jobs)

        def work(folder: Path, log: Path) -> Mapping[str, str]:
            tree = folder / "tree"
            shutil.copytree(patched.path("tree"), tree, symlinks=True)
            spec = CompileSpec(
                tree=tree / request.build_subdir,
                environment=environment,
                seat=self._seat(folder, environment, view),
                pure=request.pure,
                archs=request.archs,
                jobs=jobs,
                nvcc_threads=request.nvcc_threads,
                nvcc_flags=request.nvcc_flags,
                extra_path=(requirements.path("packages") / "bin",),
                python_path=(requirements.path("packages"),),
                extra_environment=request.environment,
            )
            if request.pre_build_script:
                added = run_prebuild_script(
                    request.pre_build_script, spec.tree, compile_environment(spec), log=log
                )
                spec = replace(spec, extra_environment={**request.environment, **added})
            wheel = compile_wheel(spec, folder / "wheel", log=log)
            files.remove(tree)
            return {"wheel": str(wheel.relative_to(folder)), "calls": "seat/calls.jsonl"}

        inputs = {
            "patches": patched.key,
            "requirements": requirements.key,
            "subdir": request.build_subdir,
            "archs": str(request.archs),
            "environment": dict(request.environment),
            "pre_build_script": request.pre_build_script or None,
            "nvcc_threads": request.nvcc_threads,
            "nvcc_flags": request.nvcc_flags,
            "pure": request.pure,
        }
        return self._step("compile", inputs, work)

    def _seat(self, folder: Path, environment: Environment, view: Path) -> Seat:
        """Prepare the seat of one compile, with the cache of all builds of this (CUDA, torch)."""
        cell = self.request.cell
        store = f"{cell.identifier.accelerator}-torch{cell.torch_release}"
        cache = find_cache(self.workspace.cache / "compilers" / store)
        if isinstance(cache, NoCache):
            logger.warning("compiling without a cache: %s", cache.reason)
        folders = {"python": environment.interpreter.include}
        if environment.torch is not None:
            folders["torch"] = environment.torch.folder
        return prepare_seat(
            SeatSpec(
                root=folder,
                folder=folder / "seat",
                toolkit=view,
                folders=folders,
                cache=None if isinstance(cache, NoCache) else cache,
                path=os.pathsep.join(system_path()),
            )
        )

    def _repair(
        self, compiled: StepResult, environment: Environment, toolkit: Toolkit
    ) -> StepResult:
        request = self.request

        def work(folder: Path, log: Path) -> Mapping[str, str]:
            wheel = compiled.path("wheel")
            if WheelName.parse(wheel.name).platforms == ("any",):
                files.copy(wheel, folder / wheel.name)
                return {"wheel": wheel.name}
            torch = () if environment.torch is None else (environment.torch.folder / "lib",)
            repaired = repair_wheel(
                wheel,
                folder / "repaired",
                library_folders=(*torch, *toolkit.library_dirs),
                floor=request.glibc_floor,
                log=log,
            )
            (folder / "grafted").write_text("\n".join(repaired.grafted), encoding="utf-8")
            return {"wheel": str(repaired.wheel.relative_to(folder)), "grafted": "grafted"}

        floor = None if request.glibc_floor is None else str(request.glibc_floor)
        # Decided by content: a compile that was forced and gave other bytes is repaired anew.
        inputs = {"wheel": sha256(compiled.path("wheel")), "floor": floor}
        return self._step("repair", inputs, work)

    def _retag(self, repaired: StepResult) -> StepResult:
        request = self.request
        cell = request.cell.identifier

        def work(folder: Path, log: Path) -> Mapping[str, str]:
            wheel = repaired.path("wheel")
            requires = request.requires_dist
            if requires is None:
                requires = curated_requirements(
                    upstream_requirements(wheel),
                    policy=request.requirements,
                    axis=request.torch_axis,
                    torch=cell.torch,
                    from_torch=request.from_torch,
                    libraries=needed_outside(wheel),
                    cuda_major=cell.accelerator.major,
                    release=request.cell.torch_release if request.torch_pinned else None,
                )
            tagged = retag_wheel(
                wheel,
                folder,
                cell=cell,
                platform_tag=wheel.stem.rpartition("-")[2],
                requires_dist=requires,
                build=request.build_tag,
            )
            files.write_text(log, f"{wheel.name} -> {tagged.name}\n")
            (folder / "requires").write_text("\n".join(requires), encoding="utf-8")
            return {"wheel": tagged.name, "requires": "requires"}

        inputs = {
            "wheel": sha256(repaired.path("wheel")),
            "cell": str(cell),
            "policy": request.requirements,
            "axis": request.torch_axis,
            "from_torch": None if request.from_torch is None else str(request.from_torch),
            "requires": None if request.requires_dist is None else list(request.requires_dist),
            "build": request.build_tag,
            "pinned": request.torch_pinned,
        }
        return self._step("retag", inputs, work)

    def _dependencies(self, tagged: StepResult, environment: Environment) -> Path:
        """Install what the wheel requires, as a user would, and return where it is."""
        wanted = installable(_lines(tagged, "requires"), self.request.siblings)

        def work(folder: Path, log: Path) -> Mapping[str, str]:
            site = install_dependencies(environment, wanted, folder / "environment", log=log)
            return {"packages": str(site.relative_to(folder))}

        inputs: Inputs = {
            "requirements": list(wanted),
            "environment": self.results["environment"].key,
        }
        return self._step("dependencies", inputs, work).path("packages")


def _lines(result: StepResult, name: str) -> tuple[str, ...]:
    """Return the lines of a step's output; none where the step has no such output."""
    if name not in result.outputs:
        return ()
    return tuple(filter(None, result.path(name).read_text(encoding="utf-8").split("\n")))
