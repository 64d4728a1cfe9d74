"""Compiler command lines: the words of an nvcc or gcc call in, one canonical ``Command`` out.

Part of the seat: standard library only, and nothing of it that is slow to import (no ``re``,
``json``, ``typing``, ``dataclasses``), since every compile of a build starts this program anew.
The options are those of ``nvcc --help`` (CUDA 13.0) and of GCC's "Option Summary".
"""

from __future__ import annotations

import os

#: Suffixes of sources that end in an object, by the language that the suffix stands for.
LANGUAGES = {
    ".c": "c",
    ".cc": "c++",
    ".cpp": "c++",
    ".cxx": "c++",
    ".c++": "c++",
    ".C": "c++",
    ".cu": "cu",
    ".i": "cpp-output",
    ".ii": "c++-cpp-output",
    ".s": "assembler",
    ".S": "assembler-with-cpp",
    ".sx": "assembler-with-cpp",
}

#: Long spelling and canonical short one of nvcc's options that take a value.
_NVCC_VALUES = """
--output-file -o --pre-include -include --library -l --define-macro -D --undefine-macro -U
--include-path -I --system-include -isystem --library-path -L --output-directory -odir
--compiler-bindir -ccbin --archiver-binary -arbin --cudart -cudart --cudadevrt -cudadevrt
--libdevice-directory -ldir --target-directory -target-dir --optimization-info -opt-info
--optimize -O --dopt -dopt --ftemplate-backtrace-limit -ftemplate-backtrace-limit
--ftemplate-depth -ftemplate-depth --x -x --std -std --machine -m --compiler-options -Xcompiler
--linker-options -Xlinker --archive-options -Xarchive --ptxas-options -Xptxas
--nvlink-options -Xnvlink --static-global-template-stub -static-global-template-stub
--device-entity-has-hidden-visibility -device-entity-has-hidden-visibility --threads -t
--split-compile -split-compile --split-compile-extended -split-compile-extended
--fdevice-time-trace -fdevice-time-trace --keep-dir -keep-dir --time -time --run-args -run-args
--input-drive-prefix -idp --dependency-drive-prefix -ddp --drive-prefix -dp
--dependency-target-name -MT --dependency-output -MF --gpu-architecture -arch --gpu-code -code
--generate-code -gencode --relocatable-device-code -rdc --entries -e --maxrregcount -maxrregcount
--ftz -ftz --prec-div -prec-div --prec-sqrt -prec-sqrt --fmad -fmad --default-stream
-default-stream --diag-error -diag-error --diag-suppress -diag-suppress --diag-warn -diag-warn
--host-linker-script -hls --brief-diagnostics -brief-diag --jump-table-density -jtd
--device-stack-protector -device-stack-protector --compress-mode -compress-mode
--frandom-seed -frandom-seed --sanitize -sanitize --Werror -Werror --options-file -optf
--cudafe-options -Xcudafe --fatbin-options -Xfatbin
""".split()

#: Long spelling and canonical short one of nvcc's options without a value that decide something.
_NVCC_FLAGS = """
--cuda -cuda --cubin -cubin --fatbin -fatbin --ptx -ptx --optix-ir -optix-ir --ltoir -ltoir
--preprocess -E --generate-dependencies -M --generate-nonsystem-dependencies -MM
--generate-dependencies-with-compile -MD --generate-nonsystem-dependencies-with-compile -MMD
--generate-dependency-targets -MP --compile -c --device-c -dc --device-w -dw --device-link -dlink
--link -link --lib -lib --run -run --shared -shared --dryrun -dryrun --verbose -v --keep -keep
--save-temps -save-temps --clean-targets -clean --list-gpu-code -code-ls --list-gpu-arch -arch-ls
--relocatable-link -r --help -h --version -V --generate-line-info -lineinfo --profile -pg
--fdevice-syntax-only -fdevice-syntax-only --no-align-double --no-align-double --debug -g
--device-debug -G --no-device-link -nodlink --disable-warnings -w --objdir-as-tempdir -objtemp
""".split()

