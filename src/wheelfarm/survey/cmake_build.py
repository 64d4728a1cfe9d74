"""What a CMake project ships and links: its followed commands come in, findings go out."""

import re
from collections.abc import Iterable, Iterator

from wheelfarm.survey import torch_names
from wheelfarm.survey.cmake_commands import HARMLESS
from wheelfarm.survey.cmake_reader import Place, Project, Target
from wheelfarm.survey.cmake_values import ABI_MARK
from wheelfarm.survey.findings import Finding
from wheelfarm.survey.guards import Guards, contradictory, merged
from wheelfarm.survey.stable_headers import only_stable_headers
from wheelfarm.survey.tree import Tree
from wheelfarm.survey.values import HOLE

#: Kinds of targets that are files of their own in what is installed.
_FILES = frozenset({"shared", "module", "library"})
_INSIDE_EXPRESSION = re.compile(r"[\w./+-]+(?:::\w+)*")


def survey_cmake(
    tree: Tree,
    folder: str,
    defines: Iterable[tuple[str, Guards]],
    *,
    installed_only: bool = False,
) -> Iterator[Finding]:
    """Yield what a build of the CMake project in ``folder`` ships.

    ``defines`` are ``-DNAME=VALUE`` words with their guards. With ``installed_only`` targets that
    are not installed do not count (scikit-build-core ships exactly what ``install`` places).
    """
    top = f"{folder}/CMakeLists.txt" if folder else "CMakeLists.txt"
    if not tree.is_file(top):
        yield Finding(shows="unknown", file=top, line=0, sentence="there is no CMakeLists.txt")
        return
    project = Project(tree, folder, defines).read()
    if project.too_long:
        sentence = "the project is too long to follow"
        yield Finding(shows="unknown", file=top, line=0, sentence=sentence)
    roots = list(_roots(project, installed_only=installed_only))
    found = [each for target, guards in roots for each in _target(project, target, guards)]
    yield from found
    yield from _remarks(project, found, top)
    if not roots:
        why = "no target that is shipped could be found"
        yield Finding(shows="unknown", file=top, line=0, sentence=why)


def _roots(project: Project, *, installed_only: bool) -> Iterator[tuple[Target, Guards]]:
    told: dict[str, list[Guards]] = {}
    for name, place in project.installed:
        if name in project.made:
            told.setdefault(name, []).append(place.guards)
    for name, targets in project.made.items():
        for target in targets:
            if target.kind in {"imported", "alias", "interface", "unseen"}:
                continue
            if name in told:
                every = [merged(guards, target.place.guards) for guards in told[name]]
                yield from ((target, guards) for guards in every if not contradictory(guards))
            elif target.kind in _FILES and not (installed_only and told):
                yield target, target.place.guards


def _target(project: Project, target: Target, guards: Guards) -> Iterator[Finding]:
    links = [
        (text, place, merged(guards, more))
        for text, place, more in _closure(project, target)
        if not contradictory(merged(guards, more))
    ]
    links += [(text, place, merged(guards, place.guards)) for text, place in project.links]
    flags = [
        (text, merged(guards, place.guards)) for text, place in (*target.flags, *project.flags)
    ]
    flags += _flag_variables(project, guards)
    stable = torch_names.stable(text for text, _ in flags)
    linking = [(text, place, more) for text, place, more in links if _torch_in(project, text)]
    by_headers = bool(linking) and not stable and _stable_by_headers(project, target, linking)
    stable = stable or ("stable headers" if by_headers else "")
    for text, place, more in linking:
        shown = _torch_in(project, text)
        how = " by its stable headers alone" if by_headers else " only through the stable ABI"
        yield Finding(
            shows="stable_abi" if stable else "linked",
            file=place.file, line=place.line, guards=more,
            sentence=f"{target.name} links {shown}{how if stable else ''}",
        )  # fmt: skip
    always = [more for _, _, more in linking if set(more) <= set(guards)]
    if always:
        return
    abi = next((more for text, more in flags if ABI_MARK in text), None)
    if abi is not None:
        yield Finding(
            shows="abi_flag", file=target.place.file, line=target.place.line, guards=abi,
            sentence=f"{target.name} is compiled with torch's C++ ABI flag",
        )  # fmt: skip
        return
    if not linking:
        yield _free(target, links, guards)


