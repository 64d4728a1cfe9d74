"""An author's one project, without a farm: what its files and a few options say of its cell."""

import ast
import platform as machine
import sys
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from wheelfarm import interpreter
from wheelfarm.build.request import BuildRequest
from wheelfarm.build.source import FolderSource
from wheelfarm.errors import BadInputError
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.arch import ArchList
from wheelfarm.model.axis import TorchAxis
from wheelfarm.model.cell import Cell, CellId, cell_name
from wheelfarm.model.platform import LINUX_AARCH64, LINUX_X86_64, Platform
from wheelfarm.model.python import PythonAxis, PythonTag
from wheelfarm.model.versions import Minor, parse_version
from wheelfarm.reading import Reader, read_text, read_toml
from wheelfarm.recipes.recipe import PROJECT_NAME
from wheelfarm.upstream.facts import committed_facts
from wheelfarm.upstream.model import UpstreamFacts
from wheelfarm.verify.subject import Expected

BUILD_FILES = ("pyproject.toml", "setup.py", "setup.cfg")


@dataclass(frozen=True, kw_only=True, slots=True)
class ProjectOptions:
    """What an author may say beside the project's files; None takes the default."""

    name: str | None = None
    version: str | None = None
    cuda: str | None = None
    torch: str | None = None
    python: str | None = None
    archs: str | None = None
    links_torch: bool | None = None
    python_axis: PythonAxis = "exact"
    from_python: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    """What is built from a project's folder, and what is expected of its wheel."""

    request: BuildRequest
    expected: Expected


def read_project(folder: Path, options: ProjectOptions) -> Project:
    """Return the build of a project's folder.

    Raises BadInputError for a folder without build files, one that does not say its name and
    version in a form that can be read without running it, or a torch nobody published.
    """
    name, version = project_identity(folder, options)
    facts = committed_facts()
    platform = this_platform()
    torch, accelerator = choose_torch(facts, platform, options)
    exact = (
        interpreter.here().tag if options.python is None else PythonTag.of_version(options.python)
    )
    axis = torch_axis(options.links_torch)
    identifier = CellId(
        package=cell_name(name),
        version=version,
        accelerator=accelerator,
        torch=Minor.of(torch),
        python=_cell_python(exact, options),
        platform=platform,
    )
    archs = _archs(facts, identifier, options)
    return Project(
        request=BuildRequest(
            cell=Cell(identifier, torch),
            python=exact,
            source=FolderSource(folder=folder.absolute()),
            archs=archs,
            torch_axis=axis,
        ),
        expected=Expected(
            torch_axis=axis,
            torch_axis_stated=options.links_torch is not None,
            archs=archs,
            requirements="pinned",
        ),
    )


def torch_axis(links_torch: bool | None) -> TorchAxis:  # noqa: FBT001 - the value itself
    """Return the torch axis of an author's statement; linked where nothing was stated."""
    return "free" if links_torch is False else "linked"


def project_identity(folder: Path, options: ProjectOptions) -> tuple[str, Version]:
    """Return a project's name and version: the options', else what its files say literally."""
    if not any((folder / file).is_file() for file in BUILD_FILES):
        message = f"{folder} has none of {', '.join(BUILD_FILES)}"
        raise BadInputError(message, hint="name the folder in which the project's build file lies")
    said = {**_from_setup(folder), **_from_pyproject(folder)}
    name = options.name or said.get("name")
    version = options.version or said.get("version")
    if name is None or version is None:
        lacking = "name" if name is None else "version"
        message = f"the files of {folder} do not say the project's {lacking} literally"
        flag = "--name" if name is None else "--project-version"
        raise BadInputError(message, hint=f"state it with {flag}")
    if not PROJECT_NAME.fullmatch(name):
        message = f"{name!r} is no valid package name"
        raise BadInputError(message, hint="letters, digits, '.', '_' and '-'; state it with --name")
    return name, parse_version(version, "project version")


def _from_pyproject(folder: Path) -> dict[str, str]:
    path = folder / "pyproject.toml"
    if not path.is_file():
        return {}
    table = Reader(read_toml(path), str(path)).table("project")
    if table is None:
        return {}
    return {key: table.string(key) for key in ("name", "version") if table.has(key)}


def _from_setup(folder: Path) -> dict[str, str]:
    path = folder / "setup.py"
    if not path.is_file():
        return {}
    try:
        tree = ast.parse(read_text(path))
    except (SyntaxError, ValueError):
        return {}
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or ast.unparse(node.func).split(".")[-1] != "setup":
            continue
        for keyword in node.keywords:
            value = keyword.value
            if (
                keyword.arg in {"name", "version"}
                and isinstance(value, ast.Constant)
                and isinstance(value.value, str)
            ):
                found[keyword.arg] = value.value
    return found


def this_platform() -> Platform:
    """Return this machine's platform; BadInputError where wheels cannot be built on it."""
    if sys.platform == "linux":
        for platform in (LINUX_X86_64, LINUX_AARCH64):
            if machine.machine() == platform.machine:
                return platform
    message = f"wheels are built on Linux, x86_64 or aarch64; this is {sys.platform}"
    raise BadInputError(message)


def choose_torch(
    facts: UpstreamFacts, platform: Platform, options: ProjectOptions
) -> tuple[Version, Accelerator]:
    """Return the torch and the accelerator to build against.

    By default the newest torch of PyPI that fits what was named. Raises BadInputError where
    PyTorch published no such combination.
    """
    cuda = None if options.cuda is None else Accelerator.cuda(Minor.parse(options.cuda))
    torch = None if options.torch is None else parse_version(options.torch, "torch version")
    fitting = [
        release
        for release in facts.releases
        if (cuda is None or release.accelerator == cuda)
        and (torch is None or release.torch == torch)
        and (
            cuda is not None
            or facts.pypi_accelerator(release.torch, platform) == release.accelerator
        )
    ]
    if not fitting:
        wanted = f"torch {options.torch or '(any)'} for CUDA {options.cuda or '(PyPI)'}"
        message = f"PyTorch published no {wanted} on {platform}"
        raise BadInputError(message, hint="`wheelfarm upstream show` lists what is published")
    newest = max(fitting, key=lambda release: (release.torch, release.accelerator))
    return newest.torch, newest.accelerator


def _cell_python(exact: PythonTag, options: ProjectOptions) -> PythonTag:
    if options.python_axis == "none":
        return PythonTag("none")
    if options.python_axis == "abi3":
        floor = exact.version if options.from_python is None else Minor.parse(options.from_python)
        return PythonTag("abi3", floor)
    return exact


def _archs(facts: UpstreamFacts, cell: CellId, options: ProjectOptions) -> ArchList:
    if options.archs is not None:
        return ArchList.parse(options.archs)
    archs = facts.torch_arch_list(cell.accelerator, cell.torch, cell.platform)
    if archs is None:
        message = f"it is not known for which GPUs torch {cell.torch} is built on {cell.platform}"
        raise BadInputError(message, hint="name the architectures with --arch-list")
    return archs
