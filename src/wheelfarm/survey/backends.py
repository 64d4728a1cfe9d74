"""What each PEP 517 build backend ships: the folder and its pyproject.toml in, findings out."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from wheelfarm.survey import torch_names
from wheelfarm.survey.cmake_build import survey_cmake
from wheelfarm.survey.engine import Engine, ExhaustedError
from wheelfarm.survey.findings import Finding
from wheelfarm.survey.other_builds import survey_meson
from wheelfarm.survey.programs import command_findings
from wheelfarm.survey.pyproject import Pyproject
from wheelfarm.survey.setuptools_build import survey_script
from wheelfarm.survey.tree import Tree, normal

if TYPE_CHECKING:
    from wheelfarm.survey.guards import Guards

#: Backends that compile nothing of their own.
_PURE = frozenset({
    "flit_core.buildapi", "hatchling.build", "poetry.core.masonry.api", "pdm.backend", "uv_build",
    "poetry_core.masonry.api", "jupyter_packaging.build_api", "flit.buildapi", "pdm.pep517.api",
    "poetry.masonry.api", "trampolim", "whey",
})  # fmt: skip

Found = tuple[list[Finding], str]


def survey_backend(tree: Tree, project: str, declared: Pyproject) -> Found:
    """Return what the named backend ships, and the build system's name."""
    if declared.in_tree:
        return _in_tree(tree, project, declared), "in-tree backend"
    module = declared.backend.partition(":")[0]
    follow = _BACKENDS.get(module)
    if follow is not None:
        return follow(tree, project, declared)
    if module in _PURE:
        return _pure(tree, project, declared), module.split(".")[0]
    sentence = f"the build backend {module} is not followed"
    return [_place(declared, "unknown", sentence)], module


def _place(declared: Pyproject, shows: Any, sentence: str, word: str = "build-backend") -> Finding:
    return Finding(
        shows=shows, file=declared.file, line=declared.line(word), sentence=sentence
    )  # fmt: skip


def survey_setuptools(tree: Tree, project: str, declared: Pyproject) -> list[Finding]:
    """Return what setuptools ships: of setup.py, and of extension modules in pyproject.toml."""
    script = f"{project}/setup.py".lstrip("/")
    found = _declared_extensions(declared)
    if declared.table("setuptools", "cmdclass"):
        sentence = "build commands named here are not followed"
        found.append(_place(declared, "unknown", sentence, "cmdclass"))
    if tree.is_file(script):
        return found + survey_script(tree, project, script)
    if found:
        return found
    config = f"{project}/setup.cfg".lstrip("/")
    where = config if tree.is_file(config) and not declared.present else declared.file
    sentence = "setuptools builds without a setup.py, and no extension modules are declared"
    return [Finding(shows="free", file=where, line=0, sentence=sentence)]


def _declared_extensions(declared: Pyproject) -> list[Finding]:
    modules = declared.table("setuptools").get("ext-modules")
    found = []
    for module in modules if isinstance(modules, list) else []:
        if not isinstance(module, dict):
            continue
        words = [
            str(word)
            for key in ("libraries", "extra-link-args", "extra-objects")
            for word in _listed(module.get(key))
        ]
        named = torch_names.torch_library(words)
        sentence = f"the extension {module.get('name')} links {named or 'no library of torch'}"
        found.append(_place(declared, "linked" if named else "free", sentence, "ext-modules"))
    return found


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _pure(tree: Tree, project: str, declared: Pyproject) -> list[Finding]:
    """Return what a backend ships that compiles nothing, unless a hook or script is named."""
    hooks = declared.table("hatch", "build", "hooks")
    wheel_hooks = declared.table("hatch", "build", "targets", "wheel", "hooks")
    if declared.backend.startswith("hatchling"):
        for name, options in {**hooks, **wheel_hooks}.items():
            if name in {
                "vcs",
                "version",
                "jupyter-builder",
                "fancy-pypi-readme",
                "requirements_txt",
            }:
                continue
            path = options.get("path", "hatch_build.py") if isinstance(options, dict) else ""
            if name == "custom":
                return _hook(tree, project, declared, str(path))
            if name == "scikit-build":
                return _scikit(tree, project, declared)[0]
            return [_place(declared, "unknown", f"the hatch hook {name} is not followed", name)]
    build = declared.table("poetry").get("build")
    script = build.get("script") if isinstance(build, dict) else build
    if isinstance(script, str):
        return _hook(tree, project, declared, script)
    setup_script = declared.table("pdm", "build").get("setup-script")
    if setup_script:
        return _hook(tree, project, declared, str(setup_script))
    backend = declared.backend.partition(":")[0]
    return [_place(declared, "free", f"{backend} compiles nothing and no build hook is named")]


