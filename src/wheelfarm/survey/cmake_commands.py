"""CMake's commands that matter to what a project links: variables, packages, targets, links."""

import re
from collections.abc import Sequence

from wheelfarm.survey import torch_names
from wheelfarm.survey.cmake_lexer import Argument, Statement
from wheelfarm.survey.cmake_reader import Project
from wheelfarm.survey.cmake_targets import TARGET_COMMANDS, Follow
from wheelfarm.survey.cmake_values import ABI_MARK
from wheelfarm.survey.guards import Guards, contradictory, merged
from wheelfarm.survey.tree import normal
from wheelfarm.survey.values import HOLE

#: Fetched or absent projects that are known to link no torch.
HARMLESS = frozenset({
    "pybind11", "googletest", "gtest", "fmt", "spdlog", "cutlass", "nanobind", "json", "cccl",
    "nlohmann_json", "benchmark", "googlebenchmark", "eigen", "dlpack", "cub", "thrust", "catch2",
    "abseil-cpp", "abseil", "absl", "cpuinfo", "pthreadpool", "xbyak", "zlib", "protobuf", "glm",
    "flatbuffers",
    "cmrc", "rapids-cmake", "rapids_cmake", "cpm", "doctest", "xsimd", "oneapi-src", "onednn",
    "composable_kernel", "mkl-dnn", "curl", "sqlite", "boost", "tbb", "onetbb", "highway", "gflags",
    "glog", "re2", "utf8_range", "nvtx", "nvtx3", "hopscotch-map", "robin-map", "tsl_robin_map",
    "backward", "cxxopts", "stb", "tinyobjloader", "imgui", "glfw", "llama.cpp", "ggml", "whisper",
    "sentencepiece", "tokenizers", "kineto", "metal-cpp", "metal_cpp", "opencl-headers", "blst",
    "asmjit", "snappy", "lz4", "zstd", "libzmq", "rapidjson", "yaml-cpp", "mimalloc", "jemalloc",
})  # fmt: skip


def _set(project: Project, statement: Statement) -> None:
    if not statement.arguments:
        return
    name = project.scope.variables.text(statement.arguments[0])
    if name is None:
        return
    given = statement.arguments[1:]
    upper = [argument.text for argument in given if not argument.quoted]
    cached = "CACHE" in upper
    if cached:
        given = given[: next(i for i, each in enumerate(given) if each.text == "CACHE")]
        project.scope.variables.switches.add(name)
        if name in project.scope.variables.values and "FORCE" not in upper:
            return
    scope = project.scope
    if "PARENT_SCOPE" in upper:
        given = tuple(each for each in given if each.text != "PARENT_SCOPE")
        scope = project.scope.parent or project.scope
    alone = re.fullmatch(r"\$\{(\w+)\}", given[0].text) if len(given) == 1 else None
    if alone is not None and scope is project.scope:
        scope.variables.assign(name, alone.group(1), project.now())
        return
    variants = _variants(project, given)
    now = project.now()
    scope.variables.set(name, variants[0][0], merged(now, variants[0][1]))
    for text, guards in variants[1:]:
        scope.variables.set(name, text, merged(now, guards))


def _variants(project: Project, given: Sequence[Argument]) -> list[tuple[str, Guards]]:
    """Return the texts that a ``set`` may write: unguarded first, the last one wins."""
    rows: list[tuple[list[str], Guards]] = [([], ())]
    for argument in given:
        found = project.scope.variables.expand(argument)
        rows = [
            ([*parts, each.text], merged(guards, each.guards))
            for parts, guards in rows
            for each in reversed(found)
            if not contradictory(merged(guards, each.guards))
        ][:8]
    texts = [(";".join(part for part in parts if part), guards) for parts, guards in rows]
    texts = [(text, tuple(g for g in guards if g not in project.guards)) for text, guards in texts]
    return texts or [("", ())]


def _unset(project: Project, statement: Statement) -> None:
    words = project.plain_words(statement.arguments)
    if words and not project.guards:
        project.scope.variables.values.pop(words[0], None)


def _option(project: Project, statement: Statement) -> None:
    words = project.plain_words(statement.arguments)
    if not words:
        return
    project.scope.variables.switches.add(words[0])
    if words[0] not in project.scope.variables.values:
        value = words[2] if len(words) > 2 else "OFF"  # noqa: PLR2004 - name, help, value
        project.scope.variables.set(words[0], value, ())


def _dependent_option(project: Project, statement: Statement) -> None:
    """Follow ``cmake_dependent_option``: its value where the condition holds."""
    _option(project, statement)