_NVCC_VALUE = dict(zip(_NVCC_VALUES[::2], _NVCC_VALUES[1::2], strict=True)) | {
    short: short for short in _NVCC_VALUES[1::2]
}
_NVCC_FLAG = dict(zip(_NVCC_FLAGS[::2], _NVCC_FLAGS[1::2], strict=True)) | {
    short: short for short in _NVCC_FLAGS[1::2]
}
#: Options whose value may follow at once (``-Iinclude``, ``-O3``, ``-t8``).
_NVCC_JOINED = ("-I", "-D", "-U", "-L", "-l", "-O", "-x", "-m", "-t")

#: GCC's options that take the next word; those with a ``*`` take it joined too.
_HOST_VALUE = frozenset(
    "-o -x -I -D -U -L -l -A -B -T -u -e -z -include -imacros -isystem -iquote -idirafter -iprefix "
    "-iwithprefix -iwithprefixbefore -isysroot -MF -MT -MQ -Xlinker -Xassembler -Xpreprocessor "
    "-aux-info --param -arch -target --sysroot -dumpbase -dumpdir -specs -wrapper -Xclang -mllvm "
    "-include-pch".split()
)
_HOST_JOINED = ("-isystem", "-iquote", "-idirafter", "-I", "-D", "-U", "-L", "-l", "-x", "-B", "-o")

#: Options that are kept apart from the others; ``-ccbin`` is dropped, the seat knows the compiler.
_NVCC_SORTED = frozenset(("-o", "-x", "-MF", "-MT", "-t", "-ccbin"))
_QUERIES = frozenset(
    "-E -M -MM -### -dryrun -V -h --help --version -dumpversion -dumpfullversion -dumpmachine "
    "-dumpspecs -code-ls -arch-ls -fsyntax-only -fdevice-syntax-only -run -clean".split()
)
_NO_OBJECT = frozenset("-S -cubin -fatbin -ptx -optix-ir -ltoir -cuda".split())
_LIBRARY = frozenset("-shared --shared -r -dlink -lib -bundle -dynamiclib".split())
_OBJECTS = (".o", ".obj", ".lo", ".os")
#: Options that make a second output or depend on the machine: no cache can serve them.
_NEVER_CACHED = {
    "-keep": "-keep leaves other outputs behind",
    "-save-temps": "-save-temps leaves other outputs behind",
    "-time": "-time writes a second output",
    "-fdevice-time-trace": "-fdevice-time-trace writes a second output",
    "-opt-info": "-opt-info reports in an order of its own",
    "-gsplit-dwarf": "-gsplit-dwarf writes a second output",
    "-ftest-coverage": "-ftest-coverage writes a second output",
    "--coverage": "--coverage writes a second output",
    "-march=native": "-march=native depends on the machine",
    "-mtune=native": "-mtune=native depends on the machine",
    "-mcpu=native": "-mcpu=native depends on the machine",
    "-odir": "-odir sets the place of the outputs",
    "-objtemp": "-objtemp leaves other outputs behind",
}
_INCLUDES = frozenset(("-I", "-isystem", "-iquote", "-idirafter", "-include", "-imacros"))
_MAX_NESTING = 8