def _hook(tree: Tree, project: str, declared: Pyproject, path: str) -> list[Finding]:
    """Return what a build hook's script does, as far as its top level and functions show it."""
    file = normal(f"{project}/{path}")
    engine = Engine(tree, project)
    try:
        module = engine.read_script(file)
        if module is not None:
            _run_hooks(engine, module)
    except (ExhaustedError, RecursionError):
        return [_place(declared, "unknown", f"the build hook {file} is too long to follow")]
    if module is None:
        return [_place(declared, "unknown", f"the build hook {file} cannot be read")]
    return _engine_findings(engine, file, declared)


#: What a front end calls for a wheel (PEP 517), else what poetry and pdm call.
_HOOKS = ("build_wheel", "build", "setup", "main", "run")


def _run_hooks(engine: Engine, module: Any) -> None:
    from wheelfarm.survey.calls import invoke  # noqa: PLC0415 - only hooks need it
    from wheelfarm.survey.engine import Frame  # noqa: PLC0415
    from wheelfarm.survey.values import Function, Instance, Klass, Unknown  # noqa: PLC0415

    frame = Frame(module.scope, module.file)
    functions = [module.scope.names.get(name) for name in _HOOKS]
    called = [each for each in functions if isinstance(each, Function)][:1]
    for function in called:
        invoke(engine, function, [Unknown()] * 3, {}, frame)
    for value in list(module.scope.names.values()):
        if isinstance(value, Klass) and value.file == module.file:
            for name, method in list(value.scope.names.items()):
                if isinstance(method, Function) and name in {"initialize", "finalize"}:
                    invoke(engine, method, [Instance(value), "standard", Unknown()], {}, frame)


def _engine_findings(engine: Engine, file: str, declared: Pyproject) -> list[Finding]:
    from wheelfarm.survey.extensions import TORCH_EXTENSIONS  # noqa: PLC0415

    found: list[Finding] = []
    for built in engine.built:
        torch = built.factory in TORCH_EXTENSIONS
        kind = built.factory.rpartition(".")[2]
        sentence = f"{kind} links torch's libraries" if torch else f"{kind} in the build hook"
        found.append(
            Finding(
                shows="linked" if torch else "unknown", file=built.file, line=built.line,
                sentence=sentence, guards=built.guards,
            )
        )  # fmt: skip
    found += command_findings(engine)
    if not found:
        sentence = "the build hook starts no compiler and makes no extension"
        found.append(Finding(shows="free", file=file, line=0, sentence=sentence))
    del declared
    return found


def _in_tree(tree: Tree, project: str, declared: Pyproject) -> list[Finding]:
    """Return what a backend in the tree ships: its own work, and that of the one it wraps."""
    text = tree.text(declared.in_tree) or ""
    wrapped = _wrapped(text)
    if wrapped is None:
        return [_place(declared, "unknown", f"{declared.in_tree} wraps no backend that is known")]
    own = [
        each
        for each in _hook(tree, project, declared, _inside(project, declared.in_tree))
        if each.shows != "free"
    ]
    inner = Pyproject(
        file=declared.file, present=True, backend=wrapped, tool=declared.tool, lines=declared.lines
    )
    if wrapped == "setuptools.build_meta":
        return own + survey_setuptools(tree, project, inner)
    return own + survey_backend(tree, project, inner)[0]


def _inside(project: str, file: str) -> str:
    return file[len(project) + 1 :] if project and file.startswith(f"{project}/") else file


_IMPORTS = re.compile(
    r"^\s*(?:from\s+([\w.]+)\s+import\s+(\w+|\*|\()|import\s+([\w.]+))", re.MULTILINE
)