def _list(project: Project, statement: Statement) -> None:
    words = statement.arguments
    if len(words) < 2:  # noqa: PLR2004 - an action and a list
        return
    action, name = words[0].text.upper(), project.scope.variables.text(words[1])
    if name is None:
        return
    if action in {"APPEND", "PREPEND"}:
        for text, guards in project.words(words[2:]):
            project.scope.variables.append(name, text, merged(project.now(), guards))
    elif action in {"FILTER", "REMOVE_ITEM", "REMOVE_DUPLICATES", "SORT", "REVERSE"}:
        return
    elif action in {"GET", "JOIN", "SUBLIST", "TRANSFORM", "FIND", "LENGTH"}:
        out = project.scope.variables.text(words[-1])
        if out and action in {"GET", "FIND", "LENGTH"}:
            project.scope.variables.set(out, HOLE, ())


def _string(project: Project, statement: Statement) -> None:
    words = statement.arguments
    if len(words) < 3:  # noqa: PLR2004 - an action and two words
        return
    action = words[0].text.upper()
    name = project.scope.variables.text(words[1])
    if action in {"APPEND", "CONCAT", "PREPEND"} and name:
        old = project.scope.variables.alternatives(name)[0].text if action == "APPEND" else ""
        text = old + " ".join(text for text, _ in project.words(words[2:]))
        project.scope.variables.set(name, text, project.now())
        return
    index = {"REPLACE": 3, "TOLOWER": 2, "TOUPPER": 2, "STRIP": 2, "TOLOWER_ASCII": 2}.get(action)
    if action == "REGEX":
        index = {"REPLACE": 4, "MATCH": 3, "MATCHALL": 3}.get(words[1].text.upper())
    if index is None or len(words) <= index:
        return
    out = project.scope.variables.text(words[index])
    if out:
        source = "".join(text for text, _ in project.words(words[index + 1 :] or words[1:2]))
        mark = ABI_MARK if ABI_MARK in source else HOLE
        lowered = {"TOLOWER": source.lower(), "TOUPPER": source.upper(), "STRIP": source.strip()}
        project.scope.variables.set(out, lowered.get(action, mark), project.now())


def _find_package(project: Project, statement: Statement) -> None:
    words = project.plain_words(statement.arguments)
    if not words:
        return
    name = words[0]
    variables = project.scope.variables
    place = project.place(statement)
    now = project.now()
    if name.lower() in {"torch", "libtorch", "caffe2"}:
        project.found.setdefault("Torch", place)
        for key, value in _TORCH_VARIABLES.items():
            variables.set(key, value, now)
        variables.switches.add("TORCH_FOUND")
        variables.switches.add("Torch_FOUND")
        return
    project.found.setdefault(name, place)
    for key in (f"{name}_FOUND", f"{name.upper()}_FOUND"):
        variables.set(key, "1", now)
        variables.switches.add(key)
    for folder in [*_module_folders(project)]:
        module = f"{folder}/Find{name}.cmake".lstrip("/")
        if project.tree.is_file(module):
            project.file(module)
            break


#: What find_package(Torch) sets (TorchConfig.cmake).
_TORCH_VARIABLES = {
    "TORCH_FOUND": "1", "Torch_FOUND": "1", "TORCH_LIBRARIES": "torch;torch_library",
    "TORCH_INCLUDE_DIRS": HOLE, "TORCH_INSTALL_PREFIX": HOLE, "Torch_VERSION": HOLE,
    "TORCH_CXX_FLAGS": f"-D_GLIBCXX_USE_CXX11_ABI={ABI_MARK}", "Torch_DIR": HOLE,
    "TORCH_CUDA_LIBRARIES": "torch_cuda", "TORCH_LIBRARY": "torch", "CAFFE2_LIBRARIES": "torch",
    "C10_CUDA_LIBRARY": "c10_cuda",
}  # fmt: skip


def _module_folders(project: Project) -> list[str]:
    found = []
    for each in project.scope.variables.alternatives("CMAKE_MODULE_PATH"):
        for text, _ in project.words([Argument(text=each.text)]):
            relative = project.relative(text)
            if relative is not None:
                found.append(relative)
    return list(dict.fromkeys(found))


def _find_library(project: Project, statement: Statement) -> None:
    words = project.plain_words(statement.arguments)
    if len(words) < 2:  # noqa: PLR2004 - a variable and a name
        return
    names = words[1:]
    named = torch_names.torch_library(names[:1] if names[0] != "NAMES" else names[1:6])
    text = named or f"lib:{names[1] if names[0] == 'NAMES' and len(names) > 1 else names[0]}"
    project.scope.variables.set(words[0], text, project.now())
    project.scope.variables.switches.add(words[0])


def _find_path(project: Project, statement: Statement) -> None:
    words = project.plain_words(statement.arguments)
    if words:
        project.scope.variables.set(words[0], HOLE, project.now())


def _execute_process(project: Project, statement: Statement) -> None:
    words = [text for text, _ in project.words(statement.arguments)]
    command = " ".join(words)
    mark = HOLE
    if "torch" in command and ("cxx11_abi" in command or "CXX11_ABI" in command):
        mark = ABI_MARK
    for key in ("OUTPUT_VARIABLE", "RESULT_VARIABLE", "ERROR_VARIABLE", "RESULTS_VARIABLE"):
        if key in words[:-1]:
            name = words[words.index(key) + 1]
            value = mark if key == "OUTPUT_VARIABLE" else "0"
            project.scope.variables.set(name, value, project.now())


