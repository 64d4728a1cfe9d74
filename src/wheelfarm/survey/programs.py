"""What the programs that a build script starts mean for the survey: CMake is read, make is not."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from wheelfarm.survey import torch_names
from wheelfarm.survey.findings import Finding
from wheelfarm.survey.guards import Guards, merged
from wheelfarm.survey.values import (
    HOLE,
    Assumed,
    Built,
    Items,
    PathValue,
    Value,
    options,
    render,
    strip,
    texts,
)

if TYPE_CHECKING:
    from wheelfarm.survey.engine import Command, Engine

#: Programs that make no part of a wheel.
_HARMLESS = frozenset({
    "git", "which", "where", "uname", "nvidia-smi", "ldconfig", "rocminfo", "lscpu",
    "hipconfig", "pip", "strip", "patchelf",
    "echo", "cp", "mv", "rm", "mkdir", "ls", "cat", "ln", "find", "pkg-config", "llvm-config",
    "nproc", "sysctl", "xcrun", "sw_vers", "ninja-version", "date",
    "readelf", "ldd", "uv", "chmod", "touch", "clang-format",
    "pybind11-stubgen", "stubgen", "protoc",
})  # fmt: skip

#: Programs that a farm's machine lacks: a call of one raises.
_ABSENT = frozenset({
    "nvidia-smi", "rocminfo", "rocm-smi", "rocm_agent_enumerator", "hipconfig", "hipcc", "xpu-smi",
    "neuron-ls", "sycl-ls", "npu-smi", "dumpbin", "sw_vers", "xcrun", "amd-smi", "hl-smi",
})  # fmt: skip

#: Compilers: what they link stands on their command line.
_COMPILERS = frozenset({"nvcc", "hipcc", "gcc", "g++", "c++", "cc", "clang", "clang++"})

#: Programs that build something even where their output is read.
_BUILDERS = frozenset({"make", "gmake", "ninja", "meson", "bazel", "bazelisk", "cargo", "scons"})

#: Calls that read what a program prints; what they start makes no part of a wheel.
_READING = frozenset({
    "subprocess.check_output", "subprocess.getoutput", "subprocess.getstatusoutput", "os.popen",
})  # fmt: skip


Words = list[tuple[str, Guards]]


def words_of(argv: Value) -> Words:
    """Return a command line as words, each under its guards, with HOLE for what cannot be told."""
    words: Words = []
    for guards, each in options(argv):
        told = strip(each)
        if isinstance(told, Items):
            words += [(render(entry.value), merged(guards, entry.guards)) for entry in told.entries]
        else:
            words += [(word, guards) for word in render(told).split()]
    return words


def absent(argv: Value) -> bool:
    """Return whether a command line starts a program that a farm's machine lacks."""
    words = words_of(argv)
    return bool(words) and not words[0][1] and _program([words[0][0]]) in _ABSENT


def lists_hardware(argv: Value) -> bool:
    """Return whether a command line only lists devices or drivers; a farm has none of them."""
    words = words_of(argv)
    return bool(words) and _program([words[0][0]]) in {"lsmod", "lspci"}


def command_findings(engine: "Engine") -> Iterator[Finding]:
    """Yield what the started programs ship."""
    sources: dict[str, tuple[Command, list[str]]] = {}
    defines: Words = []
    for command in engine.commands:
        guarded = words_of(command.argv)
        words = [word for word, _ in guarded]
        program = _program(words)
        if program == "cmake":
            defines += [(word, guards) for word, guards in guarded if word.startswith("-D")]
            source = _source(engine, command, words)
            if source is not None:
                sources.setdefault(source, (command, words))
            elif "--build" not in words and "--install" not in words and not _asks(words):
                yield _opaque(command, "starts CMake in a folder that cannot be told")
            continue
        yield from _other(command, program, words)
    from wheelfarm.survey.cmake_build import survey_cmake  # noqa: PLC0415 - only where needed

    for source, (command, _) in sources.items():
        for found in survey_cmake(engine.tree, source, defines):
            yield Finding(
                shows=found.shows, file=found.file, line=found.line, sentence=found.sentence,
                guards=(*command.guards, *found.guards),
            )  # fmt: skip


def _asks(words: list[str]) -> bool:
    return any(word in {"--version", "-version", "--help", "-E", "-P"} for word in words)


def _other(command: "Command", program: str, words: list[str]) -> Iterator[Finding]:
    if not words or program in _HARMLESS:
        return
    reads = command.function in _READING or command.function.endswith("(read)")
    if reads and program not in _BUILDERS:
        return
    if program in _COMPILERS:
        yield from _compiler(command, program, words)
        return
    if program.startswith("python") or program == HOLE:
        script = next((word for word in words[1:] if word.endswith(".py")), "")
        if any(word in {"-c", "pip"} for word in words):
            return
        if not script and program == HOLE:
            yield _opaque(command, "starts a program that cannot be told")
            return
        yield _opaque(command, f"runs {script or 'Python'}")
        return
    yield _opaque(command, f"starts {program}")


def _compiler(command: "Command", program: str, words: list[str]) -> Iterator[Finding]:
    """Yield what a compiler call that the script itself makes links."""
    if "-shared" not in words:
        return
    named = torch_names.torch_library(words)
    if not named and any(HOLE in word for word in words):
        yield _opaque(command, f"links with {program} and arguments that cannot be told")
        return
    yield Finding(
        shows="linked" if named else "free",
        file=command.file,
        line=command.line,
        sentence=f"{program} links {named or 'no library of torch'}",
        guards=command.guards,
    )


def _opaque(command: "Command", what: str) -> Finding:
    return Finding(
        shows="unknown",
        file=command.file,
        line=command.line,
        sentence=f"the build {what}, whose work the survey does not follow",
        guards=command.guards,
    )


def _program(words: list[str]) -> str:
    if not words:
        return ""
    name = words[0].rpartition("/")[2]
    return HOLE if HOLE in name and name != "cmake" else name.removesuffix(".exe")


def _source(engine: "Engine", command: "Command", words: list[str]) -> str | None:
    """Return the folder of the CMakeLists.txt that a cmake call configures."""
    if "--build" in words or "--install" in words or _asks(words):
        return None
    told: list[str] = []
    skip = ""
    for word in words[1:]:
        if skip:
            if skip == "-S":
                told.insert(0, word)
            skip = ""
        elif word in {"-S", "-B", "-G", "-T", "-A", "-C", "-H"}:
            skip = word
        elif word.startswith(("-S", "-H")) and len(word) > 2:  # noqa: PLR2004 - the folder is glued
            told.insert(0, word[2:])
        elif not word.startswith("-"):
            told.append(word)
    for text in told:
        relative = None if HOLE in text else engine.paths.relative(text)
        if relative is not None and engine.tree.is_file(f"{relative}/CMakeLists.txt".lstrip("/")):
            return relative
    return _by_folder(engine, command)


def _by_folder(engine: "Engine", command: "Command") -> str | None:
    """Return the one CMake folder that the command's folder or the extension's names hint at."""
    found = [text for text in texts(command.cwd) if HOLE not in text]
    for built in engine.built:
        found += _hints(built)
    found.append(engine.paths.cwd)
    for text in found:
        relative = engine.paths.relative(text)
        if relative is not None and engine.tree.is_file(f"{relative}/CMakeLists.txt".lstrip("/")):
            return relative
    return None


def _hints(built: Built) -> list[str]:
    hints = []
    for key, value in built.keywords.items():
        told = value.value if isinstance(value, Assumed) else value
        if key != "name" and isinstance(told, (str, PathValue)):
            hints.append(render(told))
    return hints
