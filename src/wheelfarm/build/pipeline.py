"""From a cell and what is to be built to a repaired, retagged wheel: the steps in their order.

source -> patches -> environment -> requirements -> compile -> repair -> retag. Each is keyed by
its inputs and the key of the step before; a second run does only what changed or was cut short.
"""

import logging
import shutil
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path

from wheelfarm import files
from wheelfarm.build.dependencies import install_dependencies, installable
from wheelfarm.build.environment import (
    Environment,
    EnvironmentSpec,
    check_torch,
    has_wheel_toolkit,
    make_environment,
)
from wheelfarm.build.part import Prepared, compile_part, job_cache
from wheelfarm.build.patches import apply_patches, run_patch_script
from wheelfarm.build.repair import repair_wheel, tag_at_floor
from wheelfarm.build.request import BuildRequest, BuiltWheel, source_inputs
from wheelfarm.build.requirements import build_requirements, install_requirements
from wheelfarm.build.retag import (
    curated_requirements,
    needed_outside,
    retag_wheel,
    upstream_requirements,
)
from wheelfarm.build.source import fetch_source
from wheelfarm.build.steps import Inputs, InputValue, Step, StepResult
from wheelfarm.build.workspace import Workspace, require_plain_path
from wheelfarm.errors import BadInputError
from wheelfarm.files import sha256
from wheelfarm.identity import code_identity
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.run import find_program
from wheelfarm.toolkit.find import find_toolkit
from wheelfarm.toolkit.floor.binutils import host_compiler
from wheelfarm.toolkit.floor.prepare import Floor, prepare_floor
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
    return Pipeline(request, workspace, listen or (lambda _name, _result: None)).run()


class Pipeline:
    """The steps of one cell; each method is one step and returns its result."""

    def __init__(self, request: BuildRequest, workspace: Workspace, listen: StepListener) -> None:
        self.request = request
        self.workspace = workspace
        self.listen = listen
        self.folder = workspace.cell(request.cell.identifier)
        self.logs = self.folder / "logs"
        self.results: dict[str, StepResult] = {}
        self.floor: Floor | None = None
        self.costs = workspace.costs(request.cell.identifier.package)

    def run(self) -> BuiltWheel:
        """Build the cell in one job."""
        prepared = self.prepare()
        return self.finish(self._compile(prepared), prepared)

    def prepare(self) -> Prepared:
        """Run the steps that every job of the cell starts with."""
        require_plain_path(self.workspace.root, "move what is built to a folder of a plain name")
        require_plain_path(self.workspace.cache, "set WHEELFARM_CACHE to a folder of a plain name")
        compiler = find_program("g++", hint="install one (Debian, Ubuntu: apt-get install g++)")
        patched = self._patches(self._source())
        environment = self._environment()
        tree = patched.path("tree") / self.request.build_subdir
        if not tree.is_dir():
            message = f"the source has no folder {self.request.build_subdir!r}"
            raise BadInputError(message, hint="correct build_subdir in the recipe")
        requirements = self._requirements(tree, environment)
        toolkit, view, stub = self._toolkit(environment, compiler)
        self.floor = self._floor()
        cell = self.request.cell
        store = f"{cell.identifier.accelerator}-torch{cell.torch_release}"
        return Prepared(
            request=self.request,
            tree=patched.path("tree"),
            packages=requirements.path("packages"),
            environment=environment,
            toolkit=toolkit,
            view=view,
            driver_stub=stub,
            kept=self.workspace.compilers / store,
            floor=self.floor,
            peak=self.costs.peak(),
        )

    def finish(self, compiled: StepResult, prepared: Prepared) -> BuiltWheel:
        """Repair and retag the wheel that a compile left."""
        repaired = self._repair(compiled, prepared.environment, prepared.toolkit)
        tagged = self._retag(repaired)
        return BuiltWheel(
            cell=self.request.cell,
            wheel=tagged.path("wheel"),
            grafted=_lines(repaired, "grafted"),
            requires_dist=_lines(tagged, "requires"),
            environment=prepared.environment,
            toolkit=prepared.toolkit,
            driver_stub=prepared.driver_stub,
            packages=self._dependencies(tagged, prepared.environment),
            steps=self.results,
        )

    def step(
        self,
        name: str,
        inputs: Inputs,
        work: Callable[[Path, Path], Mapping[str, str]],
        *,
        keep: tuple[str, ...] = (),
    ) -> StepResult:
        """Run one step of the cell in a folder of its name, with a log of its name."""
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

        return self.step("source", source_inputs(source), work)

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
        return self.step("patches", inputs, work)

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
        return self.step("requirements", inputs, work)

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

    def _floor(self) -> Floor | None:
        """Make the libraries of the floor's glibc ready, where this machine's is newer."""
        request = self.request
        if request.floor is None:
            return None
        return prepare_floor(
            request.floor,
            host_compiler(),
            cache=self.workspace.cache / "floors",
            libstdcxx=request.libstdcxx,
        )

    def _compile(self, prepared: Prepared) -> StepResult:
        def work(folder: Path, log: Path) -> Mapping[str, str]:
            cache = job_cache(prepared, folder / "cache")
            part = compile_part(prepared, folder, log=log, cache=cache)
            files.remove(folder / "cache")
            self.costs.add(part.calls)
            return {"wheel": str(part.wheel.relative_to(folder)), "calls": "seat/calls.jsonl"}

        return self.step("compile", self.compile_inputs(), work)

    def compile_inputs(self) -> dict[str, InputValue]:
        """Return what the compile of every job depends on."""
        request = self.request
        return {
            "patches": self.results["patches"].key,
            "requirements": self.results["requirements"].key,
            "subdir": request.build_subdir,
            "archs": str(request.archs),
            "environment": dict(request.environment),
            "pre_build_script": request.pre_build_script or None,
            "nvcc_threads": request.nvcc_threads,
            "nvcc_flags": request.nvcc_flags,
            "pure": request.pure,
            "floor": None if self.floor is None else self.floor.folder.name,
        }

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
                floor=request.floor,
                log=log,
            )
            (folder / "grafted").write_text("\n".join(repaired.grafted), encoding="utf-8")
            return {"wheel": str(repaired.wheel.relative_to(folder)), "grafted": "grafted"}

        floor = None if request.floor is None else str(request.floor)
        # Decided by content: a compile that was forced and gave other bytes is repaired anew.
        inputs = {
            "wheel": sha256(compiled.path("wheel")),
            "floor": floor,
            "code": _code(),
            "auditwheel": version("auditwheel"),
        }
        return self.step("repair", inputs, work)

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
                platform_tag=tag_at_floor(wheel.stem.rpartition("-")[2], request.floor),
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
            "floor": None if request.floor is None else str(request.floor),
            "code": _code(),
        }
        return self.step("retag", inputs, work)

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
        return self.step("dependencies", inputs, work).path("packages")


def _code() -> str:
    """Return the state of what repairs and names wheels: cheap steps, made again by newer code."""
    return code_identity("build", "facts", "model")


def _lines(result: StepResult, name: str) -> tuple[str, ...]:
    """Return the lines of a step's output; none where the step has no such output."""
    if name not in result.outputs:
        return ()
    return tuple(filter(None, result.path(name).read_text(encoding="utf-8").split("\n")))
