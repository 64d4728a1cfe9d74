"""CMake's commands about targets: what is made, what it links, its flags, what is installed."""

import re
from collections.abc import Callable
from itertools import pairwise

from wheelfarm.survey.cmake_lexer import Statement
from wheelfarm.survey.cmake_reader import Project

Follow = Callable[[Project, Statement], None]

_VISIBILITY = frozenset({
    "PUBLIC", "PRIVATE", "INTERFACE", "LINK_PUBLIC", "LINK_PRIVATE", "LINK_INTERFACE_LIBRARIES",
    "debug", "optimized", "general", "BEFORE", "AFTER", "SYSTEM", "APPEND",
})  # fmt: skip


def library_like(name: str) -> Follow | None:
    """Return the follower of commands that make library targets under other names."""
    made = ("_add_module", "_add_library", "_add_stable_abi_module", "cuda_add_library")
    if name.endswith(made) or name in {"add_cython_target", "pybind_extension"}:
        return _add_library
    return None


_KINDS = frozenset({
    "STATIC", "SHARED", "MODULE", "OBJECT", "INTERFACE", "ALIAS", "IMPORTED", "UNKNOWN",
})  # fmt: skip


def _add_library(project: Project, statement: Statement) -> None:
    words = project.words(statement.arguments)
    if not words:
        return
    name = words[0][0]
    texts = [text for text, _ in words[1:]]
    kind = next(
        (word.lower() for word in texts if word in _KINDS),
        "shared" if statement.name != "add_library" else "library",
    )  # fmt: skip
    if "IMPORTED" in texts:
        kind = "imported"
    if "EXCLUDE_FROM_ALL" in texts:
        kind = "excluded"
    made = project.target(name, kind, project.place(statement))
    made.sources += [path for path in map(project.relative, texts) if path]
    if kind == "alias" and len(texts) > 1:
        made.links.append((texts[1], project.place(statement)))
    if statement.name == "cuda_add_library":
        made.kind = "library"


def _add_executable(project: Project, statement: Statement) -> None:
    words = project.words(statement.arguments)
    if words:
        project.target(words[0][0], "executable", project.place(statement))


def _target_link(project: Project, statement: Statement) -> None:
    words = project.words(statement.arguments)
    if not words:
        return
    _note_empty(project, statement)
    for owner in project.find(words[0][0]):
        for text, guards in words[1:]:
            if text and text not in _VISIBILITY:
                owner.links.append((text, project.place(statement, guards)))


def _note_empty(project: Project, statement: Statement) -> None:
    """Note a torch variable that nothing defines: it stands for nothing on a link line."""
    for argument in statement.arguments:
        for name in re.findall(r"\$\{(\w+)\}", argument.text):
            if "torch" in name.lower() and name not in project.scope.variables.values:
                project.empty.append((name, project.place(statement)))


def _link_libraries(project: Project, statement: Statement) -> None:
    for text, guards in project.words(statement.arguments):
        project.links.append((text, project.place(statement, guards)))


def _target_sources(project: Project, statement: Statement) -> None:
    words = project.words(statement.arguments)
    for owner in project.find(words[0][0]) if words else []:
        owner.sources += [path for path in map(project.relative, (w for w, _ in words[1:])) if path]


def _target_flags(project: Project, statement: Statement) -> None:
    words = project.words(statement.arguments)
    if not words:
        return
    for owner in project.find(words[0][0]):
        for text, guards in words[1:]:
            if text not in _VISIBILITY:
                owner.flags.append((text, project.place(statement, guards)))


def _global_flags(project: Project, statement: Statement) -> None:
    for text, guards in project.words(statement.arguments):
        project.flags.append((text, project.place(statement, guards)))


def _properties(project: Project, statement: Statement) -> None:
    words = project.words(statement.arguments)
    texts = [text for text, _ in words]
    if "PROPERTIES" in texts:
        names, rest = texts[: texts.index("PROPERTIES")], texts[texts.index("PROPERTIES") + 1 :]
    elif "PROPERTY" in texts and texts[:1] == ["TARGET"]:
        names, rest = texts[1 : texts.index("PROPERTY")], texts[texts.index("PROPERTY") + 1 :]
        names = [name for name in names if name not in {"APPEND", "APPEND_STRING"}]
    else:
        return
    place = project.place(statement)
    linking = {"LINK_FLAGS", "LINK_LIBRARIES", "INTERFACE_LINK_LIBRARIES", "IMPORTED_LOCATION"}
    for key, value in pairwise(rest):
        for name in names:
            for owner in project.find(name):
                if key in linking:
                    owner.links += [(part, place) for part in value.split()]
                elif key in {"COMPILE_FLAGS", "COMPILE_DEFINITIONS", "COMPILE_OPTIONS"}:
                    owner.flags.append((value, place))


def _install(project: Project, statement: Statement) -> None:
    words = project.words(statement.arguments)
    if not words or words[0][0] != "TARGETS":
        return
    for text, guards in words[1:]:
        if text in _INSTALL_WORDS:
            break
        project.installed.append((text, project.place(statement, guards)))


_INSTALL_WORDS = frozenset({
    "DESTINATION", "LIBRARY", "RUNTIME", "ARCHIVE", "EXPORT", "COMPONENT", "OBJECTS", "FRAMEWORK",
    "BUNDLE", "PRIVATE_HEADER", "PUBLIC_HEADER", "RESOURCE", "FILE_SET", "INCLUDES", "PERMISSIONS",
    "CONFIGURATIONS", "OPTIONAL", "NAMELINK_SKIP", "RUNTIME_DEPENDENCIES",
})  # fmt: skip

#: Command -> what follows it.
TARGET_COMMANDS: dict[str, Follow] = {
    "target_sources": _target_sources,
    "add_library": _add_library,
    "add_executable": _add_executable,
    "target_link_libraries": _target_link,
    "target_link_options": _target_link,
    "link_libraries": _link_libraries,
    "add_link_options": _link_libraries,
    "target_compile_definitions": _target_flags,
    "target_compile_options": _target_flags,
    "add_definitions": _global_flags,
    "add_compile_definitions": _global_flags,
    "add_compile_options": _global_flags,
    "set_target_properties": _properties,
    "set_property": _properties,
    "install": _install,
}