class Command:
    """One compiler call, its words sorted by what they are for.

    ``options`` is a list of words that keep their order, with neither inputs nor ``-c``, ``-o``,
    ``-x``, dependency options, ``-ccbin`` and threads; ``paths`` holds the positions in it that are
    include paths. ``bypass`` is the reason why no cache may serve the call, empty where it may.
    """

    __slots__ = (
        "bypass",
        "compiles",
        "dependencies",
        "depfile",
        "inputs",
        "language",
        "library",
        "no_object",
        "options",
        "output",
        "paths",
        "phony",
        "query",
        "role",
        "targets",
        "threads",
    )

    def __init__(self, role: str) -> None:
        self.role = role
        self.options: list[str] = []
        self.paths: list[int] = []
        self.inputs: list[tuple[str, str]] = []  # (word, language in force or "")
        self.output = ""
        self.language = ""
        self.compiles = False
        self.query = False
        self.no_object = False
        self.library = False
        self.dependencies = False
        self.depfile = ""
        self.targets: list[str] = []
        self.phony = False
        self.threads = ""
        self.bypass = ""

    @property
    def sources(self) -> list[str]:
        """The inputs that are compiled, in their order."""
        return [word for word, language in self.inputs if language]

    @property
    def objects(self) -> list[str]:
        """The inputs that are objects or archives."""
        return [word for word, language in self.inputs if not language]

    def note_bypass(self, reason: str) -> None:
        """Keep the first reason why this call goes past the cache."""
        self.bypass = self.bypass or reason

    def add_path(self, option: str, path: str) -> None:
        """Add an option that names an include folder or file."""
        self.options.append(option)
        self.options.append(path)
        self.paths.append(len(self.options) - 1)


def parse(role: str, words: list[str]) -> Command:
    """Read a call of ``role`` (``nvcc`` or ``host``); ``words`` is argv without the program.

    Raises OSError where a response file cannot be read.
    """
    words = expand(role, words)
    command = Command(role)
    index = 0
    step = _nvcc_word if role == "nvcc" else _host_word
    while index < len(words):
        index += step(command, words[index], words[index + 1] if index + 1 < len(words) else "")
    if not command.inputs:
        command.query = True
    return command


def expand(role: str, words: list[str], depth: int = 0) -> list[str]:
    """Return the words with response files replaced by what they hold.

    GCC takes ``@file`` (left as it stands where there is no such file), nvcc ``--options-file``
    with a comma-separated list; both may nest.
    """
    if depth > _MAX_NESTING:
        message = "response files are nested too deeply"
        raise OSError(message)
    result: list[str] = []
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        files: list[str] = []
        if role == "nvcc":
            name, equals, value = word.partition("=")
            if name in {"--options-file", "-optf"}:
                if not equals and index < len(words):
                    value = words[index]
                    index += 1
                files = value.split(",")
        if word.startswith("@") and os.path.isfile(word[1:]):
            files = [word[1:]]
        if not files:
            result.append(word)
        for file in files:
            with open(file, encoding="utf-8", errors="surrogateescape") as stream:
                result += expand(role, split(stream.read()), depth + 1)
    return result


def split(text: str) -> list[str]:
    """Split a response file: blanks separate, quotes hold together, a backslash takes one."""
    words: list[str] = []
    word = ""
    started = False
    quote = ""
    characters = iter(text)
    for character in characters:
        if character == "\\" and quote != "'":
            word += next(characters, "")
            started = True
        elif quote:
            if character == quote:
                quote = ""
            else:
                word += character
        elif character in "'\"":
            quote = character
            started = True
        elif character.isspace():
            if started:
                words.append(word)
            word, started = "", False
        else:
            word += character
            started = True
    return [*words, word] if started else words


def language_of(word: str) -> str:
    """Return the language that a file's suffix stands for, empty for objects and the like."""
    return LANGUAGES.get(os.path.splitext(word)[1], "")


def _add_input(command: Command, word: str) -> None:
    language = language_of(word)
    if command.language and not word.endswith(_OBJECTS) and not word.endswith((".a", ".so")):
        language = command.language
    command.inputs.append((word, language))


def _flag(command: Command, word: str) -> bool:
    """Sort the flags that decide what a call is for; return whether ``word`` was one."""
    if word == "-c":
        command.compiles = True
    elif word in {"-MD", "-MMD"}:
        command.dependencies = True
    elif word == "-MP":
        command.phony = True
    else:
        if word in _QUERIES or word.startswith("-print-"):
            command.query = True
        if word in _NO_OBJECT:
            command.no_object = True
        if word in _LIBRARY:
            command.library = True
        if word in _NEVER_CACHED:
            command.note_bypass(_NEVER_CACHED[word])
        return False
    return True