def _include(project: Project, statement: Statement) -> None:
    words = project.plain_words(statement.arguments)
    if not words:
        return
    name = words[0]
    candidates = [project.relative(name)]
    candidates += [f"{folder}/{name}.cmake" for folder in _module_folders(project)]
    for relative in candidates:
        if relative is not None and project.tree.is_file(relative):
            variables = project.scope.variables
            old = variables.alternatives("CMAKE_CURRENT_LIST_DIR")[0].text
            folder = normal(relative).rpartition("/")[0]
            variables.set("CMAKE_CURRENT_LIST_DIR", project.path(folder), ())
            project.file(relative)
            variables.set("CMAKE_CURRENT_LIST_DIR", old, ())
            return
    if name.endswith(".cmake") and "OPTIONAL" not in words:
        project.absent.append((name, project.place(statement)))


def _fetch(project: Project, statement: Statement) -> None:
    """Follow what brings in a foreign project: its files are not in this tree."""
    words = project.plain_words(statement.arguments)
    several = statement.name == "fetchcontent_makeavailable"
    for name in words if several else words[:1]:
        project.absent.append((name, project.place(statement)))
        for key in ("SOURCE_DIR", "BINARY_DIR"):
            project.scope.variables.set(f"{name.lower()}_{key}", f"{HOLE}{name}", ())


def _parse_arguments(project: Project, statement: Statement) -> None:
    """Follow ``cmake_parse_arguments``: flags, single and list keywords under one prefix."""
    arguments = list(statement.arguments)
    if arguments and arguments[0].text.upper() == "PARSE_ARGV":
        arguments = [arguments[2], *arguments[3:6], Argument(text="${ARGV}")]
    if len(arguments) < 4:  # noqa: PLR2004 - a prefix and three lists of keywords
        return
    prefix, flags, singles, lists = (
        project.scope.variables.expand(each)[0].text for each in arguments[:4]
    )
    known = {name: kind for kind, names in (("flag", flags), ("single", singles), ("list", lists))
             for name in names.split(";") if name}  # fmt: skip
    values: dict[str, list[str]] = {}
    current = ""
    for text, _ in project.words(arguments[4:]):
        if text in known:
            current = text
            values.setdefault(text, [])
        elif current and known[current] != "flag":
            values[current].append(text)
    for name, kind in known.items():
        given = values.get(name)
        text = ";".join(given or [])
        if kind == "flag":
            text = "FALSE" if given is None else "TRUE"
        project.scope.variables.set(f"{prefix}_{name}", text, ())


def _project_command(project: Project, statement: Statement) -> None:
    words = project.plain_words(statement.arguments)
    if words:
        project.scope.variables.set("PROJECT_NAME", words[0], ())
        project.scope.variables.set("CMAKE_PROJECT_NAME", words[0], ())
        here = project.path(project.scope.folder)
        for name in ("PROJECT", words[0]):
            project.scope.variables.set(f"{name}_SOURCE_DIR", here, ())
            project.scope.variables.set(f"{name}_BINARY_DIR", "/build", ())


def _get_path(project: Project, statement: Statement) -> None:
    words = project.plain_words(statement.arguments)
    if len(words) < 3:  # noqa: PLR2004 - variable, path, mode
        return
    relative = project.relative(words[1])
    if relative is None:
        project.scope.variables.set(words[0], HOLE, project.now())
        return
    kind = words[2]
    text = {
        "NAME": relative.rpartition("/")[2],
        "NAME_WE": relative.rpartition("/")[2].split(".")[0],
    }
    folder = project.path(relative.rpartition("/")[0])
    text |= {"PATH": folder, "DIRECTORY": folder}
    project.scope.variables.set(words[0], text.get(kind, project.path(relative)), project.now())


#: Command -> what follows it.
COMMANDS: dict[str, Follow] = {
    **TARGET_COMMANDS,
    "set": _set,
    "unset": _unset,
    "option": _option,
    "cmake_dependent_option": _dependent_option,
    "list": _list,
    "string": _string,
    "find_package": _find_package,
    "find_dependency": _find_package,
    "find_library": _find_library,
    "find_path": _find_path,
    "find_file": _find_path,
    "find_program": _find_path,
    "execute_process": _execute_process,
    "include": _include,
    "add_subdirectory": lambda project, statement: project.subdirectory(statement),
    "fetchcontent_declare": _fetch,
    "fetchcontent_makeavailable": _fetch,
    "fetchcontent_populate": _fetch,
    "externalproject_add": _fetch,
    "cpmaddpackage": _fetch,
    "cmake_parse_arguments": _parse_arguments,
    "project": _project_command,
    "get_filename_component": _get_path,
}