def _wrapped(text: str) -> str | None:
    """Return the one backend that an in-tree backend imports."""
    names = set()
    for source, name, module in _IMPORTS.findall(text):
        for dotted in (module, source, f"{source}.{name}"):
            if dotted in _BACKENDS or dotted in _PURE or dotted == "setuptools.build_meta":
                names.add(dotted)
    return names.pop() if len(names) == 1 else None


def _scikit(tree: Tree, project: str, declared: Pyproject) -> Found:
    """Return what scikit-build-core ships: the CMake project that pyproject.toml names."""
    settings = declared.table("scikit-build")
    if declared.table("scikit-build", "wheel").get("cmake") is False:
        return [
            _place(declared, "free", "scikit-build-core runs no CMake here", "cmake")
        ], "scikit-build-core"
    source = declared.table("scikit-build", "cmake").get("source-dir", ".")
    folder = normal(f"{project}/{source}") if isinstance(source, str) else project
    defines: list[tuple[str, Guards]] = [("-DSKBUILD=2", ())]
    for key, value in declared.table("scikit-build", "cmake", "define").items():
        text = {True: "ON", False: "OFF"}.get(value, value) if isinstance(value, bool) else value
        if isinstance(text, (str, int, float)):
            defines.append((f"-D{key}={text}", ()))
    arguments = declared.table("scikit-build", "cmake").get("args")
    words = arguments if isinstance(arguments, list) else []
    defines += [(word, ()) for word in words if str(word).startswith("-D")]
    found = list(survey_cmake(tree, folder, defines, installed_only=True))
    if settings.get("overrides"):
        found.append(
            _place(declared, "none", "scikit-build-core overrides are not followed", "overrides")
        )
    return found, "scikit-build-core"


def _py_build_cmake(tree: Tree, project: str, declared: Pyproject) -> Found:
    source = declared.table("py-build-cmake", "cmake").get("source_path", ".")
    folder = normal(f"{project}/{source}") if isinstance(source, str) else project
    return list(survey_cmake(tree, folder, (), installed_only=True)), "py-build-cmake"


def _mesonpy(tree: Tree, project: str, _declared: Pyproject) -> Found:
    return survey_meson(tree, project), "meson-python"


def _maturin(tree: Tree, project: str, declared: Pyproject) -> Found:
    manifest = declared.table("maturin").get("manifest-path", "Cargo.toml")
    file = normal(f"{project}/{manifest}")
    text = tree.text(file)
    if text is None:
        return [_place(declared, "unknown", f"there is no {file}")], "maturin"
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*\[?(?:dependencies\.)?(tch|torch-sys|pyo3-tch|libtorch-sys)\b", line):
            sentence = "the crate links libtorch"
            return [Finding(shows="linked", file=file, line=number, sentence=sentence)], "maturin"
    sentence = "no crate that links libtorch"
    return [Finding(shows="free", file=file, line=0, sentence=sentence)], "maturin"


def _setuptools_variant(tree: Tree, project: str, declared: Pyproject) -> Found:
    return survey_setuptools(tree, project, declared), "setuptools"


_BACKENDS: dict[str, Callable[[Tree, str, Pyproject], Found]] = {
    "scikit_build_core.build": _scikit,
    "scikit_build_core.setuptools.build_meta": _setuptools_variant,
    "py_build_cmake.build": _py_build_cmake,
    "mesonpy": _mesonpy,
    "maturin": _maturin,
    "setuptools.build_meta": _setuptools_variant,
}


def survey_template(tree: Tree, project: str, file: str) -> list[Finding]:
    """Return what a setup.py template ships once something fills it in.

    Placeholders stand for unknown text. A template that shows no torch stays unknown: what fills
    it in may say anything.
    """
    text = tree.text(file) or ""
    filled = re.sub(r"\{\{.*?\}\}|@\w+@|\$\{\w+\}|\{%.*?%\}", "_filled_in", text)
    found = survey_script(tree, project, f"{project}/setup.py".lstrip("/"), text=filled, label=file)
    if any(each.shows in {"linked", "stable_abi", "abi_flag"} for each in found):
        return [
            Finding(
                shows=each.shows, file=file, line=each.line, sentence=each.sentence,
                guards=each.guards,
            )
            for each in found
            if each.shows != "unknown"
        ]  # fmt: skip
    sentence = "a setup.py template: what fills it in is not known"
    return [Finding(shows="unknown", file=file, line=0, sentence=sentence)]