def _nvcc_word(command: Command, word: str, following: str) -> int:
    """Sort one word of an nvcc call; return how many words it took."""
    if not word.startswith("-") or word == "-":
        _add_input(command, word)
        return 1
    name, equals, value = word.partition("=")
    option = _NVCC_VALUE.get(name)
    if option is not None:
        _nvcc_value(command, option, value if equals else following)
        return 1 if equals else 2
    flag = _NVCC_FLAG.get(word)
    if flag is None and word.startswith(_NVCC_JOINED) and word not in _NVCC_JOINED:
        _nvcc_value(command, word[:2], word[2:])
        return 1
    word = flag or word
    if word == "-dc":
        # ccache 4.7.5 takes -dc for -c and serves one's object for the other; nvcc's manual gives
        # this spelling as the equivalent, and it is part of the key.
        command.compiles = True
        command.options.append("-rdc=true")
    elif word == "-dw":
        command.compiles = True
        command.options.append("-rdc=false")
    elif not _flag(command, word):
        command.options.append(word)
    return 1


def _nvcc_value(command: Command, option: str, value: str) -> None:
    if option in _NVCC_SORTED:
        _nvcc_sorted(command, option, value)
    elif option in _INCLUDES:
        for path in value.split(","):
            command.add_path(option, path)
    elif option in {"-D", "-U", "-O", "-m", "-L", "-l"}:
        command.options.append(option + value)
        command.note_bypass(_NEVER_CACHED.get(option + value, ""))
    else:
        _nvcc_other(command, option, value)


def _nvcc_sorted(command: Command, option: str, value: str) -> None:
    if option == "-o":
        command.output = value
    elif option == "-x":
        command.language = value
        # For nvcc -x holds for all inputs, also for those before it.
        inputs, command.inputs = command.inputs, []
        for word, _ in inputs:
            _add_input(command, word)
    elif option == "-MF":
        command.depfile = value
    elif option == "-MT":
        command.targets.append(value)
    elif option == "-t":
        command.threads = value


def _nvcc_other(command: Command, option: str, value: str) -> None:
    if option in {"-arch", "-gencode", "-code"} and "native" in value:
        command.note_bypass(f"{option}={value} depends on the machine")
    if option == "-Xcompiler":
        parts = value.split(",")
        if any(part.startswith(("-M", "-Wp,")) and part != "-Wp" for part in parts):
            command.note_bypass("dependency options behind -Xcompiler")
        for part in parts:
            if part in _NEVER_CACHED:
                command.note_bypass(_NEVER_CACHED[part])
    if option in _NEVER_CACHED:
        command.note_bypass(_NEVER_CACHED[option])
    # Joined by "=" no cache can take the value for a second source file.
    command.options.append(f"{option}={value}")


def _host_word(command: Command, word: str, following: str) -> int:
    """Sort one word of a gcc or clang call; return how many words it took."""
    if not word.startswith("-") or word == "-":
        _add_input(command, word)
        return 1
    if word in _HOST_VALUE:
        _host_value(command, word, following)
        return 2
    for option in _HOST_JOINED:
        if word.startswith(option):
            _host_value(command, option, word[len(option) :], joined=True)
            return 1
    if word.startswith(("-MF", "-MT", "-MQ")):
        _host_value(command, word[:3], word[3:])
        return 1
    if not _flag(command, word):
        if word.startswith(("-Wp,-M", "-Wp,-D_M")):
            command.note_bypass("dependency options behind -Wp")
        if word.startswith("-fprofile-"):
            command.note_bypass("-fprofile options read or write a second file")
        command.options.append(word)
    return 1


def _host_value(command: Command, option: str, value: str, *, joined: bool = False) -> None:
    if option == "-o":
        command.output = value
    elif option == "-x":
        command.language = "" if value == "none" else value
    elif option == "-MF":
        command.depfile = value
    elif option in {"-MT", "-MQ"}:
        command.targets.append(value.replace("$", "$$") if option == "-MQ" else value)
    elif option in _INCLUDES:
        command.add_path(option, value)
    elif joined or option in {"-D", "-U"}:
        command.options.append(option + value)
    else:
        command.options += [option, value]
