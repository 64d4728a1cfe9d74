"""The survey of one tree: a folder comes in, the verdict with its evidence goes out."""

from collections.abc import Callable
from pathlib import Path

from wheelfarm.errors import BadInputError
from wheelfarm.survey import backends
from wheelfarm.survey.findings import Finding, conclude
from wheelfarm.survey.model import SurveyResult
from wheelfarm.survey.other_builds import survey_bazel, survey_build_toml, survey_meson
from wheelfarm.survey.pyproject import LEGACY, Pyproject, read_pyproject
from wheelfarm.survey.tree import Tree, normal

#: Names under which a tree keeps a setup.py that something else has yet to fill in.
_TEMPLATES = ("setup.py.in", "setup.py.template", "setup.py.tmpl", "setup.py.j2", "setup.py.jinja")


def survey_tree(root: Path, *, subdir: str = "") -> SurveyResult:
    """Return whether a plain build of the tree in ``root`` links libtorch.

    ``subdir`` is the folder that holds the package's build files, relative to ``root``. Only build
    files are read, and nothing of the tree is run. A tree without build files is ``unknown``.
    Raises BadInputError where the folder does not exist.
    """
    tree = Tree(root)
    project = normal(subdir)
    if not tree.is_dir(project):
        message = f"{root} has no folder {subdir!r}" if subdir else f"{root} is no folder"
        raise BadInputError(message)
    declared = read_pyproject(tree, project)
    for applies, survey in _SURVEYS:
        if applies(tree, project, declared):
            findings, name = survey(tree, project, declared)
            return conclude(findings, name)
    nothing = Finding(
        shows="unknown", file=project or ".", line=0, sentence="there are no build files here"
    )
    return conclude([nothing], "")


_Applies = Callable[[Tree, str, Pyproject], bool]
_Survey = Callable[[Tree, str, Pyproject], tuple[list[Finding], str]]


def _file(project: str, name: str) -> str:
    return f"{project}/{name}".lstrip("/")


def _has(*names: str) -> _Applies:
    return lambda tree, project, _declared: any(
        tree.is_file(_file(project, name)) for name in names
    )


def _faulty(tree: Tree, project: str, declared: Pyproject) -> bool:
    del tree, project
    return bool(declared.fault)


def _fault(tree: Tree, project: str, declared: Pyproject) -> tuple[list[Finding], str]:
    del tree, project
    why = f"cannot be read: {declared.fault}"
    return [Finding(shows="unknown", file=declared.file, line=0, sentence=why)], ""


def _kernel_builder(tree: Tree, project: str, declared: Pyproject) -> bool:
    del declared
    text = tree.text(_file(project, "build.toml"))
    return text is not None and "[general]" in text


def _build_toml(tree: Tree, project: str, declared: Pyproject) -> tuple[list[Finding], str]:
    del declared
    return survey_build_toml(tree, _file(project, "build.toml")), "kernel-builder"


def _foreign_backend(tree: Tree, project: str, declared: Pyproject) -> bool:
    """Return whether a build backend other than setuptools is named."""
    del tree, project
    return declared.backend not in {LEGACY, "setuptools.build_meta"}


def _setuptools(tree: Tree, project: str, declared: Pyproject) -> bool:
    return (
        tree.is_file(_file(project, "setup.py"))
        or tree.is_file(_file(project, "setup.cfg"))
        or (declared.present and declared.backend != LEGACY)
        or (declared.present and "setuptools" in declared.tool)
    )


def _template(tree: Tree, project: str, _declared: Pyproject) -> tuple[list[Finding], str]:
    name = next(name for name in _TEMPLATES if tree.is_file(_file(project, name)))
    return backends.survey_template(tree, project, _file(project, name)), "setup.py template"


def _cmake(tree: Tree, project: str, _declared: Pyproject) -> tuple[list[Finding], str]:
    from wheelfarm.survey.cmake_build import survey_cmake  # noqa: PLC0415 - heavy, seldom needed

    return list(survey_cmake(tree, project, ())), "cmake"


def _meson(tree: Tree, project: str, _declared: Pyproject) -> tuple[list[Finding], str]:
    return survey_meson(tree, project), "meson"


def _bazel(tree: Tree, project: str, _declared: Pyproject) -> tuple[list[Finding], str]:
    return survey_bazel(tree, project), "bazel"


def _script(tree: Tree, project: str, declared: Pyproject) -> tuple[list[Finding], str]:
    return backends.survey_setuptools(tree, project, declared), "setuptools"


_SURVEYS: tuple[tuple[_Applies, _Survey], ...] = (
    (_faulty, _fault),
    (_foreign_backend, backends.survey_backend),
    (_setuptools, _script),
    (_kernel_builder, _build_toml),
    (_has(*_TEMPLATES), _template),
    (_has("CMakeLists.txt"), _cmake),
    (_has("meson.build"), _meson),
    (_has("BUILD.bazel", "BUILD", "MODULE.bazel", "WORKSPACE", "WORKSPACE.bazel"), _bazel),
)