def _stable_by_headers(
    project: Project, target: Target, linking: list[tuple[str, Place, Guards]]
) -> bool:
    """Return whether a target's own sources keep to torch's stable headers.

    A target that asks for torch_python, or gets torch through another library of the project, is
    not taken for one.
    """
    own = {text for text, _ in (*target.links, *project.links)}
    direct = all(text in own and "torch_python" not in text for text, _, _ in linking)
    return direct and only_stable_headers(project.tree, target.sources)


def _free(target: Target, links: list[tuple[str, Place, Guards]], guards: Guards) -> Finding:
    names = list(
        dict.fromkeys(text for text, _, _ in links if HOLE not in text and "$<" not in text)
    )
    shown = ", ".join(names[:5]) or "no other library"
    return Finding(
        shows="free", file=target.place.file, line=target.place.line, guards=guards,
        sentence=f"{target.name} links {shown}",
    )  # fmt: skip


def _flag_variables(project: Project, guards: Guards) -> list[tuple[str, Guards]]:
    found = []
    for name in ("CMAKE_CXX_FLAGS", "CMAKE_CUDA_FLAGS", "CUDA_NVCC_FLAGS"):
        found += [
            (each.text, merged(guards, each.guards))
            for each in project.variables.alternatives(name)
        ]
    return found


def _closure(project: Project, target: Target) -> Iterator[tuple[str, Place, Guards]]:
    """Yield what a target links, through the project's own libraries too."""
    seen = {target.name}
    queue: list[tuple[Target, Guards]] = [(target, ())]
    while queue:
        current, guards = queue.pop()
        for text, place in current.links:
            more = merged(guards, place.guards)
            yield text, place, more
            for name in _INSIDE_EXPRESSION.findall(text):
                if name in project.made and name not in seen:
                    seen.add(name)
                    queue += [(each, more) for each in project.made[name]]


def _torch_in(project: Project, text: str) -> str:
    """Return the torch library that a link word names, empty where it names none."""
    if not torch_names.might_be_library(text):
        return ""
    own = {name for name, targets in project.made.items() if any(t.kind in _FILES for t in targets)}
    words = _INSIDE_EXPRESSION.findall(text) if "$<" in text else [text]
    for word in words:
        if word in own:
            continue
        if torch_names.library(word):
            return word.replace(HOLE, "…")
    return ""


def _remarks(project: Project, found: list[Finding], top: str) -> Iterator[Finding]:
    """Yield what could not be followed, and what only looks like torch."""
    torch = project.found.get("Torch")
    linked = any(each.shows in {"linked", "stable_abi"} for each in found)
    if torch is not None:
        uncertain = not linked and not any(each.shows == "abi_flag" for each in found)
        rest = ", but no shipped target that links it was found" if uncertain else ""
        yield Finding(
            shows="unknown" if uncertain else "none", file=torch.file, line=torch.line,
            guards=torch.guards,
            sentence=f"finds Torch{rest}",
        )  # fmt: skip
    for name, place in dict(project.empty).items():
        yield Finding(
            shows="none", file=place.file, line=place.line, guards=place.guards,
            sentence=f"nothing defines {name}, so it links nothing",
        )  # fmt: skip
    for name, place in project.absent:
        base = name.rstrip("/").rpartition("/")[2].lower().removesuffix(".git")
        base = re.sub(r"\$\{(\w+)_source_dir\}", r"\1", base).replace(HOLE, "")
        if base in HARMLESS or linked:
            continue
        yield Finding(
            shows="unknown", file=place.file or top, line=place.line, guards=place.guards,
            sentence=f"{name or 'a folder'} is not in this tree",
        )  # fmt: skip
