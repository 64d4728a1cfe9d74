"""``wheelfarm build CELL|PATH``: build one wheel and pass it through the gate."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelfarm.cli.farm_option import add_farm_option, farm_of
from wheelfarm.cli.output import print_json
from wheelfarm.wording import counted

if TYPE_CHECKING:
    from wheelfarm.build.handoff import ShardProduct
    from wheelfarm.build.request import BuildRequest
    from wheelfarm.build.steps import StepResult
    from wheelfarm.build.workspace import Workspace
    from wheelfarm.cli.build_job import Job
    from wheelfarm.cli.progress import StepProgress
    from wheelfarm.engines.cell_job import CellResult
    from wheelfarm.engines.project import ProjectOptions
    from wheelfarm.verify.subject import Expected


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    add_farm_option(parser)
    parser.add_argument(
        "target", metavar="CELL|PATH", help="a cell of the farm, or a project's folder"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where a wheel that passes goes (wheelhouse)"
    )
    parser.add_argument(
        "--floor",
        metavar="2.28",
        help="the oldest glibc that the wheel must run on, or native (default: the policy's; "
        "native for a project's folder)",
    )
    parser.add_argument(
        "--libstdcxx",
        choices=("shared", "static"),
        help="where symbols of libstdc++ that the floor lacks come from (default: the recipe's)",
    )
    parts = parser.add_argument_group("parts of one build", "jobs that may run on other machines")
    parts.add_argument("--shard", metavar="K/N", help="compile one part of N and write its archive")
    parts.add_argument("--link", action="store_true", help="link the parts' archives")
    parts.add_argument(
        "--shards", type=int, metavar="N", help="the number of parts (default: the recipe's)"
    )
    parts.add_argument("--heal", action="store_true", help="compile what missing parts had")
    parts.add_argument(
        "--exchange", type=Path, metavar="DIR", help="where the plan and the archives are"
    )
    proofs = parser.add_argument_group("proofs")
    proofs.add_argument("--twice", action="store_true", help="build again from nothing and compare")
    proofs.add_argument(
        "--against-torch", metavar="A,B", help="prove one binary for these torches (torch-free)"
    )
    project = parser.add_argument_group("a project's folder", "what a farm's policy says elsewhere")
    project.add_argument("--name", help="the project's name (default: what its files say)")
    project.add_argument("--project-version", help="its version (default: what its files say)")
    project.add_argument("--cuda", metavar="13.0", help="the CUDA line (default: PyPI's torch's)")
    project.add_argument("--torch", metavar="2.14.1", help="the torch (default: PyPI's newest)")
    project.add_argument("--python", metavar="3.11", help="the Python (default: this one)")
    project.add_argument("--arch-list", metavar="8.0;9.0+PTX", help="the GPU architectures")
    project.add_argument(
        "--links-torch", choices=("true", "false"), help="what the gate must find (default: true)"
    )
    project.add_argument(
        "--python-axis",
        choices=("exact", "abi3", "none"),
        default="exact",
        help="for which Pythons the wheel is: this one, all from a floor on, or any",
    )
    project.add_argument("--from-python", metavar="3.9", help="the floor of an abi3 wheel")


def execute(arguments: argparse.Namespace) -> int:
    """Build, judge, and print the wheel and its report; 1 where the gate refuses the wheel."""
    from wheelfarm.build.workspace import Workspace
    from wheelfarm.cli.build_job import Job
    from wheelfarm.errors import BadInputError
    from wheelfarm.model.cell import JobId
    from wheelfarm.run import guard_children

    # A killed build leaves no pip and no compiler behind that a second run would meet.
    guard_children()
    path = Path(arguments.target)
    if path.is_dir():
        from wheelfarm.engines.project import read_project

        project = read_project(path, _project_options(arguments))
        workspace = Workspace.of(path)
        job = Job.of_arguments(arguments)
        return _run(arguments, project.request, project.expected, workspace, job)
    from wheelfarm.engines.farm_cells import find_farm_cell
    from wheelfarm.engines.farm_files import farm_workspace

    try:
        job_id = JobId.parse(arguments.target)
    except BadInputError as error:
        message = f"{arguments.target!r} is neither a folder that is there nor a cell"
        raise BadInputError(message, cause=error.what, hint=error.hint) from error
    farm = farm_of(arguments)
    cell = find_farm_cell(farm, job_id.cell)
    workspace = farm_workspace(farm)
    job = Job.of_arguments(arguments, job_id, cell.recipe.sharding)
    return _run(arguments, cell.request, cell.expected, workspace, job)


def _project_options(arguments: argparse.Namespace) -> "ProjectOptions":
    from wheelfarm.engines.project import ProjectOptions

    links = arguments.links_torch
    return ProjectOptions(
        name=arguments.name,
        version=arguments.project_version,
        cuda=arguments.cuda,
        torch=arguments.torch,
        python=arguments.python,
        archs=arguments.arch_list,
        links_torch=None if links is None else links == "true",
        python_axis=arguments.python_axis,
        from_python=arguments.from_python,
    )


def _run(
    arguments: argparse.Namespace,
    request: "BuildRequest",
    expected: "Expected",
    workspace: "Workspace",
    job: "Job",
) -> int:
    from wheelfarm import files
    from wheelfarm.cli.progress import StepProgress
    from wheelfarm.engines.cell_job import run_cell

    wheelhouse = arguments.out or workspace.root.parent / "wheelhouse"
    files.require_folder(wheelhouse, "the wheelhouse")
    if arguments.exchange is not None:
        files.require_folder(arguments.exchange, "the exchange")
    request, expected = _at_floor(arguments, request, expected)
    with StepProgress(str(request.cell), quiet=bool(arguments.quiet)) as progress:
        cell = job.sharded(request, workspace, progress.step)
        if cell is not None and job.shard:
            return _print_shard(arguments, cell.build_shard(job.shard), cell.plan_file)
        result = run_cell(
            request,
            expected,
            workspace,
            wheelhouse=wheelhouse,
            build=None if cell is None else lambda: job.wheel(cell),
            listen=progress.step,
        )
        proofs = _prove(arguments, request, workspace, result, progress)
    if arguments.json:
        print_json("wheelfarm.build/1", {**_document(result), "proofs": proofs})
    else:
        _print(result)
        for proof in proofs:
            print(f"proof:  {proof}")
    return {"pass": 0, "fail": 1, "could-not-look": 2}[result.report.verdict]


def _at_floor(
    arguments: argparse.Namespace, request: "BuildRequest", expected: "Expected"
) -> "tuple[BuildRequest, Expected]":
    """Return what is built and expected with the floor of the command line in its place."""
    from wheelfarm.facts.manylinux import require_tag
    from wheelfarm.recipes.parts import glibc_floor
    from wheelfarm.values import replace

    if arguments.libstdcxx is not None:
        request = replace(request, libstdcxx=arguments.libstdcxx)
    if arguments.floor is None:
        return request, expected
    floor = None if arguments.floor == "native" else glibc_floor(arguments.floor)
    if floor is not None:
        require_tag(floor)
    return replace(request, floor=floor), replace(expected, glibc=floor)


def _prove(
    arguments: argparse.Namespace,
    request: "BuildRequest",
    workspace: "Workspace",
    result: "CellResult",
    progress: "StepProgress",
) -> list[str]:
    """Carry out the proofs that were asked for; each raises where it fails."""
    from wheelfarm.engines.reproduce import prove_torch_free, prove_twice
    from wheelfarm.model.versions import parse_version

    proofs = []
    if arguments.twice:
        twice = prove_twice(request, workspace, result.built.wheel, listen=progress.step)
        proofs.append(f"two builds gave the same bytes in {counted(len(twice.members), 'member')}")
    if arguments.against_torch:
        releases = [parse_version(word) for word in arguments.against_torch.split(",")]
        free = prove_torch_free(request, workspace, releases, listen=progress.step)
        names = ", ".join(free.members)
        proofs.append(f"one binary for torch {' and '.join(map(str, releases))}: {names}")
    return proofs


def _print_shard(arguments: argparse.Namespace, product: "ShardProduct", plan: Path) -> int:
    document = {
        "shard": product.shard,
        "archive": str(product.archive),
        "sha256": product.sha256,
        "bytes": product.bytes,
        "results": product.results,
        "plan": str(plan),
    }
    if arguments.json:
        print_json("wheelfarm.build-shard/1", document)
    else:
        for name, value in document.items():
            print(f"{name}: {value}")
    return 0


def _document(result: "CellResult") -> dict[str, Any]:
    toolkit = result.built.toolkit
    return {
        "cell": str(result.built.cell),
        "wheel": str(result.wheel),
        "sha256": result.report.sha256,
        "verdict": result.report.verdict,
        "report": str(result.report_path),
        "grafted": list(result.built.grafted),
        "environment": str(result.built.environment.folder),
        "toolkit": {
            "nvcc": str(toolkit.nvcc),
            "include": [str(path) for path in toolkit.include_dirs],
            "library": [str(path) for path in toolkit.library_dirs],
            "outside": {
                name: str(path)
                for name, path in toolkit.outside(result.built.environment.folder).items()
            },
        },
        "steps": {name: _step(step) for name, step in result.built.steps.items()},
    }


def _step(step: "StepResult") -> dict[str, Any]:
    return {"seconds": step.seconds, "reused": step.reused}


def _print(result: "CellResult") -> None:
    from wheelfarm.cli.verify import print_report

    print_report(result.report)
    for name in result.built.grafted:
        print(f"grafted: {name}")
    print(f"wheel:  {result.wheel}")
    print(f"report: {result.report_path}")
